//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/cmd/waza/exit"
)

// The walk of README and docs/serve.md takes three commands from nothing to trials that
// the agent of docs/examples has done. The last one begins before the server is there.
func TestReadmeWalk(t *testing.T) {
	t.Parallel()
	const flag = "--experimental-websocket"
	if err := exec.Command("node", flag, "-e", "new WebSocket('ws://127.0.0.1:1').onerror = () => {}").Run(); err != nil {
		t.Skip("node is missing, or too old to have WebSocket")
	}
	walks := append(fenced(t, "README.md", "sh", "waza serve\n"), fenced(t, "docs/serve.md", "sh", "waza serve\n")...)
	require.Len(t, walks, 2)
	require.Equal(t, walks[0], walks[1])
	commands := strings.Split(strings.TrimSpace(walks[0]), "\n")
	require.Len(t, commands, 3)

	address := freeAddress(t)
	env := environment(t, "WAZA_SERVE_AGENTS_LISTEN="+address, "WAZA_SERVE_JOBS_LISTEN=127.0.0.1:0",
		"PATH="+filepath.Dir(wazaPath(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	command := func(line string) *exec.Cmd {
		c := exec.Command("sh", "-c", "exec "+line)
		c.Dir, c.Env = repositoryRoot, env
		return c
	}
	var out strings.Builder
	run := command(commands[2])
	run.Stdout, run.Stderr = &out, &out
	require.NoError(t, run.Start())
	// The agent of Node 20 did not connect again when nobody listened at its first try.
	for _, line := range []string{commands[1] + " ws://" + address, commands[0]} {
		c := command(line)
		require.NoError(t, c.Start())
		t.Cleanup(func() {
			_ = c.Process.Signal(unix.SIGTERM)
			_ = c.Wait()
		})
	}
	within(t, commands[2], func() { _ = run.Wait() })
	require.Equal(t, exit.Passed, run.ProcessState.ExitCode(), out.String())
	require.Contains(t, out.String(), "2 of 2 tasks passed")
}
