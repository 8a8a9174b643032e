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
	draw           *record.LabelDraw // any of them; nil if no trial was drawn
	drawn, labels  int
	passes, scores [2][]float64 // of failed and of passed trials
}

func (l *drawnLabels) add(r *record.Grade, d *record.LabelDraw) {
	l.draw = d
	l.drawn++
	if !r.Scored() {
		return
	}
	part, passed := 0, 0.0
	if d.Passed {
		part = 1
	}
	if r.Passed {
		passed = 1
	}
	l.labels++
	l.passes[part], l.scores[part] = append(l.passes[part], passed), append(l.scores[part], r.Score)
}

// result returns the corrected pass rate and score; nil if no trial was drawn.
func (l *drawnLabels) result() *record.CorrectedRate {
	if l.draw == nil {
		return nil
	}
	judged := stats.RateOf(stats.Share{Passed: l.draw.TrialsPassed, N: l.draw.Trials}, stats.DefaultConfidence)
	c := &record.CorrectedRate{
		Trials: l.draw.Trials, Drawn: l.drawn, Labels: l.labels,
		Judged: judged.Value, JudgedInterval: judged.Interval, JudgedScore: l.draw.MeanScore,
	}
	estimate := func(labels [2][]float64) (*float64, *record.Interval) {
		e, ok := stats.CorrectedMean([]stats.LabelStratum{
			{Trials: l.draw.Trials - l.draw.TrialsPassed, Labels: labels[0]}, {Trials: l.draw.TrialsPassed, Labels: labels[1]},
		}, stats.DefaultConfidence)
		if !ok {
			return nil, nil
		}
		return &e.Value, &e.Interval
	}
	c.PassRate, c.PassRateInterval = estimate(l.passes)
	c.Score, c.ScoreInterval = estimate(l.scores)
	return c
}

func (t *Run) addCalibrations(results []record.Grade) {
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
			Grader: name, Judges: slices.Sorted(slices.Values(c.judges)), Pending: c.pending, Agreement: stats.Agree(c.pairs), Corrected: c.drawn.result(),
		})
	}
	slices.SortFunc(out, func(a, b record.CalibrationResult) int { return cmp.Compare(a.Grader, b.Grader) })
	return out
}
