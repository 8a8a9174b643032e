package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// starting is an executor with a long startup, which it reports.
type starting time.Duration

func (s starting) Execute(context.Context, *executor.Trial) (executor.Outcome, error) {
	<-time.After(20 * time.Millisecond)
	return executor.Outcome{Output: "x", Startup: time.Duration(s)}, nil
}

func (starting) Close() error { return nil }

// The duration that graders see excludes the startup of the agent.
func TestStartupIsNotDuration(t *testing.T) {
	t.Parallel()
	for startup, want := range map[time.Duration]record.Verdict{
		-time.Hour: record.Failed, 0: record.Failed,
		time.Hour: record.Passed, // startup cannot exceed the total
	} {
		r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(executor.Kind{
			Kind: eval.Kind{Name: "agent"},
			Open: func(context.Context, executor.Settings) (executor.Executor, error) { return starting(startup), nil },
		})})
		require.NoError(t, err)
		live := runnertest.Start(t, r, "-- eval.yaml --\nname: t\nconfig: {executor: agent}\ntasks: [{id: a, prompt: x}]\n"+
			"graders: [{name: g, type: behavior, config: {max_duration_ms: 19}}]\n", record.Request{})
		<-live.Done()
		trial := runnertest.ResultOf(t, live).Trial(t, "a", 1)
		require.Equal(t, want, trial.Verdict, startup)
		require.GreaterOrEqual(t, trial.StartupMS+trial.ExecutorMS, int64(19))
	}
}
