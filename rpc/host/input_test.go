//go:build unix

package host

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// blockingPipe returns a pipe whose reading end is in blocking mode, as standard input is.
func blockingPipe(t *testing.T) (in, out *os.File) {
	t.Helper()
	var p [2]int
	require.NoError(t, syscall.Pipe(p[:]))
	in, out = os.NewFile(uintptr(p[0]), "in"), os.NewFile(uintptr(p[1]), "out")
	t.Cleanup(func() { in.Close(); out.Close() })
	return in, out
}

func TestPollableReads(t *testing.T) {
	t.Parallel()
	file, out := blockingPipe(t)
	in := Pollable(file)
	defer in.Close()
	if i, ok := in.(Input); ok {
		in = Attentive(i, func() bool { return true })
	}
	got := make(chan string)
	go func() {
		defer close(got)
		for b := make([]byte, 2); ; {
			n, err := in.Read(b)
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(b[:n])
		}
	}()
	for _, text := range []string{"a", "b"} {
		_, err := io.WriteString(out, text)
		require.NoError(t, err)
		require.Equal(t, text, <-got)
	}
	_, err := io.WriteString(out, "cde")
	require.NoError(t, err)
	require.Equal(t, "cd", <-got)
	require.Equal(t, "e", <-got, "the rest is not news")
	require.NoError(t, out.Close())
	require.Equal(t, "EOF", <-got)
}

// Another process may share the descriptor's open file, and does not expect that its own reads fail
// with EAGAIN.
func TestPollableKeepsTheMode(t *testing.T) {
	t.Parallel()
	file, _ := blockingPipe(t)
	in := Pollable(file)
	defer in.Close()
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	require.NoError(t, err)
	require.Zero(t, flags&unix.O_NONBLOCK)
}

func TestCloseEndsRead(t *testing.T) {
	t.Parallel()
	file, _ := blockingPipe(t)
	in, ok := Pollable(file).(Input)
	if !ok {
		t.Skip("this system reads blocking descriptors in system calls")
	}
	failed := make(chan error)
	go func() {
		_, err := Attentive(in, func() bool { return false }).Read(make([]byte, 1))
		failed <- err
	}()
	time.AfterFunc(time.Millisecond, func() { in.Close() })
	require.Error(t, <-failed)
}

func TestPollableRegularFile(t *testing.T) {
	t.Parallel()
	file, err := os.Open("input_test.go")
	require.NoError(t, err)
	defer file.Close()
	require.Same(t, file, Pollable(file))
}
