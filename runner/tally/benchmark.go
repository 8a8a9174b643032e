package tally

import (
	"waza/eval"
	"waza/runner/record"
	"waza/runner/stats"
)

// bench keeps the measurements of the trials of a benchmark, by task. A nil bench keeps nothing.
type bench [][]sample

// sample holds the measurements of a trial; 0 means unknown.
type sample struct{ first, speed, input, output, cost float64 }

func newBench(rec *record.Run) bench {
	if rec.Suite.Kind != eval.Benchmark {
		return nil
	}
	return make(bench, len(rec.Tasks))
}

// add adds a trial if it was answered. Its grade does not matter.
func (b bench) add(task int, res *record.Trial) {
	answered := res.Verdict == record.Passed || res.Verdict == record.Failed || res.Verdict == record.NeedsReview
	if b == nil || !answered || res.Speed == nil {
		return
	}
	s := sample{first: res.Speed.FirstTokenMS, speed: res.Speed.TokensPerSecond}
	if u := res.Usage; u != nil {
		s.input, s.output, s.cost = float64(u.InputTokens), float64(u.OutputTokens), u.CostUSD
	}
	b[task] = append(b[task], s)
}

// result describes the trials of the suite's tasks in a cell; nil means all of them. It returns
// nil for a run that is not a benchmark, and without trials.
//
// For example, three trials got their first token after 200, 210 and 220 ms and then wrote 100,
// 100 and 130 tokens per second: the means are 210 ms, with an interval from 185.2 to 234.8 ms,
// and 110 tokens per second, from 67.0 to 153.0.
func (b bench) result(rec *record.Run, c *record.Cell) *record.BenchmarkResult {
	var all []sample
	for i := range b {
		if ref := &rec.Tasks[i]; ref.Role == record.RoleTask && ref.Cell.In(c) {
			all = append(all, b[i]...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	measure := func(of func(sample) float64) *record.Measure {
		var known []float64
		for _, s := range all {
			if x := of(s); x > 0 {
				known = append(known, x)
			}
		}
		if len(known) == 0 {
			return nil
		}
		m := &record.Measure{Distribution: stats.Describe(known)}
		if i, ok := stats.StudentInterval(known, stats.DefaultConfidence); ok {
			m.MeanInterval = &i
		}
		return m
	}
	return &record.BenchmarkResult{
		Trials:          len(all),
		FirstTokenMS:    measure(func(s sample) float64 { return s.first }),
		TokensPerSecond: measure(func(s sample) float64 { return s.speed }),
		InputTokens:     measure(func(s sample) float64 { return s.input }),
		OutputTokens:    measure(func(s sample) float64 { return s.output }),
		CostUSD:         measure(func(s sample) float64 { return s.cost }),
	}
}
