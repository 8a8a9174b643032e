// Package agent implements the agent's side of the protocol of evaluation agents. It connects
// to a server, registers, and executes evaluations. Call [Run] with a function that executes
// one, such as [Program.Do].
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"waza/rpc/client/internal/socket"
	"waza/runner/executor/remote"
)

// Options configure an agent.
type Options struct {
	// URL is the ws:// or wss:// address of the server.
	URL string
	// ClientID is a UUID v4 that is unique to the agent, see [Identity].
	ClientID string
	// Key is the key that the server requires; empty means none. It is never logged.
	Key string
	// Tools are the agent's tools; none means that the agent accepts any tool.
	Tools []string
	// Concurrency is the number of concurrent evaluations; 0 means 1.
	Concurrency int
	// Version is the version of the agent; empty means 1.0.0.
	Version string
	// Do executes an evaluation. Many goroutines call it at once. It returns promptly when ctx
	// ends. Until it returns, it can call status with a line of text at any time.
	Do func(ctx context.Context, e *remote.Evaluation, status func(message string)) (result any, fault *remote.Fault)
	// Log gets structured records; nil discards them.
	Log *slog.Logger
}

// Times of a connection.
const (
	connectTimeout = 30 * time.Second // until the server has accepted the agent
	pingInterval   = 30 * time.Second
	// silence is how long a connection can be silent, without even answers to pings.
	silence = 3 * pingInterval
	// firstPause is the shortest pause between connections.
	firstPause = 500 * time.Millisecond
)

// RejectedError is returned when the server rejects the agent's first registration.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "the server rejected the agent: " + e.Reason }

// Run connects to the server, and reconnects whenever the connection breaks, until ctx ends.
// Then it cancels running evaluations, waits for them, and returns the cause of ctx. Before
// that, it returns only with a [*RejectedError].
func Run(ctx context.Context, o Options) error { return run(ctx, o, dial) }

func run(ctx context.Context, o Options, dial socket.Dialer) error {
	o.Concurrency, o.Version = max(1, o.Concurrency), cmp.Or(o.Version, "1.0.0")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancelCause(ctx)
	a := &agent{Options: o, ctx: ctx, dial: dial, running: map[string]bool{}}
	defer a.work.Wait()
	defer cancel(nil)
	return socket.Reconnect(ctx, o.Log, firstPause, func() (again bool, err error) {
		err = a.connect()
		_, rejected := errors.AsType[*RejectedError](err)
		return !rejected || a.welcome, err
	})
}

// agent is the state of Run across connections. It has one goroutine for each evaluation, which
// Run waits for, and one for each connection.
type agent struct {
	Options
	ctx     context.Context // of Run
	dial    socket.Dialer
	work    sync.WaitGroup
	welcome bool // the server has accepted it once; only Run's goroutine uses it

	mu      sync.Mutex      // guards the fields below
	session *connection     // accepted session; nil without one
	running map[string]bool // ids of evaluations
	memory  memory
}

// evaluate starts an evaluation unless it is running or finished.
func (a *agent) evaluate(s *connection, id json.RawMessage, params json.RawMessage) {
	var e remote.Evaluation
	if err := json.Unmarshal(params, &e); err != nil {
		s.send(failure(id, &remote.Fault{Code: codeInvalidParams, Message: "Invalid params: " + err.Error()}))
		return
	}
	key := string(id)
	a.mu.Lock()
	answer, busy := a.memory.take(key), len(a.running) >= a.Concurrency
	again := a.running[key]
	if answer == nil && !again && !busy {
		a.running[key] = true
	}
	a.mu.Unlock()
	switch {
	case answer != nil:
		s.send(answer)
	case again:
	case busy:
		s.send(failure(id, &remote.Fault{
			Code:    remote.CodeRateLimited,
			Message: "Rate limit exceeded: the agent already executes its maximum number of evaluations",
			Data:    json.RawMessage(`{"retryAfter":1000}`),
		}))
	default:
		a.work.Go(func() { a.do(id, &e) })
	}
}

// do executes an evaluation and sends its answer, or keeps the answer for the next connection.
func (a *agent) do(id json.RawMessage, e *remote.Evaluation) {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	if e.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx,
			time.Duration(min(e.Timeout, int64(24*time.Hour/time.Millisecond)))*time.Millisecond, errTimeout)
		defer cancel()
	}
	a.status(e, remote.Status{Status: "running"})
	result, fault := a.call(ctx, e)
	if a.ctx.Err() != nil {
		return // the server assigns it to another agent
	}
	var answer []byte
	if errors.Is(context.Cause(ctx), errTimeout) && fault != nil {
		fault = &remote.Fault{
			Code: remote.CodeTimeout, Message: fmt.Sprintf("Evaluation exceeded its timeout of %d ms", e.Timeout),
			Data: fault.Data,
		}
	}
	if fault == nil {
		answer, fault = success(id, result)
	}
	end := remote.Status{Status: "completed"}
	if fault != nil {
		end.Status, answer = "failed", failure(id, fault)
	}
	a.status(e, end)
	key := string(id)
	a.mu.Lock()
	delete(a.running, key)
	s := a.session
	a.memory.keep(key, answer, s != nil)
	a.mu.Unlock()
	if s != nil {
		s.send(answer) // and sent again when the server asks again
	}
}

// errTimeout is the cause of an evaluation that exceeds its timeout.
var errTimeout = errors.New("evaluation timed out")

// call calls Do. A panic in Do ends this evaluation, not the agent.
func (a *agent) call(ctx context.Context, e *remote.Evaluation) (result any, fault *remote.Fault) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("evaluation panicked", "evaluation", e.ID, "panic", p)
			result, fault = nil, &remote.Fault{Code: codeInternal, Message: fmt.Sprintf("Internal error: %v", p)}
		}
	}()
	return a.Do(ctx, e, func(message string) {
		a.status(e, remote.Status{Status: "running", Message: message})
	})
}

// status reports the progress of an evaluation. Without a connection, the report is lost.
func (a *agent) status(e *remote.Evaluation, st remote.Status) {
	a.mu.Lock()
	s := a.session
	a.mu.Unlock()
	if s == nil {
		return
	}
	s.send(encode(struct {
		Type         string `json:"type"`
		EvaluationID string `json:"evaluationId"`
		remote.Status
	}{"status", e.ID, st}))
}
