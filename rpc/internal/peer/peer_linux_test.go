package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// word formats four bytes of an address like the kernel.
func word(b ...byte) string { return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b)) }

func TestAddSockets(t *testing.T) {
	t.Parallel()
	home := word(127, 0, 0, 1)
	mapped := word(0, 0, 0, 0) + word(0, 0, 0, 0) + word(0, 0, 255, 255) + home
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: " + home + ":1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1\n" +
		"   1: " + home + ":C001 " + home + ":1F90 01 00000000:00000000 00:00000000 00000000  1001        0 5 1\n" +
		"   2: " + home + ":C002 " + home + ":1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1\n" +
		"   3: " + mapped + ":C003 " + mapped + ":1F90 01 00000000:00000000 00:00000000 00000000  1003        0 6 1\n" +
		"   4: rubbish\n"
	found := map[ends]socket{}
	require.NoError(t, addSockets(found, strings.NewReader(table)))
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port) }
	delete(found, ends{at(0x1F90), netip.MustParseAddrPort("0.0.0.0:0")}) // the listener
	require.Equal(t, map[ends]socket{
		{at(0xC001), at(0x1F90)}: {1001, 5},
		{at(0xC003), at(0x1F90)}: {1003, 6},
	}, found)
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
		require.NoError(t, Admit(s, false), address)
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
	require.ErrorIs(t, Admit(s, false), errOtherUser)
	require.NoError(t, AdmitProgram(s), "only sandboxes of this user matter")

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

// The kernel keeps a connection that a program has sent in a message to itself, and no process has
// it until the message is received. A program in a sandbox could hide so.
func TestAttackHiddenConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	check := func(sandboxed ...int) error {
		end, err := otherEnd(conn.(*net.TCPConn))
		require.NoError(t, err)
		sockets, err := findSockets(func(pid int) bool { return slices.Contains(sandboxed, pid) })
		require.NoError(t, err)
		return (&owners{true, sockets}).admits(end.inode)
	}
	require.NoError(t, check(1))
	require.ErrorIs(t, check(1, os.Getpid()), errSandboxed)

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	raw, err := client.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(int(fd)), nil, 0) }))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	// A process that another test starts has copies of all sockets until it executes its program.
	require.Eventually(t, func() bool { return errors.Is(check(1), errUnknownProgram) }, 3*time.Minute, time.Millisecond)
}

// A new process has copies of all sockets until it executes its program. A client was refused if waza
// started a sandbox at that moment, because the process was in its sandbox a moment later.
func TestSandboxStartsMeanwhile(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	end, err := otherEnd(conn.(*net.TCPConn))
	require.NoError(t, err)

	inherited, err := client.(*net.TCPConn).File()
	require.NoError(t, err)
	child := exec.Command("sh", "-c", "read line; exec 3>&-; echo closed; read line")
	child.ExtraFiles = []*os.File{inherited}
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	require.NoError(t, inherited.Close())
	require.Contains(t, socketsOf(child.Process.Pid), end.inode)
	sockets, err := findSockets(func(pid int) bool {
		if pid != child.Process.Pid {
			return false
		}
		_, err := io.WriteString(in, "go\n")
		assert.NoError(t, err)
		_, err = io.ReadFull(out, make([]byte, len("closed\n")))
		assert.NoError(t, err)
		return true
	})
	require.NoError(t, err)
	require.NoError(t, (&owners{true, sockets}).admits(end.inode))
	require.NoError(t, in.Close())
	require.Error(t, child.Wait()) // read fails at the end of the input
}

// The process that connected to a unix socket can have ended, and its id can be that of another one.
func TestEndedClient(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer client.Close()
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, checkUnixProgram(conn.(*net.UnixConn)))

	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	require.NoError(t, exec.Command(python, "-c", "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])", path).Run())
	conn, err = l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	require.ErrorIs(t, checkUnixProgram(conn.(*net.UnixConn)), errUnknownProgram)
}

// A flood of connections must not cost a look at the machine for each of them, but a look that has
// started may have missed them.
func TestShared(t *testing.T) {
	t.Parallel()
	looks := 0
	var late []*result[int]
	var s shared[int]
	s.look = func() (int, error) {
		looks++
		n := looks
		for range 1000 {
			late = append(late, s.join())
		}
		return n, nil
	}
	check := func(want, got int, err error) {
		t.Helper()
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	got, err := s.get()
	check(1, got, err)
	var all sync.WaitGroup
	for _, r := range late[:1000] {
		all.Go(func() {
			got, err := s.await(r)
			check(2, got, err)
		})
	}
	all.Wait()
	got, err = s.get()
	check(3, got, err)
}
