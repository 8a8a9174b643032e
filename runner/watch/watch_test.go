package watch_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/watch"
)

// watched is a watched suite, in a directory that the test edits.
type watched struct {
	*runnertest.Cached
	dir   string
	watch *watch.Watch
}

func newWatched(t *testing.T, files string, req record.Request, does runnertest.Agent) *watched {
	t.Helper()
	w := &watched{Cached: runnertest.NewCached(t, does), dir: t.TempDir()}
	for _, f := range txtar.Parse([]byte(files)).Files {
		w.write(f.Name, string(f.Data))
	}
	var err error
	w.watch, err = watch.New(t.Context(), w.R, watch.Options{Path: filepath.Join(w.dir, "eval.yaml"), Request: req})
	require.NoError(t, err)
	t.Cleanup(func() {
		w.watch.Close()
		require.NoError(t, w.R.Close(context.WithoutCancel(t.Context())))
	})
	return w
}

func (w *watched) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// write saves a file like many editors: under another name, then renamed.
func (w *watched) write(name, text string) {
	w.Helper()
	path := w.path(name)
	require.NoError(w, os.MkdirAll(filepath.Dir(path), 0o755))
	beside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"~")
	require.NoError(w, os.WriteFile(beside, []byte(text), 0o644))
	require.NoError(w, os.Rename(beside, path))
}

// next returns the changed files of the next round, and the trials that its run executed or the
// reason why there is no run.
func (w *watched) next() (files, executed string) {
	w.Helper()
	round := w.round()
	if round.Run != nil {
		<-round.Run.Done()
	}
	return w.reported(round), w.done()
}

func (w *watched) round() *watch.Round {
	w.Helper()
	ctx, cancel := context.WithTimeoutCause(w.Context(), time.Minute, errors.New("no round comes"))
	defer cancel()
	round, err := w.watch.Next(ctx)
	require.NoError(w, err)
	return round
}

func (w *watched) reported(round *watch.Round) string {
	var files []string
	for _, f := range round.Files {
		rel, err := filepath.Rel(w.dir, f)
		require.NoError(w, err)
		files = append(files, rel)
	}
	switch {
	case round.Err != nil:
		files = append(files, "error")
	case round.Diagnostics.HasErrors():
		files = append(files, "invalid")
	case round.Run == nil:
		files = append(files, "nothing")
	}
	return strings.Join(files, " ")
}

// done returns the trials that were executed since the last call, sorted.
func (w *watched) done() string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	list := w.Asked
	w.Asked = nil
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (w *watched) expect(files, executed string) {
	w.Helper()
	f, e := w.next()
	require.Equal(w, files, f)
	require.Equal(w, executed, e)
}

const watchedSuite = `
-- eval.yaml --
name: watched
config: {executor: agent, trials_per_task: 2, parallel: true, workers: 2}
graders: [{name: says, type: text, config: {contains: [WITH]}}]
tasks: ["tasks/*.yaml"]
-- tasks/a.yaml --
{id: a, prompt: x, files: [in.txt]}
-- tasks/b.yaml --
id: b
prompt: x
-- fixtures/in.txt --
given
`

// Each save runs the changed tasks, and the round names the changed file.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWatched(t, watchedSuite, record.Request{}, nil)
	w.expect("", "a-1 a-2 b-1 b-2")

	w.write("tasks/b.yaml", "{id: b, prompt: y}")
	w.expect("tasks/b.yaml", "b-1 b-2")
	w.write("fixtures/in.txt", "taken")
	w.expect("fixtures/in.txt", "a-1 a-2")
	w.write("tasks/b.yaml", "{id: b, prompt: y} # as before")
	w.expect("tasks/b.yaml nothing", "")
	w.write("tasks/b.yaml", "{id: b, prompt: x}")
	w.expect("tasks/b.yaml", "") // an edit that is undone

	// A new task, a removed one, and both at once.
	w.write("tasks/c.yaml", "{id: c, prompt: z}")
	w.expect("tasks/c.yaml", "c-1 c-2")
	require.NoError(t, os.Remove(w.path("tasks/c.yaml")))
	w.expect("tasks/c.yaml nothing", "")
	require.NoError(t, os.Rename(w.path("tasks/b.yaml"), w.path("tasks/d.yaml")))
	w.expect("tasks/b.yaml tasks/d.yaml nothing", "")

	// Editing only a grader executes nothing, but grades again.
	w.write("eval.yaml", strings.Replace(content(watchedSuite, "eval.yaml"), "[WITH]", "[more]", 1))
	round := w.round()
	require.Equal(t, []string{"a", "b"}, round.Tasks)
	require.Equal(t, 2, round.Total)
	<-round.Run.Done()
	res := runnertest.ResultOf(t, round.Run)
	require.Equal(t, 4, res.Summary.Trials.Failed)
	require.Equal(t, 4, res.Summary.TrialsCached)
	require.Empty(t, w.done())
	// So does another threshold. More trials execute only the new ones.
	w.write("tasks/d.yaml", "{id: b, prompt: x, pass_threshold: 0}")
	w.expect("tasks/d.yaml", "")
	w.write("eval.yaml", strings.Replace(content(watchedSuite, "eval.yaml"), "trials_per_task: 2", "trials_per_task: 3", 1))
	w.expect("eval.yaml", "a-3 b-3")
}

// content returns a file of an archive.
func content(archive, name string) string {
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// The first round executes everything, unless the cache is requested.
func TestWatchWithCache(t *testing.T) {
	t.Parallel()
	w := newWatched(t, watchedSuite, record.Request{Cache: true}, nil)
	w.expect("", "a-1 a-2 b-1 b-2")
	for _, cache := range []bool{true, false} {
		again, err := watch.New(t.Context(), w.R, watch.Options{Path: w.path("eval.yaml"), Request: record.Request{Cache: cache}})
		require.NoError(t, err)
		round, err := again.Next(t.Context())
		require.NoError(t, err)
		<-round.Run.Done()
		again.Close()
		if cache {
			require.Empty(t, w.done())
		} else {
			require.Equal(t, "a-1 a-2 b-1 b-2", w.done())
		}
		_, err = again.Next(t.Context())
		require.ErrorIs(t, err, io.EOF)
	}
}

// Errors are reported, and watching continues, even when everything is removed and created
// again.
func TestWatchOfFaults(t *testing.T) {
	t.Parallel()
	w := newWatched(t, watchedSuite, record.Request{}, nil)
	w.expect("", "a-1 a-2 b-1 b-2")
	w.write("tasks/b.yaml", "{id: b, prompt: ")
	w.expect("tasks/b.yaml invalid", "")
	w.write("tasks/a.yaml", "{id: a, prompt: y, files: [in.txt]}")
	w.expect("tasks/a.yaml invalid", "")
	w.write("tasks/b.yaml", "{id: b, prompt: x}")
	w.expect("tasks/b.yaml", "a-1 a-2")
	require.NoError(t, os.Remove(w.path("fixtures/in.txt")))
	w.expect("fixtures/in.txt invalid", "")
	w.write("fixtures/in.txt", "given\n")
	w.expect("fixtures/in.txt nothing", "")
	require.NoError(t, os.Remove(w.path("eval.yaml")))
	w.expect("eval.yaml error", "")
	w.write("eval.yaml", content(watchedSuite, "eval.yaml"))
	w.expect("eval.yaml nothing", "")

	require.NoError(t, os.Rename(w.path("tasks"), w.path("away")))
	w.expect("tasks/a.yaml tasks/b.yaml invalid", "")
	w.write("tasks/b.yaml", "{id: b, prompt: z}")
	w.expect("tasks/b.yaml", "b-1 b-2")
	w.write("tasks/b.yaml", "{id: b, prompt: zz}")
	w.expect("tasks/b.yaml", "b-1 b-2") // in the directory that was created again
}

// A suite may be invalid or missing when the watch starts.
func TestWatchOfInvalidSuite(t *testing.T) {
	t.Parallel()
	w := newWatched(t, "-- eval.yaml --\nname: [", record.Request{}, nil)
	w.expect("invalid", "")
	for _, name := range []string{"tasks/a.yaml", "tasks/b.yaml", "fixtures/in.txt"} {
		w.write(name, content(watchedSuite, name))
	}
	w.write("eval.yaml", content(watchedSuite, "eval.yaml"))
	w.expect("eval.yaml", "a-1 a-2 b-1 b-2")

	w = newWatched(t, "", record.Request{Tasks: []string{"b"}}, nil)
	w.expect("error", "")
	w.write("eval.yaml", "name: x\nconfig: {executor: agent}\ntasks: [{id: a, prompt: x}]")
	w.expect("eval.yaml error", "") // no task matches
	w.write("eval.yaml", "name: x\nconfig: {executor: agent}\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]")
	w.expect("eval.yaml", "b-1")
}

// Both links and the files behind them are watched.
func TestWatchOfLinks(t *testing.T) {
	t.Parallel()
	w := newWatched(t, "", record.Request{}, nil)
	w.expect("error", "")
	shared := filepath.Join(w.dir, "shared")
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, ".git"), 0o755))
	w.write("shared/deep/a.yaml", "{id: a, prompt: x}")
	w.write("shared/skills/helper/SKILL.md", "Help.")
	require.NoError(t, os.Symlink(filepath.Join(shared, "deep"), w.path("tasks")))
	require.NoError(t, os.Symlink(filepath.Join(shared, "skills"), w.path("skills")))
	w.write("eval.yaml", "name: x\nconfig: {executor: agent, skill_directories: [skills]}\ntasks: [tasks/*.yaml]")
	w.expect("eval.yaml", "a-1")
	w.write("shared/deep/a.yaml", "{id: a, prompt: y}")
	w.expect("tasks/a.yaml", "a-1")
	w.write("shared/skills/helper/more/notes.md", "Notes.")
	w.expect("skills/helper/more/notes.md", "a-1")
	w.write("shared/skills/helper/more/notes.md", "More notes.")
	w.expect("skills/helper/more/notes.md", "a-1")
	w.write("shared/other/a.yaml", "{id: a, prompt: z}")
	require.NoError(t, os.Remove(w.path("tasks")))
	require.NoError(t, os.Symlink(filepath.Join(shared, "other"), w.path("tasks")))
	for { // the link may temporarily be missing
		if files, executed := w.next(); files == "tasks/a.yaml" {
			require.Equal(t, "a-1", executed)
			break
		}
	}
}

// A change of a task that the run has not finished cancels the run, and the due tasks run. Other
// changes wait.
func TestWatchWhileRunning(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := newWatched(t, watchedSuite, record.Request{Workers: 4}, func(ctx context.Context, trial *executor.Trial) (string, error) {
		if trial.Task.ID == "b" && trial.Task.Inputs.Prompt == "x" {
			select {
			case <-release:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return runnertest.Says(ctx, trial)
	})
	first := w.round()
	w.write("tasks/c.yaml", "{id: c, prompt: z}") // this waits
	w.write("tasks/b.yaml", "{id: b, prompt: y}")
	<-first.Run.Done()
	require.Equal(t, record.StatusCancelled, runnertest.ResultOf(t, first.Run).Status)
	second := w.round()
	require.Equal(t, "tasks/b.yaml tasks/c.yaml", w.reported(second))
	require.Contains(t, second.Tasks, "b")
	require.Contains(t, second.Tasks, "c")
	<-second.Run.Done()
	require.Equal(t, record.StatusCompleted, runnertest.ResultOf(t, second.Run).Status)
	w.done()

	w.write("tasks/b.yaml", "{id: b, prompt: x}")
	third := w.round()
	require.Equal(t, []string{"b"}, third.Tasks)
	w.write("tasks/c.yaml", "{id: c, prompt: zz}")
	w.write("tasks/a.yaml", "{id: a, prompt: ")
	broken := w.round()
	require.Equal(t, "tasks/a.yaml tasks/c.yaml invalid", w.reported(broken))
	w.write("tasks/a.yaml", content(watchedSuite, "tasks/a.yaml"))
	close(release)
	<-third.Run.Done()
	require.Equal(t, record.StatusCompleted, runnertest.ResultOf(t, third.Run).Status)
	for { // the error may be fixed before or after the end of the run
		round := w.round()
		if round.Run != nil {
			require.Equal(t, []string{"c"}, round.Tasks)
			break
		}
	}
}

// The next save runs trials in error again, but not failed ones.
func TestWatchOfErrors(t *testing.T) {
	t.Parallel()
	w := newWatched(t, watchedSuite, record.Request{}, func(ctx context.Context, trial *executor.Trial) (string, error) {
		if trial.Task.ID == "a" && trial.Num == 2 {
			return "", executor.Permanent(errors.New("no network"))
		}
		if trial.Task.ID == "b" {
			return "nothing", nil
		}
		return runnertest.Says(ctx, trial)
	})
	w.expect("", "a-1 a-2 b-1 b-2")
	w.write("tasks/b.yaml", "{id: b, prompt: x, description: the same}")
	w.expect("tasks/b.yaml", "a-2")
}

// A watch leaves no goroutine behind, however it ends.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	w := newWatched(t, watchedSuite, record.Request{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	other, err := watch.New(ctx, w.R, watch.Options{Path: w.path("eval.yaml")})
	require.NoError(t, err)
	cancel()
	for {
		if _, err = other.Next(t.Context()); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, w.R.Close(t.Context()))
	for {
		if _, err = w.watch.Next(t.Context()); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, io.EOF)
	_, err = watch.New(t.Context(), w.R, watch.Options{Path: w.path("eval.yaml")})
	require.ErrorIs(t, err, runner.ErrClosed)
}
