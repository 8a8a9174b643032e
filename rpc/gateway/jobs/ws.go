package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"waza/eval/text"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
)

// Close codes of the job stream besides CodeUnauthenticated.
const (
	CodeReceiveTimeout     = 4002
	CodeTooManyConnections = 4008
)

// writePause is the minimum time between two writes to a client. It is hardly noticeable,
// because events of other processes take up to 100 ms anyway.
const writePause = 20 * time.Millisecond

// maxRequestBytes is the maximum size of a message from a client of the job stream.
const maxRequestBytes = 64 << 10

// crowd counts the connections of each user. The zero value is empty.
type crowd struct {
	mu     sync.Mutex // guards byUser
	byUser map[string]int
}

// enter counts a connection of a user. It returns false when the user has most connections.
func (c *crowd) enter(user string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most > 0 && c.byUser[user] >= most {
		return false
	}
	if c.byUser == nil {
		c.byUser = map[string]int{}
	}
	c.byUser[user]++
	return true
}

func (c *crowd) leave(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUser[user]--; c.byUser[user] == 0 {
		delete(c.byUser, user)
	}
}

// ws serves the job stream to a client with a token in the query.
func (s *Server) ws(w http.ResponseWriter, r *http.Request) {
	s.door.Accept(w, r, func(ctx context.Context, c *door.Conn) {
		claims, err := s.check(ctx, c.Request().URL.Query().Get("token"))
		switch {
		case errors.Is(err, token.ErrStore):
			c.Log().Error("token check failed", board.EventKey, "store_failed", "error", err)
			c.Close(int(websocket.StatusInternalError), token.ErrStore.Error())
			return
		case err != nil:
			c.Close(CodeUnauthenticated, err.Error())
			return
		case !s.crowd.enter(claims.Subject, s.config.ConnectionsPerUser):
			s.refuseFurther(c, claims)
			return
		}
		defer s.crowd.leave(claims.Subject)
		defer s.enter(c, claims)()
		c.Authenticate()
		if !c.Identify("user " + claims.Subject) {
			return
		}
		c.SetIdle(door.Idle{After: time.Duration(s.config.ReceiveTimeout), Code: CodeReceiveTimeout, Reason: "Receive timeout"})
		c.Pace(writePause)
		s.watch(ctx, c, viewer(claims))
	})
}

// check calls token.Issuer.Check on a stack of its own. The database needs a deep stack. A stack
// shrinks by half at most in each garbage collection, so thousands of idle connections would keep
// theirs for long.
func (s *Server) check(ctx context.Context, text string) (who *token.Claims, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		who, err = s.options.Tokens.Check(ctx, text)
	}()
	<-done
	return who, err
}

// refuseFurther closes a connection of a user who has too many.
func (s *Server) refuseFurther(c *door.Conn, who *token.Claims) {
	c.Log().Warn("user has too many connections", board.EventKey, "too_many_connections", "user", who.Subject)
	c.Close(CodeTooManyConnections, "too many connections")
}

func viewer(claims *token.Claims) board.Viewer {
	return board.Viewer{User: claims.Subject, Admin: claims.IsAdmin()}
}

// watch sends the jobs to a client and handles its messages until the client leaves.
func (s *Server) watch(ctx context.Context, c *door.Conn, v board.Viewer) {
	stop, err := s.options.Board.Watch(ctx, v, func(msg []byte) { _ = c.Send(msg) }) // Send closes slow connections
	if err != nil {
		return
	}
	defer stop()
	for {
		msg, err := c.Read(ctx)
		if err != nil {
			return
		}
		if len(msg) > maxRequestBytes {
			c.Close(int(websocket.StatusMessageTooBig), "message too large")
			return
		}
		if !c.Wait() {
			return
		}
		if answer := s.answer(ctx, v, msg); answer != nil && c.Send(answer) != nil {
			return
		}
	}
}

// problem is the message error. Existing clients ignore it.
type problem struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	JobID   string `json:"job_id,omitempty"`
}

// answer handles a message and returns the answer; nil means none.
func (s *Server) answer(ctx context.Context, v board.Viewer, msg []byte) []byte {
	var m struct {
		Type  *string `json:"type"`
		JobID *string `json:"job_id"`
	}
	p := &problem{Type: "error"}
	switch err := json.Unmarshal(msg, &m); {
	case err != nil || m.Type == nil:
		p.Code, p.Message = "bad_message", "message must be a JSON object with the field type"
	case *m.Type == "ping":
		return []byte(`{"type":"pong"}`)
	case *m.Type != "cancel":
		p.Code, p.Message = "unknown_type", "type must be ping or cancel"
	case m.JobID == nil:
		p.Code, p.Message = "bad_message", "cancel needs the field job_id"
	default:
		// The client may leave right after the message.
		if p.Code, p.Message = s.cancel(context.WithoutCancel(ctx), v, *m.JobID); p.Code == "" {
			return nil
		}
		p.JobID = text.Clip(*m.JobID, 100)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	return b
}

// cancel cancels a job. When that fails, it returns a code and a message; otherwise the code is
// empty.
func (s *Server) cancel(ctx context.Context, v board.Viewer, id string) (code, message string) {
	err := s.options.Board.Cancel(ctx, v, id)
	switch {
	case err == nil:
		return "", ""
	case errors.Is(err, board.ErrUnknown):
		return "unknown_job", err.Error()
	case errors.Is(err, board.ErrOver):
		return "job_over", err.Error()
	}
	return "cancel_failed", board.Failure(err.Error())
}
