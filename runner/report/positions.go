package report

import (
	"fmt"

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
func (p *runPrinter) positions() {
	if p.Summary == nil || len(p.Summary.JudgePositions) == 0 {
		return
	}
	p.WriteByte('\n')
	for i := range p.Summary.JudgePositions {
		p.WriteString(p.paint(yellow, "Warning: "+PositionText(&p.Summary.JudgePositions[i])) + "\n")
	}
}

func (m *markdown) positions() {
	if m.Summary == nil {
		return
	}
	for i := range m.Summary.JudgePositions {
		m.add("\n⚠️ " + CodeSpan(PositionText(&m.Summary.JudgePositions[i])) + "\n")
	}
}
