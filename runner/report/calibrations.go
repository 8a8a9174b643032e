package report

import (
	"fmt"
	"strings"

	"waza/runner"
)

// calibrations tells how far graders agree with the persons who scored the same
// trials.
func (r *Report) calibrations(b *strings.Builder, o Options) {
	if r.Summary == nil || len(r.Summary.Calibrations) == 0 {
		return
	}
	b.WriteByte('\n')
	head := []string{"Agreement with persons", "Trials", "Same verdict", "Kappa", "Scores apart", "Bias"}
	rows := []row{{cells: head, colours: []colour{bold, bold, bold, bold, bold, bold}}}
	pending := 0
	for _, c := range r.Summary.Calibrations {
		pending += c.Pending
		cells := []string{"  " + Clean(c.Grader), fmt.Sprint(c.N), "–", "–", "–", "–"}
		if c.N > 0 {
			cells[2] = percent(c.Agreed)
			cells[4], cells[5] = fmt.Sprintf("%.2f", c.MeanAbsoluteDifference), bias(c)
		}
		if c.Kappa != nil {
			cells[3] = fmt.Sprintf("%.2f", *c.Kappa) + bounds(c.KappaInterval, func(x float64) string { return fmt.Sprintf("%.2f", x) })
		}
		rows = append(rows, row{cells, make([]colour, len(cells))})
	}
	writeTable(b, rows, o)
	if pending > 0 {
		fmt.Fprintf(b, "  %s not compared yet: waza review %s\n", count(pending, "trial is", "trials are"), Clean(r.Record.RunID))
	}
}

// bias is the mean of the grader's scores less the person's.
func bias(c runner.CalibrationResult) string {
	if d := fmt.Sprintf("%+.2f", c.MeanDifference); d != "+0.00" && d != "-0.00" {
		return d
	}
	return "0.00"
}
