package door

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"waza/eval/text"
)

// errSlow is the error of Send for a client that does not read.
var errSlow = errors.New("the client does not read its messages")

// hastyTime is the time limit for the last bytes to a client that the server does not wait for.
const hastyTime = time.Second

// maxReason is the number of bytes of a reason that fit into a close frame.
const maxReason = 123

// outbox sends the output of a connection, and ends the connection. It owns the queue, the
// WebSocket's writing side and one goroutine, which writes only while output is queued;
// [outbox.wait] waits for it.
//
//	send, ping, pong ──► queue ──► write ──► TCP
//	end(code) ─────────► ending ──► write, after the queue ──► close frame ──► over
//	end(0) ────────────► over: TCP closed, reader and writer fail
type outbox struct {
	config  *Config
	metrics *metrics
	conn    net.Conn           // below the WebSocket, with TLS
	guest   *guest             // the TCP connection
	cancel  context.CancelFunc // of the connection's context
	done    chan struct{}      // closed when the connection is over
	ws      *websocket.Conn
	sent    atomic.Int64 // messages

	mu      sync.Mutex // guards the fields below
	queue   [][]byte
	queued  int64         // bytes in the queue and in the message that is being written
	room    chan struct{} // closed when bytes have left the queue; nil when no caller waits
	pongs   []byte        // payload of the next pong; nil means none
	pings   bool          // a ping is due
	pace    time.Duration // minimum time between two writes; 0 means none
	wrote   time.Time     // when the last write started
	writing bool          // the writer is running
	written chan struct{} // closed when the last started writer has ended
	ending  *ending       // how the connection ends; nil while it is open
	dropped bool          // the TCP connection is closed
}

// ending is how a connection ends.
type ending struct {
	code    int // 0 means without a close frame
	reason  string
	discard bool // discard the queue
	hasty   bool // do not wait for the client's close frame
}

// open gives the outbox its WebSocket, and sends output queued before.
func (o *outbox) open(ws *websocket.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ws, o.writing = ws, false
	if o.ending != nil {
		o.startLocked()
	}
}

// send queues a message. When the queue is full, it waits for room or ends the connection.
func (o *outbox) send(msg []byte, wait bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.ending == nil && !o.fitsLocked(msg) {
		if !wait {
			o.endLocked(ending{code: int(websocket.StatusTryAgainLater), reason: "messages are not read fast enough", discard: true})
			return errSlow
		}
		room := o.roomLocked()
		o.mu.Unlock()
		select {
		case <-room:
		case <-o.done:
		}
		o.mu.Lock()
	}
	if o.ending != nil {
		return ErrClosed
	}
	o.queue = append(o.queue, msg)
	o.queued += int64(len(msg))
	o.startLocked()
	return nil
}

func (o *outbox) fitsLocked(msg []byte) bool {
	most := o.config.SendQueueBytes
	return most == 0 || o.queued == 0 || o.queued+int64(len(msg)) <= most
}

// roomLocked returns a channel that is closed when bytes have left the queue.
func (o *outbox) roomLocked() <-chan struct{} {
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room
}

// drain waits until the queue is empty, the connection is over, or ctx ends.
func (o *outbox) drain(ctx context.Context) {
	for {
		o.mu.Lock()
		queued, room := o.queued, o.roomLocked()
		o.mu.Unlock()
		if queued == 0 {
			return
		}
		select {
		case <-room:
		case <-o.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ping makes the writer send a ping.
func (o *outbox) ping() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending == nil {
		o.pings = true
		o.startLocked()
	}
}

// pong makes the writer answer a ping. Of several waiting answers, only the last is sent.
func (o *outbox) pong(payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending == nil {
		o.pongs = append(make([]byte, 0, len(payload)), payload...)
		o.startLocked()
	}
}

// end ends the connection.
func (o *outbox) end(how ending) {
	how.reason = text.Head(how.reason, maxReason)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endLocked(how)
}

// endLocked starts the end of the connection. Only an end without a close frame overrides an
// earlier one.
func (o *outbox) endLocked(how ending) {
	if o.dropped || o.ending != nil && how.code != 0 {
		return
	}
	if o.ending == nil {
		o.ending = &how
	}
	if how.code == 0 {
		o.overLocked()
		return
	}
	// The time limit covers all remaining output, not each message.
	if how.discard {
		o.clearLocked()
		_ = o.conn.SetWriteDeadline(time.Now().Add(hastyTime))
	} else if timeout := o.config.WriteTimeout; timeout > 0 {
		_ = o.conn.SetWriteDeadline(time.Now().Add(time.Duration(timeout)))
	}
	o.startLocked()
}

// clearLocked discards queued messages that are not being written yet.
func (o *outbox) clearLocked() {
	for _, msg := range o.queue {
		o.queued -= int64(len(msg))
	}
	o.queue = nil
}

// overLocked closes the TCP connection, which ends reader and writer.
func (o *outbox) overLocked() {
	if o.dropped {
		return
	}
	o.dropped = true
	o.clearLocked()
	_ = o.guest.Close()
	o.cancel()
	close(o.done)
}

// startLocked starts the writer unless it is running.
func (o *outbox) startLocked() {
	if o.writing || o.dropped {
		return
	}
	o.writing = true
	written := make(chan struct{})
	o.written = written
	if wait := o.untilTurnLocked(); wait > 0 {
		time.AfterFunc(wait, func() { o.write(written) })
		return
	}
	go o.write(written)
}

// untilTurnLocked returns how long the next write must wait. After the end of the connection has
// started, no write waits.
func (o *outbox) untilTurnLocked() time.Duration {
	if o.pace == 0 || o.ending != nil {
		return 0
	}
	return o.pace - time.Since(o.wrote)
}

// wait waits for the writer after the end of the connection has started.
func (o *outbox) wait() {
	o.mu.Lock()
	written := o.written
	o.mu.Unlock()
	if written != nil {
		<-written
	}
}

// write sends the queued output and then ends: a connection without traffic has no writer. Only
// write sends messages, pings and pongs; coder/websocket itself only answers close frames.
func (o *outbox) write(written chan struct{}) {
	defer close(written)
	for {
		send := o.next()
		if send == nil {
			return
		}
		if err := send(); err != nil {
			o.end(ending{reason: "not reading"})
		}
	}
}

// next returns the writer's next action, or nil when none is left and the writer ends.
func (o *outbox) next() func() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.dropped:
	case o.pongs != nil:
		payload := o.pongs
		o.pongs = nil
		o.deadlineLocked()
		return func() error { return o.writeControl(opPong, payload) }
	case o.pings:
		o.pings = false
		o.deadlineLocked()
		return func() error { return o.writeControl(opPing, nil) }
	case len(o.queue) > 0 && o.untilTurnLocked() > 0:
		o.writing = false
		o.startLocked()
		return nil
	case len(o.queue) > 0:
		list := o.takeLocked()
		o.deadlineLocked()
		o.wrote = time.Now()
		return func() error { return o.writeMessages(list) }
	case o.ending != nil:
		how := *o.ending
		return func() error { return o.sayGoodbye(how) }
	}
	o.writing = false
	return nil
}

// deadlineLocked limits the time of the next write unless the end has set a limit.
func (o *outbox) deadlineLocked() {
	if timeout := o.config.WriteTimeout; timeout > 0 && o.ending == nil {
		_ = o.conn.SetWriteDeadline(time.Now().Add(time.Duration(timeout)))
	}
}

// batchBytes is the maximum size of a batch of small messages in one write.
const batchBytes = 16 << 10

// takeLocked removes the next output from the queue: one message or, for connections with a
// pace, as many small messages as fit into a batch.
func (o *outbox) takeLocked() [][]byte {
	n, size := 1, len(o.queue[0])
	for o.pace > 0 && n < len(o.queue) && size+len(o.queue[n]) <= batchBytes {
		size += len(o.queue[n])
		n++
	}
	list := slices.Clone(o.queue[:n])
	clear(o.queue[:n])
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue = nil // idle connections keep no array
	}
	return list
}

func (o *outbox) writeMessages(list [][]byte) error {
	var err error
	if len(list) == 1 {
		err = o.ws.Write(context.Background(), websocket.MessageText, list[0])
	} else {
		err = writeBatch(o.conn, list)
	}
	size := 0
	for _, msg := range list {
		size += len(msg)
	}
	if err == nil {
		o.sent.Add(int64(len(list)))
		o.metrics.sent.Add(float64(len(list)))
		o.metrics.sentBytes.Add(float64(size))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued -= int64(size)
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
	return err
}

// batches holds buffers for writeBatch.
var batches = sync.Pool{New: func() any { b := make([]byte, 0, batchBytes+1024); return &b }}

// writeBatch writes small messages with one call, between the frames of coder/websocket, which
// does not compress here.
func writeBatch(conn net.Conn, list [][]byte) error {
	b := batches.Get().(*[]byte)
	defer batches.Put(b)
	*b = (*b)[:0]
	for _, msg := range list {
		if len(msg) < 126 {
			*b = append(*b, opText, byte(len(msg)))
		} else {
			*b = binary.BigEndian.AppendUint16(append(*b, opText, 126), uint16(len(msg)))
		}
		*b = append(*b, msg...)
	}
	_, err := conn.Write(*b)
	return err
}

// The first bytes of frames: final, without a mask.
const (
	opText  = 0x81
	opClose = 0x88
	opPing  = 0x89
	opPong  = 0x8a
)

// writeControl writes a control frame with one call, between the frames of coder/websocket. The
// pings and pongs of coder/websocket itself would block the reader while a slow client receives
// a large message.
func (o *outbox) writeControl(op byte, payload []byte) error {
	_, err := o.conn.Write(append([]byte{op, byte(len(payload))}, payload...))
	return err
}

// sayGoodbye sends the close frame, waits for the client's, and closes the connection.
func (o *outbox) sayGoodbye(how ending) error {
	timeout := time.Duration(o.config.CloseTimeout)
	if how.hasty || timeout == 0 {
		_ = o.conn.SetWriteDeadline(time.Now().Add(hastyTime))
		_ = o.writeControl(opClose, append([]byte{byte(how.code >> 8), byte(how.code)}, how.reason...))
	} else {
		_ = o.conn.SetDeadline(time.Now().Add(timeout))
		// After a malformed frame, the client's close frame cannot be found.
		o.guest.linger.Store(how.code == int(websocket.StatusProtocolError))
		_ = o.ws.Close(websocket.StatusCode(how.code), how.reason)
		o.guest.linger.Store(false) // the calls below must not wait
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.overLocked()
	return nil
}

// isEnding reports whether the connection is over or ending.
func (o *outbox) isEnding() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending != nil
}
