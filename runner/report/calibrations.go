package report

import (
	"fmt"

	"waza/eval/text"
	"waza/runner/figure"
)

// calibrations prints how well graders agree with the people who scored the same trials.
func (p *runPrinter) calibrations() {
	if p.Summary == nil || len(p.Summary.Calibrations) == 0 {
		return
	}
	p.WriteByte('\n')
	rows := []row{heads("Agreement with people", "Trials", "Same verdict", "Kappa", "Score difference", "Bias")}
	pending := 0
	for _, c := range p.Summary.Calibrations {
		pending += c.Pending
		cells := []string{"  " + Clean(c.Grader), fmt.Sprint(c.N), "–", "–", "–", "–"}
		if c.N > 0 {
			cells[2] = figure.Percent(c.Agreed)
			cells[4], cells[5] = figure.Score(c.MeanAbsoluteDifference), figure.Difference(c.MeanDifference)
		}
		if c.Kappa != nil {
			cells[3] = figure.Number(*c.Kappa) + bounds(c.KappaInterval, figure.NumberInterval)
		}
		rows = append(rows, plains(cells...))
	}
	p.writeTable(rows)
	if pending > 0 {
		p.printf("  %s not compared yet: waza review %s\n", text.Count(pending, "trial is", "trials are"), Clean(p.Record.RunID))
	}
}
