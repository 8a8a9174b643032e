// Package router is the door of the message router: clients connect by WebSocket, describe the
// messages they accept, and get matching messages. Start with [New], run [Server.Door], and pass
// [Server.Messenger] to senders of messages.
//
// Each connection runs in the reading goroutine of the door. A message is a
// [routing.Flight] with its own goroutine until all its clients have answered. Each state of a
// message is stored before it takes effect, so that the next server can continue. Messages that
// are not part of the protocol are ignored and do not end the connection.
package router

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/door"
	"waza/runner/routing"
)

// Config configures the door of the message router. It starts from [Defaults]; a time of 0 turns
// it off.
type Config struct {
	door.Config `yaml:",inline"`
	// Time limit for a client's first registration.
	RegisterTimeout door.Duration `yaml:"register_timeout"`
	// Time limit for a client's first response to a message. A client that does not respond in
	// time has rejected the message.
	ResponseTimeout door.Duration `yaml:"response_timeout"`
	// Maximum number of times that a rejected message is sent to other clients.
	MaxReroutes int `yaml:"max_reroutes"`
	// Number of finished messages that are kept with their results.
	History int `yaml:"history"`
	// Maximum length of a client's name, in characters.
	MaxNameChars int `yaml:"max_name_chars"`
	// Maximum length of a client's description, in characters.
	MaxDescriptionChars int `yaml:"max_description_chars"`
	// How long messages of an earlier server wait for clients to reconnect.
	ReconnectWait door.Duration `yaml:"reconnect_wait"`
	// Show notifications of clients on the desktop if the machine has one. Otherwise they are
	// written to the log.
	Desktop bool `yaml:"desktop"`
}

// Defaults returns the Config that serve starts from. Pings detect dead clients, because clients
// can be silent for days.
func Defaults() Config {
	c := Config{
		Config:              door.Defaults(),
		RegisterTimeout:     door.Duration(10 * time.Second),
		ResponseTimeout:     door.Duration(routing.DefaultResponseTimeout),
		MaxReroutes:         routing.DefaultReroutes,
		History:             100,
		MaxNameChars:        64,
		MaxDescriptionChars: 1024,
		ReconnectWait:       door.Duration(10 * time.Second),
		Desktop:             true,
	}
	c.Listen = "localhost:9473"
	c.MaxMessageBytes = 1 << 20
	c.MaxConnections = 100
	c.SendQueueBytes = 4 << 20
	c.MessagesPerMinute = 600
	c.IdleTimeout = 0
	c.Heartbeat = door.Duration(30 * time.Second)
	return c
}

// Store keeps messages across restarts. It is safe for concurrent use.
type Store interface {
	// Save stores a message under its id. An existing message keeps its place.
	Save(ctx context.Context, id, message string) error
	// Forget removes messages.
	Forget(ctx context.Context, ids ...string) error
	// List returns all messages, oldest first.
	List(ctx context.Context) ([]string, error)
}

// Desktop shows notifications to the user. It is safe for concurrent use.
type Desktop interface {
	// Show shows a notification soon, and does not block. It returns false when it refuses the
	// notification.
	Show(title, body, priority string) bool
}

// Options configure a server. The zero value works, but keeps no state across restarts.
type Options struct {
	// Chooser chooses clients for messages that name none; nil means [routing.Words].
	Chooser routing.Chooser
	// Store can be nil.
	Store Store
	// Desktop shows notifications; nil logs them instead.
	Desktop Desktop
	// Log gets structured records; nil discards them.
	Log *slog.Logger
	// Metrics can be nil.
	Metrics prometheus.Registerer
}

// Server serves the clients that are connected to one door, and their messages.
type Server struct {
	config   Config
	door     *door.Door
	registry *registry
}

// New returns a server, which opens nothing yet, and resumes the messages that an earlier server
// left in the store. Close the server even if its door is never served.
func New(c Config, o Options) (*Server, error) {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{config: c}
	var err error
	s.door, err = door.New("router", c.Config, door.Options{
		Log: log, Metrics: o.Metrics,
		AuthenticateHint:  "clients of the router cannot authenticate, so listen on localhost",
		ShutdownCode:      int(websocket.StatusGoingAway),
		ShutdownReason:    "Server shutting down",
		UnidentifiedBytes: c.MaxMessageBytes,
		CutSilent:         true,
		Closing:           func(context.Context) { s.registry.stop() },
	}, http.HandlerFunc(s.handle))
	if err != nil {
		return nil, err
	}
	s.registry, err = newRegistry(&c, &o, log.With("door", "router"))
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	return s, nil
}

// Door returns the door that clients connect to.
func (s *Server) Door() *door.Door { return s.door }

// Messenger returns the registry that sends messages to the clients.
func (s *Server) Messenger() routing.Messenger { return s.registry }

// Close stops the active messages, which the next server continues. Shut down the door before,
// and keep the store open until Close returns.
func (s *Server) Close() { s.registry.close() }

// handle serves any path. Only clients on this machine can connect, on any address, because a
// registered client reads messages of the user.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if !isLocal(r.RemoteAddr) {
		http.Error(w, "the router accepts only connections from this machine", http.StatusForbidden)
		return
	}
	s.door.Accept(w, r, func(ctx context.Context, c *door.Conn) { newConnection(s, c).run(ctx) })
}

// isLocal reports whether an address is a loopback address of this machine.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(cmp.Or(host, address))
	return err == nil && ip != nil && ip.IsLoopback()
}
