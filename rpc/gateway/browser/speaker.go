package browser

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"waza/rpc/gateway/browser/internal/assistant"
	"waza/rpc/gateway/door"
)

// speaker sends messages to a client, in the form that the client reads. It is safe for
// concurrent use.
type speaker struct {
	server     *Server
	conn       *door.Conn
	documented bool // the client gets the form of the protocol document

	mu      sync.Mutex // guards the fields below
	holding bool       // events wait until their cause is acknowledged
	held    []any
	token   [32]byte // ids derive from it
	tokenAt time.Time
	ids     uint64 // number of created ids
}

func (s *speaker) fail(f *fault) {
	s.server.count(f.Code)
	s.conn.Log().Debug("message rejected", "code", f.Code, "why", f.Message)
	s.send("error", "error", f.ID, faultObject(f))
}

func (s *speaker) ack(id string) { s.send("ack", "ack", id, object{}) }

// send sends a message that must match its definition.
func (s *speaker) send(definition, kind, correlation string, payload object) {
	s.sendAs(s.NewID(), definition, kind, correlation, payload)
}

func (s *speaker) sendAs(id, definition, kind, correlation string, payload object) {
	data, err := serverSchemas.Encode(definition,
		&outgoing{Type: kind, ID: id, Timestamp: time.Now().UnixMilli(), CorrelationID: correlation, Payload: payload})
	if err != nil {
		s.conn.Log().Error("message could not be sent", "error", err)
		return
	}
	// If the connection is over, the next read ends with an error.
	if err := s.conn.Send(data); err != nil && !errors.Is(err, door.ErrClosed) {
		s.conn.Log().Debug("message not sent", "error", err)
	}
}

// NewID implements [assistant.Client]. Ids derive from the token of the connection, so that
// clients cannot guess the id of an execution. The token is replaced after Config.TokenLifetime.
func (s *speaker) NewID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.tokenAt.IsZero() || now.Sub(s.tokenAt) >= time.Duration(s.server.config.TokenLifetime) {
		_, _ = rand.Read(s.token[:]) // never fails
		s.tokenAt = now
	}
	s.ids++
	mac := hmac.New(sha256.New, s.token[:])
	_ = binary.Write(mac, binary.BigEndian, s.ids)
	b := mac.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// hold delays events until release, so that the acknowledgement of a message precedes its
// effects.
func (s *speaker) hold() {
	s.server.requests.RLock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = true
}

// release sends the delayed events.
func (s *speaker) release() {
	defer s.server.requests.RUnlock()
	for {
		s.mu.Lock()
		held := s.held
		s.held = nil
		if len(held) == 0 {
			s.holding = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, e := range held {
			s.say(e)
		}
	}
}

// Happened implements [assistant.Client].
func (s *speaker) Happened(e any) {
	s.mu.Lock()
	if s.holding {
		s.held = append(s.held, e)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.say(e)
}

// say sends the message of an event.
func (s *speaker) say(e any) {
	switch e := e.(type) {
	case assistant.StatusChanged:
		s.sayStatus(e)
	case assistant.QueueChanged:
		s.sayQueue("", e.Queue)
	case assistant.Execution:
		s.sendAs(e.ID, "tool_execution", "tool_execution", e.CommandID,
			object{"tool": e.Tool, "params": e.Params, "timeout_ms": e.Timeout.Milliseconds()})
	case assistant.Chunk:
		o := object{"content": e.Text, "done": e.Done, "session_id": e.SessionID}
		if e.Done {
			o["finish_reason"] = "stop"
		}
		s.send("response_chunk", "response_chunk", e.CommandID, o)
	case assistant.Answered:
		if !s.documented { // the document has this in status_update
			s.send("response", "response", e.CommandID, object{"content": e.Text, "finish_reason": "stop", "session_id": e.SessionID})
		}
	case assistant.Failure:
		s.server.count(e.Fault.Code)
		s.send("error", "error", e.CommandID, faultObject(e.Fault))
	case assistant.AssistantChanged:
		s.sayUpdated("", e.Assistant)
	}
}

func (s *speaker) sayStatus(e assistant.StatusChanged) {
	o := object{"status": e.Status, "message": e.Message, "command_id": e.CommandID, "session_id": e.SessionID}
	if e.Status == assistant.Completed || e.Status == assistant.Failed && e.Result != "" {
		o["result"] = e.Result
	}
	o.text("error", e.Error).text("assistant_id", e.AssistantID)
	s.send("status_update", "status_update", e.CommandID, o)
	if e.Status == assistant.Cancelled && !s.documented {
		s.send("command_cancelled", "command_cancelled", e.CommandID, object{"command_id": e.CommandID, "session_id": e.SessionID})
	}
}

func (s *speaker) sayQueue(correlation string, q *assistant.Queue) {
	if s.documented {
		s.send("queue_status", "queue_status", correlation, queueObject(q))
	} else {
		s.send("queue_numbers", "queue_status", correlation, queueNumbers(q))
	}
}

func (s *speaker) sayUpdated(correlation string, a *assistant.Assistant) {
	s.send("assistant_updated", "assistant_updated", correlation, updatedObject(a))
	if a.Status == assistant.Deleted && !s.documented {
		s.send("assistant_deleted", "assistant_deleted", correlation, object{"id": a.ID}.at("deleted_at", a.UpdatedAt))
	}
}
