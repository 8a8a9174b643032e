package wire

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"waza/eval/jsonwalk"
)

// outgoing is a message in the queue, or several small ones.
type outgoing struct {
	payload      // including its framing
	own     bool // error replies of the stream itself
}

// cost returns the size of the messages for the limits: their bytes and about the overhead of
// storing them. Bodies count, too, although they are not in memory, so that a client that does not
// read cannot accumulate them.
func (o *outgoing) cost() int { return o.size() + 64 }

// deadliner is a writer with a deadline, such as a socket.
type deadliner interface{ SetWriteDeadline(time.Time) error }

// Appender is implemented by params that append themselves as JSON, which takes less time than
// encoding them with encoding/json.
type Appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// Notify sends a notification. It blocks while Options.NotifyQueued bytes of output wait, and
// fails when ctx or the stream ends; otherwise the notification is queued when it returns.
// params is encoded with its AppendJSON or jsonwalk.Encode, and must become an object or an array;
// nil omits it. Notify does not use params after it has returned.
func (s *Stream) Notify(ctx context.Context, method string, params any) error {
	return s.send(ctx, method, params, "")
}

// messages holds buffers for messages that wait for the lock of their stream.
var messages = sync.Pool{New: func() any { return new([]byte) }}

// send is Notify for a message that also has an id, unless that is empty.
func (s *Stream) send(ctx context.Context, method string, params any, id string) error {
	buf := messages.Get().(*[]byte)
	defer messages.Put(buf)
	message, err := appendNotification((*buf)[:0], method, params, id)
	if err != nil {
		return fmt.Errorf("params of %s: %w", method, err)
	}
	if len(message) <= chunkSize { // otherwise the queue keeps it
		*buf = message
	}
	s.mu.Lock()
	if s.err == nil && s.queued < s.opts.NotifyQueued {
		s.queueLocked(payload{data: message}, false)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.sendLater(ctx, message)
}

// sendLater waits until a message can be queued.
func (s *Stream) sendLater(ctx context.Context, message []byte) error {
	return s.wait(ctx, func() bool {
		if s.queued >= s.opts.NotifyQueued {
			return false
		}
		s.queueLocked(payload{data: message}, false)
		return true
	})
}

func appendNotification(b []byte, method string, params any, id string) (_ []byte, err error) {
	b = jsonwalk.AppendString(append(b, `{"jsonrpc":"2.0","method":`...), method)
	if params != nil {
		b = append(b, `,"params":`...)
		if p, ok := params.(Appender); ok {
			b, err = p.AppendJSON(b)
		} else {
			b, err = jsonwalk.Append(b, params)
		}
	}
	if id != "" {
		b = append(append(append(b, `,"id":"`...), id...), '"')
	}
	return append(b, '}'), err
}

// chunkSize is the number of bytes up to which small messages that wait for the writer are put
// together, so that one Write sends all of them. A larger message is a chunk of its own.
const chunkSize = 32 << 10

// queueLocked frames a message and passes it to the writer. It copies messages up to chunkSize.
func (s *Stream) queueLocked(t payload, own bool) {
	if s.err != nil {
		t.discard()
		return
	}
	var head []byte
	if s.reader.in.framed.Load() {
		head = fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", t.size())
	} else {
		t.add('\n')
	}
	cost := s.addLocked(head, t, own)
	s.queued += cost
	if own {
		s.own += cost
	}
	s.wake.Signal()
	s.changedLocked()
}

// addLocked adds a message to the queue, and returns the cost of it.
func (s *Stream) addLocked(head []byte, t payload, own bool) (cost int) {
	size := len(head) + len(t.data)
	if t.rest != nil || size > chunkSize {
		if head != nil {
			t.data = slices.Concat(head, t.data)
		}
		s.queue = append(s.queue, outgoing{t, own})
		return s.queue[len(s.queue)-1].cost()
	}
	if n := len(s.queue); n > 0 {
		last := &s.queue[n-1]
		if last.own == own && last.rest == nil && len(last.data)+size <= chunkSize {
			last.data = append(append(last.data, head...), t.data...)
			return size
		}
	}
	var chunk []byte
	if n := len(s.spares); n > 0 {
		chunk, s.spares = s.spares[n-1][:0], s.spares[:n-1]
	}
	chunk = append(append(chunk, head...), t.data...)
	s.queue = append(s.queue, outgoing{payload{data: chunk}, own})
	return s.queue[len(s.queue)-1].cost()
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

// writeOne writes one element of the queue, with one Write unless it has a body.
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
	if m.rest == nil && len(m.data) <= chunkSize && len(w.s.spares) < 2 { // one is written while one is filled
		w.s.spares = append(w.s.spares, m.data)
	}
	w.s.stalled = false
	w.s.changedLocked()
	return nil
}
