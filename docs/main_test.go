// Package docs_test holds the documents against the program: generated documents and schemas, printed
// commands and their outputs, links, and the files of docs/deploy. The tests are beside the documents,
// so that a change of a document repeats these tests only.
package docs_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

var update = flag.Bool("update", false, "rewrite the generated documents and the outputs of commands")

func TestMain(m *testing.M) {
	syscall.Umask(0o077) // waza warns about a state directory that other users can enter
	os.Exit(proctest.WithWaza(m.Run))
}

// patience limits how long a test waits for a program.
const patience = 3 * time.Minute

// waza runs waza and returns its standard output.
func waza(t *testing.T, env []string, args ...string) (out string, code int) {
	t.Helper()
	proctest.DependOnWaza(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "waza", args...)
	cmd.Env = env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	t.Log(stderr.String())
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// readText returns the content of a file.
func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
