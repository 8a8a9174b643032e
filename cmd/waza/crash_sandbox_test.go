//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner/sandbox"
)

// A run in sandboxes that is killed at random moments and resumed each time ends like an
// undisturbed run, and leaves neither processes of sandboxes nor their helpers.
func TestCrashKilledInSandboxes(t *testing.T) {
	t.Parallel()
	if err := sandbox.Detect().Strict(); err != nil {
		t.Skip(err)
	}
	c := newCrash(t, t.TempDir())
	c.size = crashSize{tasks: 10, trials: 20, kills: 3}
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
	case "ci":
		c.size = crashSize{tasks: 10, trials: 20, kills: 15}
	default:
		c.size = crashSize{tasks: 40, trials: 50, kills: 100}
	}
	c.log = filepath.Join(t.TempDir(), "log", "log")
	require.NoError(t, os.Mkdir(filepath.Dir(c.log), 0o700))
	c.env = append(c.env, "EXECUTED="+c.log)
	text := strings.Replace(c.suiteText(), "  executor: command\n",
		"  executor: command\n  sandbox: {mode: strict, write: ["+filepath.Dir(c.log)+"]}\n", 1)
	text = strings.Replace(text, "  sandbox: off\n", "", 1)
	require.NoError(t, os.WriteFile(c.suite, []byte(text), 0o600))
	c.waza = ownCopy(t)
	want := c.undisturbed()
	for kills := range c.size.kills {
		cmd, out := c.command(c.args()...)
		require.NoError(t, cmd.Start())
		c.await(2*(c.size.kills-kills) + 20) // more than there are, so that trials are left for the last
		c.kill(cmd)
		require.Negative(t, cmd.ProcessState.ExitCode(), "it ended before: %s", out)
		c.sessionOver()
	}
	c.lastSession()
	c.done(want)
	require.Eventually(t, func() bool { return len(processesOf(t, c.waza)) == 0 }, patience, time.Millisecond)
	require.NotContains(t, mounts(t), c.state)
}

// Trials in sandboxes side by side leave no process, namespace, mount or file.
func TestCrashManySandboxes(t *testing.T) {
	t.Parallel()
	if err := sandbox.Detect().Strict(); err != nil {
		t.Skip(err)
	}
	trials := 20
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
	case "ci":
		trials = 50
	default:
		trials = 200
	}
	shared, state, program := t.TempDir(), t.TempDir(), ownCopy(t)
	require.NoError(t, os.Chmod(state, 0o700))
	fifo := filepath.Join(shared, "go")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	release, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	defer release.Close()
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, fmt.Appendf(nil, `name: many
config:
  executor: command
  command: |
    setsid env -i sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
    echo a > out.txt
    echo b > /tmp/out.txt
    echo x >> %s/started
    read -r line < %s
    echo done
  parallel: true
  workers: %d
  sandbox: {mode: strict, network: none, write: [%s]}
graders:
  - {name: output, type: text, config: {contains: [done]}}
  - {name: program, type: program, config: {command: sh, args: [-c, 'test "$(cat "$WAZA_WORKSPACE_DIR/out.txt")" = a']}}
tasks: [{id: t, prompt: x}]
`, shared, fifo, trials, shared), 0o600))
	c := startWazaAt(t, program, environment(t, "WAZA_STATE="+state), "run", "--trials", strconv.Itoa(trials), suite)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(shared, "started"))
		return bytes.Count(text, []byte("\n")) == trials
	}, patience, 10*time.Millisecond, "all trials start")
	own := namespacesOf("self")
	var used []string
	for _, pid := range processesOf(t, program) {
		for _, ns := range namespacesOf(strconv.Itoa(pid)) {
			if !slices.Contains(own, ns) {
				used = append(used, ns)
			}
		}
	}
	if os.Geteuid() == 0 || len(used) > 0 { // others than root may not see namespaces of processes in sandboxes
		require.GreaterOrEqual(t, len(used), 5*trials, "a trial has at least that many namespaces")
	}
	running := startsOf(t)
	_, err = release.Write(bytes.Repeat([]byte("\n"), trials))
	require.NoError(t, err)
	require.Equal(t, 0, c.exitCode(t), "%s", &c.out)

	require.Eventually(t, func() bool { return len(processesOf(t, program)) == 0 }, patience, 10*time.Millisecond)
	for pid, start := range startsOf(t) {
		if running[pid] != start {
			continue // a later process, whose namespaces can have the numbers of those that ended
		}
		for _, ns := range namespacesOf(pid) {
			require.NotContains(t, used, ns, pid)
		}
	}
	require.NotContains(t, mounts(t), state)
	left, err := filepath.Glob(filepath.Join(state, "work", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// ownCopy returns a copy of waza by which the test recognizes its processes.
func ownCopy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(wazaPath(t))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "waza")
	require.NoError(t, os.WriteFile(path, text, 0o700))
	return path
}

// processesOf lists the processes of a program.
func processesOf(t *testing.T, program string) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && path == program {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// namespacesOf lists the namespaces of a process, such as pid:[4026531836].
func namespacesOf(pid string) (list []string) {
	links, _ := filepath.Glob("/proc/" + pid + "/ns/*")
	for _, link := range links {
		if ns, err := os.Readlink(link); err == nil {
			list = append(list, ns)
		}
	}
	return list
}

// startsOf returns when each process of the machine started, in ticks, by its id.
func startsOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	starts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])); len(fields) > 19 {
			starts[filepath.Base(filepath.Dir(file))] = fields[19]
		}
	}
	return starts
}

// mounts returns the mounts that this process sees.
func mounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return string(text)
}
