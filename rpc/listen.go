package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"waza/rpc/dispatch"
	"waza/rpc/host"
	"waza/rpc/wire"
)

// ListenTCP listens on an address such as "localhost:9000", port 0 meaning any
// that is free. The port must be given; no host, as in ":9000", means localhost.
// Addresses that other machines can reach are refused without Options.AllowRemote
// and a token. So is every address without a token where the system does not reveal
// which user connects, which Linux does.
func (s *Server) ListenTCP(address string) (net.Listener, error) {
	hostname, port, err := net.SplitHostPort(address)
	if err == nil && port == "" {
		err = errors.New("the port is missing; 0 means any that is free")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(cmp.Or(hostname, "localhost"), port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	switch {
	case addr.IP.IsLoopback() && !host.RevealsTCPPeers && s.o.Token == "":
		return nil, fmt.Errorf("listen on %s: this system does not reveal which user connects, so TCP needs a token (--token-file); a unix socket (--socket) does not", address)
	case addr.IP.IsLoopback():
	case !s.o.AllowRemote:
		return nil, fmt.Errorf("listen on %s: other machines could reach this address; use localhost, or allow remote clients (--allow-remote) and set a token", address)
	case s.o.Token == "":
		return nil, fmt.Errorf("listen on %s: remote clients are allowed only with a token", address)
	}
	return net.ListenTCP("tcp", addr)
}

// Serve takes clients from l until Shutdown is called, and then returns
// [ErrServerClosed]; or until ctx ends, and returns the cause; or until l fails.
// It closes l, and waits for the connections it took to end. Runs go on when
// their client is gone.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.addListener(l) {
		l.Close()
		return ErrServerClosed
	}
	defer s.removeListener(l)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var clients dispatch.Group
	err := s.accept(ctx, l, &clients)
	l.Close()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	clients.Wait(context.WithoutCancel(ctx))
	return err
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.listeners[l] = true
	}
	return !s.closing
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// accept takes clients until the listener is closed. An error that passes, such
// as too many open files, is waited out.
func (s *Server) accept(ctx context.Context, l net.Listener, clients *dispatch.Group) error {
	pause := 5 * time.Millisecond
	for {
		conn, err := l.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			clients.Go(func() { s.serveConn(ctx, conn) })
		case s.isClosing():
			return ErrServerClosed
		case errors.As(err, &passing) && passing.Temporary():
			s.log.Warn("accept", "error", err, "again", pause)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// serveConn serves one client of a listener, if it may be.
func (s *Server) serveConn(ctx context.Context, conn net.Conn) {
	if err := host.Admit(conn, s.o.Token != ""); err != nil {
		s.log.Warn("client refused", "client", conn.RemoteAddr(), "error", err)
		conn.Close()
		return
	}
	err := s.ServeStream(ctx, conn, false)
	s.log.Info("client has left", "client", conn.RemoteAddr(), "cause", err)
}

// refuseTime is how long a client that is not served may take to read why.
const refuseTime = time.Second

// refuse tells a client why it is not served, and closes the stream.
func (s *Server) refuse(stream io.WriteCloser, why error) {
	defer stream.Close()
	defer time.AfterFunc(refuseTime, func() { stream.Close() }).Stop()
	fault := dispatch.ErrShuttingDown
	if errors.Is(why, errTooManyClients) {
		fault = dispatch.NewFault(wire.CodeBusy, "", map[string]any{"limit": "connections", "value": s.o.MaxConnections})
	}
	reply, err := wire.Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": fault.Reply()})
	if err == nil {
		_, _ = stream.Write(append(reply, '\n')) // it is going in any case
	}
}
