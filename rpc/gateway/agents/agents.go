// Package agents is the door of evaluation agents: clients that connect by WebSocket, register
// their capabilities, and execute evaluations. Start with [New], run [Server.Door], and pass
// [Server.Hub] to callers that need evaluations.
//
// Each connection runs in the reading goroutine of the door. Messages from
// clients are checked against schemas/client.json, messages to clients against
// schemas/server.json. Every message gets an answer, and invalid messages do not end the
// connection. Only a wrong key, silence and messages that are too large end it.
package agents

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/agents/internal/hub"
	"waza/rpc/gateway/door"
	"waza/runner/executor/remote"
)

// Version is the version of the protocol.
const Version = "1.0.0"

// Config configures the door of evaluation agents. It starts from [Defaults]; a time of 0 turns
// it off.
type Config struct {
	door.Config `yaml:",inline"`
	// File with a key for each agent, readable only by its owner: a YAML or JSON map from client
	// id to key. The part of an id before the colon matches all tabs of a browser. Agents that
	// are not in the file show the key of the environment variable WAZA_AGENT_KEY.
	KeysFile string `yaml:"keys_file"`
	// Time limit for a client to register.
	RegisterTimeout door.Duration `yaml:"register_timeout"`
	// Delay before a client with a wrong key is disconnected.
	RejectDelay door.Duration `yaml:"reject_delay"`
	// How long the evaluations of a disconnected agent wait for it before other agents get them.
	Grace door.Duration `yaml:"grace"`
	// How long an agent stays occupied by an evaluation that was cancelled or timed out, unless
	// it answers earlier.
	AbandonedTimeout door.Duration `yaml:"abandoned_timeout"`
	// Maximum number of concurrent evaluations per agent, even if it registers for more.
	MaxConcurrency int `yaml:"max_concurrency" jsonschema:"minimum=1"`
}

// Defaults returns the Config that serve starts from.
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

// Options configure a server. The zero value works, but keeps no state across restarts.
type Options struct {
	// Key is the key of agents without an entry in Keys; empty means none.
	Key string
	// Keys are the keys of single agents by client id: the contents of Config.KeysFile.
	Keys map[string]string
	// Store keeps the state of the hub across restarts. The store of the state directory
	// implements it. It can be nil.
	Store hub.Store
	// Log gets structured records; nil discards them.
	Log *slog.Logger
	// Metrics can be nil.
	Metrics prometheus.Registerer
	// ServerID is the name of the server in messages; empty means waza.
	ServerID string
}

// Server serves the agents that are connected to one door.
type Server struct {
	config   Config
	options  Options
	keys     *keys
	door     *door.Door
	hub      *hub.Hub
	rejected *prometheus.CounterVec // messages, by code
}

// New returns a server, which opens nothing yet. With a key, agents must show it. Without one,
// all agents are accepted, so other machines must not be able to reach the door.
func New(c Config, o Options) (*Server, error) {
	if c.MaxConcurrency < 1 {
		return nil, fmt.Errorf("agents: max_concurrency must be positive, got %d", c.MaxConcurrency)
	}
	s := &Server{config: c, options: o, rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waza_agents_rejected_total", Help: "Messages of agents that were answered with an error, by code.",
	}, []string{"code"})}
	if !c.IsOff() {
		clientSchemas.Compile()
		serverSchemas.Compile()
	}
	s.options.ServerID = cmp.Or(o.ServerID, "waza")
	s.options.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	err := prometheus.WrapRegistererWith(nil, o.Metrics).Register(s.rejected)
	if err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	if s.keys, err = newKeys(o.Key, o.Keys); err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	s.door, err = door.New("agents", c.Config, door.Options{
		Log: s.options.Log, Metrics: o.Metrics,
		Authenticated:    s.keys.required(),
		AuthenticateHint: "set WAZA_AGENT_KEY, or keys_file in the configuration",
		// DevTools reconnects only after a connection without a close frame.
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

// atLeast turns 0, which is off, into a duration that is over at once.
func atLeast(d door.Duration) time.Duration { return max(time.Duration(d), 1) }

// Door returns the door that agents connect to.
func (s *Server) Door() *door.Door { return s.door }

// Hub returns the hub that assigns evaluations to the agents.
func (s *Server) Hub() remote.Hub { return s.hub }

// Close stops the timers of the hub. Shut down the door first.
func (s *Server) Close() { s.hub.Close() }

// Leave announces that the server is about to end, see [hub.Hub.Leave]. Call it before ending
// the runs of this process.
func (s *Server) Leave() { s.hub.Leave() }

// handle serves any path, because clients use different ones.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.door.Accept(w, r, func(ctx context.Context, c *door.Conn) { newConnection(s, c).run(ctx) })
}
