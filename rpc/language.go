package rpc

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"go.lsp.dev/protocol"

	"waza/rpc/lsp"
	"waza/runner"
)

// speak makes an entry of the table of the Language Server Protocol, on the same
// connection as all other methods. Parameters and result are its types, encoded
// by its rules; members that are not known are no error, because it grows. A nil
// result is null.
func speak[P any](name string, class class, doc string, h func(*call, context.Context, *P) (any, error)) *method {
	return &method{
		name: name, class: class, doc: doc,
		params: reflect.TypeFor[P](), result: reflect.TypeFor[any](),
		serve: func(ctx context.Context, c *call, raw json.RawMessage) (any, error) {
			p := new(P)
			if raw != nil {
				if err := protocol.Unmarshal(raw, p); err != nil {
					return nil, &paramError{message: "parameters are not those of " + name + ": " + err.Error()}
				}
			}
			result, err := h(c, ctx, p)
			if err != nil || result == nil {
				return nil, err
			}
			return languageResult(result)
		},
	}
}

// languageResult encodes a result by the rules of the Language Server Protocol,
// unless it is JSON already.
func languageResult(result any) (any, error) {
	if raw, ok := result.(json.RawMessage); ok {
		return raw, nil
	}
	raw, err := protocol.Marshal(result)
	return json.RawMessage(raw), err
}

// languageTable lists the methods of the Language Server Protocol that are
// spoken, in the order of the reference document. What a client is offered of
// them, [lsp.Client.ServerCapabilities] says.
func languageTable() []*method {
	var all []*method
	for _, family := range [][]*method{documentMethods(), assistMethods(), actionMethods(), lensMethods(), commandMethods()} {
		all = append(all, family...)
	}
	return all
}

// language is what a session knows of a client that is an editor.
type language struct {
	check checker
	// ctx ends when the client's input has, or the session: then nothing is asked
	// of the client any more.
	ctx context.Context
	end context.CancelFunc

	mu     sync.Mutex // guards the fields below
	client lsp.Client
	open   lsp.Documents
	shown  map[string]*runner.Run // runs whose progress the client shows, by token
}

// begin takes note of what the client can do.
func (l *language) begin(c lsp.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client = c
}

// documents are those that are open now.
func (l *language) documents() lsp.Documents {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// abilities is what the client can do.
func (l *language) abilities() lsp.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}
