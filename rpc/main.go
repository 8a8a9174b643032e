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

// Door says where the clients of [Main] come in. The zero value is stdio: one
// client, which owns the process.
type Door struct {
	// TCP is an address to listen on, Socket the path of a socket; either, or
	// both. Empty means not to.
	TCP, Socket string
	// Metrics is an address to serve Options.Metrics at, by HTTP at /metrics.
	// Empty means not to.
	Metrics string
	// Listening, if not nil, is called with the address of each listener.
	Listening func(net.Addr)
}

// The exit codes of Main.
const (
	exitOK          = 0
	exitClientGone  = 1 // its runs were cancelled
	exitUsage       = 2 // the server cannot be set up as asked
	exitFailed      = 3 // a listener failed
	exitInterrupted = 130
)

const (
	// shutdownTime is how long the daemon of listeners takes to clean up.
	shutdownTime = 4 * time.Second
	// afterwards is how long Main waits for what is left after ServeStdio, or
	// after that, has had its time.
	afterwards = 500 * time.Millisecond
)

// Main is the daemon as a program. It serves until its clients or ctx say
// otherwise, and returns the exit code: 0 when the client of stdio ended well, 1
// when it was gone, 2 when the daemon cannot be set up as asked, 3 when a
// listener failed, 130 when ctx ended first, but 0 when that ended a daemon of
// listeners while no run was active. All runs have ended then, as far as
// they could within seconds.
//
// On stdio, in and out belong to Main. Get out from [host.TakeStdout], so that nothing
// but protocol is ever written there. stderr takes what people should know.
func Main(ctx context.Context, in, out *os.File, stderr io.Writer, o Options, d Door) int {
	host.IgnoreBrokenPipe()
	s, err := New(o)
	if err != nil {
		fmt.Fprintf(stderr, "waza: %v\n", err)
		return exitUsage
	}
	if d.Metrics != "" {
		l, err := s.ListenTCP(d.Metrics)
		if err != nil {
			fmt.Fprintf(stderr, "waza: metrics: %v\n", err)
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
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	if serr := s.Shutdown(limit); serr != nil {
		fmt.Fprintf(stderr, "waza: some runs had not ended in time: %v\n", serr)
	}
	return exitCode(ctx, err, stderr)
}

// errIdle says that ctx ended a daemon of listeners while no run was active.
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
		fmt.Fprintf(stderr, "waza: %v\n", err) // stderr may be gone with it
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
	add := func(l net.Listener, err error) error {
		if err == nil {
			listeners = append(listeners, l)
		}
		return err
	}
	if d.TCP != "" {
		if err := add(s.ListenTCP(d.TCP)); err != nil {
			return listeners, err
		}
	}
	if d.Socket != "" {
		if err := add(s.ListenUnix(d.Socket)); err != nil {
			return listeners, err
		}
	}
	if d.Listening != nil {
		for _, l := range listeners {
			d.Listening(l.Addr())
		}
	}
	return listeners, nil
}

// serveAll serves the clients of all listeners until ctx ends, which shuts the
// server down in order, or one of them fails.
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
	_ = s.Shutdown(limit) // Main tells of what did not end, when it calls it again
	for ; ended < len(listeners); ended++ {
		if ferr := <-failed; err == nil {
			err = ferr
		}
	}
	return err
}
