package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/record"
)

// subscriptions holds the runs that a connection receives, one follower for each. Each follower
// has a goroutine in sending, which ends after eval.complete or with ctx.
type subscriptions struct {
	ctx     context.Context
	stream  *wire.Stream
	sending *dispatch.Group
	log     *slog.Logger

	mu    sync.Mutex // guards the field below
	byRun map[string]*follower
}

// A follower sends the notifications of one run to one connection, each once. Its goroutine
// blocks while the client does not read. That needs no memory, because it reads the events from
// the run's journal.
type follower struct {
	run   record.Handle
	live  bool  // the run is active in this process
	first int64 // number of the first event to send
	next  atomic.Int64
	skip  []span // already sent to the client
	*dispatch.Task
}

// span is a range of events that includes from and excludes to.
type span struct{ from, to int64 }

// received reports whether the client received the event before this follower started.
func (f *follower) received(seq int64) bool {
	return slices.ContainsFunc(f.skip, func(s span) bool { return s.from <= seq && seq < s.to })
}

// follow sends the events of a run to the client, from the event seq and once ready is closed.
// It returns the number of the first event that it sends.
//
// A client receives each run once. If it already does, no event is sent again: the follower
// continues. If seq is before the follower's first event, it first sends the events in between.
func (s *subscriptions) follow(run record.Handle, seq int64, ready <-chan struct{}) int64 {
	seq = max(1, seq)
	var skip []span
	if old := s.follower(run.ID()); old != nil {
		if seq >= old.first {
			return max(seq, old.next.Load())
		}
		s.unfollow(run.ID())
		skip = old.sent()
	}
	s.pumpFrom(run, seq, skip, ready)
	return seq
}

// followOn sends a run that the client has just resumed: first the earlier events that the
// client has not received yet, then the new events.
func (s *subscriptions) followOn(run *runner.Run, ready <-chan struct{}) {
	seq, skip := run.First(), []span(nil)
	if old := s.follower(run.ID()); old != nil {
		s.unfollow(run.ID())
		seq, skip = min(seq, old.next.Load()), old.sent()
	}
	s.pumpFrom(run, seq, skip, ready)
}

// sent returns the events that this follower and those before it sent.
func (f *follower) sent() []span {
	return append(slices.Clone(f.skip), span{f.first, f.next.Load()})
}

// pumpFrom starts a follower.
func (s *subscriptions) pumpFrom(run record.Handle, seq int64, skip []span, ready <-chan struct{}) {
	f := &follower{run: run, first: seq, skip: skip}
	_, f.live = run.(*runner.Run)
	f.next.Store(seq)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byRun[run.ID()] = f
	f.Task = s.sending.Start(s.ctx, ready, func(ctx context.Context) {
		defer s.forget(f)
		s.pump(ctx, f)
	})
}

func (s *subscriptions) follower(runID string) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRun[runID]
}

// ended returns a channel that is closed when the client stops receiving the run, or nil if it
// does not receive it.
func (s *subscriptions) ended(runID string) <-chan struct{} {
	if f := s.follower(runID); f != nil {
		return f.Done()
	}
	return nil
}

// forget removes a follower that has ended.
func (s *subscriptions) forget(f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRun[f.run.ID()] == f {
		delete(s.byRun, f.run.ID())
	}
}

// unfollow ends the follower of a run and reports whether there was one. Nothing of the run is
// sent after unfollow has returned.
func (s *subscriptions) unfollow(runID string) bool {
	s.mu.Lock()
	f := s.byRun[runID]
	delete(s.byRun, runID)
	s.mu.Unlock()
	if f == nil {
		return false
	}
	f.Stop()
	return true
}

// pump sends the events of the follower's run until the last one, or until ctx ends.
func (s *subscriptions) pump(ctx context.Context, f *follower) {
	sub := f.run.SubscribeHeads(f.first)
	var n notification
	for {
		events, err := sub.Next(ctx)
		if err != nil {
			s.sendMissingEnd(ctx, f, err)
			return
		}
		for _, e := range events {
			if f.received(e.Seq) {
				f.next.Store(e.Seq + 1)
				continue
			}
			method, params := n.of(f.run.ID(), e)
			if s.stream.Notify(ctx, method, params) != nil {
				return // the client is gone or has unsubscribed
			}
			f.next.Store(e.Seq + 1)
			if e.Type == record.End {
				return
			}
		}
	}
}

// sendMissingEnd sends the eval.complete of a run that has no last event: its process was
// killed, or its journal cannot be read.
func (s *subscriptions) sendMissingEnd(ctx context.Context, f *follower, err error) {
	if ctx.Err() != nil {
		return
	}
	e := &record.Event{Seq: f.next.Load(), Type: record.End, Status: record.StatusInterrupted}
	if errors.Is(err, io.EOF) {
		p, perr := f.run.Progress()
		if perr == nil && (isOver(p.Status) || e.Seq > p.Seq+1) {
			return // the client asked for events beyond the last
		}
	} else {
		s.log.Error("cannot send the events of a run", "run", f.run.ID(), "error", err)
		e.Status, e.Error = record.StatusFailed, fmt.Sprintf("cannot read the events of the run: %v", err)
	}
	method, params := new(notification).of(f.run.ID(), e)
	_ = s.stream.Notify(ctx, method, params)
}

// isOver reports whether a run has sent its last event.
func isOver(status record.Status) bool {
	return status == record.StatusCompleted || status == record.StatusFailed || status == record.StatusCancelled
}

// count returns the number of runs that the client receives.
func (s *subscriptions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byRun)
}

// live lists the followers of runs that this process executes.
func (s *subscriptions) live() []*follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*follower
	for _, f := range s.byRun {
		if f.live {
			list = append(list, f)
		}
	}
	return list
}
