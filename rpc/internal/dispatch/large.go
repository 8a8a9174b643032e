package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"waza/rpc/internal/wire"
)

const (
	// largeReply is the size in bytes from which a reply waits for its client in a file.
	largeReply = 256 << 10
	// maxBodies limits the total bytes of large replies that wait for their clients.
	maxBodies = 512 << 20
	// maxMaking limits the large replies that are made at once for all clients.
	maxMaking = 2
)

// ErrTooLarge is the error of Spill.Write beyond its limit.
var ErrTooLarge = errors.New("too large")

// Alone waits until no other large reply for this client is being made or unread, and until
// there is a free slot among those for all clients. The slot is free again after the reply to
// this call. Call Alone once per call.
func (c *Call) Alone(ctx context.Context) error {
	select {
	case c.large <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.onReplied = func() { <-c.large }
	if err := c.stream.Room(ctx); err != nil {
		return err
	}
	select {
	case c.shared.making <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.onReplied = func() { <-c.shared.making; <-c.large }
	return nil
}

// A Spill stores at most limit bytes of JSON: first in memory, and in a body once they make a
// large reply. A handler returns it as its result or discards it.
type Spill struct {
	bodies *wire.Bodies
	limit  int
	buf    bytes.Buffer
	body   *wire.Body // nil while all bytes are in buf
	size   int
}

// Spill returns an empty Spill.
func (c *Call) Spill(limit int) *Spill { return &Spill{bodies: c.shared.bodies, limit: limit} }

// Write appends p. It returns [ErrTooLarge] beyond the limit, and [wire.ErrBodies] while too
// many large replies wait for their clients.
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

// Discard frees the bytes written.
func (s *Spill) Discard() {
	if s.body != nil {
		s.body.Close()
	}
}

// Encoded returns the bytes written.
func (s *Spill) Encoded() (json.RawMessage, *wire.Body) {
	return bytes.TrimSpace(s.buf.Bytes()), s.body
}

// replyLarge sends a result that is in a body, or large enough for one. Otherwise it does
// nothing.
func (c *Call) replyLarge(raw json.RawMessage, body *wire.Body) (done bool, err error) {
	if body != nil {
		if c.Request.Notif {
			body.Close()
		} else {
			_ = c.stream.ReplyBody(c.Request.ID, body) // fails only if the client is gone
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
	c.shared.log.Warn("large reply kept in memory", "method", c.Request.Method, "error", err)
	return false, nil
}
