//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// A program does the trials of another process through a server. The program and the server can
// start late.
func TestAgentDoesTrials(t *testing.T) {
	t.Parallel()
	env := environment(t)
	run := startWaza(t, env, "run", "../../docs/examples/remote", "--json")
	run.says(t, "6 trials wait for an agent: no waza server is running")
	server, agents, _ := startServer(t, env)
	agent := startWaza(t, env, "agent", "--exec", "printf 'You said: '; cat", "--connect", "ws://"+agents, "--concurrency", "3")
	agent.says(t, "msg=connected")
	require.Equal(t, exit.Passed, run.exitCode(t))
	require.Contains(t, run.out.String(), "You said: Hello from greet, trial 3")

	out, code := waza(t, env, "agents")
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, `\b6\b`, out, "answered")

	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	agent.says(t, "connection failed; retrying")
	require.NoError(t, agent.Process.Signal(syscall.SIGINT))
	require.Equal(t, exit.Interrupted, agent.exitCode(t))
	server.exitCode(t)
}

// Processes of the program end with the agent.
func TestAgentEndsItsProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	env := environment(t, "PID_FILE="+file)
	_, agents, _ := startServer(t, env)
	agent := startWaza(t, env, "agent", "--exec",
		`sleep 10000 & echo $! >$PID_FILE; echo '{"type":"log","text":"working"}' >&3; wait`, "--connect",
		"ws://"+agents)
	agent.says(t, "msg=connected")
	run := startWaza(t, env, "run", "../../docs/examples/remote", "--verbose")
	run.says(t, "working")
	require.NoError(t, agent.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.Interrupted, agent.exitCode(t))
	pid, err := os.ReadFile(file)
	require.NoError(t, err)
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err == nil {
		require.Contains(t, string(stat), ") Z ", "the program runs on")
	}
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.Interrupted, run.exitCode(t))
}
