package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"waza/rpc/wire"
)

const (
	// largeReply is from how many bytes on a reply waits for its client in a file.
	largeReply = 256 << 10
	// maxBodies bounds the bytes of large replies that wait for all clients together.
	maxBodies = 512 << 20
	// maxMaking is how many large replies are made at once, on behalf of all clients.
	maxMaking = 2
)

// ErrTooLarge is what Spill.Write gives beyond its limit.
var ErrTooLarge = errors.New("too large")

// Alone waits until no other large reply is made for this client or waits to be read
// by it, and until not too many are made for others. The place is free again once the
// reply to this call is given. Call it once.
func (c *Call) Alone(ctx context.Context) error {
	select {
	case c.large <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.after = func() { <-c.large }
	if err := c.stream.Room(ctx); err != nil {
		return err
	}
	select {
	case c.shared.making <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.after = func() { <-c.shared.making; <-c.large }
	return nil
}

// A Spill takes at most limit bytes of JSON: in memory at first, and in a body when
// they make a large reply. It is the result of a handler, or the handler discards it.
type Spill struct {
	bodies *wire.Bodies
	limit  int
	buf    bytes.Buffer
	body   *wire.Body // nil while all is in buf
	size   int
}

// Spill makes an empty one.
func (c *Call) Spill(limit int) *Spill { return &Spill{bodies: c.shared.bodies, limit: limit} }

// Write adds bytes. It gives [ErrTooLarge] beyond the limit, and [wire.ErrBodies] while
// too many large replies wait for their clients.
func (s *Spill) Write(p []byte) (int, error) {
	if s.size += len(p); s.size > s.limit {
		return 0, ErrTooLarge
	}
	if s.body == nil && s.size <= largeReply {
		return s.buf.Write(p)
	}
	if s.body == nil {
		var err error
		if s.body, err = s.bodies.New(); err != nil {
			return 0, err
		}
		if _, err := s.body.Write(s.buf.Bytes()); err != nil {
			return 0, err
		}
		s.buf = bytes.Buffer{}
	}
	return s.body.Write(p)
}

// Discard frees what was written.
func (s *Spill) Discard() {
	if s.body != nil {
		s.body.Close()
	}
}

// Encoded gives what was written.
func (s *Spill) Encoded() (json.RawMessage, *wire.Body) {
	return bytes.TrimSpace(s.buf.Bytes()), s.body
}

// replyLarge replies with a result that is in a body, or that is better kept in one.
// Otherwise it does nothing.
func (c *Call) replyLarge(raw json.RawMessage, body *wire.Body) (done bool, err error) {
	if body != nil {
		if c.Request.Notif {
			body.Close()
		} else {
			_ = c.stream.ReplyBody(c.Request.ID, body) // it fails only when the client is gone
		}
		return true, nil
	}
	if c.Request.Notif || len(raw) <= largeReply {
		return false, nil
	}
	body, err = c.shared.bodies.New()
	if err == nil {
		if _, err = body.Write(raw); err == nil {
			_ = c.stream.ReplyBody(c.Request.ID, body)
			return true, nil
		}
		body.Close()
	}
	if errors.Is(err, wire.ErrBodies) {
		return false, err
	}
	c.shared.log.Warn("a large reply is kept in memory", "method", c.Request.Method, "error", err)
	return false, nil
}
