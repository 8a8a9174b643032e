package agents

import (
	"encoding/json"
	"errors"

	"waza/rpc/gateway/internal/message"
	"waza/runner/executor/remote"
)

// The kinds of messages from clients. The first five are also values of the field type.
const (
	kindRegister   = "register"
	kindReady      = "ready"
	kindPing       = "ping"
	kindStatus     = "status"
	kindAuthVerify = "auth_verify"
	kindRequest    = "request"
	kindResponse   = "response"
)

// The methods that the server offers and calls.
const (
	methodAuth     = "auth"
	methodEvaluate = "evaluate"
)

// Error codes of JSON-RPC.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
)

// maxID is the maximum size in bytes of a request id that the server repeats to its client.
const maxID = 1024

// incoming is a message of a client with unchecked fields.
type incoming struct {
	kind   string
	data   []byte          // the whole message
	fields message.Members // members of the outermost object that are read without a schema
	id     json.RawMessage // nil without an id
	method string          // of requests
}

// fault is an error that the server reports to a client. No fault ends the connection. Its ID is
// JSON.
type fault = message.Fault[int]

// parse determines the kind of a message.
//
// A message has a type, like the protocol's own messages, or a method, or a result or error. The
// member jsonrpc does not identify a message, because the method auth lacks it and some clients
// add it to messages with a type.
func parse(data []byte) (*incoming, *fault) {
	if !json.Valid(data) {
		return nil, &fault{Code: codeParse, Message: "Parse error: " + json.Unmarshal(data, new(json.RawMessage)).Error()}
	}
	m := &incoming{data: data}
	var isObject bool
	if m.fields, isObject = message.MembersOf(data, "type", "jsonrpc", "method", "id", "result", "error", "clientId"); !isObject {
		return nil, &fault{Code: codeInvalidRequest, Message: "Invalid request: a message must be a JSON object"}
	}
	if id := m.fields.Get("id"); id != nil && isID(id) {
		m.id = id
	}
	isRPC := m.fields.Has("method") || m.fields.Has("result") || m.fields.Has("error")
	switch {
	case m.fields.Has("type") && !(isRPC && m.fields.Has("jsonrpc")):
		return m.typed(m.fields.Get("type"))
	case m.fields.Has("method"):
		m.kind = kindRequest
		return m.request(m.fields.Get("method"))
	case isRPC:
		m.kind = kindResponse
		return m, nil
	}
	return nil, m.invalid("message has none of the members type, method, result and error", nil)
}

func (m *incoming) typed(kind json.RawMessage) (*incoming, *fault) {
	name, ok := message.Text(kind)
	if !ok {
		return nil, m.invalid("type must be a string", map[string]any{"field": "type"})
	}
	switch name {
	case kindRegister, kindReady, kindPing, kindStatus, kindAuthVerify:
		m.kind, m.id = name, nil
		return m, nil
	}
	return nil, m.invalid("unknown type", map[string]any{"field": "type", "type": message.Clip(name)})
}

func (m *incoming) request(method json.RawMessage) (*incoming, *fault) {
	if _, err := clientSchemas.Check(kindRequest, m.data); err != nil {
		return nil, m.invalid(err.Error(), fieldOf(err))
	}
	m.method, _ = message.Text(method)
	return m, nil
}

// invalid returns the fault of an invalid message.
func (m *incoming) invalid(why string, data map[string]any) *fault {
	return &fault{Code: codeInvalidRequest, Message: "Invalid request: " + why, Data: data, ID: string(m.id)}
}

// isID reports whether the answer to a request repeats this id.
func isID(id json.RawMessage) bool {
	if len(id) > maxID {
		return false
	}
	c := id[0]
	return c == '"' || c == '-' || '0' <= c && c <= '9' || string(id) == "null"
}

// fieldOf returns the data of a fault for a schema violation.
func fieldOf(err error) map[string]any {
	var v *message.Violation
	if !errors.As(err, &v) {
		return nil
	}
	field := v.Field
	if field == "" {
		field = "(message)"
	}
	return map[string]any{"field": message.Clip(field), "reason": message.Clip(v.Reason)}
}

// answer reads a response. An invalid response is also an answer, because otherwise its caller
// would wait in vain. The fault reports the error to the client.
func (m *incoming) answer() (id string, a *remote.Answer, f *fault) {
	id, _ = message.Text(m.id)
	if m.isResult() {
		return id, &remote.Answer{Result: m.fields.Get("result")}, nil
	}
	tree, err := clientSchemas.Check(kindResponse, m.data)
	if err == nil && notNull(m.fields.Get("result")) && notNull(m.fields.Get("error")) {
		err = &message.Violation{Field: "result", Reason: "is not allowed together with an error"}
	}
	if err == nil && !m.fields.Has("result") && !notNull(m.fields.Get("error")) {
		err = &message.Violation{Field: "error", Reason: "must not be null without a result"}
	}
	if err != nil {
		data, _ := json.Marshal(fieldOf(err))
		f := &fault{Code: codeInvalidParams, Message: "Invalid params: " + message.Clip(err.Error()), Data: fieldOf(err)}
		return id, &remote.Answer{
			Error: &remote.Fault{Code: codeInvalidRequest, Message: "invalid response of the agent: " + message.Clip(err.Error()), Data: data},
		}, f
	}
	if !notNull(m.fields.Get("error")) {
		return id, &remote.Answer{Result: m.fields.Get("result")}, nil
	}
	object := tree["error"].(map[string]any)
	failed := &remote.Fault{Message: str(object, "message"), Code: int64(num(object, "code"))}
	raw, _ := message.MembersOf(m.fields.Get("error"), "data")
	failed.Data = raw.Get("data")
	return id, &remote.Answer{Error: failed}, nil
}

func notNull(data json.RawMessage) bool { return data != nil && string(data) != "null" }

// str returns a field of a checked tree; empty when it is missing or null.
func str(object map[string]any, field string) string {
	s, _ := object[field].(string)
	return s
}

// num returns a number of a checked tree; 0 when it is missing or null. Numbers beyond float64
// become infinite.
func num(object map[string]any, field string) float64 {
	n, _ := object[field].(json.Number)
	f, _ := n.Float64()
	return f
}
