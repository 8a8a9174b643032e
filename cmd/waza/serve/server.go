package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/cmd/waza/config"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/state"
	"waza/rpc"
	"waza/rpc/gateway/agents"
	"waza/rpc/gateway/browser"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/dashboard"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/link"
	"waza/rpc/gateway/queue"
	"waza/rpc/gateway/router"
	"waza/rpc/gateway/router/desktop"
	"waza/rpc/gateway/store"
	"waza/runner"
	"waza/runner/baselines"
	"waza/runner/fleet/survey"
	"waza/runner/journal"
	"waza/runner/routing"
)

// Options configures a server. All fields are required.
type Options struct {
	Config *config.Config
	// StateDir is an absolute path.
	StateDir string
	Version  string
	Log      *slog.Logger
	// NewRunner makes the runner, and the registry of its metrics. The server closes the runner.
	NewRunner func(state.RecordOptions) (*runner.Runner, *prometheus.Registry, error)
	// Fleet shows the fleet of the user.
	Fleet survey.Viewer
	// Opened is called when all doors are open, with a function that makes a link to the
	// dashboard, see [Server.Dashboard]. It must not block.
	Opened func(dashboard func() (url string, err error))
}

// protocol serves the clients of a door.
type protocol interface{ Door() *door.Door }

// opener makes a door, which listens later.
type opener func(s *Server) (protocol, error)

// protocols are the doors of this version, in the order in which they are opened. Each can use
// the fields that earlier ones have set in the server. A new door needs a line here, and its
// block in [config.Config].
var protocols = []opener{
	(*Server).openRouter,
	(*Server).openBrowser,
	(*Server).openAgents,
	(*Server).openJobs,
}

// The time limits of the steps of a shutdown.
const (
	runsTime  = 4 * time.Second // until the runs have ended
	doorsTime = 3 * time.Second // then, until clients have received their pending messages
)

// modelPatience limits how long a model can take to choose the receivers of a message. Then the
// words of the message decide.
const modelPatience = 20 * time.Second

// modelRetries limits how long such a model is asked again while its provider refuses requests.
// Words then decide within 2 s.
const modelRetries = 1500 * time.Millisecond

// Server is the process of `waza serve`. It has one goroutine per door and one for the link;
// Serve waits for all.
type Server struct {
	o         Options
	link      *link.Server
	store     *store.Store
	runs      *queue.Runs
	token     string // of /rpc; empty when the jobs door is off
	models    *Models
	browser   *browser.Server
	router    *router.Server
	desktop   *desktop.Desktop // nil without one
	agents    *agents.Server
	runner    *runner.Runner
	rpc       *rpc.Server
	metrics   *prometheus.Registry // of the doors
	all       prometheus.Gatherers // of the doors and the runner
	alerts    *board.Alerts
	board     *board.Board              // nil when the jobs door is off
	pages     *dashboard.Dashboard      // nil when the jobs door is off
	origin    string                    // of the pages
	doors     []*door.Door              // the doors of protocols
	reserved  map[string][]net.Listener // of the configured doors, until each door takes its own
	addresses map[string]net.Addr       // listening addresses, by name; nil for closed doors
	closing   atomic.Bool               // the server is ending
}

// Open makes this process the server of the state directory and opens the doors. A door whose
// address cannot be opened stays closed: Open logs the reason and sets the door to off in
// o.Config. The error is a [*link.RunningError] if another server is running, and it lists the
// reasons if no door could be opened.
func Open(ctx context.Context, o Options) (*Server, error) { return openAll(ctx, o, protocols) }

func openAll(ctx context.Context, o Options, protocols []opener) (*Server, error) {
	s := &Server{o: o, addresses: map[string]net.Addr{}, metrics: prometheus.NewRegistry(), alerts: board.NewAlerts(o.Log.Handler())}
	s.o.Log = slog.New(s.alerts)
	if exposed := journal.Exposure(o.StateDir); exposed != "" {
		s.o.Log.Warn(exposed, "event", "state_exposed")
	}
	if err := s.open(protocols); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *Server) open(protocols []opener) (err error) {
	if s.link, err = link.Listen(s.o.StateDir); err != nil {
		return err
	}
	// A client that can connect finds the token.
	if c := &s.o.Config.Jobs; !c.IsOff() {
		if s.token, err = rpcToken(c.TokenFile, s.o.StateDir, s.o.Log); err != nil {
			return err
		}
	}
	if err := s.reserve(); err != nil {
		return err
	}
	if s.store, err = store.Open(s.o.StateDir); err != nil {
		return err
	}
	if s.runs, err = queue.Open(context.Background(), store.RunsOf(s.store), s.o.Config.Jobs.MaxJobs, s.o.Log); err != nil {
		return err
	}
	s.models = NewModels(s.o.Config.Model)
	for _, open := range protocols {
		served, err := open(s)
		if err != nil {
			return err
		}
		s.doors = append(s.doors, served.Door())
	}
	for _, d := range s.doors {
		if s.addresses[d.Name()], err = s.listen(d); err != nil {
			return err
		}
	}
	for _, d := range s.o.Config.Doors() {
		if a := s.addresses[d.Name]; a != nil {
			if d.Name == "jobs" {
				s.origin = originOf(d, s.o.Config.Jobs.Hosts, a)
			}
			s.o.Log.Info("listening", "door", d.Name, "address", a.String(), "tls", d.TLS(), "clients", d.Clients())
		}
	}
	return nil
}

// reserve opens the addresses of all configured doors, before anything depends on which doors
// are open.
func (s *Server) reserve() error {
	s.reserved = map[string][]net.Listener{}
	var faults []error
	for _, d := range s.o.Config.Doors() {
		if !d.Open() {
			continue
		}
		listeners, err := door.Listen(d.Config.Listen)
		if err == nil {
			s.reserved[d.Name] = listeners
			continue
		}
		faults = append(faults, fmt.Errorf("--%s %s: %w", d.Name, d.Config.Listen, err))
		s.o.Log.Error("door stays closed", "door", d.Name, "address", d.Config.Listen, "error", err,
			"remedy", fmt.Sprintf("free the address, or restart with --%s ADDR or --%s off", d.Name, d.Name))
		d.Config.Listen = door.Off
	}
	if len(s.reserved) == 0 {
		return errors.Join(faults...)
	}
	return nil
}

// listen lets a door serve its reserved address, or open one of its own.
func (s *Server) listen(d *door.Door) (net.Addr, error) {
	listeners, ok := s.reserved[d.Name()]
	if !ok {
		return d.Listen()
	}
	delete(s.reserved, d.Name())
	return d.ServeOn(listeners)
}

func (s *Server) openBrowser() (protocol, error) {
	o := browser.Options{Store: s.store, Redact: s.models.Redact, Log: s.o.Log, Metrics: s.metrics}
	if s.o.Config.Model.Executor != "" {
		o.Model = s.models.Client
	}
	var err error
	if s.browser, err = browser.New(s.o.Config.Browser, o); err != nil {
		return nil, err
	}
	return s.browser, nil
}

// openRouter runs before the senders of messages open: JSON-RPC and other processes.
func (s *Server) openRouter() (protocol, error) {
	c := &s.o.Config.Router
	o := router.Options{Store: store.MessagesOf(s.store), Log: s.o.Log, Metrics: s.metrics}
	var err error
	if !c.IsOff() {
		if o.Chooser, err = s.chooser(); err != nil {
			return nil, err
		}
		if c.Desktop {
			s.desktop = desktop.New(os.Environ(), s.o.Log)
		}
	}
	if s.desktop != nil {
		o.Desktop = s.desktop
	}
	if s.router, err = router.New(*c, o); err != nil {
		return nil, err
	}
	return s.router, nil
}

// chooser returns the configured model as chooser of receivers, or words without one.
func (s *Server) chooser() (routing.Chooser, error) {
	client, err := s.models.Client(context.Background(), "")
	switch {
	case errors.Is(err, ErrNoModel):
		return routing.Words{}, nil
	case err != nil:
		return nil, fmt.Errorf("model: %w", err)
	}
	return &routing.Model{
		Client: client, Patience: modelPatience, RetryWithin: modelRetries, Otherwise: routing.Words{}, Redact: s.models.Redact,
		Failed: func(why string) {
			s.o.Log.Warn("words choose the receivers of messages", "door", "router", "error", why)
		},
	}, nil
}

// openAgents creates the door for agents, and the users of the agents: the runner and the
// methods of JSON-RPC.
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
	s.runner, metrics, err = s.o.NewRunner(state.RecordOptions{
		Hubs: state.Hubs{Agents: s.agents.Hub(), Browsers: s.browsers(), Messenger: s.router.Messenger()},
		Gate: s.runs, Log: s.o.Log, Metrics: true,
	})
	if err != nil {
		return nil, err
	}
	s.all = prometheus.Gatherers{s.metrics, metrics}
	s.rpc, err = rpc.New(rpc.Options{
		Runner: s.runner, Logger: s.o.Log, Version: s.o.Version, Metrics: metrics, Agents: s.agents.Hub(),
		Browsers: s.browsers(), Messenger: s.router.Messenger(), Fleet: s.o.Fleet,
	})
	return s.agents, err
}

func (s *Server) openJobs() (protocol, error) {
	o := jobs.Options{Log: s.o.Log, Metrics: s.metrics, Gatherer: s.all, Ready: s.ready}
	if c := &s.o.Config.Jobs; !c.IsOff() {
		var err error
		o.Token = s.token
		if o.Tokens, err = token.New(context.Background(), s.store); err != nil {
			return nil, err
		}
		s.board = board.New(board.Options{Runner: s.runner, UserOf: s.userOf, Queued: s.runs.Queued, Log: s.o.Log})
		s.alerts.SendTo(s.board)
		o.Board = s.board
		s.pages = dashboard.New(dashboard.Options{
			Tokens: o.Tokens, Run: s.runner.Catalog().Run, Sees: s.sees, Secure: c.TLSCert != "", Log: s.o.Log,
			Ledger: baselines.In(s.runner.Catalog().StateDir()),
		})
		o.Dashboard = s.pages
		o.ServeRPC = func(ctx context.Context, stream io.ReadWriteCloser, who *token.Claims) error {
			return s.rpc.ServeStream(ctx, stream, s.client(who))
		}
	}
	return jobs.New(s.o.Config.Jobs, o)
}

// userOf returns the user of a run's job. The runs of this user's other waza processes belong to
// the owner.
func (s *Server) userOf(_ context.Context, runID string) (string, error) {
	return cmp.Or(s.runs.UserOf(runID), token.Owner), nil
}

// client returns a client of /rpc that sees the runs of a user who presented a token. If who is
// nil, the client presented the server's token.
func (s *Server) client(who *token.Claims) rpc.Client {
	c := rpc.Client{Authorised: true}
	if who == nil {
		return c
	}
	if !who.IsOwner() {
		c.View.User = who.Subject
	}
	if !who.IsAdmin() {
		c.View.Sees = func(runID string) bool { return s.runs.UserOf(runID) == c.View.User }
	}
	return c
}

// sees reports whether the user of a token can see a run.
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

// Serve serves all clients until ctx ends or a door fails. Then it ends in steps: first the
// runs, which can be resumed; then other processes of waza, which wait for the next server; then
// the clients. It reports whether runs were interrupted, and returns the failure.
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
	// close disconnects the clients, in its order.
	served := context.WithoutCancel(ctx)
	serve(func() error {
		err := s.runs.Resume(ctx, s.runner)
		if err != nil && ctx.Err() == nil && !s.closing.Load() {
			s.o.Log.Error("cannot resume runs of an earlier server", "error", err)
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
	offer := link.Offer{Agents: s.agents.Hub(), Browsers: s.browsers(), Messenger: s.router.Messenger(), Log: s.o.Log}
	if s.pages != nil {
		offer.Dashboard = s.Dashboard
	}
	serve(func() error { return s.link.Serve(offer) })
	for _, d := range s.doors {
		serve(func() error { return d.Serve(served) })
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.o.Log.Error("shutting down after a failure", board.EventKey, "server_failed", "error", err)
	}
	interrupted = !s.runner.Idle()
	s.close(ctx)
	stop()
	all.Wait()
	return interrupted, err
}

// close closes everything, in the order that Serve describes.
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
	for _, listeners := range s.reserved {
		for _, l := range listeners {
			l.Close()
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
	if s.router != nil {
		s.router.Close()
	}
	if s.desktop != nil {
		s.desktop.Close()
	}
	if s.agents != nil {
		s.agents.Close()
	}
	if s.browser != nil {
		s.browser.Close()
	}
	if s.models != nil {
		s.models.Close()
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.o.Log.Warn("shutdown", "of", "store", "error", err)
		}
	}
}

// Main serves until ctx ends and returns nil, or an error with the exit code of the program and,
// if there is one, a hint.
func Main(ctx context.Context, o Options) error {
	s, err := Open(ctx, o)
	var running *link.RunningError
	switch {
	case errors.As(err, &running):
		return exit.New(exit.Usage, err, "")
	case err != nil:
		return exit.Usagef("waza serve --check lists the doors", "%v", err)
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
