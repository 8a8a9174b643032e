// Package language is the language server: it keeps what an editor has open, reads the
// suites of it again with every change, and answers what the editor asks about them.
// Make an [Editor] for each connection with [New], and put [Methods] into the method
// table.
//
// What is known of a text belongs to eval/assist, the words of the protocol to rpc/lsp.
package language

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"

	"go.lsp.dev/protocol"

	"waza/eval"
	"waza/rpc/dispatch"
	"waza/rpc/lsp"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

// Client is what an [Editor] needs of its connection; a wire.Stream is one. Its
// methods may be called from any goroutine.
type Client interface {
	// Notify sends a notification. It may block while the client does not read, and
	// fails when ctx ends or the client is gone.
	Notify(ctx context.Context, method string, params any) error
	// Call sends a request and waits for its result.
	Call(ctx context.Context, method string, params any) (json.RawMessage, error)
}

// Suites is what an [Editor] needs of the runner. Its methods may be called from any
// goroutine.
type Suites interface {
	// Vocabulary are the words that suites may use.
	Vocabulary() *eval.Vocabulary
	// ListBy lists runs, newest first.
	ListBy(catalog.Filter) ([]catalog.Info, error)
	// Standing tells how the suite of these runs fared.
	Standing(ctx context.Context, runs []catalog.Info) (*catalog.SuiteStanding, error)
}

// Options are what an [Editor] works with. All are required.
type Options struct {
	Client Client
	Suites Suites
	Log    *slog.Logger
	// Standings are shared by all editors of a server.
	Standings *Standings
	// Turn waits for the leave to do something heavy, until ctx ends.
	Turn func(ctx context.Context) (release func(), err error)
	// Sent gives a channel that is closed when the client was sent the end of a run;
	// nil when it does not receive the run.
	Sent func(runID string) <-chan struct{}
	// Failure is the sentence that says why a run did not complete.
	Failure func(status record.Status, reason string) string
}

// An Editor is what is known of a client that is an editor. Other clients have one, too,
// that knows nothing. All its methods may be called from any goroutine.
//
// Its goroutines: one that reads suites while there are some to read, see checker; one
// for each run that goes on while the client shows it or results. [Editor.Wait] waits for
// them; End, or the end of the connection's context, ends them.
type Editor struct {
	o     Options
	check checker
	ctx   context.Context // the connection's
	// asking ends when the client's input has, or ctx: then nothing is asked of the
	// client any more.
	asking  context.Context
	end     context.CancelFunc
	checks  dispatch.Group
	sending dispatch.Group

	mu     sync.Mutex // guards the fields below
	client lsp.Client
	open   lsp.Documents
	shown  map[string]*runner.Run // runs whose progress the client shows, by token
}

// New makes an editor for a connection, whose end is that of ctx.
func New(ctx context.Context, o Options) *Editor {
	e := &Editor{o: o, ctx: ctx}
	e.check.e = e
	e.asking, e.end = context.WithCancel(ctx)
	return e
}

// Begin takes note of what the client can do.
func (e *Editor) Begin(c lsp.Client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.client = c
}

// Settle waits until no suite is being read, or ctx ends.
func (e *Editor) Settle(ctx context.Context) { e.checks.Wait(ctx) }

// End says that the client's input has ended: nothing more is asked of it.
func (e *Editor) End() { e.end() }

// Wait waits until the editor has no goroutine any more, or ctx ends.
func (e *Editor) Wait(ctx context.Context) {
	e.checks.Wait(ctx)
	e.sending.Wait(ctx)
}

// documents are those that are open now.
func (e *Editor) documents() lsp.Documents {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// abilities is what the client can do.
func (e *Editor) abilities() lsp.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.client
}

// A Request is what the methods of the table get of the request and its connection.
type Request struct {
	// Execute carries out a command of workspace/executeCommand, whose argument is nil
	// when absent.
	Execute func(ctx context.Context, command string, argument json.RawMessage) (json.RawMessage, error)

	editor *Editor
	method string
	// open is what the client had open when it sent the request: later changes do
	// not move the places that it asks about.
	open lsp.Documents
}

// Request makes one for a method that is called now.
func (e *Editor) Request(method string) *Request {
	return &Request{editor: e, method: method, open: e.documents()}
}

type method = dispatch.Method[*Request]

// Methods lists the methods of the Language Server Protocol that are spoken, in the
// order of the reference document. What a client is offered of them,
// [lsp.Client.ServerCapabilities] says.
func Methods() []*method {
	var all []*method
	for _, family := range [][]*method{documentMethods(), assistMethods(), actionMethods(), lensMethods(), commandMethods()} {
		all = append(all, family...)
	}
	return all
}

// speak makes an entry of the table of the Language Server Protocol, on the same
// connection as all other methods. Parameters and result are its types, encoded
// by its rules; members that are not known are no error, because it grows. A nil
// result is null.
func speak[P any](name string, class dispatch.Class, doc string, h func(context.Context, *Request, *P) (any, error)) *method {
	return &method{
		Entry: dispatch.Entry{Name: name, Doc: doc, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[any]()}, Class: class,
		Serve: func(ctx context.Context, q *Request, raw json.RawMessage) (any, error) {
			p := new(P)
			if raw != nil {
				if err := protocol.Unmarshal(raw, p); err != nil {
					return nil, &dispatch.ParamError{Message: "parameters are not those of " + name + ": " + err.Error()}
				}
			}
			result, err := h(ctx, q, p)
			if err != nil || result == nil {
				return nil, err
			}
			if raw, ok := result.(json.RawMessage); ok {
				return raw, nil
			}
			encoded, err := protocol.Marshal(result)
			return json.RawMessage(encoded), err
		},
	}
}
