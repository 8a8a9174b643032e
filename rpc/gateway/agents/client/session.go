package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"waza/runner/executor/remote"
)

// The codes of JSON-RPC that agents answer with.
const (
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeInternal      = -32603
)

const (
	// maxMessage bounds a message of the server, in bytes.
	maxMessage = 32 << 20
	// maxAnswer bounds an answer: servers close connections on which more comes.
	maxAnswer = 7 << 20
)

// conn is a connection that carries messages. Read and Write may be called at once.
type conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
	Close()
}

type dialer func(ctx context.Context, url string) (conn, error)

// dial connects by WebSocket.
func dial(ctx context.Context, url string) (conn, error) {
	c, res, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	if res != nil && res.Body != nil {
		res.Body.Close()
	}
	c.SetReadLimit(maxMessage)
	return socket{c}, nil
}

type socket struct{ *websocket.Conn }

func (s socket) Read(ctx context.Context) ([]byte, error) {
	_, b, err := s.Conn.Read(ctx)
	return b, err
}

func (s socket) Write(ctx context.Context, message []byte) error {
	return s.Conn.Write(ctx, websocket.MessageText, message)
}

// Close says goodbye, if the server still listens.
func (s socket) Close() { _ = s.Conn.Close(websocket.StatusGoingAway, "the agent ends") }

// session is one connection of an agent.
type session struct {
	conn
	ctx context.Context // ends with the connection
	end context.CancelCauseFunc
}

// message is what a server sends.
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
	errSilence  = errors.New("the server is silent")
	errNoAccept = errors.New("the server did not accept the agent in time")
)

// connect serves one connection, until it breaks or the agent ends.
func (a *agent) connect() error {
	ctx, end := context.WithCancelCause(a.ctx)
	defer end(nil)
	accept := time.AfterFunc(connectTimeout, func() { end(errNoAccept) })
	defer accept.Stop()
	c, err := a.dial(ctx, a.URL)
	if err != nil {
		return orCause(ctx, err)
	}
	s := &session{conn: c, ctx: ctx, end: end}
	var pings sync.WaitGroup
	defer pings.Wait()
	defer c.Close()
	defer end(nil)
	defer a.setSession(nil)
	pings.Go(s.ping)
	for {
		m, err := s.next()
		if err != nil {
			return orCause(ctx, err)
		}
		if m == nil {
			continue
		}
		switch {
		case m.Type == "welcome":
			s.send(a.registration())
		case m.Type == "registration_ack" && m.Status == "rejected":
			return &RejectedError{Reason: firstOf(m.Reason, m.Message, "it gave no reason")}
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
			a.Log.Warn("the server answered with an error", "code", m.Error.Code, "message", m.Error.Message)
		}
	}
}

// setSession makes s the connection that answers go to, and sends those that none had.
func (a *agent) setSession(s *session) {
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

// next reads a message; nil for one that is none.
func (s *session) next() (*message, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, silence, errSilence)
	defer cancel()
	b, err := s.Read(ctx)
	if err != nil {
		return nil, orCause(ctx, err)
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

// send writes a message. A connection that takes none for a while is over.
func (s *session) send(message []byte) {
	ctx, cancel := context.WithTimeout(s.ctx, writeTimeout)
	defer cancel()
	if err := s.Write(ctx, message); err != nil {
		s.end(fmt.Errorf("not sent: %w", err))
	}
}

// ping keeps the connection open until it ends.
func (s *session) ping() {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.send(encode(map[string]any{"type": "ping", "timestamp": time.Now().UTC()}))
		case <-s.ctx.Done():
			return
		}
	}
}

// orCause is why ctx ended, if it did, and err otherwise.
func orCause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// encode writes what cannot fail to be JSON.
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

// success is the answer with a result, or says why there cannot be one.
func success(id json.RawMessage, result any) ([]byte, *remote.Fault) {
	b, err := json.Marshal(result)
	if err != nil {
		return nil, &remote.Fault{Code: codeInternal, Message: "Internal error: " + err.Error()}
	}
	if len(b) > maxAnswer {
		return nil, &remote.Fault{Code: codeInternal, Message: fmt.Sprintf("Internal error: the result has %d bytes, the most is %d", len(b), maxAnswer)}
	}
	return encode(response{JSONRPC: "2.0", Result: b, ID: id}), nil
}
