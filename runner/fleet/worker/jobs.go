package worker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"waza/runner/fleet"
)

// jobs are the orders that a worker holds, until the server has their results. It owns the set of
// them, and the goroutine that reports to the server that they are still being executed.
type jobs struct {
	log *slog.Logger
	// silence returns how long the orders of a class can be silent before other workers get them.
	silence func(class string) time.Duration

	mu  sync.Mutex // guards set
	set map[*job]struct{}
}

func (s *jobs) add(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set[j] = struct{}{}
}

func (s *jobs) remove(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.set, j)
}

// end ends the chosen jobs with a reason.
func (s *jobs) end(why error, chosen func(*job) bool) {
	for _, j := range s.list() {
		if chosen(j) {
			j.end(why)
		}
	}
}

// giveUp ends all jobs, so that other workers execute their orders.
func (s *jobs) giveUp() { s.end(errGivenUp, func(*job) bool { return true }) }

func (s *jobs) list() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.set))
}

// keep reports to the server that orders are still being executed, until ctx ends.
func (s *jobs) keep(ctx context.Context) {
	tick := time.NewTicker(keepPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		for _, j := range s.list() {
			if now.Sub(j.kept) < max(s.silence(j.class), fleet.LeastLost)/keepShare {
				continue
			}
			j.kept = now
			if err := j.msg.InProgress(); err != nil {
				s.log.Debug("progress of an order not reported", "order", j.ID, "error", err)
			}
		}
	}
}

const (
	// keepPause is the interval at which running orders are checked. Each is reported keepShare
	// times within the silence after which it would go to a different worker.
	keepPause = 250 * time.Millisecond
	keepShare = 4
)
