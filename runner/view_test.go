package runner_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

const viewed = `
-- eval.yaml --
name: s
config: {executor: agent}
tasks: [{id: a, prompt: x}]
`

// A view finds, controls, reuses and deletes only its own runs.
func TestView(t *testing.T) {
	t.Parallel()
	asked := 0
	all := runnertest.AgentRunner(t, t.TempDir(), func(ctx context.Context, t *executor.Trial) (string, error) {
		if asked++; asked == 3 { // the third waits until it is cancelled
			<-ctx.Done()
		}
		return "x", ctx.Err()
	})
	defer func() { require.NoError(t, all.Close(context.Background())) }()
	hidden := runnertest.Start(t, all, viewed, record.Request{})
	<-hidden.Done()
	own := map[string]bool{}
	view := all.View(runner.View{Sees: func(id string) bool { return own[id] }})
	start := func(r *runner.Runner) *runner.Run {
		return runnertest.Start(t, r, viewed, record.Request{Cache: true})
	}
	seen := start(view)
	<-seen.Done()
	require.Equal(t, 2, asked, "nothing is taken over from a run that is hidden")
	own[seen.ID()] = true
	require.NoError(t, hidden.Files().Remove())
	<-start(view).Done()
	require.Equal(t, 2, asked)

	live := runnertest.Start(t, all, viewed, record.Request{})
	require.Nil(t, view.Live(live.ID()))
	require.NotNil(t, all.Live(live.ID()))
	_, err := view.Catalog().Run(live.ID())
	require.ErrorIs(t, err, record.ErrRunNotFound)
	_, err = view.Cancel(t.Context(), live.ID())
	require.ErrorIs(t, err, record.ErrRunNotFound)
	require.ErrorIs(t, view.Wait(t.Context(), live.ID()), record.ErrRunNotFound)
	_, err = view.Catalog().Remove(live.ID())
	require.ErrorIs(t, err, record.ErrRunNotFound)
	h, err := view.Catalog().Find("", catalog.LatestRun)
	require.NoError(t, err)
	require.Equal(t, seen.ID(), h.ID())
	list, err := view.Catalog().List(0)
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = all.Cancel(t.Context(), live.ID())
	require.NoError(t, err)
}
