package tally

import (
	"fmt"
	"strings"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/stats"
)

// bench keeps the measurements of the trials of a benchmark, by task. A nil bench keeps nothing.
type bench []benchTask

type benchTask struct {
	samples []sample
	// ended counts the trials that ended, and answered those that the model answered.
	ended, answered int
}

// sample holds the measurements of a trial; 0 means unknown.
type sample struct{ first, total, speed, input, output, cost float64 }

func newBench(rec *record.Run) bench {
	if rec.Suite.Kind != eval.Benchmark {
		return nil
	}
	return make(bench, len(rec.Tasks))
}

// add adds a trial if it was answered. Its grade does not matter.
func (b bench) add(task int, res *record.Trial) {
	if b == nil {
		return
	}
	b[task].ended++
	if res.Verdict != record.Passed && res.Verdict != record.Failed && res.Verdict != record.NeedsReview {
		return
	}
	b[task].answered++
	if res.Speed == nil {
		return
	}
	s := sample{first: res.Speed.FirstTokenMS, total: float64(res.ExecutorMS), speed: res.Speed.TokensPerSecond}
	if u := res.Usage; u != nil {
		s.input, s.output, s.cost = float64(u.InputTokens), float64(u.OutputTokens), u.CostUSD
	}
	b[task].samples = append(b[task].samples, s)
}

// unanswered returns a sentence about the trials of a cell that have no answer. A model whose long
// tasks fail or time out would otherwise seem faster than one that answers them. It is empty if
// all trials were answered.
func (b bench) unanswered(rec *record.Run, c *record.Cell) string {
	var names []string
	tasks := 0
	for i := range b {
		ref := &rec.Tasks[i]
		if lost := b[i].ended - b[i].answered; lost > 0 && ref.Role == record.RoleTask && ref.Cell.In(c) {
			if tasks++; tasks <= mostNamed {
				names = append(names, fmt.Sprintf("%d of %s of %s", lost, text.Count(b[i].ended, "trial", "trials"), suiteTask(ref)))
			}
		}
	}
	if tasks == 0 {
		return ""
	}
	if tasks > mostNamed {
		names = append(names, text.Count(tasks-mostNamed, "more task", "more tasks"))
	}
	return "not answered and not measured: " + strings.Join(names, ", ") + "; a model can look faster without them"
}

// result describes the trials of the suite's tasks in a cell; nil means all of them. It returns
// nil for a run that is not a benchmark, and without trials. The trials of different cells can
// belong to different tasks, if some were not answered; the note lists those.
//
// For example, three trials got their first token after 200, 210 and 220 ms and then wrote 100,
// 100 and 130 tokens per second: the means are 210 ms, with an interval from 185.2 to 234.8 ms,
// and 110 tokens per second, from 67.0 to 153.0.
func (b bench) result(rec *record.Run, c *record.Cell) *record.BenchmarkResult {
	var all []sample
	for i := range b {
		if ref := &rec.Tasks[i]; ref.Role == record.RoleTask && ref.Cell.In(c) {
			all = append(all, b[i].samples...)
		}
	}
	note := b.unanswered(rec, c)
	if len(all) == 0 && note == "" {
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
		m := &record.Measure{Spread: *stats.SpreadOf(known)}
		if i, ok := stats.StudentInterval(known, stats.DefaultConfidence); ok {
			m.MeanInterval = &i
		}
		return m
	}
	return &record.BenchmarkResult{
		Trials:          len(all),
		FirstTokenMS:    measure(func(s sample) float64 { return s.first }),
		TotalMS:         measure(func(s sample) float64 { return s.total }),
		TokensPerSecond: measure(func(s sample) float64 { return s.speed }),
		InputTokens:     measure(func(s sample) float64 { return s.input }),
		OutputTokens:    measure(func(s sample) float64 { return s.output }),
		CostUSD:         measure(func(s sample) float64 { return s.cost }),
		Note:            note,
	}
}
