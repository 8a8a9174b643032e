//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/cmd/waza/exit"
	"waza/runner/proc/proctest"
)

// The first commands of docs/serve.md let the agent of docs/examples do trials. The
// last command starts before the server does.
func TestServeWalk(t *testing.T) {
	t.Parallel()
	const flag = "--experimental-websocket"
	if err := exec.Command("node", flag, "-e", "new WebSocket('ws://127.0.0.1:1').onerror = () => {}").Run(); err != nil {
		t.Skip("node is missing, or too old to have WebSocket")
	}
	page, err := os.ReadFile("../../docs/serve.md")
	require.NoError(t, err)
	walks := regexp.MustCompile("(?s)```sh[^\n]*\n(waza serve\n.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, walks, 1)
	commands := strings.Split(strings.TrimSpace(string(walks[0][1])), "\n")
	require.Len(t, commands, 3)

	address := proctest.FreeAddress(t)
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
	// The agent in Node 20 did not reconnect if nothing listened at its first attempt.
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
