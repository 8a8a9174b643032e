package rpc

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

var errTooLarge = errors.New("too large")

// alone waits until no other large reply is made for this client or waits to be read
// by it, and until not too many are made for others.
func (c *call) alone(ctx context.Context) error {
	select {
	case c.result <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.after = func() { <-c.result }
	if err := c.stream.Room(ctx); err != nil {
		return err
	}
	select {
	case c.server.making <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.after = func() { <-c.server.making; <-c.result }
	return nil
}

// A spill takes at most limit bytes: in memory at first, and in a body when they make
// a large reply.
type spill struct {
	bodies *wire.Bodies
	limit  int
	buf    bytes.Buffer
	body   *wire.Body // nil while all is in buf
	size   int
}

func (s *spill) Write(p []byte) (int, error) {
	if s.size += len(p); s.size > s.limit {
		return 0, errTooLarge
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

// discard frees what was written.
func (s *spill) discard() {
	if s.body != nil {
		s.body.Close()
	}
}

// replyLarge replies with a result that is in a body, or that is better kept in one.
// Otherwise it does nothing.
func (c *call) replyLarge(result any, raw json.RawMessage) (done bool, err error) {
	holder, ok := result.(interface{ held() *wire.Body })
	if ok && holder.held() != nil {
		if c.req.Notif {
			holder.held().Close()
		} else {
			_ = c.stream.ReplyBody(c.req.ID, holder.held()) // it fails only when the client is gone
		}
		return true, nil
	}
	if c.req.Notif || len(raw) <= largeReply {
		return false, nil
	}
	body, err := c.server.bodies.New()
	if err == nil {
		if _, err = body.Write(raw); err == nil {
			_ = c.stream.ReplyBody(c.req.ID, body)
			return true, nil
		}
		body.Close()
	}
	if errors.Is(err, wire.ErrBodies) {
		return false, c.server.tooManyBodies()
	}
	c.server.log.Warn("a large reply is kept in memory", "method", c.req.Method, "error", err)
	return false, nil
}

// tooManyBodies says that clients leave too much unread.
func (s *Server) tooManyBodies() *wire.Error {
	return newFault(wire.CodeBusy, "", map[string]any{"limit": "bytes of large replies that wait for clients", "value": s.bodies.Limit()})
}
