package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"waza/eval/text"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/tally"
)

// commands measures how often one waza compare of equal cells, or of several runs with one
// reference, has any verdict of better or worse, how often it calls any task changed, and how often
// --fail-on regression ends with exit code 1. The
// rule about tasks with too few trials for a test, which only warns there, has rows of its own.
func commands() []experiment {
	var designs [][]experiment
	for _, n := range []int{2, 5, 12, 50} {
		for _, d := range []struct {
			tasks, trials int
			scores        bool
		}{{3, 5, false}, {20, 1, false}, {10, 5, false}, {10, 5, true}} {
			design := fmt.Sprintf("%d equal cells, %d tasks, %s", n, d.tasks, text.Count(d.trials, "trial", "trials"))
			if d.scores {
				design += " with scores"
			}
			times := 500
			if n == 50 {
				times = 200
			}
			designs = append(designs, together(design, times, func(rng *rand.Rand) *compare.Comparison {
				r := run{rates: drawRates(rng, d.tasks, 0.5), trials: d.trials, threshold: 1, scores: d.scores}
				runs := make([]run, n)
				for i := range runs {
					runs[i] = r
				}
				return comparedAll(rng, runs...)
			},
				event[*compare.Comparison]{"false verdict of a command", 0, 0.05, share(func(c *compare.Comparison) bool { return c.Verdicts() > 0 })},
				event[*compare.Comparison]{"false alarm of any task of a command", 0, 0.05, share(func(c *compare.Comparison) bool { return c.Changes() > 0 })},
				event[*compare.Comparison]{"exit code 1 without a change", 0, 0.05, share((*compare.Comparison).Regressed)},
			))
		}
	}
	return byEvent(designs)
}

// withBaseline returns the result of a suite whose trials pass with these probabilities.
func withBaseline(rng *rand.Rand, tasks, trials int, without, with float64) *record.BaselineResult {
	rec := &record.Run{Baseline: &record.BaselineRef{}}
	var rates []float64
	for i := range tasks {
		id := fmt.Sprint(i)
		rec.Tasks = append(rec.Tasks,
			record.TaskRef{ID: id + " without", Role: record.RoleBaseline, Of: id, First: 1, Trials: trials},
			record.TaskRef{ID: id, First: 1, Trials: trials})
		rates = append(rates, without, with)
	}
	sum := tally.NewDraft(rec)
	for i, rate := range rates {
		task := tally.NewTask(&rec.Tasks[i], 1)
		for n := range trials {
			score := float64(draw(rng, rate, 1))
			res := &record.Trial{
				TrialNum: n + 1, Verdict: record.Failed, Score: &score,
				Graders: []record.Grade{{Name: "grader", Score: score, Passed: score == 1, Weight: 1}},
			}
			if score == 1 {
				res.Verdict = record.Passed
			}
			task.Add(res)
			sum.AddTrial(i, res)
		}
		sum.AddTask(i, task.Result(1))
	}
	return sum.Summary(nil).Baseline
}

// baselineRuns measures how often waza run --baseline is wrong about skills, and how often it finds
// an effect.
func baselineRuns() []experiment {
	is := func(outcome record.Outcome) func(*record.BaselineResult) float64 {
		return share(func(r *record.BaselineResult) bool { return r.Outcome == outcome })
	}
	var designs [][]experiment
	var found []experiment
	for _, d := range [][2]int{{3, 5}, {10, 1}, {10, 5}, {20, 10}} {
		name := fmt.Sprintf("%d tasks, %s", d[0], text.Count(d[1], "trial", "trials"))
		for _, rate := range []float64{0.5, 0.8} {
			designs = append(designs, together(fmt.Sprintf("%s, %g %% pass with and without skills", name, 100*rate), 1000,
				func(rng *rand.Rand) *record.BaselineResult { return withBaseline(rng, d[0], d[1], rate, rate) },
				event[*record.BaselineResult]{"--baseline fails a skill without effect", 0, 0.025, is(record.OutcomeWorse)},
				event[*record.BaselineResult]{"--baseline --undecided fail passes a skill without effect", 0, 0.025, is(record.OutcomeBetter)},
			))
		}
		found = append(found, together(name+", 60 % pass without skills and 90 % with them", 1000,
			func(rng *rand.Rand) *record.BaselineResult { return withBaseline(rng, d[0], d[1], 0.6, 0.9) },
			event[*record.BaselineResult]{"--baseline shows that a skill helps", 0, 0, is(record.OutcomeBetter)})...)
	}
	list := append(byEvent(designs), found...)
	for _, suites := range []int{3, 10} {
		list = append(list, experiment{
			what:   "--baseline fails a command whose skills have no effect",
			design: fmt.Sprintf("%d suites, 10 tasks, 5 trials, 50 %% pass with and without skills", suites), most: 0.025, times: 1000,
			run: repeated(func(rng *rand.Rand) bool {
				var results []*record.BaselineResult
				for range suites {
					results = append(results, withBaseline(rng, 10, 5, 0.5, 0.5))
				}
				return slices.Contains(tally.OutcomesTogether(results), record.OutcomeWorse)
			}),
		})
	}
	return list
}

// gateRule measures how often a task that did not change passes all trials of the reference and
// none of the run.
func gateRule() []experiment {
	var list []experiment
	for _, trials := range []int{1, 2, 3, 5} {
		for _, rate := range []float64{0.5, 0.9} {
			list = append(list, experiment{
				what:   "gate rule fails for a task that did not change",
				design: fmt.Sprintf("%s, %.0f %% pass", text.Count(trials, "trial", "trials"), 100*rate),
				times:  10_000, most: compare.ChanceOfCollapse(trials, trials), run: repeated(func(rng *rand.Rand) bool {
					before, now := draw(rng, rate, trials), draw(rng, rate, trials)
					return before == trials && now == 0
				}),
			})
		}
	}
	return list
}
