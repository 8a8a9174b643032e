// Package wire turns bytes into valid JSON-RPC 2.0 requests for a jsonrpc2.Conn, and its replies
// and notifications into bytes. Invalid requests never reach the connection: the stream answers
// them and reads on.
//
// Call NewStream, then Stream.Connect with the handler of the requests. Reply with Stream.Reply or
// Stream.ReplyBody, and notify with Stream.Notify. The Conn only reads: its own methods for sending
// always fail.
//
// # Goroutines and blocking
//
// Two goroutines serve a stream. The reader belongs to the connection: it reads and splits
// messages, and calls the handler for one request after the other. The writer belongs to the
// stream: it takes messages from a queue and writes each with one Write, or several small ones
// together. Closing either ends both.
//
//	bytes ─► framer ─► parser ─► admit ─► Conn ─► handler
//	                     │         │                │ Reply          any goroutine
//	                     └ invalid ┴ busy ──┐       ▼                      │ Notify
//	                                        └──► replies ──► queue ◄───────┘
//	                                             batches       └─► writer ─► bytes
//
// Replying never blocks: it puts the reply into the queue. So a handler can reply from the
// reader, and a client that does not read cannot prevent its own $/cancelRequest from arriving.
// Instead, these limits apply:
//
//   - Notify blocks its caller while Options.NotifyQueued bytes wait.
//   - A request that arrives while Options.MaxQueued bytes wait is refused with
//     -32005, after a short time in which the client can read.
//   - A request is also refused while Options.MaxInFlight others are in flight, or
//     while their messages have Options.MaxInFlightBytes.
//   - The stream's own error replies can accumulate up to 1 MiB. Then the reader
//     waits: such a client has left thousands of errors unread.
//
// Notifications from the client pass while requests are refused.
//
// Stream.Call sends a request to the client and waits for the response, which the reader passes
// on. The stream ignores responses to other ids.
//
// # Order
//
// Messages are written in the order in which they were queued. The replies to a batch are queued
// together, in the order of the requests, when the last one is ready. A caller that must send
// something only after a reply waits for the channel that Stream.Replied returns.
//
// # Ids
//
// The connection sees fresh numbers as ids, and each reply gets the client's bytes back. Two
// requests in flight with the same id are therefore both served, and each gets its reply. The
// stream refuses a reply to a request that is not in flight, such as a second reply: each
// request gets exactly one.
//
// # The end
//
// When the input ends, the connection learns of it after the replies in flight are queued,
// Options.OnEOF has returned and the queue is written. Then it closes itself and the stream.
// When the output breaks, Stream.Done is closed at once, and the input is closed, too.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// ErrClosed is the result of Stream.Err after Close.
var ErrClosed = errors.New("stream is closed")

// A Stream is one client's connection. Its methods are safe for concurrent use. It owns the
// requests in flight and the queue of output, which one lock guards, because a reply moves from
// one to the other, and both count against the limits for which requests and notifications wait.
// It also owns the goroutine that writes the queue. The reader owns the input.
type Stream struct {
	opts   Options
	reader reader
	calls  pendingCalls
	r      io.Reader
	w      io.Writer // only for closing; the writer writes

	done    chan struct{}      // closed when the stream is closed or broken
	ctx     context.Context    // ends when done is closed
	cancel  context.CancelFunc // ends ctx
	written chan struct{}      // closed when the writer has ended
	closing sync.Once

	mu      sync.Mutex // guards the fields below
	err     error      // why done is closed
	pending map[uint64]*inFlight
	batches map[*batch]bool // batches for which a Replied channel exists
	lastID  uint64
	holding int           // bytes of the messages of pending requests
	queue   []outgoing    // messages for the writer
	spares  [][]byte      // the memory of written messages, for further ones
	wake    *sync.Cond    // the writer waits here for the queue
	queued  int           // bytes in the queue and in the writer
	held    int           // bytes of replies in incomplete batches
	own     int           // bytes of the stream's own errors, part of queued
	stalled bool          // since the last write, a request has waited for room without success
	changed chan struct{} // closed when pending shrinks or the queue changes; nil if nobody waits
}

// A job is one envelope with the place for its reply.
type job struct {
	envelope
	batch *batch // nil for a single message
	slot  int    // in batch
}

// NewStream returns a stream for r and w. It reads nothing before Connect. The stream owns both:
// Close, which must be called if Connect is not, closes each of them if it is an io.Closer.
func NewStream(r io.Reader, w io.Writer, opts Options) *Stream {
	opts = opts.withDefaults()
	s := &Stream{
		opts:    opts,
		r:       r,
		w:       w,
		done:    make(chan struct{}),
		written: make(chan struct{}),
		pending: map[uint64]*inFlight{},
		batches: map[*batch]bool{},
		calls:   pendingCalls{byID: map[string]chan envelope{}},
	}
	s.reader.s, s.reader.in = s, newFramer(r, opts.MaxLine, opts.RefuseForeign)
	s.reader.parser.nullParams = func(method json.RawMessage) bool {
		return s.reader.in.framed.Load() || slices.Contains(opts.NullParams, string(unquote(method)))
	}
	s.wake = sync.NewCond(&s.mu)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go (&writer{s, w}).run()
	return s
}

// Connect starts the stream: h gets each valid request, one after the other, until the input
// ends. Call it once. The connection and the stream are closed when ctx ends, when Conn.Close is
// called, or after the input has ended. The params of a request are the client's bytes.
func (s *Stream) Connect(ctx context.Context, h jsonrpc2.Handler) *jsonrpc2.Conn {
	// Err returns what the logger would log.
	return jsonrpc2.NewConn(ctx, &s.reader, h, jsonrpc2.SetLogger(silent{}), jsonrpc2.OnRecv(s.reader.received))
}

// SetMaxLine changes the maximum size of a message, from the next one on; 0 means
// DefaultMaxLine.
func (s *Stream) SetMaxLine(n int) {
	if n == 0 {
		n = DefaultMaxLine
	}
	s.reader.in.limit.Store(int64(n))
}

// StopReading stops the stream from reading further messages. If it is reading a batch, it still
// hands out the batch's requests.
func (s *Stream) StopReading() { s.reader.stopped.Store(true) }

// Done returns a channel that is closed when the stream is closed or its output is broken. Err
// returns the reason.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err returns the reason why Done is closed: ErrClosed after Close, else the error that broke
// the stream, which means that the client is gone. It returns nil before.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Fail declares the stream broken, for callers that watch the client in another way. It drops
// queued output. err must not be nil; the first failure counts.
func (s *Stream) Fail(err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
		discardAll(s.queue)
		s.queue = nil
		s.releaseLocked()
		s.cancel()
		close(s.done)
		s.wake.Signal()
		s.changedLocked()
	}
	s.mu.Unlock()
	if first {
		closeIt(s.r)
	}
}

// Close waits until queued output is written, at most Options.CloseTimeout, and closes input and
// output. The connection calls it when it closes.
func (s *Stream) Close() error {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.CloseTimeout)
		defer cancel()
		s.Flush(ctx)
		s.Fail(ErrClosed)
		closeIt(s.w)
		select {
		case <-s.written:
		case <-ctx.Done(): // a write to a blocking descriptor cannot be interrupted
		}
	})
	return nil
}

func closeIt(v any) {
	if c, ok := v.(io.Closer); ok {
		c.Close()
	}
}

// wait blocks until ok, which is called with mu held, returns true. It returns an error if ctx
// or the stream ends first.
func (s *Stream) wait(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		if s.err != nil {
			defer s.mu.Unlock()
			return s.err
		}
		if ok() {
			s.mu.Unlock()
			return nil
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changedLocked wakes all waiting goroutines.
func (s *Stream) changedLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// silent is the connection's logger.
type silent struct{}

func (silent) Printf(string, ...any) {}
