// Package extension implements the extension's side of the protocol of browser assistants. It
// connects to a server, makes itself available to evaluations and executes tools. Call [Run]
// with a function that executes one tool.
package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/rpc/client/internal/socket"
	"waza/runner/pause"
)

// Version is the version of the protocol.
const Version = "1.0.0"

// Options configure an extension.
type Options struct {
	// URL is the ws:// or wss:// address of the server.
	URL string
	// ID is a UUID that is unique to the extension.
	ID string
	// Do executes a tool. It returns promptly when ctx ends. The result is any value that can be
	// encoded as JSON. A model reads the error.
	Do func(ctx context.Context, c *Call) (result any, err error)
	// Log gets structured records; nil discards them.
	Log *slog.Logger
}

// Call is a tool call.
type Call struct {
	// Session is the session of the command; empty when the server has not sent it. Commands of
	// a session share cookies and tabs.
	Session string
	// Command is the id of the command.
	Command string
	Tool    string
	// Params is an unchecked JSON object.
	Params json.RawMessage
}

// Times of a connection.
const (
	connectTimeout = 30 * time.Second // until the server has sent connected
	// heartbeat is the default interval of pings.
	heartbeat = 30 * time.Second
	// lostPongs is how many consecutive pings can stay unanswered.
	lostPongs = 3
	// firstPause is the shortest pause between connections.
	firstPause = time.Second
	// The time limit of a tool is between shortestTool and longestTool, and defaultTool if the
	// server sets none.
	shortestTool, defaultTool, longestTool = time.Second, 30 * time.Second, time.Minute
)

const (
	// maxTools is the maximum number of running tools. Each command uses one at a time.
	maxTools = 4
	// maxCommands is the maximum number of commands whose session is remembered.
	maxCommands = 100
)

// RejectedError is returned when the server permanently rejects the extension.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "the server rejected the extension: " + e.Reason }

// Run connects to the server, and reconnects whenever the connection breaks, until ctx ends.
// Then it cancels running tools, waits for them, and returns the cause of ctx. Before that, it
// returns only with a [*RejectedError], when the server rejects the extension's first
// connection.
func Run(ctx context.Context, o Options) error { return run(ctx, o, dial) }

func run(ctx context.Context, o Options, dial socket.Dialer) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	address, err := o.address()
	if err != nil {
		return &RejectedError{Reason: err.Error()}
	}
	welcome := false
	return socket.Reconnect(ctx, o.Log, firstPause, func() (again bool, err error) {
		c := &connection{o: &o, address: address, sessions: map[string]string{}, tools: map[string]*running{}, unheard: map[string][]byte{}}
		err = c.serve(ctx, dial)
		welcome = welcome || c.greeted
		_, rejected := errors.AsType[*RejectedError](err)
		return !rejected || welcome, err
	})
}

// address returns the URL with the extension's parameters.
func (o *Options) address() (string, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("extension_id", o.ID)
	q.Set("version", Version)
	q.Set("evaluation", "1")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// running is a running tool.
type running struct {
	command string
	cancel  context.CancelCauseFunc
}

// errOver is the cause for ending tools of a finished command.
var errOver = errors.New("the command has ended")

// connection is a connection to the server. It has one goroutine that sends pings and one for
// each tool; serve waits for all of them.
type connection struct {
	o       *Options
	address string
	greeted bool // only the goroutine of serve uses it

	conn socket.Conn
	ctx  context.Context // ends with the connection
	end  context.CancelCauseFunc
	work sync.WaitGroup

	mu       sync.Mutex        // guards the fields below
	pings    int               // number of unanswered pings
	sessions map[string]string // by command
	order    []string          // commands in sessions, the oldest first
	tools    map[string]*running
	unheard  map[string][]byte // unacknowledged results by id
}

// serve connects and serves until the connection breaks or ctx ends.
func (c *connection) serve(ctx context.Context, dial socket.Dialer) error {
	c.ctx, c.end = context.WithCancelCause(ctx)
	defer c.end(nil)
	greeting := time.AfterFunc(connectTimeout, func() { c.end(errors.New("the server did not send connected in time")) })
	defer greeting.Stop()
	var err error
	if c.conn, err = dial(c.ctx, c.address); err != nil {
		return socket.OrCause(c.ctx, err)
	}
	defer c.work.Wait()
	defer c.conn.Close()
	defer c.end(nil)
	for {
		b, err := c.conn.Read(c.ctx)
		if err != nil {
			return socket.OrCause(c.ctx, err)
		}
		var m message
		if json.Unmarshal(b, &m) != nil {
			continue
		}
		if m.Type == "connected" && !c.greeted {
			greeting.Stop()
			c.greeted = true
			c.welcome(&m)
			continue
		}
		if err := c.take(&m); err != nil {
			return err
		}
	}
}

// welcome handles the message connected.
func (c *connection) welcome(m *message) {
	c.o.Log.Info("connected", "url", c.o.URL, "extension", c.o.ID, "version", m.Payload.Version)
	interval := heartbeat
	if s := m.Payload.Timeouts.Heartbeat; s >= 1 && s <= 3600 {
		interval = time.Duration(s * float64(time.Second))
	}
	c.work.Go(func() { c.ping(interval) })
}

// take handles a message of the server.
func (c *connection) take(m *message) error {
	switch m.Type {
	case "pong":
		c.mu.Lock()
		c.pings = 0
		c.mu.Unlock()
	case "ack":
		c.mu.Lock()
		delete(c.unheard, m.CorrelationID)
		c.mu.Unlock()
	case "status_update":
		c.status(m)
	case "tool_execution":
		c.execute(m)
	case "error":
		return c.fault(m)
	}
	return nil
}

// fault handles an error of the server.
func (c *connection) fault(m *message) error {
	p := &m.Payload
	said := fmt.Sprintf("%s (%s)", text.Clip(p.Message, 300), text.Clip(p.Code, 60))
	switch p.Code {
	case "PROTOCOL_VERSION_MISMATCH", "AUTHENTICATION_FAILED":
		return &RejectedError{Reason: said}
	case "RATE_LIMITED":
		c.mu.Lock()
		result := c.unheard[m.CorrelationID]
		c.mu.Unlock()
		if result != nil {
			wait := time.Duration(min(max(p.RetryAfterMS, 100), 60_000)) * time.Millisecond
			c.work.Go(func() {
				if pause.For(c.ctx, wait) == nil {
					c.send(result)
				}
			})
			return nil
		}
	}
	c.o.Log.Warn("server answered with an error", "error", said)
	return nil
}

// status records the session of a command, and ends the tools of a finished command.
func (c *connection) status(m *message) {
	command := m.CorrelationID
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := m.Payload.SessionID; s != "" && command != "" {
		c.rememberLocked(command, s)
	}
	switch m.Payload.Status {
	case "completed", "failed", "cancelled", "timeout":
		for _, r := range c.tools {
			if r.command == command {
				r.cancel(errOver)
			}
		}
	}
}

func (c *connection) rememberLocked(command, session string) {
	if _, known := c.sessions[command]; !known {
		c.order = append(c.order, command)
	}
	c.sessions[command] = session
	if len(c.order) > maxCommands {
		delete(c.sessions, c.order[0])
		c.order = c.order[1:]
	}
}

// execute starts a tool.
func (c *connection) execute(m *message) {
	limit := defaultTool
	if ms := m.Payload.TimeoutMS; ms > 0 {
		limit = min(max(time.Duration(ms)*time.Millisecond, shortestTool), longestTool)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	r := &running{command: m.CorrelationID, cancel: cancel}
	c.mu.Lock()
	call := &Call{Session: c.sessions[m.CorrelationID], Command: m.CorrelationID, Tool: m.Payload.Tool, Params: m.Payload.Params}
	again, busy := c.tools[m.ID] != nil, len(c.tools) >= maxTools
	if !again && !busy {
		c.tools[m.ID] = r
	}
	c.mu.Unlock()
	switch {
	case again:
		cancel(nil)
	case busy:
		cancel(nil)
		c.answer(m.ID, &result{Status: "error", Error: fmt.Sprintf("the browser is busy with %d tools, which is the maximum", maxTools)})
	default:
		c.work.Go(func() {
			defer cancel(nil)
			answer := c.do(ctx, call, limit)
			c.mu.Lock()
			delete(c.tools, m.ID)
			c.mu.Unlock()
			c.answer(m.ID, answer)
		})
	}
}

// do executes a tool.
func (c *connection) do(ctx context.Context, call *Call, limit time.Duration) *result {
	late := fmt.Errorf("%s did not end within %d ms", call.Tool, limit.Milliseconds())
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	begin := time.Now()
	value, err := c.call(ctx, call)
	r := &result{Status: "success", ExecutionTimeMS: time.Since(begin).Milliseconds()}
	if err == nil {
		if r.Result, err = jsonwalk.Encode(value); err == nil && len(r.Result) > maxResult {
			err = fmt.Errorf("the result of %s has %d bytes, the maximum is %d", call.Tool, len(r.Result), maxResult)
		}
	}
	if err != nil {
		r.Status, r.Result, r.Error = "error", nil, text.Clip(err.Error(), maxError)
		if errors.Is(context.Cause(ctx), late) {
			r.Status, r.Error = "timeout", late.Error()
		}
	}
	c.o.Log.Info("tool", "tool", call.Tool, "status", r.Status, "ms", r.ExecutionTimeMS, "error", r.Error)
	return r
}

// call calls Do. A panic in Do ends only this tool.
func (c *connection) call(ctx context.Context, call *Call) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.o.Log.Error("tool panicked", "tool", call.Tool, "panic", p)
			value, err = nil, fmt.Errorf("internal error: %v", p)
		}
	}()
	return c.o.Do(ctx, call)
}

// answer sends the result of a tool, and keeps it until the server has acknowledged it.
func (c *connection) answer(execution string, r *result) {
	id := uuid.NewString()
	b := encode("tool_result", id, execution, r)
	c.mu.Lock()
	if len(c.unheard) >= 2*maxTools { // the server does not acknowledge results
		clear(c.unheard)
	}
	c.unheard[id] = b
	c.mu.Unlock()
	c.send(b)
}

// send writes a message. It ends a connection that accepts no message for a while.
func (c *connection) send(b []byte) {
	if c.ctx.Err() != nil {
		return // the server asks again
	}
	if err := c.conn.Write(c.ctx, b); err != nil {
		c.end(fmt.Errorf("send failed: %w", err))
	}
}

// ping sends pings until the connection ends. It ends the connection when the server stops
// answering.
func (c *connection) ping(interval time.Duration) {
	for pause.For(c.ctx, interval) == nil {
		c.mu.Lock()
		lost := c.pings >= lostPongs
		c.pings++
		c.mu.Unlock()
		if lost {
			c.end(errors.New("the server does not answer pings"))
			return
		}
		c.send(encode("ping", uuid.NewString(), "", struct{}{}))
	}
}
