//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// watchedFiles is a suite whose program appends a line to a file for each trial.
const watchedFiles = `
-- evals/eval.yaml --
name: watched
config:
  executor: command
  sandbox: off
  command: 'echo "$WAZA_TASK_ID" >>"$WAZA_SUITE_DIR/../log"; echo ok'
  trials_per_task: 2
graders: [{name: check, type: program, config: {command: sh, args: [check.sh]}}]
tasks: ["tasks/*.yaml"]
-- evals/check.sh --
exit 0
-- evals/tasks/a.yaml --
{id: a, prompt: x}
-- evals/tasks/b.yaml --
{id: b, prompt: x}
`

// Watching reruns the trials of an edited task, and none if only a grader changed. It prints the
// changed file. It reports a fault, and continues when the fault is fixed.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(watchedFiles)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	log := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		require.NoError(t, os.Truncate(filepath.Join(dir, "log"), 0))
		return strings.Join(strings.Fields(string(data)), " ")
	}
	save := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "evals", name), []byte(text), 0o600))
	}
	c := startWaza(t, environment(t, "PWD="+dir), "run", "--watch", "evals")
	const waiting = "waza: watching evals/eval.yaml (Ctrl-C ends)"
	c.says(t, waiting)
	require.Equal(t, "a a b b", log())

	save("tasks/b.yaml", "{id: b, prompt: y}")
	c.says(t, "evals/tasks/b.yaml changed: running 1 of 2 tasks")
	c.says(t, waiting)
	require.Equal(t, "b b", log())

	save("check.sh", "exit 1")
	c.says(t, "evals/check.sh changed: running 2 of 2 tasks")
	c.says(t, "2/2  b  trials 0/2  score 0.00")
	c.says(t, waiting)
	require.Empty(t, log())

	save("tasks/a.yaml", "{id: a, prompt: x} # a comment")
	c.says(t, "evals/tasks/a.yaml changed: nothing to run")
	c.says(t, waiting)

	save("eval.yaml", "name: watched\ntasks: [tasks/none.yaml]")
	c.says(t, "evals/eval.yaml changed")
	c.says(t, "no such file: evals/tasks/none.yaml")
	c.says(t, "the suite is invalid and was not run")
	c.says(t, waiting)
	save("eval.yaml", content(watchedFiles, "evals/eval.yaml"))
	c.says(t, "evals/eval.yaml changed: nothing to run")
	c.says(t, waiting)
	require.Empty(t, log())

	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.Equal(t, 3, strings.Count(c.out.String(), "recorded in"), "the table of each run")
	require.Contains(t, c.out.String(), "4 of 4 trials from the cache")
}

func content(archive, name string) string {
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// An interrupt ends the active run like without --watch, and then the watch.
func TestInterruptEndsTheWatch(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", "--watch", h.suite)
	h.started(1)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	c.says(t, "interrupted: waiting for 1 trial, at most ")
	h.release()
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	h.gone()
	require.Contains(t, c.out.String(), "The run was interrupted")
}

// An edit of a task that has yet to run cancels the run, and the affected tasks run.
func TestWatchCancels(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", "--watch", h.suite)
	h.started(1)
	text, err := os.ReadFile(h.suite)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.suite, []byte(strings.Replace(string(text), `"2"`, `"3"`, 1)), 0o600))
	c.says(t, "cancelled because the suite changed")
	c.says(t, "eval.yaml changed: running 2 of 2 tasks")
	h.started(1)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	h.gone()
}

func TestWatchUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.eval.yaml", "b.eval.yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("name: x\ntasks: [{id: a, prompt: x}]\n"), 0o600))
	}
	for _, args := range [][]string{
		{dir}, {"--output", "x.json", filepath.Join(dir, "a.eval.yaml")}, {filepath.Join(dir, "none.yaml")},
		{t.TempDir()}, {"--resume"},
	} {
		c := startWaza(t, environment(t), append([]string{"run", "--watch"}, args...)...)
		require.Equal(t, exit.Usage, c.exitCode(t), "%v", args)
	}
}
