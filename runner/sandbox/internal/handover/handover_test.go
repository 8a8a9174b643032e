//go:build linux

package handover_test

import (
	"encoding/binary"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner/sandbox/internal/handover"
)

// pair returns two connected sockets.
func pair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	conns := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		conns[i], err = handover.ConnOf(os.NewFile(uintptr(fd), "socket"))
		require.NoError(t, err)
		t.Cleanup(func() { conns[i].Close() })
	}
	return conns[0], conns[1]
}

// Listeners work in the process that they are handed over to.
func TestListeners(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	sockets, err := handover.Listen([]string{"tcp:127.0.0.1:0", "udp:127.0.0.1:0"})
	require.NoError(t, err)
	require.NoError(t, handover.Send(a, map[string]int{"n": 2}, handover.Numbers(sockets)...))
	handover.CloseAll(sockets)
	var message map[string]int
	files, _, err := handover.Receive(b, &message)
	defer handover.CloseAll(files)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"n": 2}, message)
	require.Len(t, files, 2)
	l, err := net.FileListener(files[0])
	require.NoError(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	conn.Close()
	c, err := net.FilePacketConn(files[1])
	require.NoError(t, err)
	c.Close()

	sockets, err = handover.Listen([]string{"tcp:127.0.0.1:0", "tcp:192.0.2.1:1"})
	handover.CloseAll(sockets)
	require.ErrorContains(t, err, "192.0.2.1:1")
}

func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	a, _ := pair(t)
	require.ErrorContains(t, handover.Send(a, 1, make([]int, 254)...), "254 files; at most 33554432 and 253 are possible")
}

// A message of another process is read, or refused, and never fills the memory.
func FuzzReceive(f *testing.F) {
	message := func(size, files uint32, text string) []byte {
		b := binary.BigEndian.AppendUint32(nil, size)
		return append(binary.BigEndian.AppendUint32(b, files), text...)
	}
	f.Add(message(2, 0, "{}"))
	f.Add(message(2, 1, "{}"))
	f.Add(message(1<<31, 0, "{}"))
	f.Add(message(5, 0, "{}"))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return // more than the socket holds
		}
		a, b := pair(t)
		_, err := a.Write(data)
		require.NoError(t, err)
		require.NoError(t, a.CloseWrite())
		var message any
		files, _, err := handover.Receive(b, &message)
		require.Empty(t, files)
		if err == nil {
			require.Equal(t, uint32(0), binary.BigEndian.Uint32(data[4:]))
		}
	})
}
