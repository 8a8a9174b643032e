package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"waza/eval/jsonwalk"
	"waza/rpc/host"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/peer"
	"waza/rpc/internal/wire"
)

// ListenTCP listens on an address like [host.ListenTCP], for clients that send Options.Token.
func (s *Server) ListenTCP(address string) (net.Listener, error) {
	return host.ListenTCP(address, s.o.Token != "", s.o.AllowRemote)
}

// ListenUnix listens on a socket at path like [host.ListenUnix].
func (s *Server) ListenUnix(path string) (net.Listener, error) { return host.ListenUnix(path, s.log) }

// Serve accepts clients from l until Shutdown is called, and then returns [ErrServerClosed]; or
// until ctx ends, and returns the cause; or until l fails. It closes l, and waits until the
// accepted connections have ended. Runs continue after their client is gone.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.clients.listen(l) {
		l.Close()
		return ErrServerClosed
	}
	defer s.clients.unlisten(l)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var connections dispatch.Group
	err := s.accept(ctx, l, &connections)
	l.Close()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	connections.Wait(context.WithoutCancel(ctx))
	return err
}

// accept accepts clients until the listener is closed. After a temporary error, such as too many
// open files, it waits and tries again.
func (s *Server) accept(ctx context.Context, l net.Listener, connections *dispatch.Group) error {
	pause := 5 * time.Millisecond
	for {
		conn, err := l.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			connections.Go(func() { s.serveConn(ctx, conn) })
		case s.clients.isClosing():
			return ErrServerClosed
		case errors.As(err, &passing) && passing.Temporary():
			s.strangers.Warn("accept", "error", err, "again", pause)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// serveConn serves one client of a listener, if the server admits it.
func (s *Server) serveConn(ctx context.Context, conn net.Conn) {
	if err := peer.Admit(conn, s.o.Token != ""); err != nil {
		s.strangers.Warn("client refused", "client", conn.RemoteAddr(), "error", err)
		conn.Close()
		return
	}
	err := s.ServeStream(ctx, conn, Client{})
	s.strangers.Info("client disconnected", "client", conn.RemoteAddr(), "cause", err)
}

// refuseTime limits the time for a refused client to read the reason.
const refuseTime = time.Second

// refuse sends a client the reason why it is not served, and closes the stream.
func (s *Server) refuse(stream io.WriteCloser, why error) {
	defer stream.Close()
	defer time.AfterFunc(refuseTime, func() { stream.Close() }).Stop()
	fault := dispatch.ErrShuttingDown
	if errors.Is(why, errTooManyClients) {
		fault = dispatch.NewFault(wire.CodeBusy, "", map[string]any{"limit": "connections", "value": s.o.MaxConnections})
	}
	reply, err := jsonwalk.Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": fault})
	if err == nil {
		_, _ = stream.Write(append(reply, '\n')) // the stream is closed in any case
	}
}
