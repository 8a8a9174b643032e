// Package agents is the door of evaluation agents: clients that connect by WebSocket,
// register what they can do, and carry out evaluations. Start with [New]; run
// [Server.Door], and give [Server.Hub] to those who want evaluations done.
//
// A connection is a session, whose goroutine is the one that the door reads with. What a
// client sends is checked against schemas/client.json, what it gets against
// schemas/server.json. Whatever a client sends, it gets an answer, and its connection
// stays; only a wrong key, silence and messages that are too large end it.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/agents/hub"
	"waza/rpc/gateway/door"
	"waza/runner/executor/remote"
)

// Version is that of the protocol.
const Version = "1.0.0"

// Config of the door of evaluation agents. It starts from [Defaults]; a time of 0 is off.
type Config struct {
	door.Config `yaml:",inline"`
	// File with a key for each agent, a YAML or JSON map from client id to key, readable by
	// its owner only. The part of an id before the colon means all tabs of a browser. Agents
	// that it does not have show the key of the environment variable WAZA_AGENT_KEY.
	KeysFile string `yaml:"keys_file"`
	// How long a client may take to register.
	RegisterTimeout door.Duration `yaml:"register_timeout"`
	// How long a client with a wrong key waits until its connection is closed.
	RejectDelay door.Duration `yaml:"reject_delay"`
	// How long the evaluations of an agent that vanished wait for it before others get them.
	Grace door.Duration `yaml:"grace"`
	// How long an agent stays occupied by an evaluation that was cancelled or timed out, unless
	// it answers before.
	AbandonedTimeout door.Duration `yaml:"abandoned_timeout"`
	// Most evaluations at once that an agent gets, even if it registers for more.
	MaxConcurrency int `yaml:"max_concurrency" jsonschema:"minimum=1"`
}

// Defaults is the Config that serve starts from.
func Defaults() Config {
	c := Config{
		Config:           door.Defaults(),
		RegisterTimeout:  door.Duration(time.Minute),
		RejectDelay:      door.Duration(time.Second),
		Grace:            door.Duration(10 * time.Second),
		AbandonedTimeout: door.Duration(30 * time.Second),
		MaxConcurrency:   100,
	}
	c.Listen = "127.0.0.1:8080"
	c.MaxMessageBytes = 8 << 20
	c.MessagesPerMinute = 6000
	return c
}

// Options of a server. The zero value works, and remembers nothing after a restart.
type Options struct {
	// Key is what agents must show that have no key in Keys; empty means none.
	Key string
	// Keys are those of single agents, by client id: what Config.KeysFile has.
	Keys map[string]string
	// Store is what the hub remembers after a restart. The store of the state directory implements it; it may
	// be nil.
	Store hub.Store
	// Log gets structured records; nil discards them.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// Version is what clients are welcomed with; empty means [Version].
	Version string
	// ServerID names the server to clients; empty means waza.
	ServerID string
}

// Server has the agents that are connected to one door.
type Server struct {
	config   Config
	options  Options
	keys     *keys
	door     *door.Door
	hub      *hub.Hub
	rejected *prometheus.CounterVec // messages, by code
}

// New makes the door, which opens nothing yet. With a key, agents must show it; without
// one, all are accepted, so that other machines must not reach the door.
func New(c Config, o Options) (*Server, error) {
	if c.MaxConcurrency < 1 {
		return nil, fmt.Errorf("agents: max_concurrency must be positive, got %d", c.MaxConcurrency)
	}
	s := &Server{config: c, options: o, rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waza_agents_rejected_total", Help: "Messages of agents that were answered with an error, by code.",
	}, []string{"code"})}
	s.options.Version = cmp.Or(o.Version, Version)
	s.options.ServerID = cmp.Or(o.ServerID, "waza")
	if s.options.Log == nil {
		s.options.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics != nil {
		if err := o.Metrics.Register(s.rejected); err != nil {
			return nil, fmt.Errorf("agents: %w", err)
		}
	}
	var err error
	if s.keys, err = newKeys(o.Key, o.Keys); err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	s.door, err = door.New("agents", c.Config, door.Options{
		Log: s.options.Log, Metrics: o.Metrics,
		Authenticated:    s.keys.required(),
		AuthenticateHint: "set WAZA_AGENT_KEY, or keys_file in the configuration",
		// DevTools connects again only when there was no close frame.
		ShutdownCode: 0,
	}, http.HandlerFunc(s.handle))
	if err != nil {
		return nil, err
	}
	ho := hub.Options{
		Grace: atLeast(c.Grace), Linger: atLeast(c.AbandonedTimeout),
		Store: o.Store, Log: s.options.Log.With("door", "agents"), Metrics: o.Metrics,
	}
	if s.hub, err = hub.New(context.Background(), ho); err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	return s, nil
}

// atLeast makes 0, which is off, a time that is over at once.
func atLeast(d door.Duration) time.Duration { return max(time.Duration(d), 1) }

// Door is what the agents connect to.
func (s *Server) Door() *door.Door { return s.door }

// Hub gives evaluations to the agents.
func (s *Server) Hub() remote.Hub { return s.hub }

// Close stops the timers of the hub. The door is shut down before.
func (s *Server) Close() { s.hub.Close() }

// Leave says that the server is about to end, see [hub.Hub.Leave]. Call it before the
// runs of this process are ended.
func (s *Server) Leave() { s.hub.Leave() }

// handle serves any path, because clients have their own.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.door.Accept(w, r, func(ctx context.Context, c *door.Conn) {
		if err := newSession(s, c).run(ctx); err != nil && !errors.Is(err, door.ErrClosed) {
			c.Log().Debug("agent's connection ended", "error", err)
		}
	})
}
