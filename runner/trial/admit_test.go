package trial_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/pause"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/trial"
)

// busy is an executor whose only agent becomes free after a while.
type busy struct {
	wait     time.Duration
	err      error
	released int
}

func (b *busy) Admit(ctx context.Context, _ *executor.Admission) (executor.Room, error) {
	if err := pause.For(ctx, b.wait); err != nil || b.err != nil {
		return nil, cmp.Or(err, b.err)
	}
	return b, nil
}

func (b *busy) Release() { b.released++ }

func (b *busy) Execute(_ context.Context, t *executor.Trial) (executor.Outcome, error) {
	time.Sleep(time.Second) // in a synctest bubble
	return executor.Outcome{Output: t.Prompt}, nil
}

func (b *busy) Close() error { return nil }

func doBusy(ctx context.Context, t *testing.T, b *busy) *record.Trial {
	t.Helper()
	return do(ctx, t, b, nil)
}

// do executes a trial with an executor of the test; change may be nil.
func do(ctx context.Context, t *testing.T, exec executor.Executor, change func(*trial.Env)) *record.Trial {
	t.Helper()
	return doWithin(ctx, t, exec, 10*time.Second, change)
}

func doWithin(ctx context.Context, t *testing.T, exec executor.Executor, timeout time.Duration, change func(*trial.Env)) *record.Trial {
	t.Helper()
	kind := executor.Kind{
		Kind: eval.Kind{Name: "busy"},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return exec, nil },
	}
	suite := &eval.Suite{}
	pool := provider.NewPool(provider.PoolOptions{})
	defer pool.Close()
	env := &trial.Env{
		Executors: executor.NewRegistry(kind), Graders: builtin.Graders, Grading: &grader.Env{Suite: suite, Workers: 1}, Pool: pool, Dir: t.TempDir(),
	}
	if change != nil {
		change(env)
	}
	defer func() { require.NoError(t, env.Close()) }()
	return trial.Do(ctx, env, &record.Order{
		RunID: "r", TaskID: "a", TaskNum: 1, Num: 1, Suite: suite, Task: &eval.Task{ID: "a", Inputs: eval.Inputs{Prompt: "hi"}},
		Executor: "busy", Workers: 1, Timeout: timeout, MaxAttempts: 2, RetryErrors: 2,
	})
}

// A trial that waits for a free agent uses neither time nor attempts.
func TestWaitingIsNotWorking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &busy{wait: time.Hour}
		start := time.Now()
		res := doBusy(t.Context(), t, b)
		require.Equal(t, record.Passed, res.Verdict, res.Error)
		require.Equal(t, "hi", res.Output)
		require.Empty(t, res.Attempts)
		require.EqualValues(t, 1000, res.DurationMS, "without the hour")
		require.EqualValues(t, 1000, res.ExecutorMS)
		require.Equal(t, time.Hour+time.Second, time.Since(start))
		require.Equal(t, 1, b.released)
	})
}

func TestWaitingEndsWithTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the run was cancelled"))
		defer cancel()
		b := &busy{wait: time.Hour}
		res := doBusy(ctx, t, b)
		require.Equal(t, record.Cancelled, res.Verdict)
		require.Equal(t, "not started: the run was cancelled", res.Error)
		require.Zero(t, res.StartedAt)
		require.Zero(t, res.DurationMS)
		require.Zero(t, b.released)
	})
}

// An executor that will never have room is an error like any other.
func TestNeverAdmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &busy{err: executor.Permanent(errors.New("no agent has the skill"))}
		res := doBusy(t.Context(), t, b)
		require.Equal(t, record.Errored, res.Verdict)
		require.Equal(t, "no agent has the skill", res.Error)
	})
}
