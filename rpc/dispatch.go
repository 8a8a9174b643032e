package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/eval/decode"
	"waza/rpc/lsp"
	"waza/rpc/wire"
)

// class says how a method is served.
type class int

const (
	// quick methods take no time. They are served by the reader, in the order
	// of the requests.
	quick class = iota
	// long methods read files: each request has a goroutine.
	long
	// heavy methods are long ones that may take much memory and processor
	// time: only some are served at once, on behalf of all clients.
	heavy
)

// A method is an entry of the method table.
type method struct {
	name   string
	class  class
	doc    string       // sentences for reference documents
	params reflect.Type // struct
	result reflect.Type
	serve  func(ctx context.Context, c *call, raw json.RawMessage) (any, error)
}

// define makes an entry. The parameters are what the fields of P say, see
// params.go; the result is R as encoding/json writes it.
func define[P, R any](name string, class class, doc string, h func(*call, context.Context, *P) (R, error)) *method {
	return &method{
		name: name, class: class, doc: doc,
		params: reflect.TypeFor[P](), result: reflect.TypeFor[R](),
		serve: func(ctx context.Context, c *call, raw json.RawMessage) (any, error) {
			p := new(P)
			if err := decodeParams(raw, p); err != nil {
				return nil, err
			}
			return h(c, ctx, p)
		},
	}
}

// table lists all methods, in the order of the reference documents. It is a
// function because rpc.discover describes the table it stands in.
func table() []*method {
	var all []*method
	for _, family := range [][]*method{
		evalMethods(), watchMethods(), taskMethods(), runMethods(), resumeMethods(), cleanupMethods(), gradeMethods(), reviewMethods(), trialMethods(), compareMethods(), exportMethods(), pageMethods(),
		lifecycleMethods(), discoverMethods(),
	} {
		all = append(all, family...)
	}
	return all
}

// A call is a request, or a notification, on its way to its reply.
type call struct {
	*session
	conn   *jsonrpc2.Conn
	method *method
	req    *jsonrpc2.Request
	after  func() // called once the reply is given; may be nil
	// open is what the client had open when it sent the request: later changes do
	// not move the places that it asks about.
	open lsp.Documents
}

// replied is closed once the reply is on its way, before anything that is sent
// from then on. Ask before the reply is given.
func (c *call) replied() <-chan struct{} {
	if c.req.Notif {
		return nil
	}
	return c.stream.Replied(c.req.ID)
}

// Handle takes the next request. It is called by the reader and does not block.
func (s *session) Handle(_ context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	c := &call{session: s, conn: conn, req: req, open: s.language.documents()}
	var err error
	if c.method, err = s.admit(req.Method); err != nil {
		c.reply(nil, err)
		return
	}
	if c.method.class == quick {
		c.answer(s.ctx)
		return
	}
	ctx, done, ok := s.track(req)
	if !ok {
		s.server.log.Warn("notification dropped: too many are being served", "method", req.Method)
		return
	}
	s.calls.Go(func() {
		defer done()
		c.answer(ctx)
	})
}

// admit finds the method, if this client may call it now.
func (s *session) admit(name string) (*method, error) {
	s.mu.Lock()
	authorised, turnedAway, shutdown := s.authorised, s.turnedAway, s.shutdown
	s.mu.Unlock()
	m := s.server.methods[name]
	switch {
	case turnedAway:
		return nil, errWrongToken
	case !authorised && name != "initialize":
		return nil, errUnauthorised
	case m == nil:
		return nil, &unknownMethodError{name, s.server.nearestMethod(name)}
	case name == "exit" || name == "$/cancelRequest":
		return m, nil
	case shutdown || s.server.isClosing():
		return nil, errShuttingDown
	}
	return m, nil
}

func (s *Server) nearestMethod(name string) string {
	names := make([]string, 0, len(s.methods))
	for n := range s.methods {
		names = append(names, n)
	}
	return decode.Nearest(name, names)
}

// maxUnanswered bounds the long notifications being served. Requests are bounded
// by the stream, but it cannot count what is owed no reply.
const maxUnanswered = 16

// track gives the context of a long request, which $/cancelRequest can end.
func (s *session) track(req *jsonrpc2.Request) (ctx context.Context, done func(), ok bool) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Notif {
		if s.unanswered >= maxUnanswered {
			cancel()
			return nil, nil, false
		}
		s.unanswered++
		return ctx, func() {
			cancel()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.unanswered--
		}, true
	}
	s.inFlight[req.ID] = cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.inFlight, req.ID)
	}, true
}

// answer calls the handler and replies.
func (c *call) answer(ctx context.Context) {
	begin := time.Now()
	result, err := c.run(ctx)
	c.reply(result, err)
	if c.after != nil {
		c.after()
	}
	c.server.log.Debug("served", "method", c.req.Method, "took", time.Since(begin), "error", err)
}

// run calls the handler. What panics becomes an error that tells the client
// nothing; the log gets the stack.
func (c *call) run(ctx context.Context) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.server.log.Error("panic", "method", c.req.Method, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, errPanicked
		}
	}()
	if c.method.class == heavy {
		select {
		case c.server.slots <- struct{}{}:
			defer func() { <-c.server.slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if c.req.Params != nil {
		raw = *c.req.Params
	}
	return c.method.serve(ctx, c, raw)
}

// reply answers the request; a notification is owed nothing.
func (c *call) reply(result any, err error) {
	var raw json.RawMessage
	if err == nil {
		if raw, err = encode(result); err != nil {
			err = fmt.Errorf("result of %s: %w", c.req.Method, err)
		}
	}
	done := false
	if err == nil {
		done, err = c.replyLarge(result, raw)
	}
	var fault *wire.Error
	code := int64(0)
	if err != nil {
		fault = faultOf(err)
		if fault.Code == wire.CodeRunNotFound && fault.Data == nil {
			fault = newFault(fault.Code, "", c.runAsked())
		}
		code = fault.Code
		if fault.Code == wire.CodeInternalError && !errors.Is(err, errPanicked) {
			c.server.log.Error("internal error", "method", c.req.Method, "error", err)
		}
	}
	c.server.counts.answered(c, code)
	if done || c.req.Notif {
		return
	}
	resp := &jsonrpc2.Response{ID: c.req.ID, Result: &raw}
	if fault != nil {
		resp.Result, resp.Error = nil, fault.Reply()
	}
	// It fails only when the client is gone, which the session notices itself.
	_ = c.conn.SendResponse(context.Background(), resp)
}

// runAsked names the run of the request, of which it turned out later that it is gone.
func (c *call) runAsked() map[string]any {
	var p runParams
	if c.req.Params == nil || json.Unmarshal(*c.req.Params, &p) != nil || p.RunID == "" {
		return nil
	}
	return map[string]any{"runId": clip(p.RunID)}
}

// encode gives a result as JSON; one that is JSON already is not copied.
func encode(result any) (json.RawMessage, error) {
	if r, ok := result.(interface{ rawJSON() json.RawMessage }); ok {
		return r.rawJSON(), nil
	}
	return wire.Encode(result)
}
