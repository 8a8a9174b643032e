package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	owner, other := two(t, runner.Options{})
	live := start(t, owner, endless, runner.Request{})
	for _, r := range []*runner.Runner{owner, other} {
		_, err := r.Catalog().Remove(live.ID())
		var busy *runner.BusyError
		require.ErrorAs(t, err, &busy)
		require.True(t, busy.GoesOn)
	}
	live.Cancel()
	<-live.Done()
	amending, done := make(chan struct{}), make(chan error)
	over := make(chan struct{})
	go func() {
		done <- owner.Amender().Amend(t.Context(), live.ID(), func(context.Context, *runner.Amendment) error {
			close(amending)
			<-over
			return nil
		})
	}()
	<-amending
	_, err := other.Catalog().Remove(live.ID())
	var busy *runner.BusyError
	require.ErrorAs(t, err, &busy)
	require.False(t, busy.GoesOn)
	close(over)
	require.NoError(t, <-done)

	bytes, err := other.Catalog().Remove(live.ID())
	require.NoError(t, err)
	require.Positive(t, bytes)
	_, err = owner.Catalog().Run(live.ID())
	require.ErrorIs(t, err, runner.ErrRunNotFound)
	_, err = owner.Catalog().Remove(live.ID())
	require.ErrorIs(t, err, runner.ErrRunNotFound)
}

// A client that sees the end of a run can remove it, although its result is written later.
func TestRemoveAtTheEnd(t *testing.T) {
	t.Parallel()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	for range 20 {
		live := start(t, r, twoTasks, runner.Request{})
		follow(t, live, 1)
		removed, err := r.Catalog().Collect(t.Context(), runner.Retention{Keep: new(int)}, true)
		require.NoError(t, err)
		require.Len(t, removed, 1)
		_, err = r.Catalog().Remove(live.ID())
		require.NoError(t, err)
	}
}

// A run that was killed is removed with its workspaces, whatever agents did to these.
func TestRemoveWithWorkspaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := start(t, r, twoTasks, runner.Request{})
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

// Each way to choose runs chooses those, and never one that goes on.
func TestCollectRuns(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	var ids []string // oldest first
	for i := range 4 {
		files := twoTasks
		if i == 2 {
			files = endless
		}
		run := start(t, r, files, runner.Request{})
		if i == 2 {
			run.Cancel()
		}
		<-run.Done()
		ids = append(ids, run.ID())
	}
	live := start(t, r, endless, runner.Request{})
	zero, one := 0, 1
	for name, c := range map[string]struct {
		o    runner.Retention
		want []string // newest first
	}{
		"nothing":                {runner.Retention{}, nil},
		"all":                    {runner.Retention{Keep: &zero}, []string{ids[3], ids[2], ids[1], ids[0]}},
		"all but one":            {runner.Retention{Keep: &one}, []string{ids[2], ids[1], ids[0]}},
		"old":                    {runner.Retention{OlderThan: time.Hour}, nil},
		"older than nearly now":  {runner.Retention{OlderThan: 1}, []string{ids[3], ids[2], ids[1], ids[0]}},
		"cancelled":              {runner.Retention{Statuses: []runner.Status{runner.StatusCancelled}}, []string{ids[2]}},
		"the newest of a status": {runner.Retention{Statuses: []runner.Status{runner.StatusCompleted}, Keep: &one}, []string{ids[1], ids[0]}},
		"running ones never":     {runner.Retention{Statuses: []runner.Status{runner.StatusRunning}}, nil},
		"each says so, which no": {runner.Retention{Keep: &zero, OlderThan: time.Hour}, nil},
	} {
		list, err := r.Catalog().Collect(t.Context(), c.o, true)
		require.NoError(t, err, name)
		var got []string
		for _, what := range list {
			require.Equal(t, "run", what.What)
			require.Positive(t, what.Bytes)
			got = append(got, what.RunID)
		}
		require.Equal(t, c.want, got, name)
	}
	list, err := r.Catalog().Collect(t.Context(), runner.Retention{Keep: &one}, false)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	infos, err := r.Catalog().List(0)
	require.NoError(t, err)
	require.Len(t, infos, 2)
	require.Equal(t, live.ID(), infos[0].RunID)
	require.Equal(t, ids[3], infos[1].RunID)
}

// Garbage goes without any run, and a dry run touches nothing.
func TestCollectGarbage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	run := start(t, r, twoTasks, runner.Request{})
	<-run.Done()
	left := filepath.Join(dir, "work", run.ID(), "1-a-1-1", "file")
	require.NoError(t, os.MkdirAll(filepath.Dir(left), 0o700))
	require.NoError(t, os.WriteFile(left, []byte("12345"), 0o600))
	list, err := r.Catalog().Collect(t.Context(), runner.Retention{}, true)
	require.NoError(t, err)
	require.Equal(t, []runner.Removed{{What: "workspaces", RunID: run.ID(), Path: filepath.Join(dir, "work", run.ID()), Bytes: 5}}, list)
	require.FileExists(t, left)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	none, err := r.Catalog().Collect(ctx, runner.Retention{}, false)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, none)
	again, err := r.Catalog().Collect(t.Context(), runner.Retention{}, false)
	require.NoError(t, err)
	require.Equal(t, list, again)
	require.NoDirExists(t, filepath.Join(dir, "work", run.ID()))
	_, err = r.Catalog().Run(run.ID())
	require.NoError(t, err)
}
