package rpc

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"

	"waza/eval"
	"waza/rpc/lsp"
	"waza/runner"
)

func lensMethods() []*method {
	return []*method{
		speak("textDocument/codeLens", long,
			"Above a suite and above each task: run, debug, and how it fared last, such as `7/10 [0.40–0.89] ▼ from 10/10`: trials that passed, of those that count, the 95 % interval of their rate, and what it was the time before. "+
				"The client is asked for a refresh when a run of a suite ends.", (*call).codeLens),
	}
}

func (c *call) codeLens(ctx context.Context, p *protocol.CodeLensParams) (any, error) {
	doc := c.open.Get(p.TextDocument.URI)
	if doc == nil {
		return nil, nil
	}
	if err := c.language.check.settled(ctx); err != nil {
		return nil, err
	}
	suite := c.language.check.suiteOf(doc.Path)
	if suite == nil {
		return nil, nil
	}
	standing, err := c.server.standings.of(ctx, c.server.runner, suite.File)
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

// standings remember how suites stand, for as long as their runs are the same. To
// know that costs a look at the list of runs, which is not taken for every key.
type standings struct {
	mu      sync.Mutex // guards the fields below
	bySuite map[string]*standing
}

type standing struct {
	runs   string    // what the list said of them
	looked time.Time // when it was asked; zero when a run has ended since
	is     *runner.SuiteStanding
}

const (
	// standingFor is how long the list is not asked again.
	standingFor = 2 * time.Second
	// maxStandings bounds the suites that are remembered.
	maxStandings = 1000
	// runsLookedAt is how many runs may change how a suite stands.
	runsLookedAt = 10
)

// of tells how a suite stands.
func (s *standings) of(ctx context.Context, r *runner.Runner, suite string) (*runner.SuiteStanding, error) {
	s.mu.Lock()
	known := s.bySuite[suite]
	s.mu.Unlock()
	if known != nil && time.Since(known.looked) < standingFor {
		return known.is, nil
	}
	now := &standing{looked: time.Now()}
	runs, err := r.Catalog().ListBy(runner.Filter{Path: suite, Limit: runsLookedAt})
	if err != nil {
		return nil, err
	}
	if now.runs = fmt.Sprint(runs); known != nil && known.runs == now.runs {
		now.is = known.is
	} else if now.is, err = r.Catalog().Standing(ctx, runs); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySuite == nil || len(s.bySuite) >= maxStandings {
		s.bySuite = map[string]*standing{}
	}
	s.bySuite[suite] = now
	return now.is, nil
}

// outdated says that a run of a suite has ended.
func (s *standings) outdated(suite string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bySuite, suite)
}

// announce lets every client that shows results know when a run has ended.
func (s *Server) announce(run *runner.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sess := range s.sessions {
		if sess.language.abilities().RefreshesLenses() {
			sess.following.Go(func() { sess.refreshAfter(run) })
		}
	}
}

// refreshAfter lets the client ask for its lenses again when a run has ended, and
// the client was told of that.
func (s *session) refreshAfter(run *runner.Run) {
	if !s.language.await(run.Done()) {
		return
	}
	if f := s.follower(run.ID()); f != nil && !s.language.await(f.done) {
		return
	}
	s.server.standings.outdated(run.Record().Suite.Path)
	s.ask("workspace/codeLens/refresh", nil)
}

// await waits for a channel to be closed. It is false when the client's end comes first.
func (l *language) await(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// askTime is how long a client may take to answer what needs no person.
const askTime = 30 * time.Second

// ask sends the client a request of which nothing is needed but that it was sent.
func (s *session) ask(method string, params any) {
	ctx, cancel := context.WithTimeout(s.language.ctx, askTime)
	defer cancel()
	if _, err := s.stream.Call(ctx, method, params); err != nil {
		s.server.log.Debug("the client does not do what it is asked", "method", method, "error", err)
	}
}
