//go:build unix

package dialogues_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

// block returns the only code block in a language of the document for authors of clients.
func block(t *testing.T, language string) string {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(doc, -1)
	require.Len(t, found, 1)
	return string(found[0][1])
}

// The printed dialogue is an excerpt of the recorded one.
func TestReadmeDialogue(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile("reconnect_resume.jsonl")
	require.NoError(t, err)
	rest := splitLines(recorded)
	for line := range strings.Lines(block(t, "jsonl")) {
		i := slices.Index(rest, strings.TrimSuffix(line, "\n"))
		require.GreaterOrEqual(t, i, 0, "not in the recorded dialogue, or not in this order: %s", line)
		rest = rest[i+1:]
	}
}

// The printed client works as it is, even if its daemon is killed during a run.
func TestReadmeClient(t *testing.T) {
	t.Parallel()
	proctest.DependOnWaza(t)
	code := block(t, "python")
	require.LessOrEqual(t, strings.Count(code, "\n"), 50, "the README promises fifty lines")
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "suite"), os.DirFS("suites/gate")))
	gate := filepath.Join(dir, "gate")
	cmd := exec.Command("python3", "-c", code, filepath.Join(dir, "suite", "eval.yaml"))
	cmd.Env = append(os.Environ(),
		"WAZA_STATE="+filepath.Join(dir, "state"), "GATE="+gate)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, out.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	for range 2 { // trials start, and the second waits
		readUntil(t, lines, "eval.progress trial_start first\n")
	}
	killChild(t, cmd.Process.Pid)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "%s", stderr.String())
	require.Regexp(t, `(?s)^eval.complete interrupted\neval.progress run_resumed\n.*`+
		`eval.progress task_complete first passed\n.*eval.progress task_complete second failed\n.*eval.complete completed\n$`, string(rest))
	require.Equal(t, 5, strings.Count(string(rest), "trial_complete"), "the trial that had ended does not run again")
}

func readUntil(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	for line := ""; line != want; {
		var err error
		line, err = r.ReadString('\n')
		require.NoError(t, err)
	}
}

// killChild kills the only child of a process.
func killChild(t *testing.T, pid int) {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		var child, parent int
		if _, err := fmt.Sscan(line, &child, &parent); err == nil && parent == pid {
			p, err := os.FindProcess(child)
			require.NoError(t, err)
			require.NoError(t, p.Kill())
			return
		}
	}
	t.Fatal("the client has no daemon")
}
