package catalog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A run that was created while the clock was wrong was the latest one for years, and made gc
// --keep delete the runs of today.
func TestRunOfTheFuture(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	var ids []string
	for range 3 {
		live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
		<-live.Done()
		ids = append(ids, live.ID())
	}
	future := time.Now().UTC().AddDate(1, 0, 0).Format("20060102-150405.000-") + "abcdefghij"
	was, now := filepath.Join(state, "runs", ids[1]), filepath.Join(state, "runs", future)
	require.NoError(t, os.Rename(was, now))
	b, err := os.ReadFile(filepath.Join(now, "run.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(now, "run.json"), bytes.ReplaceAll(b, []byte(ids[1]), []byte(future)), 0o600))

	latest, err := r.Catalog().Find("", catalog.LatestRun)
	require.NoError(t, err)
	require.Equal(t, ids[2], latest.ID())
	infos, err := r.Catalog().List(0)
	require.NoError(t, err)
	require.Len(t, infos, 3)
	require.False(t, infos[0].Ahead)
	require.Equal(t, []string{ids[2], ids[0]}, []string{infos[0].RunID, infos[1].RunID})
	require.Equal(t, future, infos[2].RunID)
	require.True(t, infos[2].Ahead)

	keep := 1
	removed, err := r.Catalog().Collect(t.Context(), catalog.Retention{Keep: &keep}, false)
	require.NoError(t, err)
	require.Equal(t, ids[0], removed[0].RunID)
	require.Empty(t, removed[1].RunID, "only the index")
	keep = 0
	removed, err = r.Catalog().Collect(t.Context(), catalog.Retention{Keep: &keep}, true)
	require.NoError(t, err)
	require.Len(t, removed, 2)
}
