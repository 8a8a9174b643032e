//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/proc/proctest"
)

// waza runs a command to its end and returns stdout and exit code.
func waza(t *testing.T, env []string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command(wazaPath(t), args...)
	cmd.Env, cmd.Dir = env, variable(env, "PWD")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	within(t, "waza "+strings.Join(args, " "), func() { _ = cmd.Run() })
	t.Log(stderr.String())
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// Another terminal cancels the run, and the command waits for its end.
func TestCancelFromElsewhere(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "  parallel: true\n  trials_per_task: 2\n  workers: 3")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(3)
	out, code := waza(t, c.Env, "runs", "cancel", "latest")
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, `^run \S+: cancelled, 0 of 4 trials passed, 4 cancelled\n$`, out)
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	h.gone()
	out, code = waza(t, c.Env, "runs", "cancel", "latest")
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, `was over already: cancelled, 0 of 4 trials passed, 4 cancelled`, out)
}

// With --finish-running, running trials end normally.
func TestFinishRunningFromElsewhere(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	out, code := waza(t, c.Env, "runs", "cancel", "--finish-running", "--wait", "0", "latest")
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, `^run \S+ starts no more trials: 0 of 2 trials passed so far\n$`, out)
	_, code = waza(t, c.Env, "runs", "cancel", "--finish-running", "--wait", "10ms", "latest")
	require.Equal(t, exit.Error, code)
	waits := startWaza(t, c.Env, "runs", "cancel", "latest", "--finish-running", "--json")
	h.release()
	require.Equal(t, exit.Passed, waits.exitCode(t))
	require.Contains(t, waits.out.String(), `"skipped": 1`)
	require.Contains(t, waits.out.String(), `"status": "cancelled"`)
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.Regexp(t, `(?m)^first +passed +1/1`, c.out.String())
	h.gone()
}

// The error names a stopped process, and the hint how to continue or kill it.
func TestCancelOfAHaltedRun(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	proctest.Halt(t, c.Process)
	asks := startWaza(t, c.Env, "runs", "cancel", "latest")
	asks.says(t, "did not answer within 5s")
	asks.says(t, "hint: it might be suspended: kill -CONT ")
	require.Equal(t, exit.Error, asks.exitCode(t))
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	h.gone()
}

// Cancelling a run whose process was killed reports it as interrupted, with its results.
func TestCancelOfAKilledRun(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	h.release()
	h.started(1)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	out, code := waza(t, c.Env, "runs", "cancel", "latest")
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, `^run \S+ was interrupted because its process ended: 1 of 2 trials passed\n$`, out)
	h.gone()
}

// waza runs follow shows the same as waza run until the end, with the same exit code.
func TestFollowFromElsewhere(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	follows := startWaza(t, c.Env, "runs", "follow", "latest", "--verbose")
	follows.says(t, "Running task: first")
	events := startWaza(t, c.Env, "runs", "follow", "latest", "--events", "--from", "2", "--verbose")
	events.says(t, "Running task: first")
	h.release()
	h.started(1)
	follows.says(t, "passed     1/2  first")
	h.release()
	require.Equal(t, exit.Passed, c.exitCode(t))
	require.Equal(t, exit.Passed, follows.exitCode(t))
	table, _, _ := strings.Cut(c.out.String(), "\nRun ")
	require.Equal(t, table, strings.TrimSuffix(follows.out.String(), "\n"))
	require.Equal(t, exit.Passed, events.exitCode(t))
	require.Contains(t, events.out.String(), `"seq":2,`)
	require.NotContains(t, events.out.String(), `"seq":1,`)
	require.Contains(t, events.out.String(), `"type":"end"`)
	h.gone()
}

// Ctrl-C ends only following; the run continues.
func TestFollowInterrupted(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	follows := startWaza(t, c.Env, "runs", "follow", "latest", "--verbose")
	follows.says(t, "Running task: first")
	require.NoError(t, follows.Process.Signal(os.Interrupt))
	follows.says(t, "is still active")
	follows.says(t, "hint: waza runs follow ")
	require.Equal(t, exit.Interrupted, follows.exitCode(t))
	require.Empty(t, follows.out.String())
	h.release()
	h.started(1)
	h.release()
	require.Equal(t, exit.Passed, c.exitCode(t))
	h.gone()
}

// When the process of a followed run is killed, the follower reports it and shows the events.
func TestFollowOfAKilledRun(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	follows := startWaza(t, c.Env, "runs", "follow", "latest")
	h.release()
	follows.says(t, "passed     1/2  first")
	h.started(1)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	require.Equal(t, exit.Interrupted, follows.exitCode(t))
	require.Regexp(t, `(?m)^first +passed +1/1`, follows.out.String())
	require.Contains(t, follows.out.String(), "The process that executed the run ended before the run did.")
	h.gone()
}

// Another process neither removes nor cleans up an active run, and leaves the run's files.
func TestRemoveOfARunThatGoesOn(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	removes := startWaza(t, c.Env, "runs", "rm", "latest")
	removes.says(t, "is still running")
	removes.says(t, "hint: waza runs cancel ")
	require.Equal(t, exit.Usage, removes.exitCode(t))
	out, code := waza(t, c.Env, "runs", "gc", "--keep", "0", "--older-than", "1ns")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, "nothing to remove\n", out)
	h.release()
	h.started(1)
	h.release()
	require.Equal(t, exit.Passed, c.exitCode(t))
	out, code = waza(t, c.Env, "runs", "gc", "--keep", "0")
	require.Equal(t, exit.Passed, code)
	require.Contains(t, out, "removed: 1 run, ")
	h.gone()
}

// The table of a stopped or killed run counts every trial that ended, including trials of
// unfinished tasks.
func TestTableOfARunCutShort(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*held, *command){
		"stopped": func(h *held, c *command) {
			require.NoError(t, c.Process.Signal(os.Interrupt))
			c.says(t, "waiting for 1 trial, at most ")
			h.release()
			require.Equal(t, exit.Interrupted, c.exitCode(t))
			require.Regexp(t, `(?m)^first +skipped +2/2, 1 skipped +1.00 +100 %`, c.out.String())
			require.Contains(t, c.out.String(), "0 of 2 tasks passed, 2 skipped; 2 of 2 counted trials passed")
		},
		"cancelled": func(h *held, c *command) {
			require.NoError(t, c.Process.Signal(syscall.SIGTERM))
			require.Equal(t, exit.Interrupted, c.exitCode(t))
			require.Regexp(t, `(?m)^first +cancelled +1/1, 2 cancelled +1.00 +100 %`, c.out.String())
			require.Contains(t, c.out.String(), "0 of 2 tasks passed, 2 cancelled; 1 of 1 counted trial passed")
		},
		"killed": func(h *held, c *command) {
			require.NoError(t, c.Process.Kill())
			_ = c.Wait()
			out, code := waza(t, c.Env, "runs", "show", "latest")
			require.Equal(t, exit.Passed, code)
			require.Regexp(t, `(?m)^first +not finished +1/1, 2 not finished +1.00 +100 %`, out)
			require.Regexp(t, `(?m)^second +not finished +– `, out)
			require.Contains(t, out, "0 of 2 tasks passed, 2 not finished; 1 of 1 counted trial passed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := holdingSuite(t, "  trials_per_task: 3")
			c := startWaza(t, h.env(), "run", h.suite)
			h.started(1)
			h.release()
			h.started(1)
			end(h, c)
			h.gone()
		})
	}
}
