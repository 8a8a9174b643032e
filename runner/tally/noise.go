package tally

import (
	"maps"
	"math"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// noise collects the conditions of the trials of the suite's tasks.
//
// Only the first attempts count, with their own verdicts and conditions: a trial that fails has
// more attempts, at a later time, so that the conditions of the last one depend on the verdict.
// Trials of other runs and of tasks that could stop early do not count, for the same reason.
type noise struct {
	tasks   map[int][]firstAttempt
	known   bool // some conditions are known
	further bool // some trial has further attempts
}

// firstAttempt is the first attempt at a trial. Conditions may be nil.
type firstAttempt struct {
	verdict record.Verdict
	*record.Conditions
}

func (n *noise) add(task int, ref *record.TaskRef, res *record.Trial) {
	if res.Cached != nil || ref.Stopping > 0 || res.StartedAt.IsZero() {
		return
	}
	verdict, c := res.First()
	if !verdict.Counted() && verdict != record.Errored {
		return
	}
	if n.tasks == nil {
		n.tasks = map[int][]firstAttempt{}
	}
	n.tasks[task] = append(n.tasks[task], firstAttempt{verdict, c})
	n.known = n.known || c != nil
	n.further = n.further || len(res.Attempts) > 0
}

// A measured is a condition, with its value in a first attempt: larger is worse, NaN is unknown.
type measured struct {
	record.Condition
	counts bool // it is present if it is not 0
	of     func(c *record.Conditions) float64
}

func valueOf(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func ofRequests(of func(r *record.Requests) float64) func(c *record.Conditions) float64 {
	return func(c *record.Conditions) float64 {
		if c.Requests == nil {
			return math.NaN()
		}
		return of(c.Requests)
	}
}

// conditionsOf lists the conditions that are tested. A condition that is replaced by a better one
// follows it: its values count only if those of the better one are all unknown.
var conditionsOf = [][]measured{
	{
		{record.ConditionCPUWait, false, func(c *record.Conditions) float64 { return valueOf(c.CPUWait) }},
		{record.ConditionLoad, false, func(c *record.Conditions) float64 { return valueOf(c.Load) }},
	},
	{
		{record.ConditionMemoryWait, false, func(c *record.Conditions) float64 { return valueOf(c.MemoryWait) }},
		{record.ConditionMemoryFree, false, func(c *record.Conditions) float64 { return -valueOf(c.MemoryFree) }},
	},
	{{record.ConditionThrottled, true, ofRequests(func(r *record.Requests) float64 { return float64(r.Throttled) })}},
	{{record.ConditionRetried, true, ofRequests(func(r *record.Requests) float64 { return float64(r.Retried) })}},
	{{record.ConditionRequestsWaited, false, ofRequests(func(r *record.Requests) float64 { return float64(r.WaitedMS) })}},
	{{record.ConditionWaited, false, func(c *record.Conditions) float64 { return float64(c.WaitedMS) }}},
}

// noiseTest is the test of a condition and a verdict.
type noiseTest struct {
	measured
	verdict record.Verdict
	tasks   [][]stats.Marked
}

// noiseResults returns the conditions with which failures or errors evidently go. The tests of all
// conditions and both verdicts are corrected together by [stats.Holm], so that a run without noise
// has a result with a probability of at most 5 %. A run that ended early has none, because its
// last trials may have ended it.
func (t *summing) noiseResults() (list []record.NoiseResult) {
	if !t.noise.known || t.rec.Config.FailFast || t.rec.Question != nil || !t.complete() {
		return nil
	}
	var tests []noiseTest
	var exact []stats.Exact
	for _, alternatives := range conditionsOf {
		for _, verdict := range []record.Verdict{record.Failed, record.Errored} {
			test := t.noise.test(alternatives, verdict)
			tests, exact = append(tests, test), append(exact, stats.RankSums(test.tasks, stats.DefaultSeed))
		}
	}
	for i, p := range stats.Holm(exact) {
		if p <= 1-stats.DefaultConfidence {
			list = append(list, tests[i].result(p, t.noise.further))
		}
	}
	return list
}

// complete reports whether all trials of the suite's tasks have ended that the plan does not allow
// to skip.
func (t *summing) complete() bool {
	for i := range t.rec.Tasks {
		ref := &t.rec.Tasks[i]
		if ref.Role != record.RoleTask || ref.Stopping > 0 {
			continue
		}
		if n := t.state.EndedTrials(i); n.Total < ref.Trials || n.Skipped+n.Cancelled > 0 {
			return false
		}
	}
	return true
}

// test returns the test of the first of the conditions that is known.
func (n *noise) test(alternatives []measured, verdict record.Verdict) noiseTest {
	for _, m := range alternatives {
		if test := n.testOf(m, verdict); len(test.tasks) > 0 {
			return test
		}
	}
	return noiseTest{measured: alternatives[0], verdict: verdict}
}

func (n *noise) testOf(m measured, verdict record.Verdict) noiseTest {
	test := noiseTest{measured: m, verdict: verdict}
	none := new(record.Conditions)
	for _, task := range slices.Sorted(maps.Keys(n.tasks)) {
		var list []stats.Marked
		for _, a := range n.tasks[task] {
			c := a.Conditions
			if c == nil {
				c = none
			}
			isError := a.verdict == record.Errored
			if v := m.of(c); !math.IsNaN(v) && (verdict == record.Errored || !isError) {
				list = append(list, stats.Marked{Value: v, Marked: isError || verdict == record.Failed && a.verdict != record.Passed})
			}
		}
		if len(list) > 0 {
			test.tasks = append(test.tasks, list)
		}
	}
	return test
}

// result describes a test that shows that the verdict goes with the condition.
func (n *noiseTest) result(p float64, further bool) record.NoiseResult {
	r := record.NoiseResult{Condition: n.Condition, Verdict: n.verdict, P: p, FirstAttempts: further}
	var tasks []stats.Exposed
	for _, list := range n.tasks {
		r.Trials += len(list)
		tasks = append(tasks, n.exposed(list))
	}
	with, without, ok := stats.StandardRates(tasks) // of failures or errors
	if !ok || with <= without {
		return r
	}
	if n.verdict == record.Failed {
		with, without = 1-with, 1-without
	}
	r.With, r.Without = &with, &without
	return r
}

// exposed counts the marked trials of a task with and without the condition.
func (n *noiseTest) exposed(list []stats.Marked) (e stats.Exposed) {
	limit := 0.0 // values above it have the condition
	if !n.counts {
		values := make([]float64, len(list))
		for i, m := range list {
			values[i] = m.Value
		}
		slices.Sort(values)
		if limit = values[(len(values)-1)/2]; limit == values[len(values)-1] {
			limit = math.Nextafter(limit, math.Inf(-1)) // more than half have the largest value
		}
	}
	for _, m := range list {
		s := &e.Without
		if m.Value > limit {
			s = &e.With
		}
		s.N++
		if m.Marked {
			s.Passed++
		}
	}
	return e
}
