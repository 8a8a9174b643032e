package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/cmd/waza/config"
	"waza/cmd/waza/exit"
	"waza/rpc"
	"waza/rpc/gateway/agents"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/dashboard"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/link"
	"waza/rpc/gateway/owned"
	"waza/rpc/gateway/store"
	"waza/runner"
	"waza/runner/executor/remote"
)

// Options say what is served. All are required.
type Options struct {
	Config *config.Config
	// StateDir is absolute.
	StateDir string
	Version  string
	Log      *slog.Logger
	// NewRunner makes the runner whose suites reach agents by the hub and whose runs pass
	// the gate, and the registry of its metrics. The server closes the runner.
	NewRunner func(hub remote.Hub, gate runner.Gate, log *slog.Logger) (*runner.Runner, *prometheus.Registry, error)
	// Opened is called when all doors are open, with a function that makes a link to the
	// dashboard, see [Server.Dashboard]. It must not block.
	Opened func(dashboard func() (url string, err error))
}

// protocol is what serves the clients of a door.
type protocol interface{ Door() *door.Door }

// protocols are the doors of this version, in the order in which they are opened. Each
// may use what those above it have set in the server. A further door is one line here
// and one in [config.Config.Doors].
var protocols = []func(s *Server) (protocol, error){
	(*Server).openAgents,
	(*Server).openJobs,
}

// The times that the steps of a shutdown may take.
const (
	runsTime  = 4 * time.Second // until the runs have ended
	doorsTime = 3 * time.Second // then, until clients have been sent what waits for them
)

// Server is the process of `waza serve`. Its goroutines are one per door and one for
// the link; Serve waits for all.
type Server struct {
	o       Options
	link    *link.Server
	store   *store.Store
	owned   *owned.Runs
	agents  *agents.Server
	runner  *runner.Runner
	rpc     *rpc.Server
	metrics *prometheus.Registry // of the doors
	all     prometheus.Gatherers // of the doors and the runner
	alerts  *board.Alerts
	board   *board.Board         // nil when the jobs door is off
	pages   *dashboard.Dashboard // nil when the jobs door is off
	origin  string               // of the pages
	doors   []*door.Door         // those of protocols
	closing atomic.Bool          // the server ends
}

// Open makes this process the server of the state directory and opens all doors, or
// none. The error is a [*link.RunningError] when there is a server already.
func Open(ctx context.Context, o Options) (*Server, error) {
	s := &Server{o: o, metrics: prometheus.NewRegistry(), alerts: board.NewAlerts(o.Log.Handler())}
	s.o.Log = slog.New(s.alerts)
	if err := s.open(); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *Server) open() (err error) {
	if s.link, err = link.Listen(s.o.StateDir); err != nil {
		return err
	}
	if s.store, err = store.Open(s.o.StateDir); err != nil {
		return err
	}
	if s.owned, err = owned.Open(context.Background(), store.RunsOf(s.store), s.o.Config.Jobs.MaxJobs, s.o.Log); err != nil {
		return err
	}
	for _, open := range protocols {
		served, err := open(s)
		if err != nil {
			return err
		}
		s.doors = append(s.doors, served.Door())
	}
	addresses := map[string]net.Addr{}
	for _, d := range s.doors {
		if addresses[d.Name()], err = d.Listen(); err != nil {
			return err
		}
	}
	for _, d := range s.o.Config.Doors() {
		if a := addresses[d.Name]; a != nil {
			if d.Name == "jobs" {
				s.origin = originOf(d, s.o.Config.Jobs.Hosts, a)
			}
			s.o.Log.Info("listening", "door", d.Name, "address", a.String(), "tls", d.TLS(), "clients", d.Clients())
		}
	}
	return nil
}

// openAgents also makes what needs the agents: the runner and the methods of JSON-RPC.
func (s *Server) openAgents() (protocol, error) {
	var err error
	c := s.o.Config
	s.agents, err = agents.New(c.Agents, agents.Options{
		Key: c.Key, Keys: c.Keys, Store: s.store, Log: s.o.Log, Metrics: s.metrics,
	})
	if err != nil {
		return nil, err
	}
	var metrics *prometheus.Registry
	if s.runner, metrics, err = s.o.NewRunner(s.agents.Hub(), s.owned, s.o.Log); err != nil {
		return nil, err
	}
	s.all = prometheus.Gatherers{s.metrics, metrics}
	s.rpc, err = rpc.New(rpc.Options{Runner: s.runner, Logger: s.o.Log, Version: s.o.Version, Metrics: metrics, Agents: s.agents.Hub()})
	return s.agents, err
}

func (s *Server) openJobs() (protocol, error) {
	o := jobs.Options{Log: s.o.Log, Metrics: s.metrics, Gatherer: s.all, Ready: s.ready}
	if c := &s.o.Config.Jobs; !c.IsOff() {
		var err error
		if o.Token, err = rpcToken(c.TokenFile, s.o.StateDir, s.o.Log); err != nil {
			return nil, err
		}
		if o.Tokens, err = token.New(context.Background(), s.store); err != nil {
			return nil, err
		}
		s.board = board.New(board.Options{Runner: s.runner, UserOf: s.userOf, Queued: s.owned.Queued, Log: s.o.Log})
		s.alerts.SendTo(s.board)
		o.Board = s.board
		s.pages = dashboard.New(dashboard.Options{Tokens: o.Tokens, Run: s.runner.Catalog().Run, Sees: s.sees, Secure: c.TLSCert != "", Log: s.o.Log})
		s.link.OfferDashboard(s.Dashboard)
		o.Dashboard = s.pages
		o.ServeRPC = func(ctx context.Context, stream io.ReadWriteCloser, who *token.Claims) error {
			return s.rpc.ServeStream(ctx, stream, s.client(who))
		}
	}
	return jobs.New(s.o.Config.Jobs, o)
}

// userOf returns whose job a run is. The runs of other waza processes of this user are the
// owner's.
func (s *Server) userOf(_ context.Context, runID string) (string, error) {
	return cmp.Or(s.owned.UserOf(runID), token.Owner), nil
}

// client returns what a client of /rpc sees, who has shown a token of its user or, if who
// is nil, that of the server.
func (s *Server) client(who *token.Claims) rpc.Client {
	c := rpc.Client{Authorised: true}
	if who == nil {
		return c
	}
	if !who.IsOwner() {
		c.View.User = who.Subject
	}
	if !who.IsAdmin() {
		c.View.Sees = func(runID string) bool { return s.owned.UserOf(runID) == c.View.User }
	}
	return c
}

// sees reports whether a run is the business of somebody who shows a token.
func (s *Server) sees(ctx context.Context, c *token.Claims, runID string) (bool, error) {
	user, err := s.userOf(ctx, runID)
	return err == nil && (c.IsAdmin() || c.Subject == user), err
}

// errClosing is the answer to health checks while the server ends.
var errClosing = errors.New("the server is shutting down")

func (s *Server) ready() error {
	if s.closing.Load() {
		return errClosing
	}
	return nil
}

// Serve serves all clients until ctx ends or a door fails. Then it ends in steps: the
// runs, which can be resumed; other processes of waza, which wait for the next server;
// the clients. It returns whether runs were interrupted, and what failed.
func (s *Server) Serve(ctx context.Context) (interrupted bool, err error) {
	failed := make(chan error, len(s.doors)+1)
	var all sync.WaitGroup
	serve := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				failed <- err
			}
		})
	}
	// Clients are disconnected by close, in its order.
	served := context.WithoutCancel(ctx)
	serve(func() error {
		err := s.owned.Resume(ctx, s.runner)
		if err != nil && ctx.Err() == nil && !s.closing.Load() {
			s.o.Log.Error("runs of an earlier server are not taken up again", "error", err)
		}
		return nil
	})
	boarding, stop := context.WithCancel(served)
	defer stop()
	if s.board != nil {
		serve(func() error {
			s.board.Serve(boarding)
			return nil
		})
	}
	serve(func() error { return s.link.Serve(s.agents.Hub(), s.o.Log) })
	for _, d := range s.doors {
		serve(func() error { return d.Serve(served) })
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.o.Log.Error("the server ends, because a part of it failed", board.EventKey, "server_failed", "error", err)
	}
	interrupted = !s.runner.Idle()
	s.close(ctx)
	stop()
	all.Wait()
	return interrupted, err
}

// close ends what was opened, in the order that Serve describes.
func (s *Server) close(ctx context.Context) {
	s.closing.Store(true)
	within := func(limit time.Duration, what string, f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if err := f(ctx); err != nil {
			s.o.Log.Warn("shutdown", "of", what, "error", err)
		}
	}
	if s.agents != nil {
		s.agents.Leave()
	}
	switch {
	case s.rpc != nil:
		within(runsTime, "runs", s.rpc.Shutdown)
	case s.runner != nil:
		within(runsTime, "runs", s.runner.Close)
	}
	if s.link != nil {
		if err := s.link.Close(); err != nil {
			s.o.Log.Warn("shutdown", "of", "link", "error", err)
		}
	}
	within(doorsTime, "doors", func(ctx context.Context) error {
		var all sync.WaitGroup
		errs := make([]error, len(s.doors))
		for i, d := range s.doors {
			all.Go(func() {
				if err := d.Shutdown(ctx); err != nil {
					errs[i] = fmt.Errorf("%s: %w", d.Name(), err)
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if s.agents != nil {
		s.agents.Close()
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.o.Log.Warn("shutdown", "of", "store", "error", err)
		}
	}
}

// Main serves until ctx ends and returns nil, or an error with the exit code of the
// program and, where there is one, a hint.
func Main(ctx context.Context, o Options) error {
	s, err := Open(ctx, o)
	var running *link.RunningError
	switch {
	case errors.As(err, &running):
		return exit.New(exit.Usage, err, "")
	case err != nil:
		return exit.Usagef("waza serve --check prints what would be opened", "%v", err)
	}
	o.Opened(s.Dashboard)
	interrupted, err := s.Serve(ctx)
	switch {
	case err != nil:
		return exit.New(exit.Error, err, "")
	case interrupted:
		return exit.With(exit.Interrupted)
	}
	return nil
}
