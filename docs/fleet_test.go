//go:build unix

package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

// shellBlock matches blocks of shell commands in documents.
var shellBlock = regexp.MustCompile("(?s)```sh[^\n]*\n(.*?)```")

// The first commands of docs/fleet.md work as printed, in the repository, with only a shell
// installed.
func TestFleetDocument(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("fleet.md")
	require.NoError(t, err)
	block := shellBlock.FindSubmatch(document)
	require.NotNil(t, block)
	commands := strings.TrimSpace(string(block[1]))
	require.Len(t, strings.Split(commands, "\n"), 3, "three commands")
	state, printed := t.TempDir(), filepath.Join(t.TempDir(), "printed")
	// A worker that has not started yet would miss the signal.
	script := "cd .. || exit 9\nexec >\"$PRINTED\" 2>&1\n" + commands + "\ncode=$?\n" +
		"until [ $(grep -c 'at once for embedded' \"$PRINTED\") = 2 ]; do sleep 0.1; done\n" +
		"kill -INT $(jobs -p)\nwait\nexit $code\n"
	proctest.DependOnWaza(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Env = proctest.Environment(t, "WAZA_STATE="+state, "PRINTED="+printed)
	failure := cmd.Run()
	out, err := os.ReadFile(printed)
	require.NoError(t, err)
	require.NoError(t, failure, "%s", out)
	require.Contains(t, string(out), "tasks passed; ")
	require.Equal(t, 2, strings.Count(string(out), "at once for embedded, team waza"), "%s", out)
	require.Equal(t, 2, strings.Count(string(out), "Did "), "%s", out)
	left, err := filepath.Glob(filepath.Join(state, "worker", "work", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
