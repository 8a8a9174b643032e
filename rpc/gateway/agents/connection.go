package agents

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"waza/eval/text"
	"waza/rpc/gateway/agents/internal/hub"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/internal/message"
	"waza/runner/executor/remote"
)

// closePolicy is the close code for policy violations. DevTools does not reconnect after a close
// frame.
const closePolicy = 1008

// closeFull is the close code when no place is left, as that of [door.Conn.Identify].
const closeFull = 1013

// maxStatus is the maximum size of the message in a status update, in bytes. Longer ones are
// cut.
const maxStatus = 4096

// connection is a connection of a client. It implements [hub.Conn]. Any goroutine can call those
// methods; only the reading goroutine calls the others.
type connection struct {
	server *Server
	conn   *door.Conn
	client *hub.Client // nil before the registration
	id     string      // id of the client: its UUID in lower case
	secret string      // key from the method auth

	deadline *time.Timer // time limit for the registration
	reject   *time.Timer // nil before a wrong key
	warned   bool        // a rejected registration is in the log
}

func newConnection(s *Server, c *door.Conn) *connection { return &connection{server: s, conn: c} }

// run reads messages until the connection is over.
func (s *connection) run(ctx context.Context) {
	defer s.end()
	if d := time.Duration(s.server.config.RegisterTimeout); d > 0 {
		s.deadline = time.AfterFunc(d, func() {
			s.conn.Close(closePolicy, "no registration within "+d.String())
		})
	}
	s.send("welcome", &welcome{"welcome", s.server.options.ServerID, Version, now()})
	for {
		data, err := s.conn.Read(ctx)
		if err != nil {
			s.unreadable(err)
			return
		}
		if f := s.take(data); f != nil {
			s.fail(f)
		}
	}
}

func (s *connection) end() {
	for _, timer := range []*time.Timer{s.deadline, s.reject} {
		if timer != nil {
			timer.Stop()
		}
	}
	if s.client != nil {
		s.client.Left()
	}
}

// take handles a message. The caller reports the fault to the client.
func (s *connection) take(data []byte) *fault {
	m, f := parse(data)
	// The server has asked for these answers, so they do not count against the rate limit.
	if f == nil && m.kind == kindResponse && s.client != nil {
		return s.takeResponse(m)
	}
	if limit := s.overLimit(m); limit != nil {
		if f != nil || m.kind != kindRegister {
			return limit
		}
		s.refuse(m, limit)
		return nil
	}
	if f != nil {
		return f
	}
	switch {
	case m.kind == kindRegister:
		s.refuse(m, s.takeRegister(m))
		return nil
	case m.kind == kindPing:
		return s.takePing(m)
	case m.kind == kindRequest && m.method == methodAuth:
		return s.takeAuth(m)
	case m.kind == kindRequest && m.id == nil:
		return nil // notifications get no answer
	case m.kind == kindRequest:
		return &fault{Code: codeNoMethod, Message: "Method not found: " + message.Clip(m.method), ID: string(m.id)}
	case m.kind == kindAuthVerify:
		return nil // an answer to a request that this server never sends
	case s.client == nil:
		return &fault{Code: remote.CodeAuth, Message: "Authentication error: register first", ID: string(m.id)}
	case m.kind == kindReady:
		return s.takeReady(m)
	}
	return s.takeStatus(m)
}

// refuse reports the fault of a message register, if any, as its acknowledgement, because existing
// clients wait for one.
func (s *connection) refuse(m *incoming, f *fault) {
	if f == nil {
		return
	}
	s.server.rejected.WithLabelValues(strconv.Itoa(f.Code)).Inc()
	named, _ := message.Text(m.fields.Get("clientId"))
	ack := &registrationAck{Type: "registration_ack", ClientID: message.Clip(named)}
	ack.RetryAfter, _ = f.Data["retryAfter"].(int64)
	s.rejectRegistration(ack, f.Message)
}

// rejectRegistration acknowledges a rejected registration. The first of a connection is in the
// log as a warning.
func (s *connection) rejectRegistration(ack *registrationAck, reason string, attributes ...any) {
	ack.Status, ack.Message, ack.Reason = "rejected", "Registration rejected", reason
	s.send("registration_ack", ack)
	level := slog.LevelDebug
	if !s.warned || len(attributes) > 0 {
		level = slog.LevelWarn
	}
	s.warned = true
	s.conn.Log().Log(context.Background(), level, "agent rejected", append(attributes, "clientId", ack.ClientID, "why", reason)...)
}

// overLimit counts a message, and returns a fault when the client exceeds the rate limit.
func (s *connection) overLimit(m *incoming) *fault {
	after, ok := s.conn.Allow()
	if ok {
		return nil
	}
	f := &fault{
		Code: remote.CodeRateLimited, Message: "Rate limit exceeded",
		Data: map[string]any{"retryAfter": int64(math.Max(1, math.Ceil(float64(after)/float64(time.Millisecond))))},
	}
	if m != nil && m.kind == kindRequest {
		f.ID = string(m.id)
	}
	return f
}

// checked validates the fields of a message.
func checked(name string, m *incoming) (map[string]any, *fault) {
	tree, err := clientSchemas.Check(name, m.data)
	if v, ok := errors.AsType[*message.Violation](err); ok && v.Field == "clientId" && v.Reason == message.WrongForm {
		v.Reason = "must be a UUID v4, or one with :TAB"
	}
	if err != nil {
		return nil, &fault{Code: codeInvalidParams, Message: "Invalid params: " + message.Clip(err.Error()), Data: fieldOf(err), ID: string(m.id)}
	}
	return tree, nil
}

func (s *connection) takePing(m *incoming) *fault {
	if _, f := checked(kindPing, m); f != nil {
		return f
	}
	s.send("pong", &pong{"pong", now()})
	return nil
}

// takeAuth stores the key that DevTools shows before it registers. The key is checked when the
// client sends its id.
func (s *connection) takeAuth(m *incoming) *fault {
	tree, f := checked(methodAuth, m)
	if f != nil {
		return f
	}
	params, _ := tree["params"].(map[string]any)
	s.secret = str(params, "secretKey")
	if m.id == nil {
		return nil
	}
	version, _ := message.Text(m.fields.Get("jsonrpc"))
	s.send("result", &result{JSONRPC: version, ID: m.id})
	return nil
}

func (s *connection) takeRegister(m *incoming) *fault {
	tree, f := checked(kindRegister, m)
	if f != nil {
		return f
	}
	named := str(tree, "clientId")
	id := normal(named)
	if s.client != nil && id != s.id {
		return &fault{Code: codeInvalidRequest, Message: "Invalid request: this connection is registered with a different clientId"}
	}
	key := s.secret
	if sent, ok := tree["secretKey"].(string); ok {
		key = sent
	}
	ack := &registrationAck{Type: "registration_ack", ClientID: named, Status: "accepted", Message: "Client registered successfully"}
	if _, tab, ok := strings.Cut(named, ":"); ok {
		ack.TabID, ack.IsComposite = tab, true
	}
	if s.reject != nil || !s.server.keys.fits(id, key) {
		s.rejected(ack, key)
		return nil
	}
	if s.client == nil && s.server.door.IsFull() {
		s.rejectRegistration(ack, "too many connections")
		s.conn.Close(closeFull, "too many connections")
		return nil
	}
	if s.server.keys.required() {
		s.conn.Authenticate()
	}
	if !s.conn.Identify(id) {
		return nil // another client took the last place, and the door closes the connection
	}
	if s.deadline != nil {
		s.deadline.Stop()
	}
	s.register(id, tree, ack)
	return nil
}

// rejected rejects a registration. A client without a key can still show one. A client with a
// wrong key gets one guess per connection, after a delay.
func (s *connection) rejected(ack *registrationAck, key string) {
	switch {
	case s.reject != nil:
		s.rejectRegistration(ack, "Invalid secret key")
		return
	case key == "":
		s.rejectRegistration(ack, "Missing secret key")
		return
	}
	s.rejectRegistration(ack, "Invalid secret key", "event", "wrong_key")
	s.reject = time.AfterFunc(time.Duration(s.server.config.RejectDelay), func() {
		s.conn.Close(closePolicy, "Authentication failed")
	})
}

// register registers the client with the hub.
func (s *connection) register(id string, tree map[string]any, ack *registrationAck) {
	capabilities, _ := tree["capabilities"].(map[string]any)
	listed, _ := capabilities["tools"].([]any)
	r := remote.Agent{
		ClientID: id, Tools: []string{}, Version: str(capabilities, "version"), Address: s.conn.Addr(),
		MaxConcurrency: int(math.Min(num(capabilities, "maxConcurrency"), float64(s.server.config.MaxConcurrency))),
	}
	for _, tool := range listed {
		if name, ok := tool.(string); ok {
			r.Tools = append(r.Tools, name)
		}
	}
	s.id = id
	s.client, ack.EvaluationsCount = s.server.hub.Register(s, r)
	s.send("registration_ack", ack)
	s.conn.Log().Info("agent registered", "tools", len(r.Tools), "maxConcurrency", r.MaxConcurrency, "version",
		r.Version, "evaluations", ack.EvaluationsCount)
}

func (s *connection) takeReady(m *incoming) *fault {
	if _, f := checked(kindReady, m); f != nil {
		return f
	}
	s.client.Ready()
	return nil
}

func (s *connection) takeStatus(m *incoming) *fault {
	tree, f := checked(kindStatus, m)
	if f != nil {
		return f
	}
	status := remote.Status{Status: str(tree, "status"), Message: text.Clip(str(tree, "message"), maxStatus)}
	if _, ok := tree["progress"].(json.Number); ok {
		progress := num(tree, "progress")
		status.Progress = &progress
	}
	s.client.Status(str(tree, "evaluationId"), status)
	return nil
}

// takeResponse passes an answer to the hub. Unsolicited answers count against the rate limit.
func (s *connection) takeResponse(m *incoming) *fault {
	id, answer, f := m.answer()
	switch s.client.Answer(id, answer) {
	case hub.Counted, hub.TurnedAway, hub.Kept:
		return f
	}
	if limit := s.overLimit(m); limit != nil {
		return limit
	}
	return f
}

// unreadable reports a message that ended the connection. Most likely the message was an answer,
// and the client would send the same answer to another request.
func (s *connection) unreadable(err error) {
	var unreadable *door.UnreadableError
	if s.client == nil || !errors.As(err, &unreadable) {
		return
	}
	s.conn.Log().Warn("agent disconnected after an unreadable message", "code", unreadable.Code, "why", unreadable.Reason)
	s.client.Unreadable(&remote.Fault{Code: codeInvalidRequest, Message: "unreadable message: " + unreadable.Reason})
}

// send sends a message that must match its schema.
func (s *connection) send(name string, message any) {
	data, err := serverSchemas.Encode(name, message)
	if err != nil {
		s.conn.Log().Error("message could not be sent", "error", err)
		return
	}
	s.write(data)
}

// write queues a message. When that fails, the next read ends with an error.
func (s *connection) write(data []byte) {
	if err := s.conn.Send(data); err != nil && !errors.Is(err, door.ErrClosed) {
		s.conn.Log().Debug("message not sent", "error", err)
	}
}

func (s *connection) fail(f *fault) {
	s.server.rejected.WithLabelValues(strconv.Itoa(f.Code)).Inc()
	s.conn.Log().Debug("message rejected", "code", f.Code, "why", f.Message)
	s.send("error", failureOf(f))
}

// Send implements [hub.Conn].
func (s *connection) Send(id string, e *remote.Evaluation) error {
	data, err := encodeEvaluation(id, e)
	if err != nil {
		return err
	}
	s.write(data)
	return nil
}

// Drop implements [hub.Conn].
func (s *connection) Drop() { s.conn.Drop() }

// Kick implements [hub.Conn].
func (s *connection) Kick(why string) { s.conn.Close(closePolicy, why) }
