package host

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// word formats four bytes of an address like the kernel.
func word(b ...byte) string { return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b)) }

func TestFindSocket(t *testing.T) {
	t.Parallel()
	home := word(127, 0, 0, 1)
	mapped := word(0, 0, 0, 0) + word(0, 0, 0, 0) + word(0, 0, 255, 255) + home
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: " + home + ":1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1\n" +
		"   1: " + home + ":C001 " + home + ":1F90 01 00000000:00000000 00:00000000 00000000  1001        0 5 1\n" +
		"   2: " + home + ":C002 " + home + ":1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1\n" +
		"   3: " + mapped + ":C003 " + mapped + ":1F90 01 00000000:00000000 00:00000000 00000000  1003        0 6 1\n" +
		"   4: rubbish\n"
	for port, want := range map[uint16]int{0xC001: 1001, 0xC003: 1003, 0xC002: -1, 0xC004: -1} {
		ip := netip.MustParseAddr("127.0.0.1")
		uid, found, err := findSocket(strings.NewReader(table), netip.AddrPortFrom(ip, port), netip.AddrPortFrom(ip, 0x1F90))
		require.NoError(t, err)
		require.Equal(t, want >= 0, found, "%x", port)
		if found {
			require.Equal(t, want, uid)
		}
	}
}

func TestOwnConnections(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // no IPv6
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		s, err := l.Accept()
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, checkPeer(s), address)
	}
}

// A connection of another user is refused, by socket and by TCP. The test needs root to run a
// process as another user.
func TestOtherUsersConnections(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if os.Geteuid() != 0 || err != nil {
		t.Skip("needs root and python3")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	cmd := exec.Command(python, "-c", "import socket,sys; s=socket.create_connection(('127.0.0.1',"+
		fmt.Sprint(l.Addr().(*net.TCPAddr).Port)+")); sys.stdin.read()")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Skip("cannot start a program as another user: ", err)
	}
	require.NoError(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(3*time.Minute)))
	defer func() {
		io.WriteString(in, "end")
		in.Close()
		cmd.Wait()
	}()
	s, err := l.Accept()
	require.NoError(t, err)
	defer s.Close()
	require.ErrorIs(t, checkPeer(s), errOtherUser)

	// A guarded listener refuses it, too.
	again := &oneConn{Listener: l, conn: s}
	_, err = Guard(again, false, slog.New(slog.DiscardHandler)).Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	conn := l.conn
	l.conn = nil
	return conn, nil
}
