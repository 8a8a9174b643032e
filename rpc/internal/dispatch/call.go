package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/eval/jsonwalk"
	"waza/rpc/internal/wire"
)

// A Call is a request or notification until the server has replied to it. Only its handler uses
// it.
type Call struct {
	// Request is the message of the client. Its ID is an internal one, not the client's.
	Request *jsonrpc2.Request

	shared       *shared
	stream       *wire.Stream
	large        chan struct{} // token of the connection, see Alone
	methodExists bool          // a method with this name exists
	onReplied    func()        // called after the reply; may be nil
}

// Replied returns a channel that is closed once the reply is queued or the stream has ended.
// Later messages follow the reply. The channel is nil for notifications. Call
// Replied before the handler returns.
func (c *Call) Replied() <-chan struct{} {
	if c.Request.Notif {
		return nil
	}
	return c.stream.Replied(c.Request.ID)
}

// answer calls the handler and replies. A panic becomes an internal error without details for
// the client; the stack goes to the log.
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
		if c.onReplied != nil {
			c.onReplied()
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

// reply answers a request; it does nothing for a notification.
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
		if c.methodExists {
			name = c.Request.Method
		}
		c.shared.served(name, code)
	}
	if done || c.Request.Notif {
		return
	}
	// Fails only if the client is gone, which the connection notices itself.
	_ = c.stream.Reply(c.Request.ID, raw, fault)
}

// runAsked returns the run id in the request, for an error about a run that no longer exists.
func (c *Call) runAsked() map[string]any {
	var p struct {
		RunID string `json:"runId"`
	}
	if c.Request.Params == nil || json.Unmarshal(*c.Request.Params, &p) != nil || p.RunID == "" {
		return nil
	}
	return map[string]any{"runId": Clip(p.RunID)}
}

// Encoded is a result that is already JSON: bytes, or a body if it is large.
type Encoded interface {
	Encoded() (json.RawMessage, *wire.Body)
}

// encode returns a result as JSON. It does not copy a result that is already JSON.
func encode(result any) (json.RawMessage, *wire.Body, error) {
	if r, ok := result.(Encoded); ok {
		raw, body := r.Encoded()
		return raw, body, nil
	}
	raw, err := jsonwalk.Encode(result)
	return raw, nil, err
}
