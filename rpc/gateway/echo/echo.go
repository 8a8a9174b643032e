// Package echo is a door for tests that sends each message back: the least that a protocol needs
// to become a door of waza serve. Call [New].
package echo

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/door"
)

// Config configures the door.
type Config struct {
	door.Config `yaml:",inline"`
}

// Defaults returns the Config that serve starts from.
func Defaults() Config { return Config{door.Defaults()} }

// Server serves the clients of the door.
type Server struct{ door *door.Door }

// New returns a server, which opens nothing yet. metrics can be nil.
func New(c Config, log *slog.Logger, metrics prometheus.Registerer) (*Server, error) {
	s := &Server{}
	var err error
	s.door, err = door.New("echo", c.Config, door.Options{Log: log, Metrics: metrics, ShutdownCode: 1001}, http.HandlerFunc(s.handle))
	return s, err
}

// Door returns the door that clients connect to.
func (s *Server) Door() *door.Door { return s.door }

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.door.Accept(w, r, func(ctx context.Context, c *door.Conn) {
		if !c.Identify(c.Addr()) {
			return
		}
		for {
			msg, err := c.Read(ctx)
			if err != nil {
				return
			}
			if retry, ok := c.Allow(); !ok {
				c.Close(1008, "too many messages; try again in "+retry.String())
				return
			}
			if c.Send(msg) != nil {
				return
			}
		}
	})
}
