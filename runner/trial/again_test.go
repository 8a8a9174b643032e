package trial_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/trial"
)

// away is an executor whose agent leaves during its first attempts.
type away struct {
	leaves int           // number of times
	after  time.Duration // since the start of an attempt
	then   error         // error of the attempt in which it stays
	during func()        // called when it leaves; may be nil

	attempts []int
	at       []time.Duration
	began    time.Time
}

func (a *away) Admit(_ context.Context, _ *executor.Admission) (executor.Room, error) {
	return place{}, nil
}

// place is a Room.
type place struct{}

func (place) Release() {}

func (a *away) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	a.attempts = append(a.attempts, t.Attempt)
	a.at = append(a.at, time.Since(a.began))
	if len(a.attempts) <= a.leaves {
		select {
		case <-time.After(a.after):
		case <-ctx.Done():
		}
		if a.during != nil {
			a.during()
		}
		return executor.Outcome{Output: "half"}, &executor.RetryError{Reason: "the agent left"}
	}
	return executor.Outcome{Output: "whole"}, a.then
}

func (a *away) Close() error { return nil }

// owner is an Owner that skips trials for a reason, unless it is empty, and keeps what it hears.
type owner struct {
	skip    string
	starts  int
	notices []string
}

func (o *owner) Start(*record.Order) string { o.starts++; return o.skip }
func (o *owner) Halt(*executor.StopError)   {}
func (o *owner) Log(_ *record.Order, n trial.Notice) {
	o.notices = append(o.notices, n.Level+" "+n.Message)
}

// An attempt that its agent leaves does not count, and its time does not count for the trial.
func TestSentBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &away{leaves: 3, after: 2 * time.Second, began: time.Now()} // the deadline is 10 s
		o := &owner{}
		res := do(t.Context(), t, a, func(env *trial.Env) {
			env.Owner = o
		})
		require.Equal(t, record.Passed, res.Verdict, res.Error)
		require.Equal(t, "whole", res.Output)
		require.Empty(t, res.Attempts)
		require.Equal(t, []int{1, 1, 1, 1}, a.attempts)
		require.Zero(t, res.DurationMS)
		require.Equal(t, 1, o.starts)
		require.Len(t, o.notices, 3)
		require.Equal(t, "info task a, trial 1: the agent left; waiting to be admitted again", o.notices[0])
	})
}

// Agents that reject trials at once do not keep waza busy.
func TestSentBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &away{leaves: 20, began: time.Now()}
		res := doWithin(t.Context(), t, a, time.Hour, nil)
		require.Equal(t, record.Passed, res.Verdict, res.Error)
		require.GreaterOrEqual(t, a.at[1], 25*time.Millisecond)
		require.LessOrEqual(t, a.at[1], 50*time.Millisecond)
		for i := 10; i < 20; i++ {
			require.GreaterOrEqual(t, a.at[i+1]-a.at[i], 5*time.Second)
			require.LessOrEqual(t, a.at[i+1]-a.at[i], 10*time.Second)
		}
	})
}

// An agent that rejected a trial for ever, or left again and again, held its run for ever.
func TestAttackSentBackForEver(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"at once": 0, "after a while": 3 * time.Second, "never": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &away{leaves: 1 << 30, after: after, began: time.Now()}
				res := do(t.Context(), t, a, nil)
				require.Equal(t, record.Errored, res.Verdict)
				require.Equal(t, "no agent kept the trial within its timeout of 10s, which counts from the first request; last: the agent left",
					res.Error)
				require.Equal(t, 10*time.Second, time.Since(a.began))
				require.Empty(t, res.Attempts)
			})
		})
	}
}

func TestSentBackAndCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a := &away{leaves: 3, began: time.Now(), during: func() { cancel(errors.New("the run was cancelled")) }}
		res := do(ctx, t, a, nil)
		require.Equal(t, record.Cancelled, res.Verdict)
		require.Equal(t, "the run was cancelled", res.Error)
		require.Len(t, a.attempts, 1)
		require.Zero(t, time.Since(a.began))
	})
}

func TestSentBackAndStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		a := &away{leaves: 3, began: time.Now(), during: func() { close(stop) }}
		res := do(t.Context(), t, a, func(env *trial.Env) { env.Stopping = stop })
		require.Equal(t, record.Cancelled, res.Verdict)
		require.Equal(t, "the run was stopped before the trial was tried again", res.Error)
		require.Len(t, a.attempts, 1)
	})
}

// An agent that reports that it cannot do the task has failed, and the trial is retried as
// usual.
func TestFailedByItsAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &away{then: &executor.FailedError{Reason: "Tool execution failed: no such page"}, began: time.Now()}
		res := do(t.Context(), t, a, nil)
		require.Equal(t, record.Failed, res.Verdict)
		require.Equal(t, "Tool execution failed: no such page", res.Error)
		require.Zero(t, *res.Score)
		require.Empty(t, res.Graders)
		require.Len(t, res.Attempts, 1)
		require.Equal(t, []int{1, 2}, a.attempts)
		require.Equal(t, "whole", res.Output)
	})
}

// A trial that waits when the run is stopped never started.
func TestWaitingEndsWithStop(t *testing.T) {
	t.Parallel()
	for _, closes := range []func(*trial.Env, chan struct{}){
		func(env *trial.Env, c chan struct{}) { env.Stopping = c },
		func(env *trial.Env, c chan struct{}) { env.Closed = c },
	} {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			time.AfterFunc(time.Minute, func() { close(stop) })
			b := &busy{wait: time.Hour}
			start := time.Now()
			res := do(t.Context(), t, b, func(env *trial.Env) {
				closes(env, stop)
				env.Owner = &owner{skip: "not started: enough"}
			})
			require.Equal(t, record.Skipped, res.Verdict)
			require.Equal(t, "not started: enough", res.Error)
			require.Zero(t, res.StartedAt)
			require.Equal(t, time.Minute, time.Since(start))
		})
	}
}

// Events during the wait can prevent a trial from starting.
func TestAdmittedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &busy{wait: time.Hour}
		res := do(t.Context(), t, b, func(env *trial.Env) {
			env.Owner = &owner{skip: "not started: decided"}
		})
		require.Equal(t, record.Skipped, res.Verdict)
		require.Equal(t, "not started: decided", res.Error)
		require.Zero(t, res.StartedAt)
		require.Equal(t, 1, b.released)
	})
}
