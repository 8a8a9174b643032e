package language

import (
	"context"
	"fmt"
	"sync"
	"time"

	"waza/runner/catalog"
)

// Standings caches the latest results of suites until their runs change. Computing them requires
// the list of runs, which is not read for every key. The zero value is an empty cache. Its
// methods are safe for concurrent use.
type Standings struct {
	mu      sync.Mutex // guards the fields below
	bySuite map[string]*standing
}

type standing struct {
	runs   string    // fingerprint of the runs in the list
	looked time.Time // time of the list
	suite  *catalog.SuiteStanding
}

const (
	// standingFor is how long a list of runs stays valid.
	standingFor = 2 * time.Second
	// maxStandings limits the cached suites.
	maxStandings = 1000
	// runsLookedAt is how many runs can influence the latest results of a suite.
	runsLookedAt = 10
)

func (s *Standings) latest(ctx context.Context, r Suites, suite string) (*catalog.SuiteStanding, error) {
	s.mu.Lock()
	known := s.bySuite[suite]
	s.mu.Unlock()
	if known != nil && time.Since(known.looked) < standingFor {
		return known.suite, nil
	}
	now := &standing{looked: time.Now()}
	runs, err := r.ListBy(catalog.Filter{Path: suite, Limit: runsLookedAt})
	if err != nil {
		return nil, err
	}
	if now.runs = fmt.Sprint(runs); known != nil && known.runs == now.runs {
		now.suite = known.suite
	} else if now.suite, err = r.Standing(ctx, runs); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySuite == nil || len(s.bySuite) >= maxStandings {
		s.bySuite = map[string]*standing{}
	}
	s.bySuite[suite] = now
	return now.suite, nil
}

// invalidate invalidates a suite after one of its runs has ended.
func (s *Standings) invalidate(suite string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bySuite, suite)
}
