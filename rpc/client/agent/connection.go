package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"waza/rpc/client/internal/socket"
	"waza/runner/executor/remote"
	"waza/runner/pause"
)

// JSON-RPC error codes in answers of agents.
const (
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeInternal      = -32603
)

const (
	// maxMessage is the maximum size of a message from the server, in bytes.
	maxMessage = 32 << 20
	// maxAnswer is the maximum size of an answer: servers close connections that send more.
	maxAnswer = 7 << 20
)

// dial connects to a WebSocket.
func dial(ctx context.Context, url string) (socket.Conn, error) {
	c, res, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	if res != nil && res.Body != nil {
		res.Body.Close()
	}
	return socket.New(c, maxMessage, "the agent ends"), nil
}

// connection is one connection of an agent.
type connection struct {
	socket.Conn
	ctx context.Context // ends with the connection
	end context.CancelCauseFunc
}

// message is a message from the server.
type message struct {
	Type    string          `json:"type"`
	Status  string          `json:"status"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
	Method  string          `json:"method"`
	ID      json.RawMessage `json:"id"`
	Params  json.RawMessage `json:"params"`
	Error   *remote.Fault   `json:"error"`
}

var (
	errSilence  = errors.New("the server does not respond")
	errNoAccept = errors.New("the server did not accept the agent in time")
)

// connect serves one connection until it breaks or the agent ends.
func (a *agent) connect() error {
	ctx, end := context.WithCancelCause(a.ctx)
	defer end(nil)
	accept := time.AfterFunc(connectTimeout, func() { end(errNoAccept) })
	defer accept.Stop()
	c, err := a.dial(ctx, a.URL)
	if err != nil {
		return socket.OrCause(ctx, err)
	}
	s := &connection{Conn: c, ctx: ctx, end: end}
	var pings sync.WaitGroup
	defer pings.Wait()
	defer c.Close()
	defer end(nil)
	defer a.setSession(nil)
	pings.Go(s.ping)
	for {
		m, err := s.next()
		if err != nil {
			return socket.OrCause(ctx, err)
		}
		if m == nil {
			continue
		}
		switch {
		case m.Type == "welcome":
			s.send(a.registration())
		case m.Type == "registration_ack" && m.Status == "rejected":
			return &RejectedError{Reason: cmp.Or(m.Reason, m.Message, "no reason given")}
		case m.Type == "registration_ack" && m.Status == "accepted":
			accept.Stop()
			a.welcome = true
			a.Log.Info("connected", "url", a.URL, "client", a.ClientID)
			s.send(encode(map[string]any{"type": "ready", "timestamp": time.Now().UTC()}))
			a.setSession(s)
		case m.Method == "evaluate" && len(m.ID) > 0:
			a.evaluate(s, m.ID, m.Params)
		case m.Method != "" && len(m.ID) > 0:
			s.send(failure(m.ID, &remote.Fault{Code: codeNoMethod, Message: "Method not found"}))
		case m.Error != nil:
			a.Log.Warn("server answered with an error", "code", m.Error.Code, "message", m.Error.Message)
		}
	}
}

// setSession makes s the connection for answers, and sends the unsent ones.
func (a *agent) setSession(s *connection) {
	a.mu.Lock()
	a.session = s
	var answers [][]byte
	if s != nil {
		answers = a.memory.takeUnsent()
	}
	a.mu.Unlock()
	for _, answer := range answers {
		s.send(answer)
	}
}

func (a *agent) registration() []byte {
	return encode(struct {
		Type         string `json:"type"`
		ClientID     string `json:"clientId"`
		SecretKey    string `json:"secretKey,omitempty"`
		Capabilities any    `json:"capabilities"`
	}{"register", a.ClientID, a.Key, map[string]any{
		"tools": append([]string{}, a.Tools...), "maxConcurrency": a.Concurrency, "version": a.Version,
	}})
}

// next reads a message; nil for invalid ones.
func (s *connection) next() (*message, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, silence, errSilence)
	defer cancel()
	b, err := s.Read(ctx)
	if err != nil {
		return nil, socket.OrCause(ctx, err)
	}
	var m message
	if json.Unmarshal(b, &m) != nil {
		return nil, nil
	}
	var id bytes.Buffer
	if len(m.ID) > 0 && json.Compact(&id, m.ID) == nil {
		m.ID = id.Bytes()
	}
	return &m, nil
}

// send writes a message. It ends a connection that accepts no message for a while.
func (s *connection) send(message []byte) {
	if err := s.Write(s.ctx, message); err != nil {
		s.end(fmt.Errorf("send failed: %w", err))
	}
}

// ping sends pings until the connection ends.
func (s *connection) ping() {
	for pause.For(s.ctx, pingInterval) == nil {
		s.send(encode(map[string]any{"type": "ping", "timestamp": time.Now().UTC()}))
	}
}

// encode encodes a value that is always valid JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("message of type %T: %v", v, err))
	}
	return b
}

// response is an answer to an evaluation.
type response struct {
	JSONRPC string          `json:"jsonrpc"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *remote.Fault   `json:"error,omitempty"`
	ID      json.RawMessage `json:"id"`
}

func failure(id json.RawMessage, fault *remote.Fault) []byte {
	return encode(response{JSONRPC: "2.0", Error: fault, ID: id})
}

// success returns the answer with a result, or a fault when the result cannot be sent.
func success(id json.RawMessage, result any) ([]byte, *remote.Fault) {
	b, err := json.Marshal(result)
	if err != nil {
		return nil, &remote.Fault{Code: codeInternal, Message: "Internal error: " + err.Error()}
	}
	if len(b) > maxAnswer {
		return nil, &remote.Fault{
			Code:    codeInternal,
			Message: fmt.Sprintf("Internal error: the result has %d bytes, the maximum is %d", len(b), maxAnswer),
		}
	}
	return encode(response{JSONRPC: "2.0", Result: b, ID: id}), nil
}
