package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	owner, other := runnertest.Two(t, runner.Options{})
	live := runnertest.Start(t, owner, runnertest.Endless, record.Request{})
	for _, r := range []*runner.Runner{owner, other} {
		_, err := r.Catalog().Remove(live.ID())
		var busy *record.BusyError
		require.ErrorAs(t, err, &busy)
		require.True(t, busy.Running)
	}
	live.Cancel()
	<-live.Done()
	amending, done := make(chan struct{}), make(chan error)
	over := make(chan struct{})
	go func() {
		done <- owner.Amender().Amend(t.Context(), live.ID(), func(context.Context, *regrade.Amendment) error {
			close(amending)
			<-over
			return nil
		})
	}()
	<-amending
	_, err := other.Catalog().Remove(live.ID())
	var busy *record.BusyError
	require.ErrorAs(t, err, &busy)
	require.False(t, busy.Running)
	close(over)
	require.NoError(t, <-done)

	bytes, err := other.Catalog().Remove(live.ID())
	require.NoError(t, err)
	require.Positive(t, bytes)
	_, err = owner.Catalog().Run(live.ID())
	require.ErrorIs(t, err, record.ErrRunNotFound)
	_, err = owner.Catalog().Remove(live.ID())
	require.ErrorIs(t, err, record.ErrRunNotFound)
}

// A client that receives the end of a run can remove the run, although its result is written
// later.
func TestRemoveAtTheEnd(t *testing.T) {
	t.Parallel()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	for range 20 {
		live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
		runnertest.Follow(t, live, 1)
		removed, err := r.Catalog().Collect(t.Context(), catalog.Retention{Keep: new(int)}, true)
		require.NoError(t, err)
		require.Len(t, removed, 1)
		_, err = r.Catalog().Remove(live.ID())
		require.NoError(t, err)
	}
}

// A killed run is removed with its workspaces, whatever agents did to these.
func TestRemoveWithWorkspaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	locked := filepath.Join(dir, "work", live.ID(), "1-a-1-1", "locked")
	require.NoError(t, os.MkdirAll(locked, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(locked, "x"), []byte("12345"), 0o600))
	require.NoError(t, os.Chmod(locked, 0o500))
	_, err = r.Catalog().Remove(live.ID())
	require.NoError(t, err)
	for _, where := range []string{"runs", "work", "trash"} {
		left, err := os.ReadDir(filepath.Join(dir, where))
		require.NoError(t, err)
		require.Empty(t, left, where)
	}
}

// Each filter chooses the right runs, and never an active one.
func TestCollectRuns(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	var ids []string // oldest first
	for i := range 4 {
		files := runnertest.TwoTasks
		if i == 2 {
			files = runnertest.Endless
		}
		run := runnertest.Start(t, r, files, record.Request{})
		if i == 2 {
			run.Cancel()
		}
		<-run.Done()
		ids = append(ids, run.ID())
	}
	live := runnertest.Start(t, r, runnertest.Endless, record.Request{})
	zero, one := 0, 1
	for name, c := range map[string]struct {
		o    catalog.Retention
		want []string // newest first
	}{
		"nothing":                {catalog.Retention{}, nil},
		"all":                    {catalog.Retention{Keep: &zero}, []string{ids[3], ids[2], ids[1], ids[0]}},
		"all but one":            {catalog.Retention{Keep: &one}, []string{ids[2], ids[1], ids[0]}},
		"old":                    {catalog.Retention{OlderThan: time.Hour}, nil},
		"older than nearly now":  {catalog.Retention{OlderThan: 1}, []string{ids[3], ids[2], ids[1], ids[0]}},
		"cancelled":              {catalog.Retention{Statuses: []record.Status{record.StatusCancelled}}, []string{ids[2]}},
		"the newest of a status": {catalog.Retention{Statuses: []record.Status{record.StatusCompleted}, Keep: &one}, []string{ids[1], ids[0]}},
		"running ones never":     {catalog.Retention{Statuses: []record.Status{record.StatusRunning}}, nil},
		"each says so, which no": {catalog.Retention{Keep: &zero, OlderThan: time.Hour}, nil},
	} {
		list, err := r.Catalog().Collect(t.Context(), c.o, true)
		require.NoError(t, err, name)
		var got []string
		for _, what := range list {
			require.Equal(t, "run", what.Kind)
			require.Positive(t, what.Bytes)
			got = append(got, what.RunID)
		}
		require.Equal(t, c.want, got, name)
	}
	list, err := r.Catalog().Collect(t.Context(), catalog.Retention{Keep: &one}, false)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	infos, err := r.Catalog().List(0)
	require.NoError(t, err)
	require.Len(t, infos, 2)
	require.Equal(t, live.ID(), infos[0].RunID)
	require.Equal(t, ids[3], infos[1].RunID)
}

// Garbage is removed even without runs, and a dry run removes nothing.
func TestCollectGarbage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	run := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-run.Done()
	left := filepath.Join(dir, "work", run.ID(), "1-a-1-1", "file")
	require.NoError(t, os.MkdirAll(filepath.Dir(left), 0o700))
	require.NoError(t, os.WriteFile(left, []byte("12345"), 0o600))
	list, err := r.Catalog().Collect(t.Context(), catalog.Retention{}, true)
	require.NoError(t, err)
	require.Equal(t, []catalog.Removed{{Kind: "workspaces", RunID: run.ID(), Path: filepath.Join(dir, "work", run.ID()), Bytes: 5}}, list)
	require.FileExists(t, left)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	none, err := r.Catalog().Collect(ctx, catalog.Retention{}, false)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, none)
	again, err := r.Catalog().Collect(t.Context(), catalog.Retention{}, false)
	require.NoError(t, err)
	require.Equal(t, list, again)
	require.NoDirExists(t, filepath.Join(dir, "work", run.ID()))
	_, err = r.Catalog().Run(run.ID())
	require.NoError(t, err)
}
