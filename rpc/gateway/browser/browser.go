// Package browser is the door of browser assistants: browser extensions connect by WebSocket,
// send commands in plain language, and execute the tools that the model requests. Start with
// [New], run [Server.Door], and pass [Server.Hub] to evaluations.
//
// Each connection is a session, which runs in the reading goroutine of the door. Messages from
// clients are checked against schemas/client.json, messages to clients against
// schemas/server.json. Clients with version or extension_id in the address get messages in the
// form of the protocol document. Others get the form that the existing extension reads.
package browser

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/browser/internal/assistant"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/store"
	"waza/runner/executor/browser"
	"waza/runner/provider"
)

// Version is the version of the protocol. Clients of the same major version are accepted.
const Version = "1.0.0"

// path is the path for extensions.
const path = "/ws"

// Options configure a server. Store is required.
type Options struct {
	// Store keeps assistants, sessions and commands. The caller closes it after Close.
	Store *store.Store
	// Model returns a client for a model; an empty name means the default model. Nil means that
	// no model is configured, and that commands fail at once.
	Model func(ctx context.Context, name string) (provider.Client, error)
	// Redact removes keys from a text; nil removes none.
	Redact func(text string) string
	// Log gets structured records; nil discards them.
	Log *slog.Logger
	// Metrics can be nil.
	Metrics prometheus.Registerer
}

// Server serves the extensions that are connected to one door.
type Server struct {
	config     Config
	door       *door.Door
	assistants *assistant.Assistants
	reconnects *door.Rates
	requests   sync.RWMutex           // sessions hold a read lock while events wait for an acknowledgement
	rejected   *prometheus.CounterVec // messages, by code
}

// New returns a server, which opens nothing yet, and resumes the commands that the previous
// server left.
func New(c Config, o Options) (*Server, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	// The first connection is not a reconnection.
	reconnects := door.NewRates(c.ReconnectsPerMinute, c.ReconnectsPerMinute+1)
	s := &Server{config: c, reconnects: reconnects, rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waza_browser_rejected_total", Help: "Messages of extensions that were answered with an error, by code.",
	}, []string{"code"})}
	if !c.IsOff() {
		clientSchemas.Compile()
		serverSchemas.Compile()
	}
	err := prometheus.WrapRegistererWith(nil, o.Metrics).Register(s.rejected)
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	s.door, err = door.New("browser", c.Config, door.Options{
		Log: o.Log, Metrics: o.Metrics, ShutdownCode: int(closeGoingAway), ShutdownReason: "Server shutting down", MinTLS: tls.VersionTLS13,
		AuthenticateHint: "listen on a loopback address, because extensions cannot authenticate",
		Closing: func(context.Context) {
			s.assistants.Close()
			s.requests.Lock()   // until all events are sent
			s.requests.Unlock() //nolint:staticcheck // only waits
		},
	}, http.HandlerFunc(s.handle))
	if err != nil {
		return nil, err
	}
	s.assistants, err = assistant.New(assistant.Options{
		Store: store.AssistantsOf(o.Store), Model: o.Model, Redact: o.Redact, Log: o.Log.With("door", "browser"), Metrics: o.Metrics,
		MaxAssistants: c.MaxAssistants, MaxCapabilities: c.MaxCapabilities, MaxWaiting: c.MaxWaiting,
		MaxTextChars: c.MaxTextChars, MaxNameChars: c.MaxNameChars, MaxInstructionsChars: c.MaxInstructionsChars,
		CommandTimeout: time.Duration(c.CommandTimeout), ToolTimeout: time.Duration(c.ToolTimeout), CancelTimeout: time.Duration(c.CancelTimeout),
		SessionLifetime: time.Duration(c.SessionLifetime),
	})
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	return s, nil
}

// Door returns the door that extensions connect to.
func (s *Server) Door() *door.Door { return s.door }

// Hub returns the hub that lets evaluations use the extensions.
func (s *Server) Hub() browser.Hub { return s.assistants }

// Close ends active commands. Shut down the door first, which does the same.
func (s *Server) Close() { s.assistants.Close() }

// handle serves the path for extensions.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != path && r.URL.Path != path+"/" {
		http.Error(w, "browser assistants connect at "+path, http.StatusNotFound)
		return
	}
	s.door.Accept(w, r, func(ctx context.Context, c *door.Conn) { newConnection(s, c).run(ctx) })
}

// seconds converts a duration for the first message.
func seconds(d door.Duration) float64 { return time.Duration(d).Seconds() }

// retry returns the pause until the next attempt in milliseconds and seconds.
func retry(after time.Duration) (ms, s int64) {
	if after <= 0 {
		return 0, 0
	}
	ms = max(1, after.Milliseconds())
	return ms, (ms + 999) / 1000
}

// count adds a rejected message to the metrics.
func (s *Server) count(code string) { s.rejected.WithLabelValues(code).Inc() }
