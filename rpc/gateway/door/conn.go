package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// UnreadableError is returned for a message that ended its connection, because it is too
// large, binary or not UTF-8.
type UnreadableError struct {
	Code int // of the close frame
	Why  string
}

func (e *UnreadableError) Error() string { return e.Why }

// ErrClosed is returned for connections that are closed or being closed.
var ErrClosed = errors.New("the connection is closed")

// unidentifiedBytes is the size of the largest message of a connection that has yet to
// identify itself.
const unidentifiedBytes = 64 << 10

// Conn is a WebSocket connection of a client. Read is called by one goroutine at a time;
// all other methods are safe for concurrent use and do not block.
//
// A connection ends in one of two ways. Close sends what is queued, then a close frame,
// and waits Config.CloseTimeout for that of the client. Drop closes the TCP connection.
type Conn struct {
	door     *Door
	guest    *guest
	request  *http.Request
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	out      outbox
	pulse    pulse
	received atomic.Int64 // messages
	isLarge  atomic.Bool  // the message that Read returned last counts among the large ones

	mu   sync.Mutex // guards the fields below
	name string     // "" until identified
	log  *slog.Logger
	rate *limiter
}

// Request is the request that the connection came from. Its context must not be used.
func (c *Conn) Request() *http.Request { return c.request }

// Addr is the address of the client.
func (c *Conn) Addr() string { return c.request.RemoteAddr }

// Subprotocol is the one that client and door agreed on; empty when there is none.
func (c *Conn) Subprotocol() string { return c.out.ws.Subprotocol() }

// Done is closed when the connection is over.
func (c *Conn) Done() <-chan struct{} { return c.out.done }

// Log is the door's log with the address and name of the client.
func (c *Conn) Log() *slog.Logger {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log == nil {
		c.log = c.door.log.With("client", c.Addr())
		if c.name != "" {
			c.log = c.log.With("name", c.name)
		}
	}
	return c.log
}

// Identify names the client for registry, logs and rate limit, and gives it one of the
// places of Config.MaxConnections. Until then a newer connection may take its place. When
// there is no place left, it closes the connection with code 1013 and returns false. A
// further call changes the name. Connections of one name share a rate limit.
func (c *Conn) Identify(name string) bool {
	if !c.door.guests.promote(c.guest) {
		c.Close(int(websocket.StatusTryAgainLater), "too many connections")
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name != name {
		c.rate = c.door.rates.rename(c.rate, c.name, name)
		c.name, c.log = name, nil
	}
	return true
}

// Name is the name of the client; empty until it has identified itself.
func (c *Conn) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// Allow counts a message of the client. It is false when the client has sent more than
// Config.MessagesPerMinute, and then returns when it may send the next.
func (c *Conn) Allow() (retryAfter time.Duration, ok bool) {
	c.mu.Lock()
	if c.rate == nil {
		c.rate = c.door.rates.first(c.name)
	}
	rate := c.rate
	c.mu.Unlock()
	return rate.allow()
}

// SetIdle replaces the idle timeout of the Config for this connection. Messages and
// pings of the client count.
func (c *Conn) SetIdle(idle Idle) { c.pulse.setIdle(idle) }

// Send queues a text message and returns at once. Messages are sent in the order of the
// calls. The caller leaves msg unchanged. When more than Config.SendQueueBytes wait, the
// connection is closed with code 1013, without what is queued. A message that is larger than
// that passes when nothing waits.
func (c *Conn) Send(msg []byte) error { return c.out.send(msg, false) }

// Pace has messages to a client wait until so much time has passed since the last were written, and
// writes what waits at once. It is for clients of streams that are watched by many: a message
// takes that much longer at most, and costs far less.
func Pace(c *Conn, least time.Duration) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.pace = least
}

// Close sends what is queued, then a close frame, and ends the connection when the client
// has answered it. It returns at once; Done is closed when the connection is over. The
// first Close or Drop decides. Code 1000 becomes 1001, because clients stay away after 1000.
// The reason is cut to the 123 bytes that a close frame holds.
func (c *Conn) Close(code int, reason string) {
	if code == int(websocket.StatusNormalClosure) {
		code = int(websocket.StatusGoingAway)
	}
	c.out.end(ending{code: code, reason: reason})
}

// Drop ends the connection at once, without a close frame.
func (c *Conn) Drop() { c.out.end(ending{reason: "dropped"}) }

// Read waits for the next text message and returns it; the caller may keep it. A binary
// message closes the connection with code 1003, text that is not UTF-8 with 1007, a
// message that is too large with 1009; the error is an [*UnreadableError] then. Nothing is
// returned after Close or Drop. When ctx ends, the connection is dropped. The caller does
// what a message asks for before it reads the next: few large ones exist at a time.
func (c *Conn) Read(ctx context.Context) ([]byte, error) {
	c.letGo()
	if ctx != c.ctx && ctx.Done() != nil {
		defer context.AfterFunc(ctx, c.Drop)()
	}
	for {
		// coder/websocket drops the connection when the context of a read ends, and makes
		// a timer per frame: timers of ours close it with a close frame.
		kind, r, err := c.out.ws.Reader(context.Background())
		if err != nil {
			return nil, c.lost(err)
		}
		msg, err := c.readAll(r)
		switch {
		case errors.Is(err, errTooLarge):
			return nil, c.unreadable(websocket.StatusMessageTooBig, err.Error())
		case err != nil:
			return nil, c.lost(err)
		case c.out.isEnding():
			c.letGo()
			continue // until the client has answered the close frame
		case kind != websocket.MessageText:
			return nil, c.unreadable(websocket.StatusUnsupportedData, "messages must be text")
		case !utf8.Valid(msg):
			return nil, c.unreadable(websocket.StatusInvalidFramePayloadData, "text must be UTF-8")
		}
		c.pulse.beats()
		c.received.Add(1)
		c.door.metrics.received.Inc()
		c.door.metrics.receivedBytes.Add(float64(len(msg)))
		return msg, nil
	}
}

// unreadable closes the connection of a client that sent what cannot be read.
func (c *Conn) unreadable(code websocket.StatusCode, why string) error {
	c.Close(int(code), why)
	return &UnreadableError{Code: int(code), Why: why}
}

var errTooLarge = errors.New("message too large")

// aliveBytes is how much of a message counts as a sign of life. A client that sends
// a large message slowly is not idle; one that sends a byte now and then is.
const aliveBytes = 64 << 10

// Messages that are larger than largeBytes wait until fewer than mostLarge of the door are
// being received or used, and must arrive within largeTime. Otherwise each connection could
// hold a message of Config.MaxMessageBytes that never ends.
const (
	largeBytes = 256 << 10
	mostLarge  = 32
	largeTime  = 2 * time.Minute
)

// letGo lets another large message in, if the last one of this connection was one.
func (c *Conn) letGo() {
	if c.isLarge.Swap(false) {
		<-c.door.large
	}
}

// readAll reads a message within the limit.
func (c *Conn) readAll(r io.Reader) (msg []byte, err error) {
	limit := c.limit()
	b := make([]byte, 0, 512)
	alive := aliveBytes
	for large := false; ; {
		if len(b) > largeBytes && !large {
			large = true
			c.pulse.deaf.Store(true)
			select {
			case c.door.large <- struct{}{}:
			case <-c.out.done:
				return nil, net.ErrClosed
			}
			c.pulse.beats()
			c.pulse.deaf.Store(false)
			late := time.AfterFunc(largeTime, func() {
				c.Close(int(websocket.StatusPolicyViolation), "the message takes too long")
			})
			c.isLarge.Store(true)
			defer func() {
				if late.Stop(); err != nil {
					c.letGo()
				}
			}()
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if limit > 0 && int64(len(b)) > limit {
			return nil, fmt.Errorf("%w: the limit is %d bytes", errTooLarge, limit)
		}
		if len(b) >= alive {
			c.pulse.beats()
			alive = len(b) + aliveBytes
		}
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

// limit is the most bytes that a message may have now; 0 is no limit.
func (c *Conn) limit() int64 {
	limit := c.door.config.MaxMessageBytes
	if limit > 0 && limit <= unidentifiedBytes || c.Name() != "" {
		return limit
	}
	return unidentifiedBytes
}

// lost makes the error of a read that failed, and drops what is left of the connection
// unless it is being closed.
func (c *Conn) lost(err error) error {
	if c.out.isEnding() {
		return ErrClosed
	}
	if code := websocket.CloseStatus(err); code != -1 {
		c.out.end(ending{reason: "closed by the client"})
		return fmt.Errorf("the client closed the connection with code %d", code)
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		c.out.end(ending{reason: "lost"})
		return fmt.Errorf("the connection was lost: %w", err)
	}
	c.Close(int(websocket.StatusProtocolError), "malformed frame")
	return fmt.Errorf("the client sent a malformed frame: %w", err)
}

// finish ends the connection after its handler has returned, and waits for the writer.
func (c *Conn) finish() {
	c.letGo()
	c.Close(int(websocket.StatusGoingAway), "")
	c.out.wait()
	c.Drop()
	c.pulse.stop()
	c.cancel()
	_ = c.out.ws.CloseNow() // gives its buffers back
	c.mu.Lock()
	rate := c.rate
	c.mu.Unlock()
	how := *c.out.ending // nobody changes it any more
	c.door.rates.leave(rate)
	c.door.metrics.closed(how)
	c.Log().Debug("connection over", "code", how.code, "why", how.reason,
		"received", c.received.Load(), "sent", c.out.sent.Load(), "duration", time.Since(c.pulse.since).Round(time.Millisecond))
}
