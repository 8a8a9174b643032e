package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// A kind is the kind of a message, or of a member of a batch.
type kind int

const (
	invalid      kind = iota // the stream replies with err
	request                  // gets exactly one reply
	notification             // gets no reply
	response                 // the client's response to a request of Stream.Call
)

// An envelope is a message split into its members. Its slices are parts of the message as it was
// read.
type envelope struct {
	kind   kind
	id     json.RawMessage // as the client wrote it; nil if absent or invalid
	method json.RawMessage // a JSON string
	params json.RawMessage // an object or array; nil if absent
	result json.RawMessage // of a response; nil if absent
	fault  json.RawMessage // error of a response; nil if absent
	size   int             // bytes of the message
	err    *Error          // why the envelope is invalid
}

// owed reports whether the client must get a reply.
func (e *envelope) owed() bool { return e.kind == request || e.kind == invalid }

// detach copies the slices of the envelope, so that a small member does not keep a large message
// in memory.
func (e *envelope) detach() {
	e.id, e.method, e.params = bytes.Clone(e.id), bytes.Clone(e.method), bytes.Clone(e.params)
	e.result, e.fault = bytes.Clone(e.result), bytes.Clone(e.fault)
}

// maxUnknown limits the members of an envelope that the specification does not define. They are
// ignored, but their names are compared.
const maxUnknown = 32

// A parser splits messages. The next message reuses its memory, except for the slices of the
// envelopes.
type parser struct {
	scanner
	seen members
	list []envelope
	// nullParams reports whether a method, which is a JSON string, treats params of null as
	// absent. Nil means that no method does.
	nullParams func(method json.RawMessage) bool
}

// members are the members of one envelope as found.
type members struct {
	jsonrpc, method, params, id, result, err json.RawMessage

	idTwice bool   // so it is unclear which id the reply needs
	fault   string // first error found, or ""
	unknown [][]byte
}

// parse splits a message into the envelopes of a batch, or its only envelope. The list is valid
// until the next call. If fault is not nil, it is the only reply to the whole message.
func (p *parser) parse(data []byte, maxBatch int) (list []envelope, batch bool, fault *Error) {
	if !utf8.Valid(data) {
		return nil, false, parseError("message is not valid UTF-8")
	}
	p.data = data
	p.list = p.list[:0]
	if cap(p.open) > 64<<10 {
		p.open = nil
	}
	i := p.space(0)
	batch = p.at(i) == '['
	var end int
	var ok bool
	count := 1
	if batch {
		count, end, ok = p.batch(i, maxBatch)
	} else {
		end, ok = p.element(i, true)
	}
	if end = p.space(end); !ok || end < len(data) {
		return nil, false, notJSON(data, end)
	}
	switch {
	case count == 0:
		return nil, false, invalidRequest("batch is empty")
	case count > maxBatch:
		return nil, false, busy("members of a batch", maxBatch)
	}
	return p.list, batch, nil
}

// forget drops the references to the last message.
func (p *parser) forget() {
	p.data = nil
	p.seen = members{}
	clear(p.list)
}

func notJSON(data []byte, at int) *Error {
	if at >= len(data) {
		return parseError("message ends too early")
	}
	return parseError(fmt.Sprintf("unexpected %q at byte %d", firstRune(data[at:]), at+1))
}

// firstRune returns the first character of b, which must not be empty.
func firstRune(b []byte) string {
	_, n := utf8.DecodeRune(b)
	return string(b[:n])
}

// batch reads the array that starts at i, keeps its first maxBatch members and counts all of
// them.
func (p *parser) batch(i, maxBatch int) (count, end int, ok bool) {
	i = p.space(i + 1)
	if p.at(i) == ']' {
		return 0, i + 1, true
	}
	for {
		if i, ok = p.element(i, count < maxBatch); !ok {
			return count, i, false
		}
		count++
		i = p.space(i)
		switch p.at(i) {
		case ']':
			return count, i + 1, true
		case ',':
			i = p.space(i + 1)
		default:
			return count, i, false
		}
	}
}

// element reads one value and keeps its envelope if keep is set.
func (p *parser) element(i int, keep bool) (end int, ok bool) {
	if p.at(i) != '{' || !keep {
		end, _, ok = p.value(i)
		if keep {
			p.list = append(p.list, envelope{err: invalidRequest("message is not an object"), size: end - i})
		}
		return end, ok
	}
	p.seen = members{unknown: p.seen.unknown[:0]}
	end, ok = p.object(i)
	if string(p.seen.params) == "null" && p.nullParams != nil && p.nullParams(p.seen.method) {
		p.seen.params = nil
	}
	e := p.seen.envelope()
	e.size = end - i
	p.list = append(p.list, e)
	return end, ok
}

// object reads the object that starts at i into p.seen.
func (p *parser) object(i int) (end int, ok bool) {
	i = p.space(i + 1)
	if p.at(i) == '}' {
		return i + 1, true
	}
	for {
		name := i
		if i, ok = p.str(i); !ok {
			return i, false
		}
		nameEnd := i
		if i, ok = p.key(name); !ok {
			return i, false
		}
		begin, depth := i, 0
		if i, depth, ok = p.value(i); !ok {
			return i, false
		}
		p.seen.add(p.data[name:nameEnd], p.data[begin:i], depth)
		i = p.space(i)
		switch p.at(i) {
		case '}':
			return i + 1, true
		case ',':
			i = p.space(i + 1)
		default:
			return i, false
		}
	}
}

// add stores one member. Names are compared after unescaping, and are case-sensitive.
func (m *members) add(rawName, value []byte, depth int) {
	if depth >= MaxDepth {
		m.blame(fmt.Sprintf("message nests deeper than %d", MaxDepth))
	}
	name := unquote(rawName)
	slot := m.slot(name)
	switch {
	case slot == nil:
		m.addUnknown(name)
	case *slot != nil:
		m.idTwice = m.idTwice || slot == &m.id
		m.blame(fmt.Sprintf("member %q occurs twice", name))
	default:
		*slot = value
	}
}

// slot returns the field for the member with this name, or nil.
func (m *members) slot(name []byte) *json.RawMessage {
	switch string(name) {
	case "jsonrpc":
		return &m.jsonrpc
	case "method":
		return &m.method
	case "params":
		return &m.params
	case "id":
		return &m.id
	case "result":
		return &m.result
	case "error":
		return &m.err
	}
	return nil
}

func (m *members) addUnknown(name []byte) {
	if len(m.unknown) >= maxUnknown {
		m.blame("message has too many members")
		return
	}
	if slices.ContainsFunc(m.unknown, func(n []byte) bool { return bytes.Equal(n, name) }) {
		m.blame("a member occurs twice")
	}
	m.unknown = append(m.unknown, name)
}

func (m *members) blame(fault string) {
	if m.fault == "" {
		m.fault = fault
	}
}

// envelope returns the envelope that the members make.
func (m *members) envelope() envelope {
	if m.method == nil && (m.result != nil || m.err != nil) {
		return envelope{kind: response, id: m.id, result: m.result, fault: m.err}
	}
	m.check()
	e := envelope{method: m.method, params: m.params}
	if m.id != nil && !m.idTwice && usableID(m.id) {
		e.id = m.id
	}
	switch {
	case m.fault != "":
		e.kind, e.err = invalid, invalidRequest(m.fault)
	case m.id == nil:
		e.kind = notification
	default:
		e.kind = request
	}
	return e
}

// check records the first violation of the specification.
func (m *members) check() {
	switch {
	case m.jsonrpc == nil:
		m.blame(`member "jsonrpc" is missing`)
	case string(unquote(m.jsonrpc)) != "2.0" || m.jsonrpc[0] != '"':
		m.blame(`member "jsonrpc" must be "2.0"`)
	case m.method == nil:
		m.blame(`member "method" is missing`)
	case m.method[0] != '"':
		m.blame(`member "method" must be a string`)
	case m.params != nil && m.params[0] != '{' && m.params[0] != '[':
		m.blame(`member "params" must be an object or an array`)
	case m.id != nil && !usableID(m.id):
		m.blame(`member "id" must be a string, a number or null`)
	}
}

func usableID(id []byte) bool {
	return id[0] == '"' || id[0] == '-' || id[0] == 'n' || digit(id[0])
}

// unquote returns the decoded text of a JSON string, and other values unchanged.
func unquote(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return raw
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return raw
	}
	return []byte(s)
}
