package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/rpc/wire"
)

// A Call is a request, or a notification, on its way to its reply. Only its handler
// uses it.
type Call struct {
	// Request is what the client sent. Its ID is not the client's.
	Request *jsonrpc2.Request

	shared *shared
	stream *wire.Stream
	large  chan struct{} // of the connection, see Alone
	known  bool          // a method has its name
	after  func()        // called once the reply is given; may be nil
}

// Replied gives a channel that is closed once the reply is on its way, before anything
// that is sent from then on, or once the stream has ended. It is nil for notifications.
// Ask before the reply is given.
func (c *Call) Replied() <-chan struct{} {
	if c.Request.Notif {
		return nil
	}
	return c.stream.Replied(c.Request.ID)
}

// answer calls the handler and replies. What panics becomes an error that tells the
// client nothing; the log gets the stack.
func answer[C any](ctx context.Context, c *Call, m *Method[C], of C) {
	begin := time.Now()
	var result any
	var err error
	defer func() {
		if p := recover(); p != nil {
			c.shared.log.Error("panic", "method", c.Request.Method, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, errPanicked
		}
		c.reply(result, err)
		if c.after != nil {
			c.after()
		}
		c.shared.log.Debug("served", "method", c.Request.Method, "took", time.Since(begin), "error", err)
	}()
	if m.Class == Heavy {
		var release func()
		if release, err = c.shared.Turn(ctx); err != nil {
			return
		}
		defer release() // before the reply
	}
	if err = ctx.Err(); err != nil {
		return
	}
	var params json.RawMessage
	if c.Request.Params != nil {
		params = *c.Request.Params
	}
	result, err = m.Serve(ctx, of, params)
}

// reply answers the request; a notification is owed nothing.
func (c *Call) reply(result any, err error) {
	var raw json.RawMessage
	var body *wire.Body
	if err == nil {
		if raw, body, err = encode(result); err != nil {
			err = fmt.Errorf("result of %s: %w", c.Request.Method, err)
		}
	}
	done := false
	if err == nil {
		done, err = c.replyLarge(raw, body)
	}
	var fault *wire.Error
	code := int64(0)
	if err != nil {
		fault = FaultOf(err)
		if fault.Code == wire.CodeRunNotFound && fault.Data == nil {
			fault = NewFault(fault.Code, "", c.runAsked())
		}
		code = fault.Code
		if fault.Code == wire.CodeInternalError && !errors.Is(err, errPanicked) {
			c.shared.log.Error("internal error", "method", c.Request.Method, "error", err)
		}
	}
	if c.shared.served != nil {
		name := Unknown
		if c.known {
			name = c.Request.Method
		}
		c.shared.served(name, code)
	}
	if done || c.Request.Notif {
		return
	}
	resp := &jsonrpc2.Response{ID: c.Request.ID, Result: &raw}
	if fault != nil {
		resp.Result, resp.Error = nil, fault.Reply()
	}
	// It fails only when the client is gone, which the connection notices itself.
	_ = c.stream.Reply(resp)
}

// runAsked names the run of the request, of which it turned out later that it is gone.
func (c *Call) runAsked() map[string]any {
	var p struct {
		RunID string `json:"runId"`
	}
	if c.Request.Params == nil || json.Unmarshal(*c.Request.Params, &p) != nil || p.RunID == "" {
		return nil
	}
	return map[string]any{"runId": Clip(p.RunID)}
}

// Encoded is a result that is JSON already: bytes, or a body where there are many.
type Encoded interface {
	Encoded() (json.RawMessage, *wire.Body)
}

// encode gives a result as JSON; one that is JSON already is not copied.
func encode(result any) (json.RawMessage, *wire.Body, error) {
	if r, ok := result.(Encoded); ok {
		raw, body := r.Encoded()
		return raw, body, nil
	}
	raw, err := wire.Encode(result)
	return raw, nil, err
}
