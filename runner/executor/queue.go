package executor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"waza/runner/pause"
)

// A [Queue] reports its trials after firstReport, and then every reportInterval.
const (
	firstReport    = time.Second
	reportInterval = 30 * time.Second
)

// Queue is the set of trials that wait for room at an [Admitter]. While there are any, its
// goroutine reports them; Close ends it. W is what a trial waits for. Queue is safe for concurrent
// use.
type Queue[W comparable] struct {
	logf func(level, format string, args ...any)
	line func(ctx context.Context, wants []W, first bool) (level, line string)

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  sync.WaitGroup // the goroutine

	mu      sync.Mutex // guards the fields below
	waiting map[W]struct{}
	reports bool // the goroutine is running
}

// NewQueue returns an empty queue, whose reports go to logf. line returns a report about the given
// trials, or "" for none. first is true for the first report since the queue was empty.
func NewQueue[W comparable](
	logf func(level, format string, args ...any), line func(ctx context.Context, wants []W, first bool) (level, line string),
) *Queue[W] {
	q := &Queue[W]{logf: logf, line: line, waiting: map[W]struct{}{}}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// Close ends the reports.
func (q *Queue[W]) Close() {
	q.cancel()
	q.ended.Wait()
}

// Wait adds a trial until the returned function is called.
func (q *Queue[W]) Wait(w W) (left func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[w] = struct{}{}
	if !q.reports && q.ctx.Err() == nil {
		q.reports = true
		q.ended.Go(q.report)
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.waiting, w)
	}
}

// report reports the trials until none waits or the queue is closed.
func (q *Queue[W]) report() {
	next := firstReport
	for first := true; ; first = false {
		if pause.For(q.ctx, next) != nil {
			return
		}
		next = reportInterval
		if first {
			next -= firstReport
		}
		wants := q.wants()
		if wants == nil {
			return
		}
		if level, line := q.line(q.ctx, wants, first); line != "" {
			q.logf(level, "%s", line)
		}
	}
}

// wants returns what the trials wait for, or nil if none waits, which ends the reports.
func (q *Queue[W]) wants() []W {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reports = len(q.waiting) > 0
	return slices.Collect(maps.Keys(q.waiting))
}
