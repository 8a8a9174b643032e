package language

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"go.lsp.dev/protocol"

	"waza/eval"
	"waza/rpc/internal/dispatch"
	"waza/runner"
)

func lensMethods() []*method {
	return []*method{
		lspMethod("textDocument/codeLens", dispatch.Long,
			"Lenses above a suite and each of its tasks: run, debug, and the last result, such as `7/10 [0.34–0.94] ▼ "+
				"from 10/10`: passed trials of those that count, the 95 % interval of the pass rate, and the result before. "+
				"The server asks the client for a refresh when a run of a suite ends.", codeLens),
	}
}

func codeLens(ctx context.Context, q *Request, p *protocol.CodeLensParams) (any, error) {
	doc := q.open.Get(p.TextDocument.URI)
	if doc == nil {
		return nil, nil
	}
	if err := q.editor.check.waitIdle(ctx); err != nil {
		return nil, err
	}
	suite := q.editor.check.suiteOf(doc.Path)
	if suite == nil {
		return nil, nil
	}
	standing, err := q.editor.o.Standings.latest(ctx, q.editor.o.Suites, suite.File)
	if err != nil {
		return nil, err
	}
	return doc.Lenses(suite, standing), nil
}

// suiteOf returns the suite of a document as last read: the document itself, or the suite in the
// nearest directory above. It returns nil if no suite is known.
func (k *checker) suiteOf(path string) *eval.Suite {
	k.mu.Lock()
	defer k.mu.Unlock()
	var best *eval.Suite
	for file, r := range k.suites {
		switch {
		case r.suite == nil || !r.on[path] && !r.suite.Has(path):
		case file == path:
			return r.suite
		case best == nil || nearer(file, best.File, path):
			best = r.suite
		}
	}
	return best
}

// nearer reports whether suite a is nearer to a document than b.
func nearer(a, b, path string) bool {
	da, db := closeness(a, path), closeness(b, path)
	return da > db || da == db && a < b
}

// closeness returns the length of the suite's directory if the document is below it.
func closeness(suite, path string) int {
	dir := filepath.Dir(suite)
	if !strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)) {
		return -1
	}
	return len(dir)
}

// Announce notifies a client that shows results when a run has ended.
func (e *Editor) Announce(run *runner.Run) {
	if e.capabilities().RefreshesLenses() {
		e.sending.Go(func() { e.refreshAfter(run) })
	}
}

// refreshAfter asks the client to refresh its lenses when a run has ended and the client was
// notified of the end.
func (e *Editor) refreshAfter(run *runner.Run) {
	if !e.await(run.Done()) {
		return
	}
	if sent := e.o.Sent(run.ID()); sent != nil && !e.await(sent) {
		return
	}
	e.o.Standings.invalidate(run.Record().Suite.Path)
	e.ask("workspace/codeLens/refresh", nil)
}

// await waits until c is closed. It returns false if the client leaves first.
func (e *Editor) await(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-e.asking.Done():
		return false
	}
}

// askTime limits the time for a client to answer a request that needs no person.
const askTime = 30 * time.Second

// ask sends the client a request and ignores the result.
func (e *Editor) ask(method string, params any) {
	if _, err := e.call(e.asking, method, params); err != nil {
		e.o.Log.Debug("request to the client failed", "method", method, "error", err)
	}
}

// call sends the client a request and waits for the result. params may be nil.
func (e *Editor) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if params != nil {
		encoded, err := protocol.Marshal(params)
		if err != nil {
			return nil, err
		}
		params = json.RawMessage(encoded)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return e.o.Client.Call(ctx, method, params)
}
