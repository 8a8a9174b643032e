package door

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// errSlow is the error of Send for a client that does not read.
var errSlow = errors.New("the client does not read its messages")

// hastyTime is how long the last bytes may take to a client that is not waited for.
const hastyTime = time.Second

// Send queues a text message and returns at once. Messages are sent in the order of the
// calls. The caller leaves msg unchanged. When more than Config.SendQueueBytes wait, the
// connection is closed with code 1013, without what is queued. A message that is larger than
// that passes when nothing waits.
func (c *Conn) Send(msg []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendLocked(msg)
}

func (c *Conn) sendLocked(msg []byte) error {
	switch {
	case c.ending != nil:
		return ErrClosed
	case !c.fitsLocked(msg):
		c.endLocked(ending{code: int(websocket.StatusTryAgainLater), reason: "messages are not read fast enough", discard: true})
		return errSlow
	}
	c.queue = append(c.queue, msg)
	c.queued += int64(len(msg))
	c.writeLocked()
	return nil
}

func (c *Conn) fitsLocked(msg []byte) bool {
	most := c.door.config.SendQueueBytes
	return most == 0 || c.queued == 0 || c.queued+int64(len(msg)) <= most
}

// sendWait is Send, but waits for room in the queue.
func (c *Conn) sendWait(msg []byte) error {
	for {
		c.mu.Lock()
		if c.ending != nil || c.fitsLocked(msg) {
			defer c.mu.Unlock()
			return c.sendLocked(msg)
		}
		room := c.roomLocked()
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.done:
		}
	}
}

// roomLocked is closed as soon as bytes have left the queue.
func (c *Conn) roomLocked() <-chan struct{} {
	if c.room == nil {
		c.room = make(chan struct{})
	}
	return c.room
}

// drain waits until nothing is queued, the connection is over, or ctx ends.
func (c *Conn) drain(ctx context.Context) {
	for {
		c.mu.Lock()
		queued, room := c.queued, c.roomLocked()
		c.mu.Unlock()
		if queued == 0 {
			return
		}
		select {
		case <-room:
		case <-c.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close sends what is queued, then a close frame, and ends the connection when the client
// has answered it. It returns at once; Done is closed when the connection is over. The
// first Close or Drop decides. Code 1000 becomes 1001, because clients stay away after 1000.
// The reason is cut to the 123 bytes that a close frame holds.
func (c *Conn) Close(code int, reason string) {
	if code == int(websocket.StatusNormalClosure) {
		code = int(websocket.StatusGoingAway)
	}
	c.end(ending{code: code, reason: reason})
}

// Drop ends the connection at once, without a close frame.
func (c *Conn) Drop() { c.end(ending{reason: "dropped"}) }

func (c *Conn) end(how ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(how.reason) > 123 {
		how.reason = strings.ToValidUTF8(how.reason[:123], "")
	}
	c.endLocked(how)
}

// endLocked starts the end of the connection. Only an end without a close frame overrides
// one that has started.
func (c *Conn) endLocked(how ending) {
	if c.dropped || c.ending != nil && how.code != 0 {
		return
	}
	if c.ending == nil {
		c.ending = &how
	}
	if how.code == 0 {
		c.overLocked()
		return
	}
	// The time limit is for all that is left to write, not for each message.
	if how.discard {
		c.clearLocked()
		_ = c.place.conn.SetWriteDeadline(time.Now().Add(hastyTime))
	} else if timeout := c.door.config.WriteTimeout; timeout > 0 {
		_ = c.place.conn.SetWriteDeadline(time.Now().Add(time.Duration(timeout)))
	}
	c.writeLocked()
}

// clearLocked forgets what is queued and not yet being written.
func (c *Conn) clearLocked() {
	for _, msg := range c.queue {
		c.queued -= int64(len(msg))
	}
	c.queue = nil
}

// overLocked closes the TCP connection, which ends reader and writer.
func (c *Conn) overLocked() {
	if c.dropped {
		return
	}
	c.dropped = true
	c.clearLocked()
	for _, timer := range []*time.Timer{c.idle, c.beat} {
		if timer != nil {
			timer.Stop()
		}
	}
	// A TLS connection sends an alert when it is closed, which may wait for the client.
	_ = c.place.guest.Close()
	c.cancel()
	close(c.done)
}

// writeLocked starts the writer, unless it runs.
func (c *Conn) writeLocked() {
	if c.writing || c.dropped {
		return
	}
	c.writing = true
	c.written = make(chan struct{})
	go c.write(c.written)
}

// write sends what is there to be sent, and then ends: a connection without traffic has
// no writer. It alone writes messages, pings and pongs; coder/websocket itself only
// answers close frames.
func (c *Conn) write(written chan struct{}) {
	defer close(written)
	for {
		c.mu.Lock()
		var err error
		switch {
		case c.dropped:
			c.writing = false
			c.mu.Unlock()
			return
		case c.pong != nil:
			pong := c.pong
			c.pong = nil
			c.deadlineLocked()
			c.mu.Unlock()
			err = c.writeControl(opPong, pong)
		case c.ping:
			c.ping = false
			c.deadlineLocked()
			c.mu.Unlock()
			err = c.writeControl(opPing, nil)
		case len(c.queue) > 0:
			msg := c.queue[0]
			c.queue[0] = nil
			c.queue = c.queue[1:]
			if len(c.queue) == 0 {
				c.queue = nil
			}
			c.deadlineLocked()
			c.mu.Unlock()
			err = c.ws.Write(context.Background(), websocket.MessageText, msg)
			c.wrote(msg)
		case c.ending != nil:
			how := *c.ending
			c.mu.Unlock()
			c.sayGoodbye(how)
			c.mu.Lock()
			c.overLocked()
			c.mu.Unlock()
			return
		default:
			c.writing = false
			c.mu.Unlock()
			return
		}
		if err != nil {
			c.end(ending{reason: "not reading"})
		}
	}
}

// wrote counts a message that was written.
func (c *Conn) wrote(msg []byte) {
	c.sent.Add(1)
	c.door.metrics.sent.Inc()
	c.door.metrics.sentBytes.Add(float64(len(msg)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued -= int64(len(msg))
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// deadlineLocked limits the time of the next write, unless the end has set a limit.
func (c *Conn) deadlineLocked() {
	if timeout := c.door.config.WriteTimeout; timeout > 0 && c.ending == nil {
		_ = c.place.conn.SetWriteDeadline(time.Now().Add(time.Duration(timeout)))
	}
}

// The control frames that are written here, final and without a mask.
const (
	opPing  = 0x89
	opPong  = 0x8a
	opClose = 0x88
)

// writeControl writes a control frame with one call, between the frames that
// coder/websocket writes. Its own Ping and pong would wait, with the reader, while a
// large message is on its way to a slow client.
func (c *Conn) writeControl(op byte, payload []byte) error {
	frame := append([]byte{op, byte(len(payload))}, payload...)
	_, err := c.place.conn.Write(frame)
	return err
}

// sayGoodbye sends the close frame and waits for the client's.
func (c *Conn) sayGoodbye(how ending) {
	timeout := time.Duration(c.door.config.CloseTimeout)
	if how.hasty || timeout == 0 {
		_ = c.place.conn.SetWriteDeadline(time.Now().Add(hastyTime))
		_ = c.writeControl(opClose, append([]byte{byte(how.code >> 8), byte(how.code)}, how.reason...))
		return
	}
	_ = c.place.conn.SetDeadline(time.Now().Add(timeout))
	_ = c.ws.Close(websocket.StatusCode(how.code), how.reason)
}

// pinged answers a ping by the writer.
func (c *Conn) pinged(_ context.Context, payload []byte) bool {
	c.heard.Store(c.clock())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == nil {
		c.pong = append(make([]byte, 0, len(payload)), payload...)
		c.writeLocked()
	}
	return false
}
