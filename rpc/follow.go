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

	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner"
	"waza/runner/record"
)

// subscriptions are the runs that a connection receives, each by a follower. Each
// follower has a goroutine in sending, which ends after eval.complete, or when ctx
// does.
type subscriptions struct {
	ctx     context.Context
	stream  *wire.Stream
	sending *dispatch.Group
	log     *slog.Logger

	mu    sync.Mutex // guards the field below
	byRun map[string]*follower
}

// A follower sends the notifications of one run to one connection, each once. Its
// goroutine blocks while the client does not read, which costs no memory: what
// it will need it finds in the run's journal.
type follower struct {
	run    record.Handle
	live   bool  // the run goes on in this process
	first  int64 // number of the first event it sends
	next   atomic.Int64
	skip   []span // the client had these already
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
}

// span is a range of events: from is in it, to is not.
type span struct{ from, to int64 }

// had says whether the client was sent the event before this follower began.
func (f *follower) had(seq int64) bool {
	return slices.ContainsFunc(f.skip, func(s span) bool { return s.from <= seq && seq < s.to })
}

// follow lets the client receive a run from the event seq on, once ready is
// closed, and tells which event comes first.
//
// A client receives a run once. When it does so already, nothing that it was
// sent is sent again: the follower goes on or, when seq is further back than
// what it began with, sends what was left out and then goes on.
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

// followOn lets the client receive a run that it has just taken up again: its new
// events and, before them, what it was still to be sent of those before.
func (s *subscriptions) followOn(run *runner.Run, ready <-chan struct{}) {
	seq, skip := run.First(), []span(nil)
	if old := s.follower(run.ID()); old != nil {
		s.unfollow(run.ID())
		seq, skip = min(seq, old.next.Load()), old.sent()
	}
	s.pumpFrom(run, seq, skip, ready)
}

// sent is what the client was sent by this follower and those before it.
func (f *follower) sent() []span {
	return append(slices.Clone(f.skip), span{f.first, f.next.Load()})
}

// pumpFrom starts a follower.
func (s *subscriptions) pumpFrom(run record.Handle, seq int64, skip []span, ready <-chan struct{}) {
	f := &follower{run: run, first: seq, skip: skip, done: make(chan struct{})}
	_, f.live = run.(*runner.Run)
	f.next.Store(seq)
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byRun[run.ID()] = f
	s.sending.Go(func() {
		defer s.forget(f)
		defer f.cancel()
		defer close(f.done)
		s.pump(ctx, f, ready)
	})
}

func (s *subscriptions) follower(runID string) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRun[runID]
}

// ended gives a channel that is closed when a run is received no more; nil when it is
// not received.
func (s *subscriptions) ended(runID string) <-chan struct{} {
	if f := s.follower(runID); f != nil {
		return f.done
	}
	return nil
}

// forget takes a follower that has ended off the list.
func (s *subscriptions) forget(f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRun[f.run.ID()] == f {
		delete(s.byRun, f.run.ID())
	}
}

// unfollow ends the follower of a run. It says whether there was one. Nothing
// of the run is sent after it has returned.
func (s *subscriptions) unfollow(runID string) bool {
	s.mu.Lock()
	f := s.byRun[runID]
	delete(s.byRun, runID)
	s.mu.Unlock()
	if f == nil {
		return false
	}
	f.cancel()
	<-f.done
	return true
}

// pump sends the events of the follower's run until they end, or ctx does.
func (s *subscriptions) pump(ctx context.Context, f *follower, ready <-chan struct{}) {
	if ready != nil {
		select {
		case <-ready:
		case <-ctx.Done():
			return
		}
	}
	sub := f.run.Subscribe(f.first)
	for {
		events, err := sub.Next(ctx)
		if err != nil {
			s.closing(ctx, f, err)
			return
		}
		for _, e := range events {
			if f.had(e.Seq) {
				f.next.Store(e.Seq + 1)
				continue
			}
			method, params := notificationOf(f.run.ID(), e)
			if s.stream.Notify(ctx, method, params) != nil {
				return // the client is gone, or has unsubscribed
			}
			f.next.Store(e.Seq + 1)
			if e.Type == record.End {
				return
			}
		}
	}
}

// closing sends the eval.complete of a run whose events end without one: its
// process was killed, or its journal cannot be read.
func (s *subscriptions) closing(ctx context.Context, f *follower, err error) {
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
		s.log.Error("run cannot be followed", "run", f.run.ID(), "error", err)
		e.Status, e.Error = record.StatusFailed, fmt.Sprintf("its events cannot be read: %v", err)
	}
	method, params := notificationOf(f.run.ID(), e)
	_ = s.stream.Notify(ctx, method, params)
}

// isOver says whether a run has told its last event.
func isOver(status record.Status) bool {
	return status == record.StatusCompleted || status == record.StatusFailed || status == record.StatusCancelled
}

// count is how many runs the client receives.
func (s *subscriptions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byRun)
}

// live lists the followers of runs that this process carries out.
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
