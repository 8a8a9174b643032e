package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// socket is the other end of a TCP connection within this machine.
type socket struct {
	uid   int
	inode uint64
}

// otherEnd looks up the other end of the connection in the kernel's table. It returns nil if that
// is on another machine. The table can change during the read, so that a line is missed. Therefore
// it tries more than once.
func otherEnd(conn *net.TCPConn) (*socket, error) {
	here, ok1 := addrPort(conn.LocalAddr())
	there, ok2 := addrPort(conn.RemoteAddr())
	if !ok1 || !ok2 {
		return nil, errors.New("the connection has no address")
	}
	if there.Addr() != here.Addr() && !there.Addr().IsLoopback() {
		return nil, nil
	}
	for range 3 {
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			s, err := socketIn(table, there, here)
			if err != nil || s != nil {
				return s, err
			}
		}
	}
	return nil, errors.New("cannot find the owner of the connection")
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()), true
}

// socketIn finds the socket with these ends in a table of the kernel, or returns nil.
func socketIn(table string, local, remote netip.AddrPort) (*socket, error) {
	f, err := os.Open(table)
	if errors.Is(err, os.ErrNotExist) && strings.HasSuffix(table, "6") {
		return nil, nil // no IPv6
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look up the owner of the connection: %w", err)
	}
	defer f.Close()
	return findSocket(f, local, remote)
}

// findSocket reads a table in the form of /proc/net/tcp. It skips a socket that its process has
// already closed: the kernel then shows both the user and the inode as 0.
func findSocket(table io.Reader, local, remote netip.AddrPort) (*socket, error) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || parseAddrPort(fields[1]) != local || parseAddrPort(fields[2]) != remote {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		inode, ierr := strconv.ParseUint(fields[9], 10, 64)
		if err != nil || ierr != nil || inode == 0 {
			continue
		}
		return &socket{uid, inode}, nil
	}
	return nil, lines.Err()
}

// parseAddrPort parses "0100007F:1F90": the address as words in the machine's byte order, and
// the port.
func parseAddrPort(s string) netip.AddrPort {
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	p, perr := strconv.ParseUint(port, 16, 16)
	if err != nil || perr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(p))
}
