package browser

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"waza/rpc/gateway/browser/internal/assistant"
	"waza/rpc/gateway/internal/message"
)

// The messages of clients by type.
const (
	typeCommand       = "command"
	typeCommandStream = "command_stream"
	typeToolResult    = "tool_result"
	typeCancel        = "cancel_command"
	typeList          = "list_assistants"
	typeCreate        = "create_assistant"
	typeActivate      = "activate_assistant"
	typeDeactivate    = "deactivate_assistant"
	typeDelete        = "delete_assistant"
	typeQueue         = "get_queue_status"
	typeArchive       = "archive_session"
	typeSessions      = "list_sessions"
	typeMessages      = "get_session_messages"
	typePing          = "ping"
)

// shapes are the schema definitions for messages of clients, by type.
var shapes = map[string]string{
	typeCommand: typeCommand, typeCommandStream: typeCommand, typeToolResult: typeToolResult, typeCancel: typeCancel,
	typeList: typeList, typeCreate: typeCreate, typeActivate: typeActivate, typeDeactivate: typeActivate, typeDelete: typeDelete,
	typeQueue: typeQueue, typeArchive: typeArchive, typeSessions: typeSessions, typeMessages: typeMessages, typePing: typeList,
}

//go:embed schemas/*.json
var schemaFiles embed.FS

var (
	clientSchemas = message.SchemasOf(schemaFiles, "schemas/client.json", true, slices.Compact(slices.Sorted(maps.Values(shapes)))...)
	serverSchemas = message.SchemasOf(schemaFiles, "schemas/server.json", false, serverTypes...)
)

// The codes of the existing extension, in the details of errors.
const (
	fieldFormat      = "INVALID_FORMAT"
	fieldMissingType = "MISSING_TYPE"
	fieldMissingID   = "MISSING_ID"
	fieldUnknownType = "UNKNOWN_TYPE"
	fieldRateLimit   = "RATE_LIMIT_EXCEEDED"
)

// mostID is the maximum size of an id that the server repeats to a client, in bytes.
const mostID = 128

// incoming is a message of a client.
type incoming struct {
	kind    string
	id      string // id that answers refer to: the outer message's if nested
	nested  bool   // sent in the payload of a command, like all messages of the extension's side panel
	data    []byte // the whole message, or an envelope around a nested one
	payload map[string]any
	raw     message.Members // result of a tool_result
}

// fault is an error that the server reports to a client.
type fault = assistant.Fault

// invalid returns the fault of a message that violates the protocol.
func invalid(id, field, code, format string, args ...any) *fault {
	details := map[string]any{"code": code}
	if field != "" {
		details["field"] = field
	}
	return &fault{Code: assistant.CodeInvalidMessage, Message: fmt.Sprintf(format, args...), Data: details, ID: id}
}

// errNoJSON is the error of an ignored message.
var errNoJSON = errors.New("message is not valid JSON")

// parse determines the kind of a message and checks its fields. The error is errNoJSON or a
// [*fault].
func parse(data []byte) (*incoming, error) {
	if !json.Valid(data) {
		return nil, errNoJSON
	}
	fields, isObject := message.MembersOf(data, "type", "id", "payload")
	if !isObject {
		return nil, invalid("", "", fieldFormat, "message must be a JSON object")
	}
	m := &incoming{data: data}
	m.id, _ = message.Text(fields.Get("id"))
	if len(m.id) > mostID {
		return nil, invalid("", "id", fieldFormat, "id must have at most %d bytes", mostID)
	}
	m.kind, _ = message.Text(fields.Get("type"))
	switch {
	case m.kind == "":
		return nil, invalid(m.id, "type", fieldMissingType, "type is missing: it must be a string")
	case m.id == "":
		return nil, invalid("", "id", fieldMissingID, "id is missing: it must be a string")
	case shapes[m.kind] == "":
		return nil, invalid(m.id, "type", fieldUnknownType, "unknown type %q", message.Clip(m.kind))
	}
	if m.kind == typeCommand {
		if err := m.unwrap(fields.Get("payload")); err != nil {
			return nil, err
		}
	}
	return m, m.check()
}

// unwrap extracts a message from the payload of a command: {type, payload}, or type and the
// fields of the payload.
func (m *incoming) unwrap(payload json.RawMessage) error {
	if len(payload) == 0 || payload[0] != '{' {
		return nil
	}
	inner, _ := message.MembersOf(payload, "type", "payload", "timestamp")
	kind, _ := message.Text(inner.Get("type"))
	if shapes[kind] == "" {
		return nil
	}
	outer, _ := message.MembersOf(m.data, "timestamp", "correlation_id")
	m.kind, m.nested = kind, true
	b := message.AppendText([]byte(`{"type":`), kind)
	b = message.AppendText(append(b, `,"id":`...), m.id)
	if at := outer.Get("timestamp"); at != nil {
		b = append(append(b, `,"timestamp":`...), at...)
	}
	own := slices.Clone([]byte("{"))
	var extra []string
	_ = message.EachMember(payload, func(name, value []byte) {
		switch key := string(name); key {
		case "type", "id", "timestamp":
		case "correlation_id":
			b = append(append(b, `,"correlation_id":`...), value...)
		case "payload":
		default:
			extra = append(extra, key)
			if len(own) > 1 {
				own = append(own, ',')
			}
			own = append(append(message.AppendText(own, key), ':'), value...)
		}
	})
	switch within := inner.Get("payload"); {
	case within != nil && len(extra) > 0:
		return invalid(m.id, "payload."+message.Clip(extra[0]), fieldFormat, "payload.%s is not allowed", message.Clip(extra[0]))
	case within != nil:
		own = within
	default:
		own = append(own, '}')
	}
	var unknown string
	_ = message.EachMember(m.data, func(name, _ []byte) {
		switch string(name) {
		case "type", "id", "timestamp", "payload", "correlation_id":
		default:
			unknown = string(name)
		}
	})
	if unknown != "" {
		return invalid(m.id, message.Clip(unknown), fieldFormat, "%s is not allowed", message.Clip(unknown))
	}
	m.data = append(append(append(b, `,"payload":`...), own...), '}')
	return nil
}

// check validates the fields.
func (m *incoming) check() error {
	tree, err := clientSchemas.Check(shapes[m.kind], m.data)
	if err != nil {
		field := ""
		if v, ok := errors.AsType[*message.Violation](err); ok {
			field = message.Clip(v.Field)
		}
		return invalid(m.id, field, fieldFormat, "%s", message.Clip(err.Error()))
	}
	m.payload, _ = tree["payload"].(map[string]any)
	if m.kind == typeToolResult {
		fields, _ := message.MembersOf(m.data, "payload", "correlation_id")
		m.raw, _ = message.MembersOf(fields.Get("payload"), "result")
		correlation, _ := message.Text(fields.Get("correlation_id"))
		m.payload["correlation_id"] = correlation
		return m.checkResult()
	}
	return nil
}

// checkResult checks the additional rules of a tool_result.
func (m *incoming) checkResult() error {
	_, status := m.payload["status"]
	if _, success := m.payload["success"]; !status && !success {
		return invalid(m.id, "payload.status", fieldFormat, "payload.status: is missing")
	}
	return nil
}

// result returns the result in a tool_result.
func (m *incoming) result() assistant.ToolResult {
	r := assistant.ToolResult{Status: m.str("status"), Error: m.str("error")}
	if r.Status == "" {
		r.Status = "error"
		if ok, _ := m.payload["success"].(bool); ok {
			r.Status = "success"
		}
	}
	if raw := m.raw.Get("result"); raw != nil {
		r.Result = bytes.Clone(raw)
	}
	return r
}

// str returns a text of the payload; empty when it is missing or null.
func (m *incoming) str(field string) string {
	s, _ := m.payload[field].(string)
	return s
}

// number returns a number of the payload.
func (m *incoming) number(field string, otherwise int) int {
	n, ok := m.payload[field].(json.Number)
	if !ok {
		return otherwise
	}
	f, err := n.Float64()
	if err != nil || f > 1<<30 {
		return 1 << 30
	}
	return int(f)
}

// flag returns a boolean of the payload. there is false when the field is missing.
func (m *incoming) flag(field string) (value, there bool) {
	value, there = m.payload[field].(bool)
	return value, there
}

// list returns a list of texts of the payload.
func (m *incoming) list(field string) []string {
	items, _ := m.payload[field].([]any)
	var all []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
