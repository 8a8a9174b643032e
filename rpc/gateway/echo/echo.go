// Package echo is a door for tests that sends each message back. It shows everything that a
// protocol needs to become a door of waza serve: this package and one line there.
package echo

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/door"
)

// Server serves the clients of the door.
type Server struct{ door *door.Door }

// New returns a server, which opens nothing yet. metrics can be nil.
func New(c door.Config, log *slog.Logger, metrics prometheus.Registerer) (*Server, error) {
	s := &Server{}
	var err error
	s.door, err = door.New("echo", c, door.Options{Log: log, Metrics: metrics, ShutdownCode: 1001}, http.HandlerFunc(s.handle))
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
