// Package rpc is the daemon: it serves the methods and notifications of waza's
// JSON-RPC protocol to editors, scripts and dashboards.
//
// The command line calls [Main]. Whoever embeds the daemon makes a [Server]
// with [New] and lets it serve a pair of pipes ([Server.ServeStdio]) or a
// listener ([Server.Serve]).
//
//	bytes ─► rpc/wire ─► session ─► dispatcher ─► handler ─► eval, runner
//	                                    │ one table: methods of lifecycle.go,
//	                                    │ eval.go, task.go, run.go, discover.go;
//	                                    │ language*.go for what editors ask
//	bytes ◄─ rpc/wire ◄─ reply ◄────────┘
//	   ▲
//	   └──── follower, one for each run that a session receives ◄─ run's events
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
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/wire"
	"waza/runner"
	"waza/runner/report"
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
// for; all others belong to a session (see there), and end with it.
type Server struct {
	o       Options
	runner  *runner.Runner
	log     *slog.Logger
	methods map[string]*method
	counts  *counts
	slots   chan struct{} // taken by heavy requests, so that a flood of them cannot exhaust memory

	bodies *wire.Bodies
	making chan struct{} // taken while a large reply is made

	standings standings
	guesses   guesses

	mu        sync.Mutex // guards the fields below
	closing   bool
	listeners map[net.Listener]bool
	sessions  map[*session]bool
	clients   int // sessions of listeners that may call methods
	// unauthorised are the sessions that have yet to show the token, oldest first.
	unauthorised []*session
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
	s := &Server{
		o: o, runner: o.Runner, log: o.Logger,
		methods:   map[string]*method{},
		slots:     make(chan struct{}, 2*runtime.GOMAXPROCS(0)+2),
		listeners: map[net.Listener]bool{},
		sessions:  map[*session]bool{},
	}
	if s.runner == nil {
		r, err := runner.New(runner.Options{Reports: report.Always(), Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		s.runner = r
	}
	s.making = make(chan struct{}, maxMaking)
	s.bodies = wire.NewBodies(s.runner.Catalog().StateDir(), maxBodies)
	for _, m := range append(table(), languageTable()...) {
		s.methods[m.name] = m
	}
	s.counts = s.newCounts(o.Metrics)
	return s, nil
}

// Shutdown takes no more clients and requests, cancels all runs, waits until
// they have ended and their clients know, and closes all connections. When ctx
// ends first it closes them all the same and returns the cause.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	var sessions []*session
	for sess := range s.sessions {
		sessions = append(sessions, sess)
	}
	for l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	err := s.runner.Close(ctx)
	var all sync.WaitGroup
	for _, sess := range sessions {
		all.Go(func() { sess.end(ctx) })
	}
	all.Wait()
	if err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	return nil
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// enter registers a session. It says no when there is no room, or no more time.
func (s *Server) enter(sess *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return ErrServerClosed
	case sess.stdio:
	case !sess.authorised:
		s.enterUnauthorisedLocked(sess)
	case s.clients >= s.o.MaxConnections:
		return errTooManyClients
	default:
		sess.counted = true
		s.clients++
	}
	s.sessions[sess] = true
	return nil
}

func (s *Server) leave(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess.counted {
		sess.counted = false
		s.clients--
	}
	s.removeUnauthorisedLocked(sess)
	delete(s.sessions, sess)
}
