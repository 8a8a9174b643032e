package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"waza/rpc/host"
)

// Door configures how clients of [Main] connect. The zero value is stdio: one client, which owns
// the process.
type Door struct {
	// TCP is an address to listen on, Socket the path of a socket. Both can be set. If both are
	// empty, Main uses stdio.
	TCP, Socket string
	// Metrics is the HTTP address for Options.Metrics, served at /metrics. Empty means none.
	Metrics string
	// Listening, if not nil, is called with the address of each listener.
	Listening func(net.Addr)
}

// The exit codes of Main.
const (
	exitOK          = 0
	exitClientGone  = 1 // its runs were cancelled
	exitUsage       = 2 // the options are invalid
	exitFailed      = 3 // a listener failed
	exitInterrupted = 130
)

const (
	// shutdownTime limits the cleanup of a daemon with listeners.
	shutdownTime = 4 * time.Second
	// remainingTime limits how long Main waits for remaining work after ServeStdio, or after
	// shutdownTime.
	remainingTime = 500 * time.Millisecond
)

// Main is the main function of the daemon. It serves until its clients leave or ctx ends, and
// returns the exit code:
//
//   - 0: the client of stdio ended properly, or ctx ended a daemon with listeners
//     while no run was active
//   - 1: the client of stdio is gone, and its runs were cancelled
//   - 2: the daemon could not be set up with these options
//   - 3: a listener failed
//   - 130: ctx ended first
//
// Before it returns, Main waits some seconds for all runs to end.
//
// On stdio, Main owns in and out. Get out from [host.TakeStdout], so that only protocol messages
// are written to it. Main writes messages for people to stderr.
func Main(ctx context.Context, in, out *os.File, stderr io.Writer, o Options, d Door) int {
	host.IgnoreBrokenPipe()
	host.LimitGarbage()
	s, err := New(o)
	if err != nil {
		fmt.Fprintf(stderr, "waza: %v\n", err)
		return exitUsage
	}
	if d.Metrics != "" {
		l, err := s.ListenTCP(d.Metrics)
		if err != nil {
			fmt.Fprintf(stderr, "waza: --metrics %s: %v\n", d.Metrics, err)
			return exitUsage
		}
		defer s.serveMetrics(l)()
		if d.Listening != nil {
			d.Listening(l.Addr())
		}
	}
	if d.TCP == "" && d.Socket == "" {
		err = s.ServeStdio(ctx, in, out)
	} else {
		var listeners []net.Listener
		if listeners, err = s.open(d); err != nil {
			fmt.Fprintf(stderr, "waza: %v\n", err)
			return exitUsage
		}
		err = s.serveAll(ctx, listeners)
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), remainingTime)
	defer cancel()
	if serr := s.Shutdown(limit); serr != nil {
		fmt.Fprintf(stderr, "waza: some runs did not end in time: %v\n", serr)
	}
	return exitCode(ctx, err, stderr)
}

// errIdle means that ctx ended a daemon with listeners while no run was active.
var errIdle = errors.New("ended while idle")

func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, errIdle):
		return exitOK
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, ErrExit):
		return exitClientGone
	case errors.Is(err, ErrClientGone):
		fmt.Fprintf(stderr, "waza: %v\n", err) // stderr may be closed, too
		return exitClientGone
	}
	fmt.Fprintf(stderr, "waza: %v\n", err)
	return exitFailed
}

// open opens the listeners of a door, all or none.
func (s *Server) open(d Door) (listeners []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
		}
	}()
	for _, at := range []struct {
		flag, address string
		listen        func(string) (net.Listener, error)
	}{{"tcp", d.TCP, s.ListenTCP}, {"socket", d.Socket, s.ListenUnix}} {
		if at.address == "" {
			continue
		}
		l, err := at.listen(at.address)
		if err != nil {
			return listeners, fmt.Errorf("--%s %s: %w", at.flag, at.address, err)
		}
		listeners = append(listeners, l)
	}
	if d.Listening != nil {
		for _, l := range listeners {
			d.Listening(l.Addr())
		}
	}
	return listeners, nil
}

// serveAll serves the clients of all listeners until ctx ends or one of them fails. When ctx
// ends, it shuts the server down.
func (s *Server) serveAll(ctx context.Context, listeners []net.Listener) error {
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- s.Serve(context.WithoutCancel(ctx), l) }()
	}
	var err error
	ended := 0
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
		if s.runner.Idle() {
			err = errIdle
		}
	case err = <-failed:
		ended++
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	_ = s.Shutdown(limit) // Main calls Shutdown again and reports what did not end
	for ; ended < len(listeners); ended++ {
		if ferr := <-failed; err == nil {
			err = ferr
		}
	}
	return err
}
