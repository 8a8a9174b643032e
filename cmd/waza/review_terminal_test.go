//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// waitingRun runs a suite whose two trials wait for review, and returns the environment in which
// it is recorded.
func waitingRun(t *testing.T) (env []string, runID string) {
	t.Helper()
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: poems
config:
  trials_per_task: 2
  mock:
    replies:
      - output: "line one\n\e[31mred\e[0m\e]0;title\a\nthe end"
        files: [{path: pond.txt, content: "deep\e[2J\n"}, {path: frog.bin, content: "a\0b"}]
        tool_calls: [{name: write_file, arguments: {path: "pond.txt"}, result: "ok\e[2J"}]
tasks:
  - id: haiku
    name: A haiku
    prompt: Write a haiku.
    graders:
      - {name: says_one, type: text, config: {contains: [one]}}
      - {name: beauty, type: human, config: {instructions: "Is it \e[1mgood?", criteria: [three lines, a season], threshold: 0.7}}
`), 0o600))
	env = environment(t, "PWD="+filepath.Dir(suite))
	cmd := exec.Command(wazaPath(t), "run", suite)
	cmd.Env = env
	out, err := cmd.Output()
	require.Equal(t, exit.Failed, cmd.ProcessState.ExitCode(), "%v %s", err, out)
	_, rest, found := strings.Cut(string(out), "waza review ")
	require.True(t, found, "%s", out)
	return env, strings.Fields(rest)[0]
}

// questions returns the output of waza review --list.
func questions(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(wazaPath(t), append([]string{"review", "--list"}, args...)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestReviewOnATerminal(t *testing.T) {
	t.Parallel()
	env, id := waitingRun(t)
	term := onTerminal(t, append(env, "NO_COLOR=1"), 100, 40, "review", "--reviewer", "Ada")
	seen := term.shows(t, "Score (0.7 passes; ? for help): ")
	for _, text := range []string{
		"poems, run " + id + ": 2 scores to give", "1 of 2  haiku, trial 1, beauty", "A haiku\r\n", "Prompt\r\n  Write a haiku.",
		"Output\r\n  line one\r\n  \\x1b[31mred\\x1b[0m\\x1b]0;title\\x07\r\n  the end", "1 tool call\r\n  write_file {\"path\":\"pond.txt\"}",
		"Files (f PATH shows one)\r\n  frog.bin, 3 bytes\r\n  pond.txt, 9 bytes\r\n", "Graders\r\n  says_one: passed, 1",
		"Asked\r\n  Is it \\x1b[1mgood?\r\n  - three lines\r\n  - a season",
	} {
		require.Contains(t, seen, text)
	}
	require.NotContains(t, seen, "\x1b", "what others wrote does nothing to the terminal")

	term.types(t, "?\n")
	term.shows(t, "s         skip this one")
	term.types(t, "9\n")
	term.shows(t, "the score must be between 0 and 1, got 9")
	term.types(t, "t\n")
	term.shows(t, "user: Write a haiku.")
	term.types(t, "f pond.txt\n")
	term.shows(t, "pond.txt\r\n  deep\\x1b[2J\r\n")
	term.types(t, "f frog.bin\n")
	term.shows(t, "frog.bin: binary, 3 bytes")
	term.types(t, "f fish\x07\n")
	term.shows(t, "the trial left no such file")
	term.types(t, "o\n")
	term.types(t, "4/5\n")
	term.shows(t, "Comment (Enter for none): ")
	term.types(t, "a frog\n")
	term.shows(t, "0.8 recorded; the trial is passed")
	require.NotContains(t, questions(t, env), "haiku     1 ", "it is recorded before the next question")

	term.shows(t, "2 of 2  haiku, trial 2, beauty")
	term.types(t, "n\n")
	term.types(t, "\n")
	term.shows(t, "0 recorded; the trial is failed")
	out, code := term.end(t)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, out, "2 scores are recorded")
	require.Contains(t, out, "0 of 1 task passed, 1 failed; 1 of 2 counted trials passed")

	all := questions(t, env, id, "--all", "--json")
	require.Contains(t, all, `"reviewer": "Ada"`)
	require.Contains(t, all, `"comment": "a frog"`)
}

// Skipping, quitting and interrupting lose no entered score.
func TestLeavingAReview(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys  string
		shows string
		code  int
	}{
		"quit":          {"q\n", "1 score is recorded", exit.Failed},
		"end of input":  {"\x04", "1 score is recorded", exit.Failed},
		"skip":          {"s\n", "1 score is recorded", exit.Failed},
		"Ctrl-C":        {"\x03", "interrupted; 1 score is recorded", exit.Interrupted},
		"in the middle": {"1\nwell\x03", "interrupted; 1 score is recorded", exit.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, id := waitingRun(t)
			term := onTerminal(t, env, 100, 40, "review", id)
			term.shows(t, "1 of 2")
			term.shows(t, "for help): ")
			term.types(t, "y\n")
			term.shows(t, "Comment")
			term.types(t, "fine\n")
			term.shows(t, "2 of 2")
			term.types(t, c.keys)
			out, code := term.end(t)
			require.Equal(t, c.code, code, "%s", out)
			require.Contains(t, out, c.shows)
			list := questions(t, env, id)
			require.Contains(t, list, "haiku  2 ")
			require.NotContains(t, list, "haiku  1 ")
		})
	}
}

// Questions that another person answered in the meantime are not asked.
func TestReviewedMeanwhile(t *testing.T) {
	t.Parallel()
	env, id := waitingRun(t)
	term := onTerminal(t, env, 100, 40, "review")
	term.shows(t, "1 of 2")
	cmd := exec.Command(wazaPath(t), "review", id, "--task", "haiku", "--trial", "2", "--score", "1", "--reviewer", "Bo\x1bb")
	cmd.Env = env
	require.NoError(t, cmd.Run())
	term.types(t, "1\n\n")
	term.shows(t, `2 of 2: haiku, trial 2, beauty was scored in the meantime: 1, by Bo\x1bb`)
	out, code := term.end(t)
	require.Equal(t, exit.Passed, code)
	require.Contains(t, out, "1 of 1 task passed")
	term = onTerminal(t, env, 100, 40, "review", id)
	out, code = term.end(t)
	require.Equal(t, exit.Passed, code)
	require.Contains(t, out, "nothing waits for review in run "+id)
	term = onTerminal(t, env, 100, 40, "review")
	out, _ = term.end(t)
	require.Contains(t, out, "no run of this project waits for review")

	// --all asks again, and shows the earlier comment.
	term = onTerminal(t, env, 100, 40, "review", id, "--all", "--trial", "2")
	term.shows(t, "Score (1 so far, 0.7 passes; ? for help): ")
	term.types(t, "0.5\nshort\n")
	out, code = term.end(t)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, out, "beauty in 1 of 2 trials: short")
}
