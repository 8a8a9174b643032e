package tally_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/tally"
)

// Ended trials of unfinished tasks are summarized. For a run whose tasks all ended the result is
// empty.
func TestUnfinishedTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	none, err := tally.Unfinished(live)
	require.NoError(t, err)
	require.Empty(t, none)

	runnertest.CutJournal(t, dir, live.ID(), 12, 0) // after b's first trial
	require.NoError(t, os.Remove(filepath.Join(dir, "runs", live.ID(), "result.json")))
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	some, err := tally.Unfinished(h)
	require.NoError(t, err)
	require.Len(t, some, 1)
	require.Equal(t, 1, some[1].Trials.Total)
	require.Equal(t, 1, some[1].Trials.Failed)
	require.Equal(t, 0.0, *some[1].Trials.PassRate)
	require.NotEmpty(t, some[1].Reasons)
	require.Empty(t, some[1].Verdict)
}
