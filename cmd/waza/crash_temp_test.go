//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// The files that waza writes for a grader's program, and the home of an agent, were in the
// system's temporary directory. A SIGKILL left them there for ever, including the agent's output
// and keys.
func TestCrashTemporaryFiles(t *testing.T) {
	t.Parallel()
	rounds := 20
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		rounds = 1
	case "ci":
		rounds = 5
	}
	for name, config := range map[string]string{
		"program grader": `config: {executor: command, command: 'echo sk-0123456789abcdef'}
graders: [{name: slow, type: program, config: {command: sh, args: [-c, 'grep -q sk-0123 "$WAZA_OUTPUT_FILE" && touch "$STARTED"; sleep 1000']}}]
`,
		"agent": `config: {executor: acp, agent: {command: [sh, -c, 'echo sk-0123456789abcdef > "$TMPDIR/left"; touch "$STARTED"; sleep 1000']}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range rounds {
				for _, cleaner := range []string{"gc", "resume"} {
					killedWithTemporaryFiles(t, config, cleaner, time.Duration(round)*time.Millisecond)
				}
			}
		})
	}
}

// killedWithTemporaryFiles kills a run some time after the first trial has temporary files, and
// lets the cleaner remove them.
func killedWithTemporaryFiles(t *testing.T, config, cleaner string, after time.Duration) {
	t.Helper()
	temp, state, started := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "started")
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	config = strings.Replace(config, "{", "{sandbox: {write: ["+filepath.Dir(started)+"]}, ", 1)
	require.NoError(t, os.WriteFile(suite, []byte("name: temporary\n"+config+"tasks: [{id: a, prompt: x}]\n"), 0o600))
	env := append(environment(t), "TMPDIR="+temp, "WAZA_STATE="+state, "STARTED="+started, "PWD="+filepath.Dir(suite))
	run := func(args ...string) {
		c := startWaza(t, env, args...)
		require.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, patience, time.Millisecond)
		<-time.After(after)
		require.NoError(t, c.Process.Kill())
		_ = c.Wait()
		require.NoError(t, os.Remove(started))
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	run("run", suite)
	work := filepath.Join(state, "work")
	before := tempFiles(t, work)
	require.Len(t, before, 1)
	if cleaner == "gc" {
		_, code := waza(t, env, "runs", "gc")
		require.Equal(t, exit.Passed, code)
		require.Empty(t, tempFiles(t, work))
		return
	}
	run("run", "--resume", "latest")
	again := tempFiles(t, work)
	require.Len(t, again, 1, "those of the new session")
	require.NotEqual(t, before, again)
}

// tempFiles lists the directories of temporary files of all runs.
func tempFiles(t *testing.T, work string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(work, "*", "waza-*"))
	require.NoError(t, err)
	return dirs
}
