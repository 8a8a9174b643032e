package report

import (
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
)

// calibrations prints how well graders agree with the people who scored the same trials.
func (r *Report) calibrations(b *strings.Builder, o Options) {
	if r.Summary == nil || len(r.Summary.Calibrations) == 0 {
		return
	}
	b.WriteByte('\n')
	head := []string{"Agreement with people", "Trials", "Same verdict", "Kappa", "Score difference", "Bias"}
	rows := []row{{cells: head, colours: []colour{bold, bold, bold, bold, bold, bold}}}
	pending := 0
	for _, c := range r.Summary.Calibrations {
		pending += c.Pending
		cells := []string{"  " + Clean(c.Grader), fmt.Sprint(c.N), "–", "–", "–", "–"}
		if c.N > 0 {
			cells[2] = figure.Percent(c.Agreed)
			cells[4], cells[5] = figure.Score(c.MeanAbsoluteDifference), figure.Difference(c.MeanDifference)
		}
		if c.Kappa != nil {
			cells[3] = figure.Number(*c.Kappa) + bounds(c.KappaInterval, figure.NumberInterval)
		}
		rows = append(rows, row{cells, make([]colour, len(cells))})
	}
	writeTable(b, rows, o)
	if pending > 0 {
		fmt.Fprintf(b, "  %s not compared yet: waza review %s\n", text.Count(pending, "trial is", "trials are"), Clean(r.Record.RunID))
	}
}
