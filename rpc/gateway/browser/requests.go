package browser

import (
	"cmp"
	"time"

	"waza/rpc/gateway/browser/internal/assistant"
	"waza/rpc/gateway/door"
)

// usualInstructions are the default instructions of assistants that the side panel creates.
const usualInstructions = "You help the user with the page that is open in the browser. Use the tools, then answer briefly."

// The number of sessions in a list.
const (
	usualSessions = 50
	mostSessions  = 100
)

// do handles a message. A message is acknowledged when it is accepted, before its effects are
// sent. The error is a [*fault].
func (s *connection) do(m *incoming) error {
	switch m.kind {
	case typePing:
		s.ping(m)
	case typeToolResult:
		s.ack(m.id) // no command waits for it
	case typeCommand, typeCommandStream:
		return s.command(m)
	case typeCancel:
		return s.taken(m, func() error { return s.server.assistants.Cancel(s, m.str("command_id")) })
	case typeList:
		s.list(m)
	case typeCreate:
		return s.create(m)
	case typeActivate, typeDeactivate, typeDelete:
		return s.change(m)
	case typeQueue:
		return s.queue(m)
	case typeArchive:
		return s.archive(m)
	case typeSessions:
		return s.sessions(m)
	case typeMessages:
		return s.messages(m)
	}
	return nil
}

// taken handles a message and acknowledges it before the resulting events are sent.
func (s *connection) taken(m *incoming, do func() error) error {
	s.hold()
	defer s.release()
	if err := do(); err != nil {
		return err
	}
	s.ack(m.id)
	return nil
}

// ping answers a ping. From then on, missing pings mean that the client is dead.
func (s *connection) ping(m *incoming) {
	c := &s.server.config
	if after := c.HeartbeatInterval * door.Duration(c.MissedHeartbeats); !s.pinged && after > 0 &&
		(c.IdleTimeout == 0 || after < c.IdleTimeout) {
		s.conn.SetIdle(door.Idle{After: time.Duration(after), Code: int(closeGoingAway), Reason: "no ping for " + after.String()})
	}
	s.pinged = true
	s.send("pong", "pong", m.id, object{})
}

func (s *connection) command(m *incoming) error {
	if s.documented && m.str("assistant_id") == "" {
		return invalid(m.id, "payload.assistant_id", fieldFormat, "payload.assistant_id: is missing")
	}
	return s.taken(m, func() error {
		return s.server.assistants.Submit(s, assistant.Submission{
			ID: m.id, Text: cmp.Or(m.str("text"), m.str("command")), AssistantID: m.str("assistant_id"),
			SessionID: m.str("session_id"), Stream: m.kind == typeCommandStream,
		})
	})
}

func (s *connection) list(m *incoming) {
	list := []object{}
	for _, a := range s.server.assistants.List() {
		list = append(list, assistantObject(a))
	}
	s.ack(m.id)
	s.send("assistant_list", "assistant_list", m.id,
		object{"assistants": list, "total_count": len(list), "max_allowed": s.server.config.MaxAssistants})
}

func (s *connection) create(m *incoming) error {
	d := assistant.Draft{Name: m.str("name"), Instructions: m.str("instructions"), Model: m.str("model"), Capabilities: m.list("capabilities")}
	if m.nested && d.Instructions == "" {
		d.Instructions = usualInstructions // they are optional in the panel
	}
	a, err := s.server.assistants.Create(d)
	if err != nil {
		return err
	}
	s.ack(m.id)
	s.send("assistant_created", "assistant_created", m.id, object{"assistant": assistantObject(a)})
	return nil
}

// change activates, deactivates or deletes an assistant.
func (s *connection) change(m *incoming) error {
	status := map[string]string{
		typeActivate: assistant.Active, typeDeactivate: assistant.Inactive, typeDelete: assistant.Deleted,
	}[m.kind]
	if confirm, there := m.flag("confirm"); status == assistant.Deleted && !confirm && (there || !m.nested) { // the panel asked the user
		return &fault{
			Code:    assistant.CodeConfirmationRequired,
			Message: "confirm must be true: the assistant and its sessions are deleted permanently",
		}
	}
	s.hold()
	defer s.release()
	changed, err := s.server.assistants.SetStatus(s, m.str("assistant_id"), status)
	if err != nil {
		return err
	}
	s.ack(m.id)
	for _, a := range changed {
		s.sayUpdated(m.id, a)
	}
	return nil
}

func (s *connection) queue(m *incoming) error {
	q, err := s.server.assistants.Queue(m.str("assistant_id"))
	if err != nil {
		return err
	}
	s.ack(m.id)
	s.sayQueue(m.id, q)
	return nil
}

func (s *connection) archive(m *incoming) error {
	archived, there := m.flag("archived")
	if !there && !m.nested {
		return invalid(m.id, "payload.archived", fieldFormat, "payload.archived: is missing")
	}
	one, err := s.server.assistants.Sessions.Archive(m.str("session_id"), archived || !there)
	if err != nil {
		return err
	}
	s.ack(m.id)
	if !s.documented {
		o := object{"id": one.ID, "archived": !one.ArchivedAt.IsZero()}.at("archived_at", one.ArchivedAt)
		if one.ArchivedAt.IsZero() {
			o.at("expires_at", one.ExpiresAt)
		}
		s.send("session_archived", "session_archived", m.id, o)
	}
	return nil
}

func (s *connection) sessions(m *incoming) error {
	limit, offset := min(m.number("limit", usualSessions), mostSessions), m.number("offset", 0)
	archived, _ := m.flag("include_archived")
	all, err := s.server.assistants.Sessions.List(m.str("assistant_id"), archived, limit+1, offset)
	if err != nil {
		return err
	}
	list := []object{}
	for i := range all[:min(limit, len(all))] {
		list = append(list, sessionObject(&all[i]))
	}
	s.ack(m.id)
	s.send("session_list", "session_list", m.id, object{"sessions": list, "limit": limit, "offset": offset, "has_more": len(all) > limit})
	return nil
}

func (s *connection) messages(m *incoming) error {
	one, all, err := s.server.assistants.Sessions.Messages(m.str("session_id"))
	if err != nil {
		return err
	}
	list := []object{}
	for _, msg := range all {
		list = append(list, object{
			"id": msg.ID, "session_id": one.ID, "role": msg.Role, "content": msg.Content, "timestamp": msg.CreatedAt.UnixMilli(),
		}.at("created_at", msg.CreatedAt))
	}
	s.ack(m.id)
	s.send("session_messages", "session_messages", m.id, object{"session_id": one.ID, "messages": list})
	return nil
}
