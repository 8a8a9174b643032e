//go:build unix

package proc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"waza/runner/proc"
)

// TestMain lets the test binary act as the guard, and as a program with threads.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("WAZA_TEST_THREADS")); err == nil {
		startThreads(n)
		os.Exit(0)
	}
	if os.Getenv("WAZA_TEST_GUARD") != "" {
		proc.Guard(os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// startThreads is a program that starts threads when it reads a line. TestEndDetachedSparesThreads
// uses it.
func startThreads(n int) {
	lines := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	_, _ = lines.ReadString('\n')
	var started sync.WaitGroup
	for range n {
		started.Add(1)
		go func() {
			runtime.LockOSThread()
			started.Done()
			select {}
		}()
	}
	started.Wait()
	fmt.Println("threads")
	_, _ = lines.ReadString('\n')
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func TestRun(t *testing.T) {
	t.Parallel()
	out := &proc.Limited{Max: 1 << 10}
	errOut := &proc.Limited{Max: 4}
	err := proc.Run(t.Context(), proc.Command{
		Args: sh(`cat; echo " $GREETING"; echo too long >&2`), Env: append(os.Environ(), "GREETING=hi"),
		Dir: t.TempDir(), Stdin: strings.NewReader("in"), Stdout: out, Stderr: errOut,
	})
	require.NoError(t, err)
	require.Equal(t, "in hi\n", out.String())
	require.Equal(t, "too ", errOut.String())
	require.EqualValues(t, len("long\n"), errOut.Dropped)
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	var exit *proc.ExitError
	require.ErrorAs(t, proc.Run(t.Context(), proc.Command{Args: sh("exit 7")}), &exit)
	require.Equal(t, 7, exit.Code)

	require.ErrorAs(t, proc.Run(t.Context(), proc.Command{Args: sh("kill -TERM $$")}), &exit)
	require.Equal(t, "SIGTERM", exit.Signal)

	var missing *proc.NotFoundError
	require.ErrorAs(t, proc.Run(t.Context(), proc.Command{Args: []string{"no-such-program-here"}}), &missing)

	require.ErrorAs(t, proc.Run(t.Context(), proc.Command{Args: []string{"/no/such/file"}}), &missing)
	require.EqualError(t, missing, "/no/such/file: no such program")
	require.ErrorContains(t, proc.Run(t.Context(), proc.Command{Args: []string{"./no/such/file"}}), "cannot start ./no/such/file")
	require.ErrorContains(t, proc.Run(t.Context(), proc.Command{Args: sh("true"), Dir: "no/such/dir"}), "no/such/dir")

	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("because")
	cancel(cause)
	require.ErrorIs(t, proc.Run(ctx, proc.Command{Args: sh("true")}), cause)
}

// A program may end without reading its input.
func TestRunDoesNotReadInput(t *testing.T) {
	t.Parallel()
	require.NoError(t, proc.Run(t.Context(), proc.Command{Args: sh("true"), Stdin: strings.NewReader(strings.Repeat("x", 1<<20))}))
}

// Run kills background processes of the program before it returns.
func TestRunEndsBackgroundChildren(t *testing.T) {
	t.Parallel()
	out := &proc.Limited{Max: 100}
	require.NoError(t, proc.Run(t.Context(), proc.Command{Args: sh(`sleep 1000 & echo $!`), Stdout: out}))
	requireGone(t, out.String())
}

// The end of the context kills the whole tree: the child, a process in a new session, and a
// process whose parents have ended.
func TestContextEndsTree(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := proc.Start(ctx, proc.Command{
		Args: sh(`
			sleep 1000 & echo $!
			setsid sh -c 'echo $$; exec sleep 1000' &
			setsid sh -c 'sh -c "echo \$\$; exec sleep 1000" &' &
			wait; sleep 1000`),
		Stdout: w,
	})
	require.NoError(t, err)
	w.Close()
	lines := bufio.NewScanner(r)
	var pids []string
	for len(pids) < 3 && lines.Scan() {
		pids = append(pids, lines.Text())
	}
	cause := errors.New("deadline")
	cancel(cause)
	require.ErrorIs(t, p.Wait(), cause)
	for _, pid := range pids {
		requireGone(t, pid)
	}
}

// A descendant in a new session cannot block Run by holding the output.
func TestRunDoesNotWaitForEscapedOutput(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	out := &proc.Limited{Max: 100}
	require.NoError(t, proc.Run(t.Context(), proc.Command{
		Args: sh(`setsid sh -c 'echo $$; : >ready; exec sleep 1000' & until [ -e ready ]; do sleep 0.01; done`), Dir: t.TempDir(), Stdout: out,
	}))
	requireGone(t, out.String())
}

func TestSweep(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("environments of processes cannot be read here")
	}
	mark := "WAZA_TEST_SWEEP=" + strconv.Itoa(os.Getpid())
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), mark)
	require.NoError(t, cmd.Start())
	other := exec.Command("sleep", "1000")
	other.Env = append(os.Environ(), mark+"0") // another value with the same prefix
	require.NoError(t, other.Start())
	require.GreaterOrEqual(t, proc.Sweep(mark, "SPARED"), 1)
	require.Error(t, cmd.Wait())
	require.NoError(t, other.Process.Signal(unix.Signal(0)))
	require.NoError(t, other.Process.Kill())
	require.Error(t, other.Wait())
}

// A resumed run kills processes of its last session, but not those of workers of a fleet.
func TestSweepSpares(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("environments of processes cannot be read here")
	}
	mark := "WAZA_TEST_BUT=" + strconv.Itoa(os.Getpid())
	start := func(env ...string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = append(append(os.Environ(), mark), env...)
		require.NoError(t, cmd.Start())
		return cmd
	}
	left, spared := start(), start("WAZA_TEST_OTHER=x")
	require.GreaterOrEqual(t, proc.Sweep(mark, "WAZA_TEST_OTHER"), 1)
	require.Error(t, left.Wait())
	require.NoError(t, spared.Process.Signal(unix.Signal(0)))
	require.NoError(t, spared.Process.Kill())
	require.Error(t, spared.Wait())
}

// A process that had just started was not found, because its environment was not readable yet:
// it had the memory of its program, but nothing in it.
func TestSweepFindsWhatHasJustStarted(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("environments of processes cannot be read here")
	}
	for n := range 100 {
		mark := fmt.Sprintf("WAZA_TEST_START=%d-%d", os.Getpid(), n)
		cmd := exec.Command("sleep", "1000")
		cmd.Env = append(os.Environ(), mark)
		require.NoError(t, cmd.Start())
		killed := proc.Sweep(mark, "SPARED")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		require.Positive(t, killed, "process %d", n)
	}
}

// Concurrent sweeps each kill their own processes.
func TestSweepsAtOnce(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("environments of processes cannot be read here")
	}
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			mark := fmt.Sprintf("WAZA_TEST_MANY=%d-%d", os.Getpid(), n)
			cmd := exec.Command("sleep", "1000")
			cmd.Env = append(os.Environ(), mark)
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			if proc.Sweep(mark, "SPARED") == 0 {
				t.Errorf("process %d is left", n)
				_ = cmd.Process.Kill()
			}
			_ = cmd.Wait()
			if n := proc.Sweep(mark, "SPARED"); n != 0 {
				t.Errorf("found %d processes, expected none", n)
			}
		})
	}
	wg.Wait()
}

// The guard kills the groups that were registered and not removed.
func TestGuard(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	guard := exec.Command(exe)
	guard.Env = append(os.Environ(), "WAZA_TEST_GUARD=1")
	in, err := guard.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, guard.Start())

	left, ended := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	for _, c := range []*exec.Cmd{left, ended} {
		c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		require.NoError(t, c.Start())
		_, err = io.WriteString(in, "+"+strconv.Itoa(c.Process.Pid)+"\n")
		require.NoError(t, err)
	}
	_, err = io.WriteString(in, "-"+strconv.Itoa(ended.Process.Pid)+"\nrubbish\n\n")
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.NoError(t, guard.Wait())
	require.Error(t, left.Wait())
	require.NoError(t, ended.Process.Signal(unix.Signal(0)))
	require.NoError(t, ended.Process.Kill())
	require.Error(t, ended.Wait())
}

// requireGone waits until a process has ended or is a zombie.
func requireGone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		if unix.Kill(n, 0) != nil {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(n) + "/stat")
		return err == nil && strings.Contains(string(stat), ") Z ")
	}, 3*time.Minute, 5*time.Millisecond, "process %d is left", n)
}

// Output and errors may go to one writer. Two goroutines used to write to it at once.
func TestOneWriterForBoth(t *testing.T) {
	t.Parallel()
	out := &proc.Limited{Max: 1 << 10}
	require.NoError(t, proc.Run(t.Context(), proc.Command{
		Args: sh(`for i in 1 2 3; do echo out; echo err >&2; done`), Stdout: out, Stderr: out,
	}))
	require.Equal(t, strings.Repeat("out\nerr\n", 3), out.String())
}

// A program whose file was still open for writing could not be started, although the writer had
// finished: programs started at the same time had inherited the descriptor.
func TestProgramJustWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 25 {
				path := filepath.Join(dir, fmt.Sprintf("%d-%d.sh", n, i))
				if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
					t.Error(err)
				}
				if err := proc.Run(t.Context(), proc.Command{Args: []string{path}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	held, err := os.OpenFile(filepath.Join(dir, "0-0.sh"), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer held.Close()
	if err := proc.Run(t.Context(), proc.Command{Args: []string{held.Name()}}); err != nil {
		require.ErrorContains(t, err, "text file busy", "in the end it says so")
	}
}
