package report

import (
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// PositionText describes a judge who prefers a place.
func PositionText(p *record.JudgePosition) string {
	place, n, other, m := "first", p.First, "second", p.Second
	if p.Second > p.First {
		place, n, other, m = other, p.Second, place, p.First
	}
	return fmt.Sprintf("judge %s prefers the %s of two outputs, whichever it is: in %d of %s, and the %s in %d (p "+
		"%s). These are ties; change the judge or its criteria",
		Clean(p.Judge), place, n, text.Count(p.Compared, "comparison", "comparisons"), other, m, figure.P(p.P))
}

// positions warns about judges who prefer a place.
func (r *Report) positions(b *strings.Builder, o Options) {
	if r.Summary == nil || len(r.Summary.JudgePositions) == 0 {
		return
	}
	b.WriteByte('\n')
	for i := range r.Summary.JudgePositions {
		b.WriteString(o.paint(yellow, "Warning: "+PositionText(&r.Summary.JudgePositions[i])) + "\n")
	}
}

func (m *markdown) positions() {
	if m.Summary == nil {
		return
	}
	for i := range m.Summary.JudgePositions {
		m.add("\n⚠️ " + codeSpan(PositionText(&m.Summary.JudgePositions[i])) + "\n")
	}
}
