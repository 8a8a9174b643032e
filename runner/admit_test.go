package runner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// gate is an executor whose agents become available when the test opens it.
type gate struct {
	waits chan struct{} // one value per waiting trial
	open  chan struct{} // one value per admitted trial
	err   error         // of all trials
}

func (g *gate) Admit(ctx context.Context, _ *executor.Admission) (executor.Room, error) {
	g.waits <- struct{}{}
	select {
	case <-g.open:
		return g, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (g *gate) Release() {}

func (g *gate) Execute(context.Context, *executor.Trial) (executor.Outcome, error) {
	return executor.Outcome{}, g.err
}

func (g *gate) Close() error { return nil }

// startGated starts four parallel trials of two tasks, and returns when all wait.
func startGated(t *testing.T, g *gate, config string) *runner.Run {
	t.Helper()
	g.waits, g.open = make(chan struct{}, 100), make(chan struct{}, 100)
	kind := executor.Kind{
		Kind: eval.Kind{Name: "gate"},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return g, nil },
	}
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(kind)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	live := runnertest.Start(t, r, fmt.Sprintf(`
-- eval.yaml --
name: gated
config: {executor: gate, trials_per_task: 2, parallel: true, workers: 4, %s}
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`, config), record.Request{})
	for range 4 {
		<-g.waits
	}
	return live
}

// kinds returns the events of trials, in order.
func kinds(t *testing.T, live *runner.Run) (list []string) {
	t.Helper()
	for _, e := range runnertest.Follow(t, live, 1) {
		switch e.Type {
		case record.TrialStart:
			list = append(list, "start")
		case record.TrialComplete:
			list = append(list, string(e.Verdict)+": "+e.Error)
		}
	}
	return list
}

// A trial is announced when it is admitted, not when it starts to wait.
func TestTrialsStartWhenTheyAreAdmitted(t *testing.T) {
	t.Parallel()
	g := &gate{}
	live := startGated(t, g, "")
	g.open <- struct{}{}
	sub := live.Subscribe(1)
	for over := false; !over; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			over = over || e.Type == record.TrialComplete
		}
	}
	live.Cancel()
	waiting := "cancelled: not started: the run was cancelled"
	require.Equal(t, []string{"start", "passed: ", waiting, waiting, waiting}, kinds(t, live))
}

func TestStopWhileTrialsWait(t *testing.T) {
	t.Parallel()
	live := startGated(t, &gate{}, "")
	live.Stop()
	waiting := "skipped: not started: the run was stopped"
	require.Equal(t, []string{waiting, waiting, waiting, waiting}, kinds(t, live))
}

// fail_fast also ends the wait.
func TestFailFastWhileTrialsWait(t *testing.T) {
	t.Parallel()
	g := &gate{err: &executor.FailedError{Reason: "cannot"}}
	live := startGated(t, g, "fail_fast: true")
	for range 3 { // one task is certainly over
		g.open <- struct{}{}
	}
	failed := 0
	for _, k := range kinds(t, live) {
		switch k {
		case "failed: cannot":
			failed++
		case "skipped: not started: an earlier task failed and fail_fast is on", "start":
		default:
			t.Errorf("unexpected %q", k)
		}
	}
	require.GreaterOrEqual(t, failed, 2)
}
