// Package wire turns bytes into valid JSON-RPC 2.0 requests for a
// jsonrpc2.Conn, and its replies and notifications into bytes. What is not a
// valid request never reaches the connection: the stream answers it and reads on.
//
// Call NewStream, then Stream.Connect with the handler of the requests. Reply
// with the Conn (Reply, ReplyWithError, SendResponse), notify with Stream.Notify.
//
// # Who does what, and what blocks
//
// Two goroutines serve a stream. The reader is the connection's own: it reads,
// takes apart, and calls the handler for one request after the other. The
// writer is the stream's: it takes messages from a queue and writes each with
// one Write. Closing either ends both.
//
//	bytes ─► framer ─► parser ─► admit ─► Conn ─► handler
//	                     │         │                │ Conn.Reply     any goroutine
//	                     └ invalid ┴ busy ──┐       ▼                      │ Notify
//	                                        └──► replies ──► queue ◄───────┘
//	                                             batches       └─► writer ─► bytes
//
// Replying never blocks: it puts the reply into the queue. So a handler may
// reply from the reader, and a client that does not read cannot keep its own
// $/cancelRequest from arriving. Instead, these bounds hold:
//
//   - Notify blocks its caller while Options.NotifyQueued bytes wait.
//     Conn.Notify, which may not block, fails with ErrFull instead.
//   - A request that comes while Options.MaxQueued bytes wait is refused with
//     -32005, after a short time in which the client could read some.
//   - So is one that comes while Options.MaxInFlight others are in flight, or
//     while they hold Options.MaxInFlightBytes of messages.
//   - The stream's own error replies may pile up to 1 MiB. Then the reader
//     waits: such a client has left thousands of errors unread.
//
// Notifications from the client pass while requests are refused.
//
// The client may be asked something, too: Stream.Call sends a request and waits
// for the response, which the reader hands over. What answers no such request
// is ignored.
//
// # Order
//
// Messages are written in the order in which they were queued. The replies to
// a batch are queued together, when the last of them is given, in the order of
// the requests. Whoever must say something after a reply, and not before, takes
// the channel that Stream.Replied gives for it and waits for that.
//
// # Ids
//
// The connection sees fresh numbers as ids, and each reply gets the client's
// bytes back. Two requests in flight with the same id are therefore both
// served, and each gets its reply. A reply to a request that is not in flight,
// a second one, say, is refused: the client gets exactly the replies it is owed.
//
// # The end
//
// Where the input ends, the connection learns of it after the replies in flight
// are queued, Options.OnEOF has returned and the queue is written; then it
// closes itself and the stream. Where the output breaks, Stream.Done is closed
// at once, and the input is closed, too.
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

// ErrClosed is what Stream.Err gives after Close.
var ErrClosed = errors.New("stream is closed")

// A Stream is one client's connection. All its methods may be called from any
// goroutine.
//
// It has more than twenty methods: sixteen are what users need, and the others work on
// the requests in flight and the queue of output, which one lock guards because a reply
// moves from one to the other. What the reader and the writer do alone is theirs.
type Stream struct {
	opts      Options
	reader    reader
	questions questions
	r         io.Reader
	w         io.Writer // only to be closed; the writer writes

	done    chan struct{}      // closed when the stream is closed or broken
	ctx     context.Context    // ends when done is closed
	cancel  context.CancelFunc // ends ctx
	written chan struct{}      // closed when the writer has ended
	closing sync.Once

	mu      sync.Mutex // guards all below
	err     error      // why done is closed
	pending map[uint64]*inFlight
	batches map[*batch]bool // those that somebody waits for, see Replied
	lastID  uint64
	holding int           // bytes of messages that pending requests hold
	queue   []outgoing    // waits for the writer
	wake    *sync.Cond    // the writer waits here for the queue
	queued  int           // bytes in queue and with the writer
	held    int           // bytes in replies of batches that are not complete
	own     int           // bytes of queued that are the stream's own errors
	stalled bool          // a request has waited in vain for room since the last write
	changed chan struct{} // closed when pending shrinks or the queue changes; nil when nobody waits
}

// A job is one envelope with the place its reply goes to.
type job struct {
	envelope
	batch *batch // nil when alone
	slot  int    // in batch
}

// NewStream makes a stream of r and w; nothing is read before Connect. The
// stream owns both: Close, which must be called if Connect is not, closes each
// that is an io.Closer.
func NewStream(r io.Reader, w io.Writer, opts Options) *Stream {
	opts = opts.withDefaults()
	s := &Stream{
		opts:      opts,
		r:         r,
		w:         w,
		done:      make(chan struct{}),
		written:   make(chan struct{}),
		pending:   map[uint64]*inFlight{},
		batches:   map[*batch]bool{},
		questions: questions{asked: map[string]chan envelope{}},
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

// Connect starts the stream: h gets each valid request, one after the other,
// until the input ends. Call it once. The connection is closed, and the stream
// with it, when ctx ends, when Conn.Close is called, or after the input has
// ended; Conn.Call does not work, Stream.Call does.
//
// The params of a request are the client's bytes.
func (s *Stream) Connect(ctx context.Context, h jsonrpc2.Handler, opts ...jsonrpc2.ConnOpt) *jsonrpc2.Conn {
	own := []jsonrpc2.ConnOpt{
		jsonrpc2.SetLogger(silent{}), // Err tells what it would log
		jsonrpc2.OnRecv(s.reader.received),
		jsonrpc2.OnSend(s.reader.sends),
	}
	return jsonrpc2.NewConn(ctx, &s.reader, h, append(own, opts...)...)
}

// SetMaxLine changes how long a message may be, from the next one that comes; 0
// means DefaultMaxLine.
func (s *Stream) SetMaxLine(n int) {
	if n == 0 {
		n = DefaultMaxLine
	}
	s.reader.in.limit.Store(int64(n))
}

// StopReading lets the stream read no further message. The requests of the message
// that it reads now, a batch, are still handed out.
func (s *Stream) StopReading() { s.reader.stopped.Store(true) }

// Done is closed when the stream is closed or its output is broken; Err tells
// which.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err tells why Done is closed: ErrClosed after Close, else what broke the
// stream: the client is gone. It is nil before.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Fail declares the stream broken, for somebody who watches the client by
// other means. What is queued is dropped. err must not be nil; the first
// failure counts.
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

// Close waits for queued output to get out, at most Options.CloseTimeout, and
// closes input and output. The connection calls it when it closes.
func (s *Stream) Close() error {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.CloseTimeout)
		defer cancel()
		s.Flush(ctx)
		s.Fail(ErrClosed)
		closeIt(s.w)
		select {
		case <-s.written:
		case <-ctx.Done(): // a write to a blocking descriptor cannot be ended
		}
	})
	return nil
}

func closeIt(v any) {
	if c, ok := v.(io.Closer); ok {
		c.Close()
	}
}

// wait blocks until ok, which is called with mu held, says true. It gives an
// error when ctx ends or the stream does.
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

// changedLocked wakes all that wait.
func (s *Stream) changedLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// silent is the connection's logger.
type silent struct{}

func (silent) Printf(string, ...any) {}
