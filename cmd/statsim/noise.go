package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"waza/runner/record"
	"waza/runner/tally"
)

// A noisyDesign draws the trials of a run and their conditions.
type noisyDesign struct {
	name          string
	tasks, trials int
	most          float64 // promised share of runs in which failures go with a condition; 0 for none
	// fill sets the verdict and the conditions of the given trial. rate is the pass rate of its task.
	fill func(rng *rand.Rand, task, num int, rate float64, res *record.Trial)
}

// judged sets the verdict of a trial that passes at a rate.
func judged(rng *rand.Rand, rate float64, res *record.Trial) {
	if res.Verdict = record.Failed; rng.Float64() < rate {
		res.Verdict = record.Passed
	}
}

// throttledBy sets a number of throttled requests of 5.
func throttledBy(n int, res *record.Trial) {
	res.Conditions = &record.Conditions{Requests: &record.Requests{Sent: 5, Throttled: n}}
}

// everything sets all conditions to random values.
func everything(rng *rand.Rand, res *record.Trial) {
	cpu, memory := rng.Float64(), rng.Float64()
	res.Conditions = &record.Conditions{
		CPUWait: &cpu, MemoryWait: &memory, WaitedMS: rng.Int64N(1000),
		Requests: &record.Requests{Sent: 5, Throttled: rng.IntN(3), Retried: rng.IntN(2), WaitedMS: rng.Int64N(1000)},
	}
}

// independent draws verdicts that do not depend on the conditions.
func independent(conditions func(rng *rand.Rand, task, num int, res *record.Trial)) func(*rand.Rand, int, int, float64, *record.Trial) {
	return func(rng *rand.Rand, task, num int, rate float64, res *record.Trial) {
		judged(rng, rate, res)
		conditions(rng, task, num, res)
	}
}

func noisyDesigns() []noisyDesign {
	all := func(rng *rand.Rand, _, _ int, res *record.Trial) { everything(rng, res) }
	return []noisyDesign{
		{"1 task, 15 trials, six conditions", 1, 15, 0.05, independent(all)},
		{"20 tasks, 5 trials, six conditions", 20, 5, 0.05, independent(all)},
		{"50 tasks, 1 trial, six conditions", 50, 1, 1e-9, independent(all)},
		{"20 tasks, 5 trials, equal conditions", 20, 5, 1e-9, independent(func(_ *rand.Rand, _, _ int, res *record.Trial) { throttledBy(1, res) })},
		{"20 tasks, 5 trials, conditions with ties", 20, 5, 0.05, independent(func(rng *rand.Rand, _, _ int, res *record.Trial) {
			throttledBy(rng.IntN(2), res)
		})},
		{"20 tasks, 5 trials, conditions that differ only by tasks, as the pass rates", 20, 5, 1e-9, independent(
			func(_ *rand.Rand, task, _ int, res *record.Trial) { throttledBy(task, res) },
		)},
		{"20 tasks, 5 trials, load that grows during the run", 20, 5, 0.05, independent(
			func(_ *rand.Rand, task, num int, res *record.Trial) { throttledBy(20*num+task, res) },
		)},
		{"20 tasks, 5 trials, 20 % in error, six conditions", 20, 5, 0.05, func(rng *rand.Rand, _, _ int, rate float64, res *record.Trial) {
			judged(rng, rate, res)
			everything(rng, res)
			if rng.Float64() < 0.2 {
				res.Verdict = record.Errored
			}
		}},
		{
			"20 tasks, 5 trials of up to 3 attempts, load that grows during the run", 20, 5, 0.05,
			func(rng *rand.Rand, task, num int, rate float64, res *record.Trial) {
				judged(rng, rate, res)
				throttledBy(60*num+task, res)
				for n := 1; res.Verdict == record.Failed && n < 3; n++ {
					res.Attempts = append(res.Attempts, record.Attempt{Verdict: res.Verdict, Conditions: res.Conditions})
					judged(rng, rate, res)
					throttledBy(60*num+task+20*n, res)
				}
			},
		},
		{"20 tasks, 5 trials, throttling of half of the trials takes 20 points", 20, 5, 0, costing(0.2)},
		{"20 tasks, 5 trials, throttling of half of the trials takes 40 points", 20, 5, 0, costing(0.4)},
		{"20 tasks, 10 trials, throttling of half of the trials takes 20 points", 20, 10, 0, costing(0.2)},
	}
}

// costing draws trials of which half are throttled, which takes a part of their pass rate. The
// other conditions have no effect.
func costing(points float64) func(*rand.Rand, int, int, float64, *record.Trial) {
	return func(rng *rand.Rand, _, _ int, rate float64, res *record.Trial) {
		everything(rng, res)
		res.Conditions.Requests.Throttled = rng.IntN(2)
		judged(rng, max(0, rate-points*float64(res.Conditions.Requests.Throttled)), res)
	}
}

// noises measures how often a run reports that failures or errors go with a condition. The pass
// rates of the tasks are spread between 30 % and 95 %.
func noises() []experiment {
	var list []experiment
	for _, d := range noisyDesigns() {
		times := 200
		if d.most > 1e-9 {
			times = 4000
		}
		list = append(list, experiment{
			what: "failures said to go with a condition", design: d.name, most: d.most, times: times,
			run: repeated(func(rng *rand.Rand) bool { return len(d.draw(rng).Noise) > 0 }),
		})
	}
	return append(list, stoppedNoise())
}

func (d noisyDesign) draw(rng *rand.Rand) *record.Summary {
	rec := &record.Run{}
	for i := range d.tasks {
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: fmt.Sprint(i), Trials: d.trials})
	}
	tl := tally.NewDraft(rec)
	for i := range d.tasks {
		rate := 0.3 + 0.65*(float64(i)+0.5)/float64(d.tasks)
		for num := range d.trials {
			res := &record.Trial{TrialNum: num + 1, StartedAt: time.Unix(1, 0)}
			d.fill(rng, i, num, rate, res)
			tl.AddTrial(i, res)
		}
	}
	return tl.Summary(nil)
}

// stoppedNoise measures tasks that end with their first failure, under a load that grows during
// the run.
func stoppedNoise() experiment {
	return experiment{
		what: "failures said to go with a condition", design: "20 tasks that stop at the first failure, load that grows during the run",
		most: 1e-9, times: 200,
		run: repeated(func(rng *rand.Rand) bool {
			rec := &record.Run{}
			for i := range 20 {
				rec.Tasks = append(rec.Tasks, record.TaskRef{ID: fmt.Sprint(i), Trials: 5, Stopping: 0.95})
			}
			tl := tally.NewDraft(rec)
			for i := range rec.Tasks {
				for num := range 5 {
					res := &record.Trial{TrialNum: num + 1, StartedAt: time.Unix(1, 0)}
					judged(rng, 0.7, res)
					throttledBy(20*num+i, res)
					tl.AddTrial(i, res)
					if res.Verdict == record.Failed {
						break
					}
				}
			}
			return len(tl.Summary(nil).Noise) > 0
		}),
	}
}
