package language

import (
	"context"
	"fmt"
	"sync"
	"time"

	"waza/runner/catalog"
)

// Standings remember how suites stand, for as long as their runs are the same. To
// know that costs a look at the list of runs, which is not taken for every key. The zero value
// remembers none. Its methods may be called from any goroutine.
type Standings struct {
	mu      sync.Mutex // guards the fields below
	bySuite map[string]*standing
}

type standing struct {
	runs   string    // what the list said of them
	looked time.Time // when it was asked; zero when a run has ended since
	is     *catalog.SuiteStanding
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
func (s *Standings) of(ctx context.Context, r Suites, suite string) (*catalog.SuiteStanding, error) {
	s.mu.Lock()
	known := s.bySuite[suite]
	s.mu.Unlock()
	if known != nil && time.Since(known.looked) < standingFor {
		return known.is, nil
	}
	now := &standing{looked: time.Now()}
	runs, err := r.ListBy(catalog.Filter{Path: suite, Limit: runsLookedAt})
	if err != nil {
		return nil, err
	}
	if now.runs = fmt.Sprint(runs); known != nil && known.runs == now.runs {
		now.is = known.is
	} else if now.is, err = r.Standing(ctx, runs); err != nil {
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
func (s *Standings) outdated(suite string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bySuite, suite)
}
