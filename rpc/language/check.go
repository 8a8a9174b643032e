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
	"waza/rpc/lsp"
	"waza/runner/pause"
)

// A checker reads the suites that a client has open, again with every change, and
// tells what is wrong with them.
//
//	didOpen, didChange, … ─► touch ─► due ─► round: eval.Load ─► publish
//	      (the reader)                 ▲         │
//	                                   └─ stale ─┘
//
// A round begins at once when none goes on, so that findings come while one
// types. What a round found is told only if the texts it read are still those that
// are open. Where they are not, the next round waits as long as that one took, up
// to a limit: a suite that takes long to read is not read for every key, and takes
// at most half of a processor.
//
// It has one goroutine, among the checks of the editor, while something is due.
type checker struct {
	e *Editor

	mu      sync.Mutex // guards the fields below
	running bool
	idle    chan struct{}    // closed when nothing is due any more; nil when nobody waits
	due     map[string]bool  // suites to read again
	strays  map[string]bool  // open documents whose suites are to be looked for
	suites  map[string]*read // those that are open, or that something open belongs to
	last    map[string]told  // by file
}

// read is what there is to know of a suite that was read.
type read struct {
	on    map[string]bool // what it depends on, see eval.Options.Looked
	found map[string]decode.Diagnostics
	// suite is as it was when all its files were last YAML: while one types they
	// often are not, and what stands above tasks should not come and go. It is nil
	// when there never was one.
	suite *eval.Suite
}

// restAtMost is how long a round waits for more changes, at most.
const restAtMost = 200 * time.Millisecond

// maxAbove bounds the suites that are read to find those of one document.
const maxAbove = 50

// maxSuites bounds the suites that are kept for one client.
const maxSuites = 200

// touch makes due what depends on a file. With search, suites that it may belong
// to are looked for as well, and the client is told of the file whatever it knows.
func (k *checker) touch(path string, search bool) {
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
	case discover.IsSuite(path):
		set(&k.due, path)
	case search:
		set(&k.strays, path)
	}
	k.startLocked()
}

// onDisk makes due what depends on files that have changed, are new or gone. A
// suite among them may be that of any document whose suite was not found.
func (k *checker) onDisk(paths []string) {
	open := k.e.documents()
	k.mu.Lock()
	defer k.mu.Unlock()
	isSuite := false
	for _, path := range paths {
		isSuite = isSuite || discover.IsSuite(path)
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

// ownedLocked says whether a suite that is known depends on a document.
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

// startLocked sees to it that what is due is done.
func (k *checker) startLocked() {
	if k.running || len(k.due)+len(k.strays) == 0 {
		return
	}
	k.running = true
	k.e.checks.Go(k.work)
}

// work does rounds until nothing is due.
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
			k.rest(time.Since(begin))
		}
	}
}

// rest lets changes gather after a round that was in vain.
func (k *checker) rest(took time.Duration) {
	_ = pause.For(k.e.ctx, min(took, restAtMost))
}

// settled waits until nothing is due: then all that is open was read.
func (k *checker) settled(ctx context.Context) error {
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

// round reads the suites that are due and those that stray documents belong to. It
// says whether one of their texts changed meanwhile. A fault of the reader's ends
// the round and nothing else.
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

func (k *checker) known(suite string) *read {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.suites[suite]
}

// check reads a suite and publishes what is wrong with it, unless a text that it
// read has changed meanwhile: then the suite is due again.
func (k *checker) check(path string, open lsp.Documents, overlay map[string][]byte) (stale bool) {
	r := &read{on: map[string]bool{path: true}, found: map[string]decode.Diagnostics{}}
	suite, found, err := eval.Load(path, eval.Options{
		Vocabulary: k.e.o.Suites.Vocabulary(), Overlay: overlay,
		Looked: func(p string) { r.on[p] = true },
	})
	for _, d := range found {
		file := filepath.FromSlash(d.File)
		r.found[file] = append(r.found[file], d)
	}
	r.suite = suite
	wanted := err == nil && anyOpen(r, open)
	k.mu.Lock()
	if k.staleLocked(r, open) {
		set(&k.due, path)
		k.mu.Unlock()
		return true
	}
	old := k.suites[path]
	if old == nil {
		old = &read{}
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
		k.e.o.Log.Warn("a suite is not checked: too many are open", "suite", path, "limit", maxSuites)
		return false
	default:
		if k.suites == nil {
			k.suites = map[string]*read{}
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

// anyOpen says whether a document that a suite depends on is open.
func anyOpen(r *read, open lsp.Documents) bool {
	for path := range open.All() {
		if r.on[path] {
			return true
		}
	}
	return false
}

// staleLocked says whether a document that a suite depends on is another by now.
func (k *checker) staleLocked(r *read, then lsp.Documents) bool {
	now := k.e.documents()
	for path := range r.on {
		if then.All()[path] != now.All()[path] {
			return true
		}
	}
	return false
}
