package host

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

	"golang.org/x/sys/unix"
)

// revealsTCPPeers reports whether [Admit] finds the user of a TCP connection.
const revealsTCPPeers = true

// checkPeer refuses connections of other users of this machine. Clients on other machines are
// checked by their token.
func checkPeer(conn net.Conn) error {
	switch conn := conn.(type) {
	case *net.UnixConn:
		return checkUnixPeer(conn)
	case *net.TCPConn:
		return checkTCPPeer(conn)
	}
	return nil
}

func checkUnixPeer(conn *net.UnixConn) error {
	return checkSocketUser(conn, func(fd int) (uint32, error) {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return 0, err
		}
		return cred.Uid, nil
	})
}

// checkTCPPeer looks up the other end of the connection in the kernel's table. The table can
// change during the read, so that a line is missed. Therefore it tries more than once.
func checkTCPPeer(conn *net.TCPConn) error {
	here, ok1 := addrPort(conn.LocalAddr())
	there, ok2 := addrPort(conn.RemoteAddr())
	if !ok1 || !ok2 {
		return errors.New("the connection has no address")
	}
	if there.Addr() != here.Addr() && !there.Addr().IsLoopback() {
		return nil // another machine
	}
	for range 3 {
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			uid, found, err := socketOwner(table, there, here)
			if err != nil {
				return err
			}
			if found && uid != os.Geteuid() {
				return errOtherUser
			}
			if found {
				return nil
			}
		}
	}
	return errors.New("cannot find the owner of the connection")
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()), true
}

// socketOwner finds the user of the socket with these ends.
func socketOwner(table string, local, remote netip.AddrPort) (uid int, found bool, err error) {
	f, err := os.Open(table)
	if errors.Is(err, os.ErrNotExist) && strings.HasSuffix(table, "6") {
		return 0, false, nil // no IPv6
	}
	if err != nil {
		return 0, false, fmt.Errorf("cannot look up the owner of the connection: %w", err)
	}
	defer f.Close()
	return findSocket(f, local, remote)
}

// findSocket reads a table in the form of /proc/net/tcp. It skips a socket that its process has
// already closed: the kernel then shows both the user and the inode as 0.
func findSocket(table io.Reader, local, remote netip.AddrPort) (uid int, found bool, err error) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || parseAddrPort(fields[1]) != local || parseAddrPort(fields[2]) != remote {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		if err != nil || fields[9] == "0" {
			continue
		}
		return uid, true, nil
	}
	return 0, false, lines.Err()
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
