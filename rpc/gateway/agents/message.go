package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"waza/eval/jsonwalk"
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
	data   []byte          // all of it
	fields members         // of the outermost object, those that are read without a schema
	id     json.RawMessage // nil when there is none
	method string          // of requests
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
	if !json.Valid(data) {
		return nil, &fault{code: codeParse, message: "Parse error: " + json.Unmarshal(data, new(json.RawMessage)).Error()}
	}
	m := &incoming{data: data}
	var isObject bool
	if m.fields, isObject = membersOf(data, "type", "jsonrpc", "method", "id", "result", "error"); !isObject {
		return nil, &fault{code: codeInvalidRequest, message: "Invalid request: a message must be a JSON object"}
	}
	if id := m.fields.get("id"); id != nil && isID(id) {
		m.id = id
	}
	switch {
	case m.fields.has("type") && !m.fields.has("jsonrpc"):
		return m.typed(m.fields.get("type"))
	case m.fields.has("method"):
		m.kind = kindRequest
		return m.request(m.fields.get("method"))
	case m.fields.has("result") || m.fields.has("error"):
		m.kind = kindResponse
		return m, nil
	}
	return nil, m.invalid("it has neither type nor method, result or error", nil)
}

// members are those of a JSON object, in the order they have there. Making a map of
// them takes longer than all else that is done with most messages.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of a valid JSON value that have these names, of each name
// the last, as encoding/json does; false when that is no object. There may be a million
// others.
func membersOf(data []byte, names ...string) (members, bool) {
	all := make(members, 0, 4)
	err := eachMember(data, func(name, value []byte) {
		i := slices.IndexFunc(names, func(wanted string) bool { return wanted == string(name) })
		if i < 0 {
			return
		}
		for j := range all {
			if all[j].name == names[i] {
				all[j].value = value
				return
			}
		}
		all = append(all, member{names[i], value})
	})
	return all, err == nil
}

// eachMember visits the members of a valid JSON value; an error says that it is no object.
func eachMember(data []byte, visit func(name, value []byte)) error {
	return jsonwalk.Members(data, "", func(key, value []byte) bool {
		if bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
			name, _ := text(append(append([]byte{'"'}, key...), '"'))
			key = []byte(name)
		}
		visit(key, bytes.TrimRight(value, " \t\r\n"))
		return true
	})
}

// get returns the value of a member; nil when there is none.
func (m members) get(name string) json.RawMessage {
	for i := range m {
		if m[i].name == name {
			return m[i].value
		}
	}
	return nil
}

func (m members) has(name string) bool { return m.get(name) != nil }

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

// text reads a JSON string that is valid.
func text(data json.RawMessage) (string, bool) {
	if n := len(data); n >= 2 && data[0] == '"' && bytes.IndexByte(data, '\\') < 0 && utf8.Valid(data) {
		return string(data[1 : n-1]), true
	}
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

// answer reads a response. An invalid one is an answer as well, because its caller would
// wait in vain. The fault then reports to the client what is wrong.
func (m *incoming) answer() (id string, a *remote.Answer, f *fault) {
	id, _ = text(m.id)
	if m.isResult() {
		return id, &remote.Answer{Result: m.fields.get("result")}, nil
	}
	tree, err := clientSchemas.check(kindResponse, m.data)
	if err == nil && notNull(m.fields.get("result")) && notNull(m.fields.get("error")) {
		err = &violation{"result", "must not be there with an error"}
	}
	if err == nil && !m.fields.has("result") && !notNull(m.fields.get("error")) {
		err = &violation{"error", "must not be null without a result"}
	}
	if err != nil {
		data, _ := json.Marshal(fieldOf(err))
		f := &fault{code: codeInvalidParams, message: "Invalid params: " + clip(err.Error()), data: fieldOf(err)}
		return id, &remote.Answer{Error: &remote.Fault{Code: codeInvalidRequest, Message: "the agent's response is invalid: " + clip(err.Error()), Data: data}}, f
	}
	if !notNull(m.fields.get("error")) {
		return id, &remote.Answer{Result: m.fields.get("result")}, nil
	}
	object := tree["error"].(map[string]any)
	failed := &remote.Fault{Message: str(object, "message"), Code: int64(num(object, "code"))}
	raw, _ := membersOf(m.fields.get("error"), "data")
	failed.Data = raw.get("data")
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
