package report

import (
	"cmp"
	"fmt"
	"strconv"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// mostComparisons is the most comparisons of a run in the list.
const mostComparisons = 50

// judgedDocument returns the judges' results in a run of the kind judge, and nil for other runs.
// Judges' reasons are long, so terminals do not show them. show makes a name safe to print.
func (r *Report) judgedDocument(show func(string) string, reasons bool) *document {
	if r.Summary == nil || r.Summary.Judged == nil {
		return nil
	}
	d, rec, j := &document{}, r.Record, r.Summary.Judged
	title := "Judged: no cases"
	if r := j.Report; r != nil && r.OverallScore != nil {
		title = fmt.Sprintf("Judged: grade %s, %s of 100", r.OverallGrade, overall(*r.OverallScore))
	} else if r != nil {
		title = "Judged: no grade, because no task has a score in every cell"
	}
	s := d.section(title)
	head, cells := []string{"Quality"}, []item{plain("Cases")}
	for quality := len(j.Quality); quality > 0; quality-- {
		head = append(head, strconv.Itoa(quality))
		cells = append(cells, plain(strconv.Itoa(j.Quality[quality-1])))
	}
	s.add(heads(append(head, "Not judged")...)...)
	s.add(append(cells, plain(strconv.Itoa(j.Cases-j.Judged)))...)
	for _, line := range commonLines(r.Summary.Common, "The grade is that of", show) {
		s.line(plain(line))
	}
	d.judgedPairs(rec, j)
	d.judgedRanking(j)
	d.judgedCases(rec, j, reasons)
	d.judgedFindings(rec, j)
	return d
}

// judgedPairs adds the comparisons of models.
func (d *document) judgedPairs(rec *record.Run, j *record.JudgeResult) {
	s := d.section("")
	if len(j.Comparisons) > 0 {
		s.add(heads("Comparison", "Wins", "Losses", "Ties", "Win rate", "95 % interval")...)
	}
	for _, p := range j.Comparisons {
		s.add(code(p.ModelA+" against "+p.ModelB), plain(strconv.Itoa(p.Wins)), plain(strconv.Itoa(p.Losses)),
			plain(strconv.Itoa(p.Ties)), plain(share(p.WinRate)), plain(shareInterval(p.WinRateInterval)))
	}
	if j.Missing > 0 {
		s.line(plain(text.Count(j.Missing, "comparison was", "comparisons were")+" not made: "),
			code("waza runs resume "+rec.RunID), plain(" makes the missing ones"))
	}
	if j.LeftOut > 0 {
		s.line(plain(text.Count(j.LeftOut, "comparison is", "comparisons are") + " omitted because there are too many"))
	}
}

// judgedRanking adds the strengths of models.
func (d *document) judgedRanking(j *record.JudgeResult) {
	if len(j.Ranking) == 0 {
		return
	}
	groups := j.Ranking[len(j.Ranking)-1].Group
	head := heads("Model", "Rank", "Beats the average", "95 % interval")
	if groups > 1 {
		head = append(head, heads("Group")...)
	}
	s := d.section("Ranking")
	s.add(head...)
	for _, m := range j.Ranking {
		cells := row{code(m.Model), plain(strconv.Itoa(m.Rank)), plain(figure.Percent(m.Strength)), plain(interval(m.StrengthInterval))}
		if groups > 1 {
			cells = append(cells, plain(strconv.Itoa(m.Group)))
		}
		s.add(cells...)
	}
	if groups > 1 {
		s.line(plain(fmt.Sprintf("The models form %d groups without a comparison between them: the order of groups is unknown", groups)))
	}
}

// judgedCases lists the comparisons of cases.
func (d *document) judgedCases(rec *record.Run, j *record.JudgeResult, reasons bool) {
	names := map[string]string{}
	for i := range rec.Tasks {
		names[rec.Tasks[i].ID] = rec.Tasks[i].Task
	}
	head := []string{"Case", "Winner", "Confidence"}
	if reasons {
		head = append(head, "Reasoning")
	}
	s, n := d.section(""), 0
	for _, p := range j.Comparisons {
		for _, c := range p.Cases {
			if n++; n > mostComparisons {
				continue
			}
			if n == 1 {
				s.add(heads(head...)...)
			}
			name := cmp.Or(names[c.TaskA], c.TaskA)
			winner, sure, why := "none", "–", c.Error
			if c.Error == "" {
				winner, sure, why = winnerName(c), figure.Percent(c.Confidence), c.Reasoning
			}
			cells := []item{code(fmt.Sprintf("%s, trial %d", name, c.TrialNum)), code(winner), plain(sure)}
			if reasons {
				cells = append(cells, code(Cut(why, mostMessage)))
			}
			s.add(cells...)
		}
	}
	if n > mostComparisons {
		s.line(plain(fmt.Sprintf("%d more: ", n-mostComparisons)), code("waza runs show "+rec.RunID+" --json"), plain(" shows all"))
	}
}

func winnerName(c *record.CaseComparison) string {
	switch c.Winner {
	case record.WinnerA:
		return c.ModelA
	case record.WinnerB:
		return c.ModelB
	case record.Tie:
	}
	return "tie"
}

// judgedFindings lists strengths and weaknesses.
func (d *document) judgedFindings(rec *record.Run, j *record.JudgeResult) {
	r := j.Report
	if r == nil {
		return
	}
	for _, l := range []struct {
		title string
		list  []string
	}{{"Strengths", r.Strengths}, {"Weaknesses", r.Weaknesses}} {
		if len(l.list) == 0 {
			continue
		}
		s := d.section(l.title)
		for _, finding := range l.list {
			s.line(plain("  "), code(finding))
		}
	}
	s := d.section("")
	if r.Missing != "" {
		s.line(plain("Strengths and weaknesses are missing: "), code(Cut(r.Missing, mostMessage)))
	}
	if r.Stale {
		s.line(plain("Verdicts changed since strengths and weaknesses were written: "),
			code("waza runs resume "+rec.RunID), plain(" writes them again"))
	}
}

// overall formats an overall score with all its decimals.
func overall(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }
