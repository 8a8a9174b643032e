package agents

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"waza/rpc/gateway/agents/hub"
	"waza/rpc/gateway/door"
	"waza/runner/executor/remote"
)

// Close codes. DevTools stays away after a close frame, which both of these mean.
const closePolicy = 1008

// floodPause is how long the session reads nothing after a message beyond the rate limit.
// It bounds what a flood costs, and what is answered to it.
const floodPause = 10 * time.Millisecond

// maxStatus is the longest message of a status update that is kept, in bytes.
const maxStatus = 4096

// session is a connection of a client. It implements [hub.Conn], whose methods any
// goroutine may call; all others are of the goroutine that reads.
type session struct {
	server *Server
	conn   *door.Conn
	client *hub.Client // nil until registered
	id     string      // of the client, its UUID in lower case
	secret string      // what the method auth has shown

	deadline *time.Timer // until the client must have registered
	reject   *time.Timer // nil until a wrong key was shown
}

func newSession(s *Server, c *door.Conn) *session { return &session{server: s, conn: c} }

// run reads messages until the connection is over.
func (s *session) run(ctx context.Context) error {
	defer s.end()
	if d := time.Duration(s.server.config.RegisterTimeout); d > 0 {
		s.deadline = time.AfterFunc(d, func() {
			s.conn.Close(closePolicy, "no registration within "+d.String())
		})
	}
	s.send("welcome", &welcome{"welcome", s.server.options.ServerID, s.server.options.Version, now()})
	for {
		data, err := s.conn.Read(ctx)
		if err != nil {
			s.unreadable(err)
			return err
		}
		if f := s.take(ctx, data); f != nil {
			s.fail(f)
		}
	}
}

func (s *session) end() {
	for _, timer := range []*time.Timer{s.deadline, s.reject} {
		if timer != nil {
			timer.Stop()
		}
	}
	if s.client != nil {
		s.client.Left()
	}
}

// take does what a message asks for. The fault is reported to the client.
func (s *session) take(ctx context.Context, data []byte) *fault {
	m, f := parse(data)
	// Answers that somebody waits for are never too many: the server has asked for them.
	if f == nil && m.kind == kindResponse && s.client != nil {
		return s.takeResponse(ctx, m)
	}
	if limit := s.overLimit(ctx, m); limit != nil {
		return limit
	}
	if f != nil {
		return f
	}
	switch {
	case m.kind == kindRegister:
		return s.takeRegister(m)
	case m.kind == kindPing:
		return s.takePing(m)
	case m.kind == kindRequest && m.method == methodAuth:
		return s.takeAuth(m)
	case m.kind == kindAuthVerify:
		return nil // the answer to a message that this server never sends
	case s.client == nil:
		return &fault{code: remote.CodeAuth, message: "Authentication error: register first", id: m.id}
	case m.kind == kindReady:
		return s.takeReady(m)
	case m.kind == kindStatus:
		return s.takeStatus(m)
	}
	if m.id == nil {
		return nil // a notification gets no answer
	}
	return &fault{code: codeNoMethod, message: "Method not found: " + clip(m.method), id: m.id}
}

// overLimit counts a message, and is the fault when there are too many.
func (s *session) overLimit(ctx context.Context, m *incoming) *fault {
	after, ok := s.conn.Allow()
	if ok {
		return nil
	}
	timer := time.NewTimer(floodPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	f := &fault{code: remote.CodeRateLimited, message: "Rate limit exceeded", data: map[string]any{"retryAfter": int64(math.Max(1, math.Ceil(float64(after)/float64(time.Millisecond))))}}
	if m != nil && m.kind == kindRequest {
		f.id = m.id
	}
	return f
}

// checked validates the fields of a message.
func checked(name string, m *incoming) (map[string]any, *fault) {
	tree, err := clientSchemas.check(name, m.data)
	if err != nil {
		return nil, &fault{code: codeInvalidParams, message: "Invalid params: " + clip(err.Error()), data: fieldOf(err), id: m.id}
	}
	return tree, nil
}

func (s *session) takePing(m *incoming) *fault {
	if _, f := checked(kindPing, m); f != nil {
		return f
	}
	s.send("pong", &pong{"pong", now()})
	return nil
}

// takeAuth remembers the key that DevTools shows before it registers. Whether it is the
// right one is known when the client says who it is.
func (s *session) takeAuth(m *incoming) *fault {
	tree, f := checked(methodAuth, m)
	if f != nil {
		return f
	}
	params, _ := tree["params"].(map[string]any)
	s.secret = str(params, "secretKey")
	if m.id == nil {
		return nil
	}
	version, _ := text(m.fields.get("jsonrpc"))
	s.send("result", &result{JSONRPC: version, ID: m.id})
	return nil
}

func (s *session) takeRegister(m *incoming) *fault {
	tree, f := checked(kindRegister, m)
	if f != nil {
		return f
	}
	named := str(tree, "clientId")
	id := normal(named)
	if s.client != nil && id != s.id {
		return &fault{code: codeInvalidRequest, message: "Invalid request: this connection is registered with another clientId", data: map[string]any{"field": "clientId"}}
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
	if !s.conn.Identify(id) {
		return nil // the door is full, and closes the connection
	}
	if s.deadline != nil {
		s.deadline.Stop()
	}
	s.register(id, tree, ack)
	return nil
}

// rejected says no. A client that showed no key may yet show one; one that guesses has one
// guess per connection, and waits for it.
func (s *session) rejected(ack *registrationAck, key string) {
	ack.Status, ack.Message, ack.Reason = "rejected", "Registration rejected", "Invalid secret key"
	s.send("registration_ack", ack)
	if key == "" || s.reject != nil {
		return
	}
	s.conn.Log().Warn("agent rejected", "event", "wrong_key", "clientId", ack.ClientID, "why", "wrong key")
	s.reject = time.AfterFunc(time.Duration(s.server.config.RejectDelay), func() {
		s.conn.Close(closePolicy, "Authentication failed")
	})
}

// register lets the hub know of the client.
func (s *session) register(id string, tree map[string]any, ack *registrationAck) {
	capabilities, _ := tree["capabilities"].(map[string]any)
	listed, _ := capabilities["tools"].([]any)
	r := hub.Registration{
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
	s.conn.Log().Info("agent registered", "tools", len(r.Tools), "maxConcurrency", r.MaxConcurrency, "version", r.Version, "evaluations", ack.EvaluationsCount)
}

func (s *session) takeReady(m *incoming) *fault {
	if _, f := checked(kindReady, m); f != nil {
		return f
	}
	s.client.Ready()
	return nil
}

func (s *session) takeStatus(m *incoming) *fault {
	tree, f := checked(kindStatus, m)
	if f != nil {
		return f
	}
	status := remote.Status{Status: str(tree, "status"), Message: str(tree, "message")}
	if len(status.Message) > maxStatus {
		status.Message = strings.ToValidUTF8(status.Message[:maxStatus], "") + "…"
	}
	if _, ok := tree["progress"].(json.Number); ok {
		progress := num(tree, "progress")
		status.Progress = &progress
	}
	s.client.Status(str(tree, "evaluationId"), status)
	return nil
}

// takeResponse gives an answer to the hub. Those that nobody asked for count as messages.
func (s *session) takeResponse(ctx context.Context, m *incoming) *fault {
	id, answer, f := m.answer()
	switch s.client.Answer(id, answer) {
	case hub.Counted, hub.TurnedAway, hub.Kept:
		return f
	}
	if limit := s.overLimit(ctx, m); limit != nil {
		return limit
	}
	return f
}

// unreadable reports a message that ended the connection: it was an answer, most likely,
// and a client that is asked again would send the same.
func (s *session) unreadable(err error) {
	var unreadable *door.UnreadableError
	if s.client == nil || !errors.As(err, &unreadable) {
		return
	}
	s.conn.Log().Warn("agent disconnected, because it sent what cannot be read", "code", unreadable.Code, "why", unreadable.Why)
	s.client.Unreadable(&remote.Fault{Code: codeInvalidRequest, Message: "a message cannot be read: " + unreadable.Why})
}

// send sends a message that is ours to get right.
func (s *session) send(name string, message any) {
	data, err := encode(name, message)
	if err != nil {
		s.conn.Log().Error("message cannot be sent", "error", err)
		return
	}
	s.write(data)
}

// write queues a message. A connection that cannot take it is over, as reading will show.
func (s *session) write(data []byte) {
	if err := s.conn.Send(data); err != nil && !errors.Is(err, door.ErrClosed) {
		s.conn.Log().Debug("message not sent", "error", err)
	}
}

func (s *session) fail(f *fault) {
	s.server.rejected.WithLabelValues(strconv.Itoa(f.code)).Inc()
	s.conn.Log().Debug("message rejected", "code", f.code, "why", f.message)
	data, err := f.encode()
	if err != nil {
		s.conn.Log().Error("message cannot be sent", "error", err)
		return
	}
	s.write(data)
}

// Send implements [hub.Conn].
func (s *session) Send(id string, e *remote.Evaluation) error {
	data, err := encodeEvaluation(id, e)
	if err != nil {
		return err
	}
	s.write(data)
	return nil
}

// Drop implements [hub.Conn].
func (s *session) Drop() { s.conn.Drop() }

// Kick implements [hub.Conn].
func (s *session) Kick(why string) { s.conn.Close(closePolicy, why) }
