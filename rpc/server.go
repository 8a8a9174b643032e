// Package rpc is the daemon: it serves the methods and notifications of waza's
// JSON-RPC protocol to editors, scripts and dashboards.
//
// The command line calls [Main]. Other programs make a [Server] with [New] and let it
// serve a pair of pipes ([Server.ServeStdio]), a listener ([Server.Serve]) or any
// stream of bytes ([Server.ServeStream]).
//
//	bytes ─► rpc/wire ─► rpc/dispatch ─► handler ─► eval, runner
//	                          │ one table: methods.go lists the families,
//	                          │ one file each; rpc/language has what editors ask
//	bytes ◄─ rpc/wire ◄─ reply ◄──────────┘
//	   ▲
//	   └──── follower, one for each run that a connection receives ◄─ run's events
//
// A new method is one entry in the file of its family. Its parameters, result,
// checks and documentation ([OpenRPC], [Reference]) all follow from the Go types.
package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/access"
	"waza/rpc/dispatch"
	"waza/rpc/language"
	"waza/runner"
	"waza/runner/executor/remote"
	"waza/runner/report/formats"
)

// Options say how a [Server] works. The zero value works.
type Options struct {
	// Runner starts and finds runs. Nil means one with the default state
	// directory, whose runs have the reports that all have. [Server.Shutdown] closes it in either case.
	Runner *runner.Runner
	// Logger takes what concerns people, never protocol; nil discards it.
	Logger *slog.Logger
	// Version of the program, as initialize tells it; empty means "dev".
	Version string

	// Metrics, unless nil, takes what the server counts. [Main] serves it where
	// Door.Metrics says.
	Metrics *prometheus.Registry

	// Agents lists the agents of `waza serve`; nil means that there are none.
	Agents remote.Directory

	// Token is what clients of a listener must send as their first call,
	// initialize {token}. Empty means that none is asked for. Stdio needs none:
	// whoever holds the pipes has started the daemon. It has at least MinToken bytes.
	Token string
	// AllowRemote lets [Server.ListenTCP] take addresses that other machines
	// can reach, provided that there is a Token.
	AllowRemote bool

	// MaxConnections is how many clients of all listeners are served at once;
	// further ones are told so and closed. 0 means 64.
	MaxConnections int
	// AuthTimeout is how long a client may take to show its token. 0 means 5 s.
	AuthTimeout time.Duration
	// WriteTimeout is how long a client of a listener may leave a message
	// unread before its connection is given up. 0 means 60 s.
	WriteTimeout time.Duration
	// CleanupTimeout is how long cancelled runs may take to end their processes
	// when a client or the server goes. 0 means 3 s, which leaves time to exit
	// within 5.
	CleanupTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Version = cmp.Or(o.Version, "dev")
	o.MaxConnections = cmp.Or(o.MaxConnections, 64)
	o.AuthTimeout = cmp.Or(o.AuthTimeout, 5*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, time.Minute)
	o.CleanupTimeout = cmp.Or(o.CleanupTimeout, 3*time.Second)
	return o
}

// A Server serves clients. All its methods may be called from any goroutine.
//
// Its goroutines are one per client of a listener, which Serve starts and waits
// for; all others belong to a connection (see there), and end with it.
type Server struct {
	o      Options
	runner *runner.Runner
	log    *slog.Logger

	dispatcher *dispatch.Dispatcher[*call]
	standings  language.Standings
	guesses    access.Guesses
	clients    *clients
}

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("the server is shut down")

// New makes a server. The error is that of making a runner, when o has none, or
// says that the token is too short.
func New(o Options) (*Server, error) {
	if err := checkToken(o.Token); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Server{o: o, runner: o.Runner, log: o.Logger, clients: newClients(o.MaxConnections)}
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

// Shutdown takes no more clients and requests, cancels all runs, waits until
// they have ended and their clients know, and closes all connections. When ctx
// ends first it closes them all the same and returns the cause.
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

// announce lets every client that shows results of the run know when it has ended.
func (s *Server) announce(run *runner.Run) {
	for _, c := range s.clients.list() {
		if c.runner.Sees(run.ID()) {
			c.editor.Announce(run)
		}
	}
}
