// Package rpc is the daemon: it serves the methods and notifications of waza's JSON-RPC protocol
// to editors, scripts and dashboards.
//
// The command line calls [Main]. Other programs make a [Server] with [New]. They let it serve a
// pair of pipes ([Server.ServeStdio]), a listener ([Server.Serve]) or any stream of bytes
// ([Server.ServeStream]).
//
//	bytes ─► rpc/internal/wire ─► rpc/internal/dispatch ─► handler ─► eval, runner
//	                          │ one table: methods.go lists the families,
//	                          │ one file each; rpc/internal/language serves editors
//	bytes ◄─ rpc/internal/wire ◄─ reply ◄──────────┘
//	   ▲
//	   └──── follower, one for each run that a connection receives ◄─ run's events
//
// A new method is one entry in the file of its family. Its parameters, result, checks and
// documentation ([Protocol]) are derived from the Go types.
package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/access"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/language"
	"waza/runner"
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/fleet/survey"
	"waza/runner/report/formats"
	"waza/runner/routing"
)

// Options configure a [Server]. The zero value is valid.
type Options struct {
	// Runner starts and finds runs. Nil means a runner with the default state directory, whose
	// runs get the default reports. [Server.Shutdown] closes the runner in either case.
	Runner *runner.Runner
	// Logger receives messages for people, never protocol messages; nil discards them.
	Logger *slog.Logger
	// Version is the version of the program in the result of initialize; empty means "dev".
	Version string

	// Metrics, unless nil, is the registry for the server's metrics. [Main] serves it at the
	// address Door.Metrics.
	Metrics *prometheus.Registry

	// Agents lists the agents of `waza serve`; nil means none.
	Agents remote.Directory

	// Messenger sends messages to the clients of the message router; nil means no router.
	Messenger routing.Messenger

	// Fleet returns the state of the user's fleet; nil means no fleet.
	Fleet survey.Viewer

	// Browsers lists the browser assistants and extensions of `waza serve`; nil means none.
	Browsers browser.Directory

	// Token is the token that clients of a listener must send in their first call, initialize
	// {token}. It has at least MinToken bytes. Empty means that clients need no token. A client
	// of stdio never needs one, because it started the daemon.
	Token string
	// AllowRemote allows [Server.ListenTCP] addresses that other machines can reach, provided
	// that Token is set.
	AllowRemote bool

	// MaxConnections limits the clients of all listeners together. The server sends further
	// clients an error and closes their connections. 0 means 64.
	MaxConnections int
	// AuthTimeout limits the time for a client to send its token. 0 means 5 s.
	AuthTimeout time.Duration
	// WriteTimeout limits how long a client of a listener can leave a message unread before its
	// connection is closed. 0 means 60 s.
	WriteTimeout time.Duration
	// CleanupTimeout limits the time for cancelled runs to end their processes when a client
	// leaves or the server shuts down. 0 means 3 s, which leaves time to exit within 5 s.
	CleanupTimeout time.Duration
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Version = cmp.Or(o.Version, "dev")
	o.MaxConnections = cmp.Or(o.MaxConnections, 64)
	o.AuthTimeout = cmp.Or(o.AuthTimeout, 5*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, time.Minute)
	o.CleanupTimeout = cmp.Or(o.CleanupTimeout, 3*time.Second)
	return o
}

// A Server serves clients. Its methods are safe for concurrent use.
//
// Serve starts one goroutine per client of a listener, and waits for it. All other goroutines
// belong to a connection (see there), and end with it.
type Server struct {
	o      Options
	runner *runner.Runner
	log    *slog.Logger
	// strangers is the log of connections that need not have shown a token.
	strangers *slog.Logger

	dispatcher *dispatch.Dispatcher[*call]
	standings  language.Standings
	guesses    access.Guesses
	clients    *clients
	attacks    atomic.Int32 // the number that is running
}

// ErrServerClosed is the error of Serve after Shutdown.
var ErrServerClosed = errors.New("the server is shut down")

// New returns a server. It fails if it cannot make a runner, when o has none, or if the token is
// too short.
func New(o Options) (*Server, error) {
	if err := checkToken(o.Token); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Server{o: o, runner: o.Runner, log: o.Logger, strangers: access.LimitLog(o.Logger), clients: newClients(o.MaxConnections)}
	if s.runner == nil {
		r, err := runner.New(runner.Options{Reports: formats.Always(), Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		s.runner = r
	}
	s.dispatcher = s.newDispatcher(append(table(), languageTable()...))
	return s, nil
}

func (s *Server) newDispatcher(methods []*method) *dispatch.Dispatcher[*call] {
	return dispatch.New(dispatch.Options[*call]{
		Methods: methods, Log: s.log, BodyDir: s.runner.Catalog().StateDir(), Served: s.countRequests(s.o.Metrics),
	})
}

// Shutdown accepts no more clients and requests, cancels all runs, waits until they have ended
// and their clients are notified, and closes all connections. If ctx ends first, Shutdown closes
// them at once and returns the cause.
func (s *Server) Shutdown(ctx context.Context) error {
	connections := s.clients.close()
	err := s.runner.Close(ctx)
	var all sync.WaitGroup
	for _, c := range connections {
		all.Go(func() { c.end(ctx) })
	}
	all.Wait()
	if err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	return nil
}

// announce notifies every client that shows results of the run when it has ended.
func (s *Server) announce(run *runner.Run) {
	for _, c := range s.clients.list() {
		if c.runner.Sees(run.ID()) {
			c.editor.Announce(run)
		}
	}
}
