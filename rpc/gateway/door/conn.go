package door

import (
	"cmp"
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

	"waza/runner/pause"
)

// UnreadableError is returned for a message that ended its connection because it was too large,
// binary or not UTF-8.
type UnreadableError struct {
	Code   int // of the close frame
	Reason string
}

func (e *UnreadableError) Error() string { return e.Reason }

// ErrClosed is returned for connections that are closed or being closed.
var ErrClosed = errors.New("the connection is closed")

// unidentifiedBytes is the default of Options.UnidentifiedBytes.
const unidentifiedBytes = 64 << 10

// Conn is a WebSocket connection of a client. It owns the client's name, log and rate limit; its
// outbox owns the output, and its pulse the timers. One goroutine at a time can call Read. All other
// methods are safe for concurrent use and, except Allow, do not block.
//
// A connection ends in one of two ways. Close sends the queued messages, then a close frame, and
// waits Config.CloseTimeout for the client's close frame. Drop closes the TCP connection.
type Conn struct {
	door     *Door
	guest    *guest
	request  *http.Request
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	out      outbox
	pulse    pulse
	received atomic.Int64 // messages
	isLarge  atomic.Bool  // the message that Read returned last holds a place for large messages

	mu   sync.Mutex // guards the fields below
	name string     // "" until identified
	// authenticated reports whether the client has shown a secret.
	authenticated bool
	log           *slog.Logger
	rate          *limiter
	lostBy        error // why the last read failed; nil while it is open, and after Close
}

// Request returns the request that opened the connection. Its context must not be used.
func (c *Conn) Request() *http.Request { return c.request }

// Addr returns the address of the client.
func (c *Conn) Addr() string { return c.request.RemoteAddr }

// Done returns a channel that is closed when the connection is over.
func (c *Conn) Done() <-chan struct{} { return c.out.done }

// Log returns the door's log with the address and name of the client. It is limited until
// [Conn.Authenticate] is called, see [access.LimitLog].
func (c *Conn) Log() *slog.Logger {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log == nil {
		c.log = c.door.strangers
		if c.authenticated {
			c.log = c.door.log
		}
		c.log = c.log.With("client", c.Addr())
		if c.name != "" {
			c.log = c.log.With("name", c.name)
		}
	}
	return c.log
}

// Authenticate records that the client has shown a secret, so that its log is no longer limited.
// The name of Identify proves nothing.
func (c *Conn) Authenticate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.authenticated, c.log = true, nil
}

// Identify names the client for logs and the rate limit, and gives it one of the
// places of Config.MaxConnections. Before that, a newer connection can take its place. When no
// place is left, Identify closes the connection with code 1013 and returns false. Another call
// changes the name. Connections with the same name share a rate limit.
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

// IsFull reports whether [Conn.Identify] would find no place for another client.
func (d *Door) IsFull() bool { return d.guests.full() }

// Name returns the name of the client; empty until the client has identified itself.
func (c *Conn) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// floodPause is how long reading pauses after a message that exceeds the rate limit. The pause
// keeps floods cheap.
const floodPause = 10 * time.Millisecond

// Allow counts a message of the client. It returns false when the client has sent more than
// Config.MessagesPerMinute. In that case it pauses for 10 ms, and retryAfter is the time until
// the client can send the next message. Only the reading goroutine calls Allow.
func (c *Conn) Allow() (retryAfter time.Duration, ok bool) {
	retryAfter, ok = c.count()
	if !ok {
		_ = pause.Unless(c.ctx, c.out.done, floodPause) // the next read fails when the connection has ended
		retryAfter = max(time.Millisecond, retryAfter-floodPause)
	}
	return retryAfter, ok
}

// Wait waits until the rate limit allows another message and counts it. It returns false when
// the connection ends before.
func (c *Conn) Wait() bool {
	for again, ok := c.count(); !ok; again, ok = c.count() {
		if pause.Unless(c.ctx, c.out.done, again) != nil || c.out.isEnding() {
			return false
		}
	}
	return true
}

// count is like Allow, but does not pause.
func (c *Conn) count() (retryAfter time.Duration, ok bool) {
	c.mu.Lock()
	if c.rate == nil {
		c.rate = c.door.rates.first(c.name)
	}
	rate := c.rate
	c.mu.Unlock()
	return rate.allow()
}

// SetIdle replaces the idle timeout of the Config for this connection. Messages and pings of the
// client restart it.
func (c *Conn) SetIdle(idle Idle) { c.pulse.setIdle(idle) }

// Send queues a text message and returns at once. Messages are sent in the order of the calls.
// The caller must not change msg afterwards. When more than Config.SendQueueBytes are queued,
// Send closes the connection with code 1013 and discards the queue. A message larger than the
// queue is accepted when the queue is empty.
func (c *Conn) Send(msg []byte) error { return c.out.send(msg, false) }

// Pace delays messages to a client until the given time has passed since the last write, and
// then writes all waiting messages at once. Use it for streams with many watchers: messages
// arrive at most that much later and cost far less.
func (c *Conn) Pace(least time.Duration) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.pace = least
}

// Close sends the queued messages, then a close frame, and ends the connection when the client
// has answered it. Close returns at once; Done is closed when the connection is over. Only the
// first call of Close or Drop has an effect. Code 1000 becomes 1001, because clients do not
// reconnect after 1000. The reason is cut to the 123 bytes that fit into a close frame.
func (c *Conn) Close(code int, reason string) {
	if code == int(websocket.StatusNormalClosure) {
		code = int(websocket.StatusGoingAway)
	}
	c.out.end(ending{code: code, reason: reason})
}

// Drop ends the connection at once, without a close frame.
func (c *Conn) Drop() { c.out.end(ending{reason: "dropped"}) }

// Read waits for the next text message and returns it. The caller can keep the message. A binary
// message closes the connection with code 1003, invalid UTF-8 with 1007, and a message that is
// too large with 1009; the error is then an [*UnreadableError]. Read returns no message after
// Close or Drop. When ctx ends, Read drops the connection. Handle each message before reading
// the next one: the number of large messages in memory is limited.
func (c *Conn) Read(ctx context.Context) ([]byte, error) {
	c.releaseLarge()
	if ctx != c.ctx && ctx.Done() != nil {
		defer context.AfterFunc(ctx, c.Drop)()
	}
	for {
		// coder/websocket drops the connection when the context of a read ends, and starts a
		// timer per frame. Our own timers close the connection with a close frame.
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
			c.releaseLarge()
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

// unreadable closes the connection of a client that sent an unreadable message.
func (c *Conn) unreadable(code websocket.StatusCode, why string) error {
	c.Close(int(code), why)
	return &UnreadableError{Code: int(code), Reason: why}
}

var errTooLarge = errors.New("message too large")

// aliveBytes is the number of bytes of a message that count as a sign of life. A client that
// sends a large message slowly is not idle. A client that sends single bytes is.
const aliveBytes = 64 << 10

// Messages larger than largeBytes wait until fewer than mostLarge messages of the door are being
// received or used, and must arrive within largeTime. Otherwise each connection could hold a
// message of Config.MaxMessageBytes that never ends.
const (
	largeBytes = 256 << 10
	mostLarge  = 32
	largeTime  = 2 * time.Minute
)

// releaseLarge frees the place of the last message of this connection if it was a large one.
func (c *Conn) releaseLarge() {
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
			c.pulse.readPaused.Store(true)
			select {
			case c.door.large <- struct{}{}:
			case <-c.out.done:
				return nil, net.ErrClosed
			}
			c.pulse.beats()
			c.pulse.readPaused.Store(false)
			late := time.AfterFunc(largeTime, func() {
				c.Close(int(websocket.StatusPolicyViolation), "message not received in time")
			})
			c.isLarge.Store(true)
			defer func() {
				if late.Stop(); err != nil {
					c.releaseLarge()
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

// limit returns the maximum size of the next message in bytes; 0 means no limit.
func (c *Conn) limit() int64 {
	limit, stranger := c.door.config.MaxMessageBytes, cmp.Or(c.door.options.UnidentifiedBytes, unidentifiedBytes)
	if limit > 0 && limit <= stranger || c.Name() != "" {
		return limit
	}
	return stranger
}

// lost returns the error of a failed read. It drops the connection unless the connection is
// being closed.
func (c *Conn) lost(err error) error {
	if c.out.isEnding() {
		return ErrClosed
	}
	var network net.Error
	switch code := websocket.CloseStatus(err); {
	case code != -1:
		c.out.end(ending{reason: "closed by the client"})
		err = fmt.Errorf("the client closed the connection with code %d", code)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		c.out.end(ending{reason: "lost"})
		err = fmt.Errorf("the connection was lost: %w", err)
	default:
		c.Close(int(websocket.StatusProtocolError), "malformed frame")
		err = fmt.Errorf("the client sent a malformed frame: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lostBy = err
	return err
}

// finish ends the connection after its handler has returned, and waits for the writer.
func (c *Conn) finish() {
	c.releaseLarge()
	c.Close(int(websocket.StatusGoingAway), "")
	c.out.wait()
	c.Drop()
	c.pulse.stop()
	c.cancel()
	_ = c.out.ws.CloseNow() // returns its buffers to their pools
	c.mu.Lock()
	rate, lostBy := c.rate, c.lostBy
	c.mu.Unlock()
	how := *c.out.ending // no goroutine changes it any more
	c.door.rates.leave(rate)
	c.door.metrics.closed(how)
	log := c.Log()
	if lostBy != nil {
		log = log.With("error", lostBy)
	}
	log.Debug("connection closed", "code", how.code, "why", how.reason,
		"received", c.received.Load(), "sent", c.out.sent.Load(), "duration", time.Since(c.pulse.since).Round(time.Millisecond))
}
