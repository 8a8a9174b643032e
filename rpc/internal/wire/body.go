package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// ErrBodies is the error of Body.Write when the bodies of all clients together are too large.
var ErrBodies = errors.New("too many large replies wait for their clients")

// Bodies makes the bodies of large replies for all streams of a server, and limits their total
// size.
type Bodies struct {
	dir   string
	limit int64
	used  atomic.Int64
}

// NewBodies returns a Bodies that stores bodies in files below dir, which is created when
// needed. Together they have at most limit bytes.
func NewBodies(dir string, limit int64) *Bodies { return &Bodies{dir: dir, limit: limit} }

// New returns an empty body. The caller closes it or passes it to Stream.ReplyBody.
func (b *Bodies) New() (*Body, error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(b.dir, ".reply-*")
	if err != nil {
		return nil, err
	}
	body := &Body{all: b, f: f}
	body.named = os.Remove(f.Name()) != nil // some systems cannot remove open files
	return body, nil
}

// A Body is the result of a large reply, which waits for its client in a file instead of in
// memory. If the system allows that, the file has no name, so that it disappears when the
// process ends. A Body is not safe for concurrent use.
type Body struct {
	all    *Bodies
	f      *os.File
	named  bool
	size   int64
	closed sync.Once
}

// Write appends JSON text, and replaces its line breaks by spaces.
func (b *Body) Write(p []byte) (int, error) {
	if n := b.all.used.Add(int64(len(p))); n > b.all.limit {
		b.all.used.Add(-int64(len(p)))
		return 0, ErrBodies
	}
	b.size += int64(len(p))
	text := p
	if bytes.ContainsAny(p, "\n\r") {
		text = joinLines(p)
	}
	return b.f.Write(text)
}

// Size returns the number of bytes written.
func (b *Body) Size() int64 { return b.size }

// Close frees the file. It can be called several times.
func (b *Body) Close() {
	b.closed.Do(func() {
		b.f.Close()
		if b.named {
			_ = os.Remove(b.f.Name())
		}
		b.all.used.Add(-b.size)
	})
}

// A payload is a message, or part of one: bytes and, in large replies, bodies.
type payload struct {
	data []byte
	rest []chunk
}

// A chunk is a body, or bytes.
type chunk struct {
	body *Body
	data []byte
}

func (t *payload) size() int {
	n := len(t.data)
	for _, c := range t.rest {
		n += len(c.data)
		if c.body != nil {
			n += int(c.body.size)
		}
	}
	return n
}

// add appends bytes.
func (t *payload) add(b ...byte) {
	if t.rest == nil {
		t.data = append(t.data, b...)
		return
	}
	last := &t.rest[len(t.rest)-1]
	if last.body != nil {
		t.rest = append(t.rest, chunk{data: b})
		return
	}
	last.data = append(last.data, b...)
}

// addPayload appends another payload.
func (t *payload) addPayload(u payload) {
	t.add(u.data...)
	t.rest = append(t.rest, u.rest...)
}

// discard frees the bodies.
func (t *payload) discard() {
	for _, c := range t.rest {
		if c.body != nil {
			c.body.Close()
		}
	}
}

// ReplyBody replies to a request with a body that contains its result, which must be JSON. The
// stream closes the body, even if ReplyBody fails because the request is not in flight.
func (s *Stream) ReplyBody(id jsonrpc2.ID, body *Body) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[id.Num]
	if p == nil || id.IsString {
		body.Close()
		return s.notOwedLocked(id)
	}
	t := payload{data: replyHead(p.id, `,"result":`, 0), rest: []chunk{{body: body}}}
	t.add('}')
	s.repliedLocked(id, p, t)
	return nil
}

// writeBody writes a body in pieces. The client must read each piece in time.
func (w *writer) writeBody(b *Body) error {
	defer b.Close()
	piece := make([]byte, readSize)
	for at := int64(0); at < b.size; {
		n, err := b.f.ReadAt(piece[:min(int64(len(piece)), b.size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return fmt.Errorf("cannot read back a large reply: %w", err)
		}
		if err := w.writeBytes(piece[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// writeBytes writes with one Write.
func (w *writer) writeBytes(b []byte) error {
	if d, ok := w.w.(deadliner); ok && w.s.opts.WriteTimeout > 0 {
		if err := d.SetWriteDeadline(time.Now().Add(w.s.opts.WriteTimeout)); err != nil {
			return err
		}
	}
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
