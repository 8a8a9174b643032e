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

// WriteObject always fails, because only the stream's own methods send messages.
func (r *reader) WriteObject(any) error { return errors.New("use the methods of Stream to send") }

// Reply queues the reply to a request, or adds it to its batch: an error if fault is not nil, or
// else the result, where nil means null. It never blocks. It fails if the request is not in flight
// or the stream has ended. It also fails if the result is not JSON; the client then gets an
// internal error.
func (s *Stream) Reply(id jsonrpc2.ID, result json.RawMessage, fault *Error) error {
	s.mu.Lock()
	p := s.pending[id.Num]
	if p == nil || id.IsString {
		defer s.mu.Unlock()
		return s.notOwedLocked(id)
	}
	s.mu.Unlock()
	var wrong error
	if fault == nil {
		var ok bool
		if result, ok = cleanResult(result); !ok {
			wrong = fmt.Errorf("result of request %s is not JSON", id)
			fault = &Error{Code: CodeInternalError, Message: "Internal error"}
		}
	}
	reply := encodeReply(p.id, result, fault)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[id.Num] != p { // answered meanwhile
		return s.notOwedLocked(id)
	}
	s.repliedLocked(id, p, payload{data: reply})
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

// encodeReply returns a reply without the end of its line. A nil id or result becomes null. The
// result must be clean.
func encodeReply(id, result json.RawMessage, fault *Error) []byte {
	name, value := `,"result":`, result
	switch {
	case fault != nil:
		name, value = `,"error":`, fault.encode()
	case result == nil:
		value = json.RawMessage("null")
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

// cleanResult makes sure that a result is JSON and UTF-8 and fits on one line. It returns most
// results unchanged, including nil.
func cleanResult(b json.RawMessage) (json.RawMessage, bool) {
	if b == nil {
		return nil, true
	}
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
	return b, true
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
