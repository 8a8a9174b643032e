package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"waza/runner/executor/remote"
)

// The kinds of messages that clients send. The first five are also the values of their
// field type.
const (
	kindRegister   = "register"
	kindReady      = "ready"
	kindPing       = "ping"
	kindStatus     = "status"
	kindAuthVerify = "auth_verify"
	kindRequest    = "request"
	kindResponse   = "response"
)

// The methods that the server has and calls.
const (
	methodAuth     = "auth"
	methodEvaluate = "evaluate"
)

// The codes of JSON-RPC.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
)

// maxID is the longest id of a request that is repeated to its client, in bytes.
const maxID = 1024

// incoming is a message of a client, whose fields have yet to be checked.
type incoming struct {
	kind   string
	data   []byte                     // all of it
	fields map[string]json.RawMessage // of the outermost object
	id     json.RawMessage            // nil when there is none
	method string                     // of requests
}

// fault is an error that the server reports to a client. No fault ends the connection.
type fault struct {
	code    int
	message string
	data    map[string]any
	id      json.RawMessage // of the request; nil when there is none
}

func (f *fault) Error() string { return fmt.Sprintf("%s (%d)", f.message, f.code) }

// parse finds out what a message is.
//
// A message has a type, as the protocol's own messages have, or a method, or a result or
// error. The method auth comes without jsonrpc, so that is no mark of anything.
func parse(data []byte) (*incoming, *fault) {
	m := &incoming{data: data}
	if err := json.Unmarshal(data, &m.fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &fault{code: codeParse, message: "Parse error: " + err.Error()}
		}
		return nil, &fault{code: codeInvalidRequest, message: "Invalid request: a message must be a JSON object"}
	}
	if m.fields == nil {
		return nil, &fault{code: codeInvalidRequest, message: "Invalid request: a message must be a JSON object"}
	}
	if id, ok := m.fields["id"]; ok && isID(id) {
		m.id = id
	}
	_, isRPC := m.fields["jsonrpc"]
	method, isRequest := m.fields["method"]
	kind, isTyped := m.fields["type"]
	switch {
	case isTyped && !isRPC:
		return m.typed(kind)
	case isRequest:
		m.kind = kindRequest
		return m.request(method)
	case m.has("result") || m.has("error"):
		m.kind = kindResponse
		return m, nil
	}
	return nil, m.invalid("it has neither type nor method, result or error", nil)
}

func (m *incoming) has(field string) bool {
	_, ok := m.fields[field]
	return ok
}

func (m *incoming) typed(kind json.RawMessage) (*incoming, *fault) {
	name, ok := text(kind)
	if !ok {
		return nil, m.invalid("type must be a string", map[string]any{"field": "type"})
	}
	switch name {
	case kindRegister, kindReady, kindPing, kindStatus, kindAuthVerify:
		m.kind, m.id = name, nil
		return m, nil
	}
	return nil, m.invalid("unknown type", map[string]any{"field": "type", "type": clip(name)})
}

func (m *incoming) request(method json.RawMessage) (*incoming, *fault) {
	if _, err := clientSchemas.check(kindRequest, m.data); err != nil {
		return nil, m.invalid(err.Error(), fieldOf(err))
	}
	m.method, _ = text(method)
	return m, nil
}

// invalid is the fault of a message that is nothing.
func (m *incoming) invalid(why string, data map[string]any) *fault {
	return &fault{code: codeInvalidRequest, message: "Invalid request: " + why, data: data, id: m.id}
}

// isID reports whether a request with this id gets an answer with it.
func isID(id json.RawMessage) bool {
	if len(id) > maxID {
		return false
	}
	c := id[0]
	return c == '"' || c == '-' || '0' <= c && c <= '9' || string(id) == "null"
}

// text reads a JSON string.
func text(data json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(data, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// fieldOf is the data of a fault that a violation caused.
func fieldOf(err error) map[string]any {
	var v *violation
	if !errors.As(err, &v) {
		return nil
	}
	field := v.field
	if field == "" {
		field = "(message)"
	}
	return map[string]any{"field": clip(field), "reason": clip(v.reason)}
}

// clip shortens what a client sent.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:most]), nil)) + "…"
}

// answer reads a response. An invalid one is an answer as well: the one who waits for it
// must not wait on. The fault is what the client is told then.
func (m *incoming) answer() (id string, a *remote.Answer, f *fault) {
	id, _ = text(m.id)
	if m.isResult() {
		return id, &remote.Answer{Result: m.fields["result"]}, nil
	}
	tree, err := clientSchemas.check(kindResponse, m.data)
	if err == nil && notNull(m.fields["result"]) && notNull(m.fields["error"]) {
		err = &violation{"result", "must not be there with an error"}
	}
	if err == nil && !m.has("result") && !notNull(m.fields["error"]) {
		err = &violation{"error", "must not be null without a result"}
	}
	if err != nil {
		data, _ := json.Marshal(fieldOf(err))
		f := &fault{code: codeInvalidParams, message: "Invalid params: " + clip(err.Error()), data: fieldOf(err)}
		return id, &remote.Answer{Error: &remote.Fault{Code: codeInvalidRequest, Message: "the agent's response is invalid: " + clip(err.Error()), Data: data}}, f
	}
	if !notNull(m.fields["error"]) {
		return id, &remote.Answer{Result: m.fields["result"]}, nil
	}
	object := tree["error"].(map[string]any)
	failed := &remote.Fault{Message: str(object, "message"), Code: int64(num(object, "code"))}
	var raw map[string]json.RawMessage
	if json.Unmarshal(m.fields["error"], &raw) == nil {
		failed.Data = raw["data"]
	}
	return id, &remote.Answer{Error: failed}, nil
}

func notNull(data json.RawMessage) bool { return data != nil && string(data) != "null" }

// str reads a field of a tree that was checked; empty when it is missing or null.
func str(object map[string]any, field string) string {
	s, _ := object[field].(string)
	return s
}

// num reads a number of a tree that was checked; 0 when it is missing or null. Numbers
// beyond float64 become infinite.
func num(object map[string]any, field string) float64 {
	n, _ := object[field].(json.Number)
	f, _ := n.Float64()
	return f
}
