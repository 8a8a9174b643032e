package report

import (
	"fmt"

	"waza/eval/text"
	"waza/runner/figure"
)

// correctedDocument returns the pass rates of judges that people corrected, beside the judged
// ones; nil if no trials were drawn for people.
func (r *Report) correctedDocument() *document {
	if r.Summary == nil {
		return nil
	}
	d := &document{}
	s := d.section("")
	for _, c := range r.Summary.Calibrations {
		x := c.Corrected
		if x == nil {
			continue
		}
		if len(s.rows) == 0 {
			s.title = "Pass rate corrected by people"
			s.add(heads("Grader", "Labels", "Judged", "95 % interval", "Corrected", "95 % interval", "Corrected score")...)
			s.spare = []int{6, 3}
		}
		corrected := "–"
		if x.Score != nil {
			corrected = figure.Score(*x.Score) + bounds(x.ScoreInterval, figure.ScoreInterval)
		}
		s.add(code(c.Grader), plain(fmt.Sprintf("%d of %d", x.Labels, x.Trials)), plain(figure.Percent(x.Judged)),
			plain(shareInterval(&x.JudgedInterval)), plain(share(x.PassRate)), plain(shareInterval(x.PassRateInterval)), plain(corrected))
		if left := x.Drawn - x.Labels - x.Waiting; left > 0 {
			s.line(plain(text.Count(left, "drawn trial has", "drawn trials have")+" no label: "),
				code(fmt.Sprintf("waza review %s --calibrate %d --grader %q", r.Record.RunID, x.Drawn, c.Grader)))
		}
		if x.Waiting > 0 {
			s.line(plain(text.Count(x.Waiting, "label waits", "labels wait") + " for those of trials drawn earlier, because only labels in the order of the draw are a random sample."))
		}
		if x.JudgedTrials != nil {
			s.line(plain(fmt.Sprintf("The judged rate is about the %s that the grader has scored now, the corrected one about the %d of the draw.",
				text.Count(*x.JudgedTrials, "trial", "trials"), x.Trials)))
		}
	}
	return d
}

// agreementDocument returns how well graders agree with people; nil if nobody was asked. The
// report for terminals has its own form, see [runPrinter.calibrations].
func (r *Report) agreementDocument() *document {
	if r.Summary == nil || len(r.Summary.Calibrations) == 0 {
		return nil
	}
	d := &document{}
	s := d.section("Agreement with people")
	s.add(heads("Grader", "Trials", "Same verdict", "Kappa", "Score difference", "Bias")...)
	for _, c := range r.Summary.Calibrations {
		cells := []string{fmt.Sprint(c.N), "–", "–", "–", "–"}
		if c.N > 0 {
			cells[1], cells[3], cells[4] = figure.Percent(c.Agreed), figure.Score(c.MeanAbsoluteDifference), figure.Difference(c.MeanDifference)
		}
		if c.Kappa != nil {
			cells[2] = figure.Number(*c.Kappa) + bounds(c.KappaInterval, figure.NumberInterval)
		}
		s.add(append(row{code(c.Grader)}, plains(cells...)...)...)
	}
	return d
}
