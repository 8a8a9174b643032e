package tally_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/tally"
)

// noisyTrial returns a trial with throttled requests.
func noisyTrial(num int, v record.Verdict, throttled int) *record.Trial {
	return &record.Trial{
		TrialNum: num, Verdict: v, StartedAt: time.Unix(1, 0),
		Conditions: &record.Conditions{Requests: &record.Requests{Sent: 3, Throttled: throttled}},
	}
}

// noisyRun returns the noise of a run of 4 tasks with 5 trials each, of which the last two failed.
func noisyRun(rec record.Run, change func(task int, res *record.Trial)) []record.NoiseResult {
	for range 4 {
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: string(rune('a' + len(rec.Tasks))), Trials: 5, Stopping: rec.Config.Stopping.Confidence})
	}
	tl := tally.NewDraft(&rec)
	for task := range rec.Tasks {
		for i := range 5 {
			v, throttled := record.Passed, 0
			if i > 2 {
				v, throttled = record.Failed, 1+i
			}
			res := noisyTrial(i+1, v, throttled)
			change(task, res)
			tl.AddTrial(task, res)
		}
	}
	return tl.Summary(nil).Noise
}

func TestNoise(t *testing.T) {
	t.Parallel()
	found := noisyRun(record.Run{}, func(int, *record.Trial) {})
	require.Len(t, found, 1)
	p := found[0].P
	require.InDelta(t, 0.0001, p, 1e-9, "1/10 to the power of 4 tasks, and no other condition can show anything")
	zero, one := 0.0, 1.0
	require.Equal(t, record.NoiseResult{
		Condition: record.ConditionThrottled, Verdict: record.Failed, P: p, Trials: 20, With: &zero, Without: &one,
	}, found[0])
	require.Equal(t, "Failures go with throttling: of the trials with throttled requests, 0 % passed, of the others 100 %, "+
		"within tasks (p <0.001). This can also come from what these agents did. To check, run again with fewer workers",
		report.NoiseText(&found[0]))
}

// Errors are outcomes of their own, and no failures.
func TestNoiseOfErrors(t *testing.T) {
	t.Parallel()
	found := noisyRun(record.Run{}, func(_ int, res *record.Trial) {
		if res.Verdict == record.Failed {
			res.Verdict = record.Errored
		}
		res.Conditions = &record.Conditions{WaitedMS: int64(10 * res.TrialNum)}
	})
	require.Len(t, found, 1)
	require.Equal(t, record.ConditionWaited, found[0].Condition)
	require.Equal(t, "Errors go with waits before trials start: of the trials above the median of their task, 100 % ended in "+
		"error, of the others 0 %, within tasks (p <0.001). To check, run again with fewer workers", report.NoiseText(&found[0]))
}

// Load replaces the counters of a system that has none, and little memory is worse than much.
func TestNoiseOfTheMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name record.Condition
		set  func(c *record.Conditions, x float64)
	}{
		{record.ConditionLoad, func(c *record.Conditions, x float64) { c.Load = &x }},
		{record.ConditionCPUWait, func(c *record.Conditions, x float64) { c.CPUWait = &x }},
		{record.ConditionMemoryWait, func(c *record.Conditions, x float64) { c.MemoryWait = &x }},
		{record.ConditionMemoryFree, func(c *record.Conditions, x float64) { x = 1 - x; c.MemoryFree = &x }},
	} {
		found := noisyRun(record.Run{}, func(_ int, res *record.Trial) {
			res.Conditions = new(record.Conditions)
			c.set(res.Conditions, float64(res.TrialNum)/10)
		})
		require.Len(t, found, 1)
		require.Equal(t, c.name, found[0].Condition)
		require.NotNil(t, found[0].With)
		require.Less(t, *found[0].With, *found[0].Without)
	}
}

// Conditions that depend on verdicts by the plan of the run, and unknown ones, raise no alarm.
func TestNoiseSaysNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    record.Run
		change func(task int, res *record.Trial)
	}{
		"trials of other runs":           {change: func(_ int, res *record.Trial) { res.Cached = &record.CachedFrom{RunID: "x"} }},
		"old records":                    {change: func(_ int, res *record.Trial) { res.Conditions = nil }},
		"trials of which one is skipped": {change: func(task int, res *record.Trial) { skip(task, res, record.Skipped) }},
		"a run that was interrupted":     {change: func(task int, res *record.Trial) { skip(task, res, record.Cancelled) }},
		"fewer failures with throttling": {change: func(_ int, res *record.Trial) { res.Conditions.Requests.Throttled = 9 - res.TrialNum }},
		"conditions that differ only by tasks": {change: func(task int, res *record.Trial) {
			res.Conditions.Requests.Throttled = task
		}},
		"a run that fails fast": {run: failFast(), change: func(int, *record.Trial) {}},
		"tasks that could stop": {run: stoppable(), change: func(int, *record.Trial) {}},
	} {
		require.Empty(t, noisyRun(c.run, c.change), name)
	}
}

func skip(task int, res *record.Trial, v record.Verdict) {
	if task == 0 && res.TrialNum == 1 {
		res.Verdict = v
	}
}

func failFast() (r record.Run) {
	r.Config.FailFast = true
	return r
}

func stoppable() (r record.Run) {
	r.Config.Stopping.Confidence = 0.95
	return r
}

// A trial that fails has more attempts. Only the first attempt of each trial counts, with its own
// conditions.
func TestNoiseOfFirstAttempts(t *testing.T) {
	t.Parallel()
	retried := func(_ int, res *record.Trial) {
		if res.Verdict == record.Failed {
			res.Attempts = []record.Attempt{{Verdict: record.Failed, Conditions: &record.Conditions{Requests: &record.Requests{Sent: 3}}}}
		}
	}
	require.Empty(t, noisyRun(record.Run{}, retried))
	found := noisyRun(record.Run{}, func(_ int, res *record.Trial) {
		if res.Verdict == record.Failed {
			res.Attempts = []record.Attempt{{Verdict: record.Failed, Conditions: res.Conditions}}
			res.Verdict, res.Conditions = record.Passed, nil
		}
	})
	require.Len(t, found, 1)
	require.True(t, found[0].FirstAttempts)
	require.Contains(t, report.NoiseText(&found[0]), "of the first attempts with throttled requests, 0 % passed, of the others 100 %")
}
