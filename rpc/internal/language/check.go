package language

import (
	"context"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/rpc/internal/lsp"
	"waza/runner/pause"
)

// A checker reads the suites of a client's open documents, again after every change, and
// publishes their findings.
//
//	didOpen, didChange, … ─► markDue ─► due ─► round: eval.Load ─► publish
//	      (the reader)                   ▲         │
//	                                     └─ stale ─┘
//
// A round starts at once if none is running, so that findings appear while the user types. The
// checker publishes them only if the texts that the round read are still current. Otherwise the
// next round waits as long as the last one took, up to a limit. So a large suite is not read for
// every key, and reading it uses at most half of a processor.
//
// The checker has one goroutine, among the checks of the editor, while something is due.
type checker struct {
	e *Editor

	mu      sync.Mutex // guards the fields below
	running bool
	idle    chan struct{}         // closed when nothing is due any more; nil when nobody waits
	due     map[string]bool       // suites to read again
	strays  map[string]bool       // open documents whose suites are not known yet
	suites  map[string]*suiteRead // open suites, and suites of open documents
	last    map[string]published  // by file
}

// suiteRead is a suite as it was last read.
type suiteRead struct {
	on    map[string]bool // paths it depends on, see eval.Options.Accessed
	found map[string]decode.Diagnostics
	// suite is the suite as of the last time when all its files were valid YAML. They often are
	// not while the user types, and lenses above tasks should not come and go. It is nil if the
	// files were never valid.
	suite *eval.Suite
}

// restAtMost limits how long a round waits for more changes.
const restAtMost = 200 * time.Millisecond

// maxAbove limits the suites that are read to find those of one document.
const maxAbove = 50

// maxSuites limits the suites that are kept for one client.
const maxSuites = 200

// markDue makes suites due that depend on a file. With search, the next round also looks for
// suites that the file may belong to, and the file's findings are published even if unchanged.
func (k *checker) markDue(path string, search bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	dir := filepath.Dir(path)
	for suite, r := range k.suites {
		if suite == path || r.on[path] || search && r.on[dir] {
			set(&k.due, suite)
		}
	}
	if search {
		delete(k.last, path)
	}
	switch {
	case discover.IsSuiteIn(path, files.View{}):
		set(&k.due, path)
	case search:
		set(&k.strays, path)
	}
	k.startLocked()
}

// markChanged makes suites due that depend on changed, new or deleted files. A suite among the
// files may belong to any document without a known suite.
func (k *checker) markChanged(paths []string) {
	open := k.e.documents()
	k.mu.Lock()
	defer k.mu.Unlock()
	isSuite := false
	for _, path := range paths {
		isSuite = isSuite || discover.IsSuiteIn(path, files.View{})
		for suite, r := range k.suites {
			if suite == path || r.on[path] || r.on[filepath.Dir(path)] {
				set(&k.due, suite)
			}
		}
	}
	for path := range open.All() {
		if isSuite && !k.ownedLocked(path) {
			set(&k.strays, path)
		}
	}
	k.startLocked()
}

// ownedLocked reports whether a known suite depends on a document.
func (k *checker) ownedLocked(path string) bool {
	for _, r := range k.suites {
		if r.on[path] {
			return true
		}
	}
	return false
}

func set(m *map[string]bool, key string) {
	if *m == nil {
		*m = map[string]bool{}
	}
	(*m)[key] = true
}

// startLocked starts work, unless it is running.
func (k *checker) startLocked() {
	if k.running || len(k.due)+len(k.strays) == 0 {
		return
	}
	k.running = true
	k.e.checks.Go(k.work)
}

func (k *checker) work() {
	for {
		k.mu.Lock()
		due, strays := k.due, k.strays
		k.due, k.strays = nil, nil
		if len(due)+len(strays) == 0 || k.e.ctx.Err() != nil {
			k.running = false
			if k.idle != nil {
				close(k.idle)
				k.idle = nil
			}
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		begin := time.Now()
		if k.round(due, strays) {
			k.pauseRound(time.Since(begin))
		}
	}
}

// pauseRound waits for more changes after a round whose findings were stale.
func (k *checker) pauseRound(took time.Duration) {
	_ = pause.For(k.e.ctx, min(took, restAtMost))
}

// waitIdle waits until nothing is due, so that all open documents have been read.
func (k *checker) waitIdle(ctx context.Context) error {
	k.mu.Lock()
	if !k.running {
		k.mu.Unlock()
		return nil
	}
	if k.idle == nil {
		k.idle = make(chan struct{})
	}
	idle := k.idle
	k.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// round reads the due suites and the suites of stray documents. It reports whether one of their
// texts changed meanwhile. A panic while reading ends only the round.
func (k *checker) round(due, strays map[string]bool) (stale bool) {
	defer func() {
		if p := recover(); p != nil {
			k.e.o.Log.Error("panic", "while", "reading suites for an editor", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	release, err := k.e.o.Turn(k.e.ctx)
	if err != nil {
		return false
	}
	defer release()
	open := k.e.documents()
	overlay := open.Overlay()
	for _, path := range slices.Sorted(maps.Keys(strays)) {
		above := discover.Above(path, files.View{Overlay: overlay})
		for _, suite := range above[:min(len(above), maxAbove)] {
			if k.known(suite) == nil {
				set(&due, suite)
			}
		}
	}
	for _, suite := range slices.Sorted(maps.Keys(due)) {
		stale = k.check(suite, open, overlay) || stale
	}
	return stale
}

func (k *checker) known(suite string) *suiteRead {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.suites[suite]
}

// check reads a suite and publishes its findings. If a text that it read has changed meanwhile,
// the suite is due again instead.
func (k *checker) check(path string, open lsp.Documents, overlay map[string][]byte) (stale bool) {
	r := &suiteRead{on: map[string]bool{path: true}, found: map[string]decode.Diagnostics{}}
	suite, found, err := eval.Load(path, eval.Options{
		Vocabulary: k.e.o.Suites.Vocabulary(),
		View:       files.View{Overlay: overlay, Accessed: func(p string) { r.on[p] = true }},
	})
	for _, d := range found {
		file := filepath.FromSlash(d.File)
		r.found[file] = append(r.found[file], d)
	}
	r.suite = suite
	wanted := err == nil && r.anyOpen(open)
	k.mu.Lock()
	if k.staleLocked(r, open) {
		set(&k.due, path)
		k.mu.Unlock()
		return true
	}
	old := k.suites[path]
	if old == nil {
		old = &suiteRead{}
	}
	if old.suite != nil && (suite == nil || isBroken(found)) {
		r.suite = old.suite
	}
	switch {
	case !wanted:
		delete(k.suites, path)
		r.found = nil
	case k.suites[path] == nil && len(k.suites) >= maxSuites:
		k.mu.Unlock()
		k.e.o.Log.Warn("suite not checked: too many are open", "suite", path, "limit", maxSuites)
		return false
	default:
		if k.suites == nil {
			k.suites = map[string]*suiteRead{}
		}
		k.suites[path] = r
	}
	files := k.filesLocked(old, r, open)
	k.mu.Unlock()
	k.publish(files)
	return false
}

func isBroken(found decode.Diagnostics) bool {
	return slices.ContainsFunc(found, func(d decode.Diagnostic) bool { return d.Code == decode.CodeSyntax })
}

// anyOpen reports whether a document that a suite depends on is open.
func (r *suiteRead) anyOpen(open lsp.Documents) bool {
	for path := range open.All() {
		if r.on[path] {
			return true
		}
	}
	return false
}

// staleLocked reports whether a document that a suite depends on has changed since then.
func (k *checker) staleLocked(r *suiteRead, then lsp.Documents) bool {
	now := k.e.documents()
	for path := range r.on {
		if then.All()[path] != now.All()[path] {
			return true
		}
	}
	return false
}
