package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// The parts of SOCKS5 (RFC 1928) that the proxy has: connections without authentication.
const (
	socksVersion = 5

	socksNoAuth   = 0
	socksNoMethod = 0xff

	socksConnect = 1

	socksIPv4 = 1
	socksName = 3
	socksIPv6 = 4

	socksSucceeded       = 0
	socksFailed          = 1
	socksNotAllowed      = 2
	socksHostUnreachable = 4
	socksConnRefused     = 5
	socksNoCommand       = 7
	socksNoAddressType   = 8
)

// serveSOCKS serves a connection that speaks SOCKS5, and closes it.
func (p *Proxy) serveSOCKS(c *first) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(headerTime))
	to, port, status, err := p.readSOCKS(c)
	if err != nil {
		return
	}
	if status != socksSucceeded {
		p.replySOCKS(c, status)
		return
	}
	_ = c.SetDeadline(time.Time{})
	upstream, err := p.dial(p.ctx, SOCKS5, to, port)
	if err != nil {
		p.replySOCKS(c, socksStatus(err))
		return
	}
	defer upstream.Close()
	if p.replySOCKS(c, socksSucceeded) {
		tunnel(c.conn, c.r, upstream)
	}
}

// readSOCKS reads the offer of methods, answers it, and reads the request. A status other than
// socksSucceeded is the answer to the request.
func (p *Proxy) readSOCKS(c *first) (to string, port uint16, status byte, err error) {
	var head [4]byte
	if _, err = io.ReadFull(c, head[:2]); err != nil {
		return "", 0, 0, err
	}
	methods := make([]byte, head[1])
	if _, err = io.ReadFull(c, methods); err != nil {
		return "", 0, 0, err
	}
	if !slices.Contains(methods, socksNoAuth) {
		_, _ = c.Write([]byte{socksVersion, socksNoMethod})
		return "", 0, 0, errors.New("the client requires authentication")
	}
	if _, err = c.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return "", 0, 0, err
	}
	if _, err = io.ReadFull(c, head[:]); err != nil {
		return "", 0, 0, err
	}
	if head[0] != socksVersion {
		return "", 0, 0, errors.New("the version of the request differs")
	}
	to, known, err := readSOCKSHost(c, head[3])
	if err != nil || !known {
		return "", 0, socksNoAddressType, err
	}
	var number [2]byte
	if _, err = io.ReadFull(c, number[:]); err != nil {
		return "", 0, 0, err
	}
	port = binary.BigEndian.Uint16(number[:])
	if head[1] != socksConnect {
		_ = p.refuse(SOCKS5, shown(to), port, Unsupported)
		return "", 0, socksNoCommand, nil
	}
	return to, port, socksSucceeded, nil
}

// readSOCKSHost reads a host of that type. known is false if the type is not.
func readSOCKSHost(r io.Reader, kind byte) (to string, known bool, err error) {
	size := [1]byte{4}
	switch kind {
	case socksIPv4:
	case socksIPv6:
		size[0] = 16
	case socksName:
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return "", true, err
		}
	default:
		return "", false, nil
	}
	b := make([]byte, size[0])
	if _, err := io.ReadFull(r, b); err != nil {
		return "", true, err
	}
	if addr, ok := netip.AddrFromSlice(b); ok && kind != socksName {
		return addr.String(), true, nil
	}
	return string(b), true, nil
}

// replySOCKS answers a request. The address of the connection, which few clients use, is 0.0.0.0:0.
func (p *Proxy) replySOCKS(c *first, status byte) bool {
	_, err := c.Write([]byte{socksVersion, status, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err == nil
}

// socksStatus returns the answer for an error of dial.
func socksStatus(err error) byte {
	if _, ok := errors.AsType[*refusal](err); ok {
		return socksNotAllowed
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksConnRefused
	case errors.Is(err, context.Canceled):
		return socksFailed
	}
	return socksHostUnreachable
}
