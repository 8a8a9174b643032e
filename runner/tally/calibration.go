package tally

import (
	"cmp"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// calibration collects the scores that people and a grader gave to the same trials.
type calibration struct {
	pairs   []stats.Pair
	pending int
	drawn   drawnLabels
	judges  []string
}

// drawnLabels collects people's scores of trials that were drawn at random, by the verdict of the
// grader when they were drawn.
type drawnLabels struct {
	draw  *record.LabelDraw // any of them; nil if no trial was drawn
	parts [2][]drawnLabel   // failed and passed trials
}

// A drawnLabel is a drawn trial with a person's verdict and score, if it has them.
type drawnLabel struct {
	place         int
	labeled       bool
	passed, score float64
}

func (l *drawnLabels) add(r *record.Grade, d *record.LabelDraw) {
	l.draw = d
	x := drawnLabel{place: d.Place, labeled: r.Scored(), score: r.Score}
	if r.Passed {
		x.passed = 1
	}
	part := 0
	if d.Passed {
		part = 1
	}
	l.parts[part] = append(l.parts[part], x)
}

// result returns the corrected pass rate and score; nil if no trial was drawn. present has the
// grader's present scores, which can be others than those of the draw.
//
// People may choose which trials they label first. Only the labels before the first gap of their
// part are a random sample of it, so that later ones wait. The parts are those of the draw even if
// the grader's verdicts changed: the labels are still a stratified sample.
func (l *drawnLabels) result(present *presentScores) *record.CorrectedRate {
	if l.draw == nil {
		return nil
	}
	c := &record.CorrectedRate{Trials: l.draw.Trials}
	var passes, scores [2][]float64
	for part, list := range l.parts {
		slices.SortFunc(list, func(a, b drawnLabel) int { return cmp.Compare(a.place, b.place) })
		gap := false
		for _, x := range list {
			c.Drawn++
			gap = gap || !x.labeled
			switch {
			case !gap:
				c.Labels++
				passes[part], scores[part] = append(passes[part], x.passed), append(scores[part], x.score)
			case x.labeled:
				c.Waiting++
			}
		}
	}
	if present == nil {
		present = &presentScores{}
	}
	if n := len(present.scores); n != c.Trials {
		c.JudgedTrials = &n
	}
	judged := stats.RateOf(stats.Share{Passed: present.passed, N: len(present.scores)}, stats.DefaultConfidence)
	c.Judged, c.JudgedInterval, c.JudgedScore = judged.Value, judged.Interval, stats.Describe(present.scores).Mean
	estimate := func(labels [2][]float64) (*float64, *record.Interval) {
		e, ok := stats.CorrectedMean([]stats.LabelStratum{
			{Trials: l.draw.Trials - l.draw.TrialsPassed, Labels: labels[0]}, {Trials: l.draw.TrialsPassed, Labels: labels[1]},
		}, stats.DefaultConfidence)
		if !ok {
			return nil, nil
		}
		return &e.Value, &e.Interval
	}
	c.PassRate, c.PassRateInterval = estimate(passes)
	c.Score, c.ScoreInterval = estimate(scores)
	return c
}

// presentScores holds the present scores of a grader.
type presentScores struct {
	passed int
	scores []float64
}

// addPresent counts the scores of graders that could be calibrated, as the draw counts them.
func (t *Run) addPresent(results []record.Grade) {
	for i := range results {
		g := &results[i]
		if g.AsksPerson() || !g.Scored() || g.AfterTurn > 0 ||
			slices.ContainsFunc(results[:i], func(o record.Grade) bool { return o.Name == g.Name }) {
			continue
		}
		p := t.present[g.Name]
		if p == nil {
			p = &presentScores{}
			t.present[g.Name] = p
		}
		if g.Passed {
			p.passed++
		}
		p.scores = append(p.scores, g.Score)
	}
}

func (t *Run) addCalibrations(role record.Role, results []record.Grade) {
	if role == record.RoleTask {
		t.addPresent(results)
	}
	for i := range results {
		r := &results[i]
		if !r.Calibrates() || r.Error != "" {
			continue
		}
		review := r.Review()
		c := t.calibrated[review.Calibrates]
		if c == nil {
			c = &calibration{}
			t.calibrated[review.Calibrates] = c
		}
		if r.NeedsReview {
			c.pending++
		}
		if review.Drawn != nil {
			c.drawn.add(r, review.Drawn)
		}
		for j := range results {
			if results[j].Name != review.Calibrates {
				continue
			}
			for _, o := range results[j].Opinions() {
				if !slices.Contains(c.judges, o.Judge) {
					c.judges = append(c.judges, o.Judge)
				}
			}
		}
		if p := review.Comparison; p != nil {
			c.pairs = append(c.pairs, stats.Pair{
				Reference: p.Person, ReferencePassed: p.PersonPassed, Other: p.Grader, OtherPassed: p.GraderPassed,
			})
		}
	}
}

func (t *Run) calibrationResults() []record.CalibrationResult {
	var out []record.CalibrationResult
	for name, c := range t.calibrated {
		out = append(out, record.CalibrationResult{
			Grader: name, Judges: slices.Sorted(slices.Values(c.judges)), Pending: c.pending, Agreement: stats.Agree(c.pairs), Corrected: c.drawn.result(t.present[name]),
		})
	}
	slices.SortFunc(out, func(a, b record.CalibrationResult) int { return cmp.Compare(a.Grader, b.Grader) })
	return out
}
