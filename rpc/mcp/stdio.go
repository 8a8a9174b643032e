package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/rpc/internal/wire"
)

// Limits for a client.
const (
	maxLine     = 1 << 20 // bytes of a message
	maxInFlight = 64      // requests without a reply
)

// stdio is the transport: one message per line. The SDK ends a session at the first line that is
// not a message. This transport replies with an error, as the JSON-RPC specification requires,
// and reads the next line. It also replies with an error to lines that are too long, and if
// there are too many requests.
type stdio struct {
	in    io.ReadCloser
	out   io.WriteCloser
	ended func() // called once when the input has ended
}

// Connect implements [sdk.Transport].
func (t *stdio) Connect(ctx context.Context) (sdk.Connection, error) {
	out := &lineWriter{w: t.out}
	ended := make(chan struct{})
	in := &lineReader{in: bufio.NewReaderSize(t.in, 64<<10), close: t.in, refuse: out.refuse, ended: sync.OnceFunc(func() {
		close(ended)
		t.ended()
	})}
	inner, err := (&sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: -1}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{Connection: inner, ended: ended, closed: make(chan struct{}), inFlight: map[jsonrpc.ID]bool{}}, nil
}

// lineWriter writes whole lines. It is safe for concurrent use.
type lineWriter struct {
	mu sync.Mutex // guards w
	w  io.WriteCloser
}

func (l *lineWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(line)
}

func (l *lineWriter) Close() error { return l.w.Close() }

// refuse replies to a line that is not a message.
func (l *lineWriter) refuse(code int64, message string) {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": message}})
	if err == nil {
		_, _ = l.Write(append(line, '\n')) // other code notices that the client is gone
	}
}

// lineReader returns the lines that are messages, each in one or more calls of Read. Only the
// SDK's reader uses it, except for Close.
type lineReader struct {
	in     *bufio.Reader
	close  io.Closer
	refuse func(code int64, message string)
	ended  func()
	rest   []byte // unread part of the current line
}

func (l *lineReader) Close() error { return l.close.Close() }

func (l *lineReader) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			l.ended()
		}
		if err != nil {
			return 0, err
		}
		l.rest = line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// errTooLong means that a line was skipped.
var errTooLong = errors.New("line too long")

// next returns the next line if it is a message, or nothing if it was refused.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.line()
	line = bytes.TrimSpace(line)
	switch {
	case errors.Is(err, errTooLong):
		l.refuse(wire.CodeInvalidRequest, fmt.Sprintf("Invalid request: the message is longer than %d bytes", maxLine))
		return nil, nil
	case err != nil && len(line) == 0:
		return nil, err
	case len(line) == 0:
		return nil, nil
	case !json.Valid(line):
		l.refuse(wire.CodeParseError, "Parse error: the line is not JSON")
		return nil, nil
	case line[0] == '[':
		l.refuse(wire.CodeInvalidRequest, "Invalid request: send one message per line; batches are not supported")
		return nil, nil
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		l.refuse(wire.CodeInvalidRequest, "Invalid request: the line is not a JSON-RPC 2.0 message")
		return nil, nil
	}
	return append(line, '\n'), nil
}

// line reads a line, and skips one that is too long.
func (l *lineReader) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLong
		default:
			return line, err
		}
	}
}

// connection refuses excess requests, and requests with the id of another one that has no reply
// yet. It stops reading while the client does not read the refusals.
type connection struct {
	sdk.Connection
	ended  <-chan struct{} // closed when the input has ended
	closed chan struct{}   // closed by Close
	once   sync.Once       // closes closed

	mu       sync.Mutex // guards the fields below
	inFlight map[jsonrpc.ID]bool
	idle     chan struct{} // closed when nothing is in flight; nil while nobody waits for that
}

// Read implements [sdk.Connection]. The SDK stops writing when it has read the end of the input,
// so Read reports the end only after all requests have replies.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			c.drain()
			return nil, err
		}
		req, ok := m.(*jsonrpc.Request)
		if !ok || !req.IsCall() {
			return m, nil
		}
		fault := c.start(req.ID)
		if fault == nil {
			return m, nil
		}
		if err := c.Connection.Write(ctx, &jsonrpc.Response{ID: req.ID, Error: fault}); err != nil {
			return nil, err
		}
	}
}

// Close implements [sdk.Connection].
func (c *connection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// drain waits, after the input has ended, until nothing is in flight, at most drainTime.
func (c *connection) drain() {
	select {
	case <-c.ended:
	default:
		return // another goroutine closes the connection
	}
	c.mu.Lock()
	c.idle = make(chan struct{})
	idle := c.idle
	if len(c.inFlight) == 0 {
		close(idle)
		c.idle = nil
	}
	c.mu.Unlock()
	limit := time.NewTimer(drainTime)
	defer limit.Stop()
	select {
	case <-idle:
	case <-limit.C:
	case <-c.closed:
	}
}

func (c *connection) start(id jsonrpc.ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inFlight[id]:
		return &jsonrpc.Error{Code: wire.CodeInvalidRequest, Message: "Invalid request: a request with this id has no reply yet"}
	case len(c.inFlight) >= maxInFlight:
		return &jsonrpc.Error{
			Code:    wire.CodeBusy,
			Message: fmt.Sprintf("Server busy or limit exceeded: %d requests have no reply yet", maxInFlight),
		}
	}
	c.inFlight[id] = true
	return nil
}

// Write implements [sdk.Connection].
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	if res, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.inFlight, res.ID) // before the client can use the id again
		if len(c.inFlight) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
		c.mu.Unlock()
	}
	return c.Connection.Write(ctx, m)
}
