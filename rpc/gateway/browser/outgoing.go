package browser

import (
	"time"

	"waza/rpc/gateway/browser/internal/assistant"
	"waza/rpc/gateway/store"
)

// serverTypes are the schema definitions of the server's messages. queue_numbers is the
// queue_status for the existing extension.
var serverTypes = []string{
	"connected", "tool_execution", "status_update", "queue_status", "queue_numbers", "assistant_list",
	"assistant_created", "assistant_updated",
	"assistant_deleted", "command_cancelled", "response", "response_chunk", "session_list", "session_messages",
	"session_archived", "error", "ack", "pong",
}

// outgoing is a message of the server.
type outgoing struct {
	Type          string `json:"type"`
	ID            string `json:"id"`
	Timestamp     int64  `json:"timestamp"`
	CorrelationID string `json:"correlation_id,omitempty"`
	Payload       any    `json:"payload"`
}

// object is a payload.
type object map[string]any

// at sets a time in both forms unless it is zero.
func (o object) at(name string, t time.Time) object {
	if !t.IsZero() {
		o[name], o[name+"_iso"] = t.UnixMilli(), t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return o
}

// text sets a text unless it is empty.
func (o object) text(name, s string) object {
	if s != "" {
		o[name] = s
	}
	return o
}

// connected returns the payload of the first message.
func (s *Server) connected() object {
	c := &s.config
	types := []string{
		typeCommand, typeCommandStream, typeToolResult, typeCancel, typeList, typeCreate, typeActivate, typeDeactivate,
		typeDelete, typeQueue, typeArchive,
		typeSessions, typeMessages, typePing,
	}
	for _, name := range serverTypes {
		if name != "queue_numbers" {
			types = append(types, name)
		}
	}
	return object{
		"version": Version, "supported_message_types": types,
		"rate_limit": object{"max_messages": c.MessagesPerMinute, "window_seconds": 60, "messages_per_minute": c.MessagesPerMinute},
		"timeouts": object{
			"heartbeat_interval_seconds": seconds(c.HeartbeatInterval), "command_timeout_seconds": seconds(c.CommandTimeout),
			"tool_timeout_seconds": seconds(c.ToolTimeout), "idle_timeout_seconds": seconds(c.IdleTimeout),
		},
	}
}

func assistantObject(a *assistant.Assistant) object {
	return object{
		"id": a.ID, "name": a.Name, "status": a.Status, "capabilities": a.Capabilities,
		"capability_count": len(a.Capabilities), "instructions": a.Instructions,
	}.text("model", a.Model).at("created_at", a.CreatedAt).at("updated_at", a.UpdatedAt).at("last_active_at", a.LastActiveAt)
}

func updatedObject(a *assistant.Assistant) object {
	return object{"id": a.ID, "status": a.Status}.at("updated_at", a.UpdatedAt)
}

func sessionObject(s *store.Session) object {
	o := object{"id": s.ID, "assistant_id": s.AssistantID, "message_count": s.Messages, "archived": !s.ArchivedAt.IsZero()}
	o.at("created_at", s.CreatedAt).at("last_message_at", s.LastMessageAt).at("archived_at", s.ArchivedAt)
	if s.ArchivedAt.IsZero() {
		o.at("expires_at", s.ExpiresAt)
	}
	return o
}

// queueObject returns the queue in the form of the protocol document.
func queueObject(q *assistant.Queue) object {
	queued := []object{}
	for _, w := range q.Waiting {
		queued = append(queued, object{"command_id": w.CommandID, "text": w.Text}.at("queued_at", w.QueuedAt).at("timeout_at", w.TimeoutAt))
	}
	o := object{"assistant_id": q.AssistantID, "queued": queued, "in_progress": nil}
	if r := q.Executing; r != nil {
		o["in_progress"] = object{"command_id": r.CommandID, "text": r.Text}.at("started_at", r.StartedAt)
	}
	return o
}

// queueNumbers returns the queue in the form that the existing extension reads.
func queueNumbers(q *assistant.Queue) object {
	o := object{"assistant_id": q.AssistantID, "queued": len(q.Waiting), "executing": 0}
	if q.Executing != nil {
		o["executing"] = 1
	}
	return o
}

func faultObject(f *fault) object {
	o := object{"code": f.Code, "message": f.Message}
	if len(f.Data) > 0 {
		o["details"] = f.Data
	}
	if ms, s := retry(f.RetryAfter); ms > 0 {
		o["retry_after_ms"], o["retry_after"] = ms, s
	}
	return o
}
