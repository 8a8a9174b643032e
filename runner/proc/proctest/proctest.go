// Package proctest runs programs of tests beside trials. A program that a test starts by itself
// can inherit the mark of a trial that starts at the same time, and is then killed when the trial
// ends. Call [Output] and [Start] in tests whose process also executes trials, [Inherit] in tests
// of locks, [Halt] in tests of processes that do not answer, [FreePort] for servers that start later,
// and [WithWaza] in packages whose tests start waza.
package proctest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner/proc"
)

// Start starts a program. The caller waits for it.
func Start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, proc.StartApart(cmd))
}

// Output is like [exec.Cmd.CombinedOutput].
func Output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := proc.StartApart(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
}

// Halt stops a child of this process, which SIGCONT continues. When it returns, all threads have
// stopped; directly after the signal, some can still run.
func Halt(t testing.TB, child *os.Process) {
	t.Helper()
	require.NoError(t, child.Signal(unix.SIGSTOP))
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(child.Pid, &status, unix.WUNTRACED, nil); err != unix.EINTR {
			require.NoError(t, err)
			require.True(t, status.Stopped())
			return
		}
	}
}

// Inherit duplicates an open file of this process until the end of the test, like a child that this
// process is just starting. It does nothing on systems that do not list open files in /proc.
func Inherit(t testing.TB, path string) {
	t.Helper()
	const dir = "/proc/self/fd"
	list, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	for _, e := range list {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err != nil || target != path {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		require.NoError(t, err)
		child, err := unix.Dup(fd)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(child) })
		return
	}
	require.Fail(t, "the file is not open", path)
}
