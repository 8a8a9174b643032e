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

// ends are the two ends of a TCP connection, first that of the socket.
type ends struct{ local, remote netip.AddrPort }

// sockets is the last look at the kernel's table of TCP connections.
var sockets = shared[map[ends]socket]{look: readSockets}

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
		table, err := sockets.get()
		if err != nil {
			return nil, err
		}
		if s, found := table[ends{there, here}]; found {
			return &s, nil
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

// readSockets reads the tables of the kernel.
func readSockets() (map[ends]socket, error) {
	table := map[ends]socket{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) && strings.HasSuffix(path, "6") {
			continue // no IPv6
		}
		if err == nil {
			err = addSockets(table, f)
			f.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look up the owner of the connection: %w", err)
		}
	}
	return table, nil
}

// addSockets reads a table in the form of /proc/net/tcp. It skips sockets that their processes have
// already closed: the kernel then shows both the user and the inode as 0.
func addSockets(table map[ends]socket, r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		inode, ierr := strconv.ParseUint(fields[9], 10, 64)
		if err != nil || ierr != nil || inode == 0 {
			continue
		}
		table[ends{parseAddrPort(fields[1]), parseAddrPort(fields[2])}] = socket{uid, inode}
	}
	return lines.Err()
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
