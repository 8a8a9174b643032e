package language

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"go.lsp.dev/protocol"

	"waza/eval"
	"waza/rpc/dispatch"
	"waza/rpc/lsp"
	"waza/runner"
)

func lensMethods() []*method {
	return []*method{
		speak("textDocument/codeLens", dispatch.Long,
			"Above a suite and above each task: run, debug, and how it fared last, such as `7/10 [0.40–0.89] ▼ from 10/10`: trials that passed, of those that count, the 95 % interval of their rate, and what it was the time before. "+
				"The client is asked for a refresh when a run of a suite ends.", codeLens),
	}
}

func codeLens(ctx context.Context, q *Request, p *protocol.CodeLensParams) (any, error) {
	doc := q.open.Get(p.TextDocument.URI)
	if doc == nil {
		return nil, nil
	}
	if err := q.editor.check.settled(ctx); err != nil {
		return nil, err
	}
	suite := q.editor.check.suiteOf(doc.Path)
	if suite == nil {
		return nil, nil
	}
	standing, err := q.editor.o.Standings.of(ctx, q.editor.o.Suites, suite.File)
	if err != nil {
		return nil, err
	}
	return lsp.Lenses(doc, suite, standing), nil
}

// suiteOf gives the suite that a document belongs to as it was last read: itself,
// or the one whose directory is the nearest. It is nil when none is known.
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

// nearer says whether a suite is nearer to a document than another.
func nearer(a, b, path string) bool {
	da, db := closeness(a, path), closeness(b, path)
	return da > db || da == db && a < b
}

// closeness is how long the suite's directory is, if the document is below it.
func closeness(suite, path string) int {
	dir := filepath.Dir(suite)
	if !strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)) {
		return -1
	}
	return len(dir)
}

// Announce lets a client that shows results know when a run has ended.
func (e *Editor) Announce(run *runner.Run) {
	if e.abilities().RefreshesLenses() {
		e.sending.Go(func() { e.refreshAfter(run) })
	}
}

// refreshAfter lets the client ask for its lenses again when a run has ended, and
// the client was sent that.
func (e *Editor) refreshAfter(run *runner.Run) {
	if !e.await(run.Done()) {
		return
	}
	if sent := e.o.Sent(run.ID()); sent != nil && !e.await(sent) {
		return
	}
	e.o.Standings.outdated(run.Record().Suite.Path)
	e.ask("workspace/codeLens/refresh", nil)
}

// await waits for a channel to be closed. It is false when the client's end comes first.
func (e *Editor) await(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-e.asking.Done():
		return false
	}
}

// askTime is how long a client may take to answer what needs no person.
const askTime = 30 * time.Second

// ask sends the client a request of which nothing is needed but that it was sent.
func (e *Editor) ask(method string, params any) {
	ctx, cancel := context.WithTimeout(e.asking, askTime)
	defer cancel()
	if _, err := e.o.Client.Call(ctx, method, params); err != nil {
		e.o.Log.Debug("the client does not do what it is asked", "method", method, "error", err)
	}
}
