package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/sourcegraph/jsonrpc2"
)

// inFlight is a request that the handler has and that has no reply yet.
type inFlight struct {
	job
	replied chan struct{} // closed when the reply is queued; nil if nobody waits
}

// A batch collects the replies of its members. The stream's mu guards it once its members are
// handed out.
type batch struct {
	replies []payload // by member; empty until it has one
	owed    int       // number of missing replies
	size    int       // bytes of replies
	waiting []chan struct{}
}

func newBatch(list []envelope) *batch {
	b := &batch{replies: make([]payload, len(list))}
	for i := range list {
		if list[i].owed() {
			b.owed++
		}
	}
	return b
}

// array returns the replies as one message.
func (b *batch) array() payload {
	out := payload{data: make([]byte, 0, min(b.size, maxOwnQueued)+len(b.replies)+3)}
	for _, r := range b.replies {
		if r.data == nil {
			continue
		}
		if len(out.data) == 0 {
			out.add('[')
		} else {
			out.add(',')
		}
		out.addPayload(r)
	}
	out.add(']')
	return out
}

// discard frees the bodies of a batch that is never answered.
func (b *batch) discard() {
	for i := range b.replies {
		b.replies[i].discard()
	}
}

// closedChan is the result of Replied if there is nothing to wait for.
var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Replied returns a channel that is closed when the reply to the request id is queued, so that
// later output follows it. For a member of a batch, that is when the replies to the whole batch
// are queued. The channel is also closed when the stream ends. Call Replied before the reply:
// for an id that is not in flight, and for notifications, the channel is already closed.
func (s *Stream) Replied(id jsonrpc2.ID) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[id.Num]
	if p == nil || s.err != nil {
		return closedChan
	}
	if p.replied == nil {
		p.replied = make(chan struct{})
	}
	return p.replied
}

// Lookup returns the handler's ids of the client's requests in flight with this id, oldest
// first. There are several if the client reused the id, and none if the request was answered or
// never sent. Strings are compared unescaped, numbers as written.
func (s *Stream) Lookup(clientID json.RawMessage) []jsonrpc2.ID {
	if len(clientID) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []jsonrpc2.ID
	for id, p := range s.pending {
		if clientID[0] == p.id[0] && bytes.Equal(unquote(clientID), unquote(p.id)) {
			found = append(found, jsonrpc2.ID{Num: id})
		}
	}
	slices.SortFunc(found, func(a, b jsonrpc2.ID) int { return cmp.Compare(a.Num, b.Num) })
	return found
}

// A message is the connection's argument of recordMessage, before it calls WriteObject.
type message struct {
	req  *jsonrpc2.Request
	resp *jsonrpc2.Response
}

// recordMessage records the next message for WriteObject, which gets it as an unexported type of
// the library that can only be encoded.
func (r *reader) recordMessage(req *jsonrpc2.Request, resp *jsonrpc2.Response) {
	r.sending = message{req, resp}
}

// WriteObject queues the message that recordMessage recorded. It does not block.
func (r *reader) WriteObject(any) error {
	m := r.sending
	r.sending = message{}
	switch {
	case m.resp != nil:
		return r.s.Reply(m.resp)
	case m.req != nil && m.req.Notif:
		return r.s.notify(m.req)
	}
	return errors.New("use Stream.Call to send requests to the client")
}

// Reply queues a response, or adds it to its batch. It works like Conn.SendResponse without the
// connection: it never blocks. It fails if the request is not in flight or the stream has ended.
// It also fails if the result is not JSON; the client then gets an internal error.
func (s *Stream) Reply(resp *jsonrpc2.Response) error {
	s.mu.Lock()
	p := s.pending[resp.ID.Num]
	if p == nil || resp.ID.IsString {
		defer s.mu.Unlock()
		return s.notOwedLocked(resp.ID)
	}
	s.mu.Unlock()
	result, fault := resp.Result, resp.Error
	var wrong error
	if fault == nil {
		var ok bool
		if result, ok = cleanResult(result); !ok {
			wrong = fmt.Errorf("result of request %s is not JSON", resp.ID)
			fault = &jsonrpc2.Error{Code: CodeInternalError, Message: "Internal error"}
		}
	}
	reply := encodeReply(p.id, result, fault)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[resp.ID.Num] != p { // answered meanwhile
		return s.notOwedLocked(resp.ID)
	}
	s.repliedLocked(resp.ID, p, payload{data: reply})
	return wrong
}

// repliedLocked removes a request in flight and queues its reply.
func (s *Stream) repliedLocked(id jsonrpc2.ID, p *inFlight, reply payload) {
	delete(s.pending, id.Num)
	s.holding -= p.size
	if p.batch == nil {
		s.queueLocked(reply, false)
		if p.replied != nil {
			close(p.replied)
		}
	} else {
		if p.replied != nil {
			p.batch.waiting = append(p.batch.waiting, p.replied)
			s.batches[p.batch] = true
		}
		s.answerLocked(p.job, reply, false)
	}
	s.changedLocked()
}

// notOwedLocked returns the error for a refused reply.
func (s *Stream) notOwedLocked(id jsonrpc2.ID) error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("reply to request %s, which is not in flight", id)
}

// answerLocked queues the reply to a job, or the replies of its batch if this was the last one.
func (s *Stream) answerLocked(j job, reply payload, own bool) {
	b := j.batch
	if b == nil {
		s.queueLocked(reply, own)
		return
	}
	b.replies[j.slot] = reply
	b.size += reply.size()
	b.owed--
	s.held += reply.size()
	if b.owed > 0 {
		return
	}
	s.held -= b.size
	s.queueLocked(b.array(), own)
	closeAll(b.waiting)
	delete(s.batches, b)
}

// releaseLocked releases all goroutines that wait for replies that will never come.
func (s *Stream) releaseLocked() {
	for id, p := range s.pending {
		delete(s.pending, id)
		if p.batch != nil {
			p.batch.discard()
		}
		if p.replied != nil {
			close(p.replied)
		}
	}
	for b := range s.batches {
		delete(s.batches, b)
		closeAll(b.waiting)
		b.waiting = nil // a refusal of its last member may still complete it
	}
}

func closeAll(chans []chan struct{}) {
	for _, c := range chans {
		close(c)
	}
}

// encodeReply returns a reply without the end of its line. A nil id becomes null. The result
// must be clean.
func encodeReply(id json.RawMessage, result *json.RawMessage, fault *jsonrpc2.Error) []byte {
	name, value := `,"result":`, []byte("null")
	switch {
	case fault != nil:
		name, value = `,"error":`, encodeError(fault)
	case result != nil:
		value = *result
	}
	out := append(replyHead(id, name, len(value)), value...)
	return append(out, '}')
}

// replyHead returns the start of a reply up to the value of the member name, with capacity for
// room more bytes.
func replyHead(id json.RawMessage, name string, room int) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := make([]byte, 0, len(id)+room+40)
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	return append(out, name...)
}

// encodeError returns the error object. It wraps data that is not an object in one.
func encodeError(fault *jsonrpc2.Error) []byte {
	e := struct {
		Code    int64            `json:"code"`
		Message string           `json:"message"`
		Data    *json.RawMessage `json:"data,omitempty"`
	}{fault.Code, fault.Message, nil}
	if data, ok := cleanResult(fault.Data); ok && data != nil && string(*data) != "null" {
		if (*data)[0] != '{' {
			wrapped := json.RawMessage(`{"value":` + string(*data) + `}`)
			data = &wrapped
		}
		e.Data = data
	}
	raw, err := Encode(e)
	if err != nil { // never happens: a number, a string and clean JSON
		return []byte(`{"code":-32603,"message":"Internal error"}`)
	}
	return raw
}

// cleanResult makes sure that raw is JSON and UTF-8 and fits on one line. It returns most
// results unchanged, including nil.
func cleanResult(raw *json.RawMessage) (*json.RawMessage, bool) {
	if raw == nil {
		return nil, true
	}
	b := []byte(*raw)
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	s := scanner{data: b}
	begin := s.space(0)
	end, _, ok := s.value(begin)
	if !ok || s.space(end) < len(b) {
		return nil, false
	}
	b = b[begin:end]
	if bytes.ContainsAny(b, "\n\r") { // only white space: neither is valid in strings
		b = joinLines(b)
	}
	clean := json.RawMessage(b)
	return &clean, true
}

// joinLines replaces the line breaks of JSON text by spaces.
func joinLines(b []byte) []byte {
	b = bytes.Clone(b)
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}
