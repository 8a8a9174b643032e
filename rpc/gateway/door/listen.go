package door

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"waza/rpc/access"
)

// check validates the Config and reads the TLS certificate.
func (d *Door) check() error {
	c := &d.config
	switch {
	case c.MaxMessageBytes < 0 || c.MaxConnections < 0 || c.MaxUnidentified < 0 || c.SendQueueBytes < 0 || c.MessagesPerMinute < 0:
		return errors.New("sizes and counts must not be negative; 0 means no limit")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("tls_cert and tls_key must be set together: set both or neither")
	}
	if c.TLSCert != "" {
		certificate, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return fmt.Errorf("tls_cert, tls_key: %w", err)
		}
		d.tls = &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: cmp.Or(d.options.MinTLS, tls.VersionTLS12),
			NextProtos: []string{"http/1.1"},
		}
	}
	if c.IsOff() {
		return nil
	}
	host, err := hostOf(c.Listen)
	if err != nil || access.IsLoopback(host) {
		return err
	}
	if d.tls == nil && !c.Insecure {
		return fmt.Errorf("listen address %s is reachable from other machines: set tls_cert and tls_key, or insecure: "+
			"true to accept connections without TLS",
			c.Listen)
	}
	if !d.options.Authenticated {
		return fmt.Errorf("listen address %s is reachable from other machines, so clients must authenticate themselves: %s", c.Listen,
			cmp.Or(d.options.AuthenticateHint, "set a key, or listen on localhost"))
	}
	return nil
}

// hostOf returns the host of an address, or localhost when the address has no host.
func hostOf(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && port == "" {
		err = errors.New("missing port; 0 means any free port")
	}
	if err != nil {
		return "", fmt.Errorf("listen must be HOST:PORT or off, got %q: %w", address, err)
	}
	return cmp.Or(host, "localhost"), nil
}

// Listen opens an address such as localhost:8080. For localhost, it opens those of 127.0.0.1 and
// ::1 that exist. Port 0 means any free port. The caller closes the listeners, or gives them to
// [Door.ServeOn].
func Listen(address string) ([]net.Listener, error) {
	host, err := hostOf(address)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	if !strings.EqualFold(host, "localhost") {
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		return []net.Listener{l}, err
	}
	const tries = 10 // to find a port that is free on both addresses
	for try := 1; ; try++ {
		listeners, err := listenLocal(port)
		if port == "0" && try < tries && errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		return listeners, err
	}
}

// listenLocal opens a port on those loopback addresses that exist.
func listenLocal(port string) ([]net.Listener, error) {
	var lc net.ListenConfig
	l4, err4 := lc.Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", port))
	if err4 != nil && !isMissing(err4) {
		return nil, err4
	}
	if err4 == nil {
		_, port, _ = net.SplitHostPort(l4.Addr().String())
	}
	l6, err6 := lc.Listen(context.Background(), "tcp6", net.JoinHostPort("::1", port))
	switch {
	case err4 == nil && err6 == nil:
		return []net.Listener{l4, l6}, nil
	case err4 == nil && isMissing(err6):
		return []net.Listener{l4}, nil
	case err4 == nil:
		l4.Close()
		return nil, err6
	case err6 == nil:
		return []net.Listener{l6}, nil
	default:
		return nil, err4
	}
}

// isMissing reports whether the error means that the machine does not have the address.
func isMissing(err error) bool {
	var lookup *net.AddrError
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) || errors.As(err, &lookup)
}
