package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"waza/eval/text"
	"waza/rpc/gateway/browser/internal/assistant"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/internal/message"
	"waza/runner/executor/browser"
)

// Close codes.
const (
	closeGoingAway = websocket.StatusGoingAway
	closePolicy    = websocket.StatusPolicyViolation
)

// The codes for refusing connections, and RATE_LIMITED.
const (
	codeVersion     = "PROTOCOL_VERSION_MISMATCH"
	codeAuth        = "AUTHENTICATION_FAILED"
	codeRateLimited = "RATE_LIMITED"
)

var (
	// extensionID matches a UUID, or the 32 letters of Chrome.
	extensionID = text.Pattern(`^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[a-p]{32})$`)
	version     = text.Pattern(`^v?(\d{1,9})(\.\d{1,9}){0,2}$`)
)

// connection is a connection of an extension. It implements [assistant.Client]. Any goroutine can
// call those methods; only the reading goroutine calls the others.
type connection struct {
	*speaker
	id         string // id of the extension; empty when it sent none
	version    string // version that the client sent; empty when it sent none
	evaluation bool   // it is available to evaluations
	since      time.Time
	pinged     bool
	received   atomic.Int64
}

func newConnection(s *Server, c *door.Conn) *connection {
	query := c.Request().URL.Query()
	return &connection{
		speaker: &speaker{server: s, conn: c, documented: query.Has("version") || query.Has("extension_id")},
		id:      strings.ToLower(query.Get("extension_id")), version: query.Get("version"),
		evaluation: query.Get("evaluation") == "1", since: time.Now(),
	}
}

// run reads messages until the connection is over.
func (s *connection) run(ctx context.Context) {
	if f := s.refuse(); f != nil {
		s.fail(f)
		s.conn.Log().Info("extension refused", "event", "refused", "code", f.Code)
		s.conn.Close(int(closePolicy), f.Message)
		return
	}
	name := s.id
	if name == "" {
		name = s.conn.Addr()
	}
	if !s.conn.Identify(name) {
		return // the door is full and closes the connection
	}
	s.send("connected", "connected", "", s.server.connected())
	s.server.assistants.Connect(s)
	defer s.server.assistants.Disconnect(s)
	s.conn.Log().Info("extension connected", "version", s.version, "evaluation", s.evaluation)
	for {
		data, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		s.received.Add(1)
		if err := s.take(data); err != nil {
			s.report(err)
		}
	}
}

// refuse returns why the client cannot connect, or nil.
func (s *connection) refuse() *fault {
	if s.conn.Request().URL.Query().Has("version") {
		major, _, _ := strings.Cut(strings.TrimPrefix(s.version, "v"), ".")
		ours, _, _ := strings.Cut(Version, ".")
		if n, err := strconv.Atoi(major); !version().MatchString(s.version) || err != nil || strconv.Itoa(n) != ours {
			return &fault{
				Code: codeVersion, Message: "the server has version " + Version + " of the protocol",
				Data: map[string]any{"supported": Version, "requested": message.Clip(s.version)},
			}
		}
		s.version = message.Clip(s.version)
	}
	switch {
	case s.id == "" && (s.server.config.RequireExtensionID || s.conn.Request().URL.Query().Has("extension_id")):
		return &fault{Code: codeAuth, Message: "extension_id is missing in the address"}
	case s.id != "" && !extensionID().MatchString(s.id):
		return &fault{Code: codeAuth, Message: "extension_id must be a UUID, or 32 letters from a to p"}
	}
	if after, ok := s.server.reconnects.Allow(s.origin()); !ok {
		return &fault{
			Code: codeRateLimited, Message: "the extension reconnects too often",
			Data: map[string]any{"code": fieldRateLimit}, RetryAfter: after,
		}
	}
	return nil
}

// origin returns the name for counting connections; empty for programs without an id.
func (s *connection) origin() string {
	host, _, err := net.SplitHostPort(s.conn.Addr())
	origin := s.conn.Request().Header.Get("Origin")
	switch {
	case s.id != "":
		return s.id
	case origin == "" || err != nil:
		return ""
	}
	return host + " " + origin
}

// take handles a message.
func (s *connection) take(data []byte) error {
	m, err := parse(data)
	// The server has asked for these results, so they do not count against the rate limit.
	if err == nil && m.kind == typeToolResult && s.takeResult(m) {
		return nil
	}
	if f := s.overLimit(m); f != nil {
		return f
	}
	if errors.Is(err, errNoJSON) {
		s.conn.Log().Warn("message ignored", "event", "no_json", "why", err, "bytes", len(data))
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.do(m); err != nil {
		if f, ok := errors.AsType[*fault](err); ok {
			return f.Of(m.id)
		}
		return err
	}
	return nil
}

// takeResult acknowledges a result that a command waits for; false when none does.
func (s *connection) takeResult(m *incoming) bool {
	s.hold()
	defer s.release()
	if !s.server.assistants.Result(s, m.str("correlation_id"), m.result()) {
		return false
	}
	s.ack(m.id)
	return true
}

// overLimit counts a message, and returns a fault when the client exceeds the rate limit.
func (s *connection) overLimit(m *incoming) error {
	after, ok := s.conn.Allow()
	if ok {
		return nil
	}
	f := &fault{
		Code: codeRateLimited, Message: fmt.Sprintf("more than %d messages per minute", s.server.config.MessagesPerMinute),
		Data: map[string]any{"code": fieldRateLimit}, RetryAfter: after,
	}
	if m != nil {
		f.ID = m.id
	}
	return f
}

// report sends an error to the client.
func (s *connection) report(err error) {
	var f *fault
	if !errors.As(err, &f) {
		s.conn.Log().Error("message failed", "error", err)
		f = &fault{Code: assistant.CodeInternal, Message: "internal error"}
	}
	s.fail(f)
}

// ExtensionID implements [assistant.Client].
func (s *connection) ExtensionID() string { return s.id }

// Evaluation implements [assistant.Client].
func (s *connection) Evaluation() bool { return s.evaluation }

// Describe implements [assistant.Client].
func (s *connection) Describe() *browser.Extension {
	return &browser.Extension{
		ID: s.id, Address: s.conn.Addr(), Version: s.version, Evaluation: s.evaluation, Since: s.since, Messages: s.received.Load(),
	}
}
