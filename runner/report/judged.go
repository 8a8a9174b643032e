package report

import (
	"fmt"
	"strconv"
	"strings"

	"waza/runner/record"
)

// judgedDocument is what judges say in a run of the kind judge.
func judgedDocument(j *record.JudgeResult) *document {
	d := &document{}
	title := "Judged: no case"
	if j.Report != nil {
		title = fmt.Sprintf("Judged: grade %s, %s of 100", j.Report.OverallGrade, overall(j.Report.OverallScore))
	}
	s := d.section(title)
	head, cells := []string{"Quality"}, []item{plain("Cases")}
	for quality := len(j.Quality); quality > 0; quality-- {
		head = append(head, strconv.Itoa(quality))
		cells = append(cells, plain(strconv.Itoa(j.Quality[quality-1])))
	}
	s.add(heads(append(head, "Not judged")...)...)
	s.add(append(cells, plain(strconv.Itoa(j.Cases-j.Judged)))...)
	return d
}

// overall is an overall score with as many decimals as it has.
func overall(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }

func (r *Report) judged(b *strings.Builder, o Options) {
	if r.Summary == nil || r.Summary.Judged == nil {
		return
	}
	b.WriteByte('\n')
	_ = judgedDocument(r.Summary.Judged).text(b, o) // a Builder takes everything
}

func (m *markdown) judged() {
	if m.Summary == nil || m.Summary.Judged == nil {
		return
	}
	var b strings.Builder
	b.WriteByte('\n')
	_ = judgedDocument(m.Summary.Judged).markdown(&b)
	m.add(b.String())
}
