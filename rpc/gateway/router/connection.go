package router

import (
	"context"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"waza/rpc/gateway/door"
	"waza/runner/pause"
	"waza/runner/routing"
)

// floodPause is how long reading pauses after each message that exceeds the rate limit. No
// message is lost, because an ignored response would count as a rejection. Pongs still arrive in
// time.
const floodPause = 100 * time.Millisecond

// connection is a connection of a client. Only the reading goroutine calls its methods.
type connection struct {
	server *Server
	conn   *door.Conn
	client *client // nil before the registration

	deadline *time.Timer // time limit for the first registration
}

func newConnection(s *Server, c *door.Conn) *connection { return &connection{server: s, conn: c} }

// run reads messages until the connection is over.
func (s *connection) run(ctx context.Context) {
	if d := time.Duration(s.server.config.RegisterTimeout); d > 0 {
		// Clients themselves close with codes from 4000 on. For this code of the server, they
		// reconnect as usual.
		s.deadline = time.AfterFunc(d, func() {
			s.conn.Close(int(websocket.StatusPolicyViolation), "no registration within "+d.String())
		})
		defer s.deadline.Stop()
	}
	defer func() {
		if s.client != nil {
			s.server.registry.leave(s.client)
			s.conn.Log().Info("client left")
		}
	}()
	for {
		data, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		if _, ok := s.conn.Allow(); !ok {
			_ = pause.Unless(ctx, s.conn.Done(), floodPause) // the next Read fails when the connection has ended
		}
		m, ok := parse(data)
		switch {
		case !ok:
			s.conn.Log().Debug("message ignored", "bytes", len(data))
		case m.kind == typeRegistration:
			s.takeRegistration(m)
		case s.client != nil:
			s.takeResponse(m)
		}
	}
}

// takeRegistration answers a registration. After a failed one, the client can try again on this
// connection, without a time limit.
func (s *connection) takeRegistration(m incoming) {
	if s.deadline != nil {
		s.deadline.Stop()
	}
	f := &fault{Code: codeRegistered, Message: "This connection is already registered"}
	if s.client == nil {
		f = s.register(m)
	}
	if f != nil {
		s.conn.Log().Debug("registration refused", "code", f.Code, "why", f.Message)
		_ = s.conn.Send(failureOf(f).encode()) // if the connection is over, the next read fails
	}
}

// register registers the client of the connection. The caller sends it the fault.
func (s *connection) register(m incoming) *fault {
	who, f := s.server.config.registration(m.payload)
	if f != nil {
		return f
	}
	c := &client{Client: *who, id: uuid.NewString(), conn: s.conn, since: time.Now().UTC()}
	entered, f := s.server.registry.enter(c, func() bool { return s.conn.Identify(c.Name) })
	if entered {
		s.client = c
		s.conn.Log().Info("client registered", "version", c.Version)
	}
	return f // nil if the door is full, which closes the connection
}

func (s *connection) takeResponse(m incoming) {
	id, answer, ok := response(m.payload, s.client.Name)
	if !ok || !s.server.registry.answer(id, s.client.Name, answer) {
		s.conn.Log().Debug("response ignored")
	}
}

// client is a registered client. It is immutable except for taken.
type client struct {
	routing.Client
	id    string
	conn  conn
	since time.Time
	taken int64 // guarded by registry.mu
}

// conn sends messages; [door.Conn] implements it.
type conn interface {
	Send(message []byte) error
	Addr() string
}
