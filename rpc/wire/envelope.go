package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// kind says what a message, or a member of a batch, is.
type kind int

const (
	invalid      kind = iota // answered by the stream, with err
	request                  // owed exactly one reply
	notification             // never answered
	response                 // of the client's, to what it was asked, see Stream.Call
)

// An envelope is one message taken apart. Its slices are parts of the message
// as it was read.
type envelope struct {
	kind   kind
	id     json.RawMessage // as the client wrote it; nil when absent or not usable
	method json.RawMessage // a JSON string
	params json.RawMessage // an object or array; nil when absent
	result json.RawMessage // of a response; nil when it has none
	fault  json.RawMessage // of a response: its error; nil when it has none
	size   int             // bytes of the message
	err    *Error          // why the envelope is invalid
}

// owed says whether the client must get a reply.
func (e *envelope) owed() bool { return e.kind == request || e.kind == invalid }

// detach copies what the envelope refers to, so that a small member does not
// keep a large message in memory.
func (e *envelope) detach() {
	e.id, e.method, e.params = bytes.Clone(e.id), bytes.Clone(e.method), bytes.Clone(e.params)
	e.result, e.fault = bytes.Clone(e.result), bytes.Clone(e.fault)
}

// maxUnknown is how many members an envelope may have beside those of the
// specification. They are ignored, but their names are compared.
const maxUnknown = 32

// A parser takes messages apart. Its memory is used again by the next message,
// except what the envelopes refer to.
type parser struct {
	scanner
	seen members
	list []envelope
	// nullParams reports whether params of null mean absent ones for a method, which
	// is a JSON string. Nil means never.
	nullParams func(method json.RawMessage) bool
}

// members are the parts of one envelope as they were found.
type members struct {
	jsonrpc, method, params, id, result, err json.RawMessage

	idTwice bool   // then there is no telling which id to answer
	fault   string // the first thing found wrong, "" so far if nothing is
	unknown [][]byte
}

// parse takes a message apart: the envelopes of a batch or the one it is. The
// list is good until the next call. The error, if any, is the one reply that
// the whole message gets.
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

// forget lets go of the last message.
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

// firstRune gives the first character of b, which is not empty.
func firstRune(b []byte) string {
	_, n := utf8.DecodeRune(b)
	return string(b[:n])
}

// batch reads the array that begins at i, keeps its first maxBatch members and
// counts all of them.
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

// element reads one value and, if asked, keeps its envelope.
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

// object reads the object that begins at i into p.seen.
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

// add notes one member. Names count by what they say, however escaped, and in
// their exact letter case.
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
		m.blame(fmt.Sprintf("member %q is there twice", name))
	default:
		*slot = value
	}
}

// slot gives the place of the member with this name, or nil.
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
		m.blame("a member is there twice")
	}
	m.unknown = append(m.unknown, name)
}

func (m *members) blame(fault string) {
	if m.fault == "" {
		m.fault = fault
	}
}

// envelope says what the members make.
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

// check blames what the specification forbids.
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

// unquote gives what a JSON string says; other values come back as they are.
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
