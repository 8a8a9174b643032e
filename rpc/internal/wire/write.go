package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"waza/eval/jsonwalk"
)

// outgoing is a message in the queue.
type outgoing struct {
	payload      // including its framing
	own     bool // an error reply of the stream itself
}

// cost returns the size of the message for the limits: its bytes and about the overhead of
// storing it. Bodies count, too, although they are not in memory, so that a client that does not
// read cannot accumulate them.
func (o *outgoing) cost() int { return o.size() + 64 }

// deadliner is a writer with a deadline, such as a socket.
type deadliner interface{ SetWriteDeadline(time.Time) error }

// Notify sends a notification. It blocks while Options.NotifyQueued bytes of output wait, and
// fails when ctx or the stream ends; otherwise the notification is queued when it returns.
// params is encoded with jsonwalk.Encode, and must become an object or an array; nil omits it.
func (s *Stream) Notify(ctx context.Context, method string, params any) error {
	return s.send(ctx, method, params, "")
}

// send is Notify for a message that also has an id, unless that is empty.
func (s *Stream) send(ctx context.Context, method string, params any, id string) error {
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = jsonwalk.Encode(params); err != nil {
			return fmt.Errorf("params of %s: %w", method, err)
		}
	}
	message := encodeNotification(method, raw)
	if id != "" {
		message = append(message[:len(message)-1], `,"id":"`+id+`"}`...)
	}
	return s.wait(ctx, func() bool {
		if s.queued >= s.opts.NotifyQueued {
			return false
		}
		s.queueLocked(payload{data: message}, false)
		return true
	})
}

func encodeNotification(method string, params json.RawMessage) []byte {
	name, err := jsonwalk.Encode(method)
	if err != nil { // never happens: any string can be encoded
		name = json.RawMessage(`""`)
	}
	out := make([]byte, 0, len(name)+len(params)+44)
	out = append(out, `{"jsonrpc":"2.0","method":`...)
	out = append(out, name...)
	if params != nil {
		out = append(out, `,"params":`...)
		out = append(out, params...)
	}
	return append(out, '}')
}

// queueLocked frames a message and passes it to the writer.
func (s *Stream) queueLocked(t payload, own bool) {
	if s.err != nil {
		t.discard()
		return
	}
	if s.reader.in.framed.Load() {
		head := append([]byte("Content-Length: "), strconv.Itoa(t.size())...)
		t.data = slices.Concat(head, []byte("\r\n\r\n"), t.data)
	} else {
		t.add('\n')
	}
	m := outgoing{t, own}
	s.queue = append(s.queue, m)
	s.queued += m.cost()
	if own {
		s.own += m.cost()
	}
	s.wake.Signal()
	s.changedLocked()
}

// Flush waits until all output that is queued now is written to w.
func (s *Stream) Flush(ctx context.Context) error {
	return s.wait(ctx, func() bool { return s.queued == 0 })
}

// A writer writes the queue of a stream. Only its goroutine uses it.
type writer struct {
	s *Stream
	w io.Writer
}

// run writes until the stream ends.
func (w *writer) run() {
	s := w.s
	defer close(s.written)
	var spare []outgoing
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && s.err == nil {
			s.wake.Wait()
		}
		if s.err != nil {
			s.mu.Unlock()
			return
		}
		batch := s.queue
		s.queue = spare
		s.mu.Unlock()
		for i, m := range batch {
			if err := w.writeOne(m); err != nil {
				s.Fail(err)
				discardAll(batch[i:])
				return
			}
			batch[i] = outgoing{}
		}
		spare = nil
		if cap(batch) <= 1024 {
			spare = batch[:0]
		}
	}
}

func discardAll(list []outgoing) {
	for i := range list {
		list[i].discard()
	}
}

// writeOne writes one message, with one Write unless it has a body.
func (w *writer) writeOne(m outgoing) error {
	cost := m.cost() // computed first, because writing frees the bodies
	if err := w.writeBytes(m.data); err != nil {
		return err
	}
	for _, c := range m.rest {
		var err error
		if c.body != nil {
			err = w.writeBody(c.body)
		} else {
			err = w.writeBytes(c.data)
		}
		if err != nil {
			return err
		}
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.queued -= cost
	if m.own {
		w.s.own -= cost
	}
	w.s.stalled = false
	w.s.changedLocked()
	return nil
}
