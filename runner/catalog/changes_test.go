package catalog_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

const gatedSuite = `
-- eval.yaml --
name: gated
config: {executor: agent, trials_per_task: 3, workers: 1}
graders: [{name: good, type: text, config: {contains: [good]}}]
tasks: [{id: a, prompt: a}]
`

// gated is an agent whose trials wait for the gate.
func gated(gate <-chan struct{}) runnertest.Agent {
	return func(ctx context.Context, _ *executor.Trial) (string, error) {
		select {
		case <-gate:
			return "good", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// await returns the first change of the run that wanted accepts.
func await(t *testing.T, c *catalog.Changes, id string, wanted func(catalog.Change) bool) catalog.Change {
	t.Helper()
	for {
		list, err := c.Next(t.Context())
		require.NoError(t, err)
		for _, change := range list {
			if change.RunID == id && wanted(change) {
				return change
			}
		}
	}
}

func hasStatus(s record.Status) func(catalog.Change) bool {
	return func(c catalog.Change) bool { return c.Status == s && !c.Removed }
}

// watcher creates inotify watchers and keeps the last one.
type watcher struct{ *fsnotify.Watcher }

func (w *watcher) open() (*fsnotify.Watcher, error) {
	var err error
	w.Watcher, err = fsnotify.NewWatcher()
	return w.Watcher, err
}

func exhausted() (*fsnotify.Watcher, error) { return nil, unix.EMFILE }

// One process notices changes of runs by another, with inotify and without.
func TestChanges(t *testing.T) {
	t.Parallel()
	var inotify watcher
	for name, open := range map[string]func() (*fsnotify.Watcher, error){"inotify": inotify.open, "polling": exhausted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watches := func(n int) {
				if name == "inotify" {
					require.Eventually(t, func() bool { return len(inotify.WatchList()) == n }, time.Minute, time.Millisecond)
				}
			}
			dir, gate := filepath.Join(t.TempDir(), "not", "there"), make(chan struct{})
			owner := runnertest.AgentRunner(t, dir, gated(gate))
			other, err := runner.New(runner.Options{StateDir: dir})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := other.Catalog().WatchWith(ctx, open)
			own := owner.Catalog().WatchWith(ctx, fsnotify.NewWatcher)

			first := runnertest.Start(t, owner, gatedSuite, record.Request{})
			started := await(t, c, first.ID(), hasStatus(record.StatusRunning))
			require.Equal(t, "gated", started.Suite.Name)
			require.Equal(t, 3, started.Trials.Total)
			await(t, own, first.ID(), hasStatus(record.StatusRunning))

			second := runnertest.Start(t, owner, gatedSuite, record.Request{})
			await(t, c, second.ID(), hasStatus(record.StatusRunning))
			watches(3)
			second.Cancel()
			await(t, c, second.ID(), hasStatus(record.StatusCancelled))
			<-second.Done()
			watches(2)

			gate <- struct{}{}
			await(t, c, first.ID(), func(ch catalog.Change) bool { return ch.Trials.Passed == 1 && ch.Status == record.StatusRunning })
			close(gate)
			ended := await(t, c, first.ID(), hasStatus(record.StatusCompleted))
			require.Equal(t, 3, ended.Trials.Passed)
			require.NotNil(t, ended.EndedAt)
			await(t, own, first.ID(), hasStatus(record.StatusCompleted))
			<-first.Done()
			watches(1)

			plan, err := owner.Planner().Plan(t.Context(), runnertest.Load(t, owner, gatedSuite), record.Request{})
			require.NoError(t, err)
			again, err := owner.Resume(t.Context(), second.ID(), plan)
			require.NoError(t, err)
			await(t, c, second.ID(), hasStatus(record.StatusCompleted))
			<-again.Done()

			_, err = owner.Catalog().Remove(first.ID())
			require.NoError(t, err)
			gone := await(t, c, first.ID(), func(ch catalog.Change) bool { return ch.Removed })
			require.Equal(t, catalog.Change{Info: catalog.Info{RunID: first.ID()}, Removed: true}, gone)
			watches(1)

			stop := errors.New("stop")
			limited, end := context.WithCancelCause(t.Context())
			end(stop)
			for err = nil; err == nil; {
				_, err = c.Next(limited)
			}
			require.ErrorIs(t, err, stop)
			cancel()
			for _, changes := range []*catalog.Changes{c, own} {
				for err = nil; err == nil; {
					_, err = changes.Next(t.Context())
				}
				require.ErrorIs(t, err, io.EOF)
			}
		})
	}
}

// Changes are found even if the kernel dropped their events.
func TestChangesMissed(t *testing.T) {
	t.Parallel()
	dir, missed := t.TempDir(), make(chan error)
	owner, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	removed := runnertest.Start(t, owner, runnertest.TwoTasks, record.Request{})
	<-removed.Done()
	other, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	c := other.Catalog().WatchWith(ctx, func() (*fsnotify.Watcher, error) {
		w, err := fsnotify.NewWatcher()
		if err == nil {
			w.Events, w.Errors = make(chan fsnotify.Event), missed
		}
		return w, err
	})
	run := runnertest.Start(t, owner, runnertest.TwoTasks, record.Request{})
	<-run.Done()
	_, err = owner.Catalog().Remove(removed.ID())
	require.NoError(t, err)
	missed <- fsnotify.ErrEventOverflow
	found := map[string]bool{}
	for len(found) < 2 {
		list, err := c.Next(t.Context())
		require.NoError(t, err)
		for _, change := range list {
			found[change.RunID] = true
			require.Equal(t, change.RunID == removed.ID(), change.Removed)
			require.True(t, change.Removed || change.Status == record.StatusCompleted)
		}
	}
	cancel()
	_, err = c.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
}

// A killed process writes nothing, but the interruption of its run is noticed.
func TestChangesOfKilled(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := r.Catalog().Watch(ctx)
	const id = "20260101-000000.000-abcdefghij"
	dir := t.TempDir() // the directory of a run appears with its locked journal
	f, err := os.Create(filepath.Join(dir, "journal.jsonl"))
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{"runId":"`+id+`","tasks":[]}`), 0o600))
	require.NoError(t, os.Rename(dir, filepath.Join(r.Catalog().StateDir(), "runs", id)))
	await(t, c, id, hasStatus(record.StatusRunning))
	require.NoError(t, f.Close())
	await(t, c, id, hasStatus(record.StatusInterrupted))
	cancel()
	_, err = c.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
}

// The directory of all runs can be removed and created again.
func TestChangesOfAnotherDirectory(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	run := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-run.Done()
	ctx, cancel := context.WithCancel(t.Context())
	c := r.Catalog().Watch(ctx)
	require.NoError(t, os.RemoveAll(filepath.Join(r.Catalog().StateDir(), "runs")))
	await(t, c, run.ID(), func(ch catalog.Change) bool { return ch.Removed })
	run = runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	await(t, c, run.ID(), hasStatus(record.StatusCompleted))
	cancel()
	<-run.Done()
}

// A run that ends and is resumed between two reads has changed, although its Info is the same.
func TestChangesOfResumedRun(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), gated(nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := r.Catalog().Watch(ctx)
	run := runnertest.Start(t, r, gatedSuite, record.Request{})
	await(t, c, run.ID(), hasStatus(record.StatusRunning))
	for err := error(nil); err == nil; { // until no more changes of the first session are reported
		next, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		_, err = c.Next(next)
		stop()
	}
	run.Cancel()
	<-run.Done()
	_, err := runnertest.Resume(t, r, run.ID())
	require.NoError(t, err)
	await(t, c, run.ID(), hasStatus(record.StatusRunning))
}
