// Package language is the language server. It keeps the documents that an editor has open, reads
// their suites again after every change, and answers the editor's requests about them. Make an
// [Editor] for each connection with [New], and put [Methods] into the method table.
//
// Package eval/assist analyses the texts, and rpc/internal/lsp has the types of the protocol.
package language

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"

	"go.lsp.dev/protocol"

	"waza/eval"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/lsp"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

// Client is what an [Editor] needs from its connection; a wire.Stream is one. Its methods must
// be safe for concurrent use.
type Client interface {
	// Notify sends a notification. It can block while the client does not read, and fails when
	// ctx ends or the client is gone.
	Notify(ctx context.Context, method string, params any) error
	// Call sends a request and waits for its result.
	Call(ctx context.Context, method string, params any) (json.RawMessage, error)
}

// Suites is what an [Editor] needs from the runner. Its methods must be safe for concurrent use.
type Suites interface {
	// Vocabulary returns the words that suites can use.
	Vocabulary() *eval.Vocabulary
	// ListBy lists runs, newest first.
	ListBy(catalog.Filter) ([]catalog.Info, error)
	// Standing returns the latest results of the suite of these runs.
	Standing(ctx context.Context, runs []catalog.Info) (*catalog.SuiteStanding, error)
}

// Options configure an [Editor]. All are required.
type Options struct {
	Client Client
	Suites Suites
	Log    *slog.Logger
	// Standings are shared by all editors of a server.
	Standings *Standings
	// Turn waits until a heavy operation can start, or ctx ends.
	Turn func(ctx context.Context) (release func(), err error)
	// Sent returns a channel that is closed once the client was sent the end of a run, or nil if
	// the client does not receive the run.
	Sent func(runID string) <-chan struct{}
	// Failure explains in a sentence why a run did not complete.
	Failure func(status record.Status, reason string) string
}

// An Editor is the state of a client that is an editor. Other clients have an empty one. All its
// methods are safe for concurrent use.
//
// Its goroutines: one that reads suites while some are due, see checker; one for each active run
// that the client shows, or whose results it shows. [Editor.Wait] waits for them; End, or the
// end of the connection's context, ends them.
type Editor struct {
	o     Options
	check checker
	ctx   context.Context // the connection's
	// asking ends with the client's input or with ctx: then the server sends the client no more
	// requests.
	asking  context.Context
	end     context.CancelFunc
	checks  dispatch.Group
	sending dispatch.Group

	mu     sync.Mutex // guards the fields below
	client lsp.Client
	open   lsp.Documents
	shown  map[string]*runner.Run // runs whose progress the client shows, by token
}

// New returns an editor for a connection that ends with ctx.
func New(ctx context.Context, o Options) *Editor {
	e := &Editor{o: o, ctx: ctx}
	e.check.e = e
	e.asking, e.end = context.WithCancel(ctx)
	return e
}

// SetClient stores the capabilities of the client.
func (e *Editor) SetClient(c lsp.Client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.client = c
}

// Settle waits until no suite is being read, or ctx ends.
func (e *Editor) Settle(ctx context.Context) { e.checks.Wait(ctx) }

// End reports that the client's input has ended: the editor sends it no more requests.
func (e *Editor) End() { e.end() }

// Wait waits until all goroutines of the editor have ended or ctx ends.
func (e *Editor) Wait(ctx context.Context) {
	e.checks.Wait(ctx)
	e.sending.Wait(ctx)
}

func (e *Editor) documents() lsp.Documents {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

func (e *Editor) capabilities() lsp.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.client
}

// A Request gives the methods of the table access to the request and its connection.
type Request struct {
	// Execute executes a command of workspace/executeCommand. The argument is nil if absent.
	Execute func(ctx context.Context, command string, argument json.RawMessage) (json.RawMessage, error)

	editor *Editor
	method string
	// open is the set of documents that were open when the client sent the request. Later
	// changes do not move the positions in the request.
	open lsp.Documents
}

// Request returns the request for a method that is called now.
func (e *Editor) Request(method string) *Request {
	return &Request{editor: e, method: method, open: e.documents()}
}

type method = dispatch.Method[*Request]

// Methods lists the supported methods of the Language Server Protocol, in the order of the
// reference document. [lsp.Client.ServerCapabilities] decides which of them a client is offered.
func Methods() []*method {
	var all []*method
	for _, family := range [][]*method{documentMethods(), assistMethods(), actionMethods(), lensMethods(), commandMethods()} {
		all = append(all, family...)
	}
	return all
}

// lspMethod returns an entry for a method of the Language Server Protocol, for the same table as
// all other methods. Parameters and result are types of that protocol, encoded by its rules.
// Unknown members are ignored, because the protocol grows. A nil result becomes null.
func lspMethod[P any](name string, class dispatch.Class, doc string, h func(context.Context, *Request, *P) (any, error)) *method {
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
