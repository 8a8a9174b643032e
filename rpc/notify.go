package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"

	"waza/runner"
)

// notification is an entry of the table of notifications.
type notification struct {
	name   string
	doc    string
	params reflect.Type
}

var notifications = []notification{
	{"eval.progress", "Something happened in a run. The events of one task come in the order in which they happened.", reflect.TypeFor[progressParams]()},
	{"eval.log", "A run has something to tell to people.", reflect.TypeFor[logParams]()},
	{"eval.changed", "A suite that is watched was read, at first and after each change. The notifications of its run follow, if there is one.", reflect.TypeFor[changedParams]()},
	{"eval.complete", "A run has ended: the last notification of every run, sent exactly once, also for runs that failed or were cancelled.", reflect.TypeFor[completeParams]()},
}

// progressParams are what eval.progress tells. What does not apply to an event is absent.
type progressParams struct {
	RunID       string           `json:"runId"`
	Seq         int64            `json:"seq" doc:"Number of the event in its run, from 1 without gaps."`
	Event       runner.EventType `json:"event" doc:"run_start, task_start, trial_start, trial_complete, task_complete, run_complete, or run_resumed: the run is taken up again, and what was told of trials that are not kept, and of its end, counts no more."`
	TaskID      string           `json:"taskId,omitempty"`
	TaskName    string           `json:"taskName,omitempty"`
	TaskNum     int              `json:"taskNum,omitempty" doc:"Number of the task, from 1."`
	TotalTasks  int              `json:"totalTasks,omitempty"`
	Role        runner.Role      `json:"role,omitempty" doc:"baseline for a task of the suite as an agent without skills does it, trigger for a prompt of the trigger tests; absent for a task of the suite."`
	TrialNum    int              `json:"trialNum,omitempty" doc:"Number of the trial in its task, from 1."`
	TotalTrials int              `json:"totalTrials,omitempty" doc:"Trials of the task; of the run in run_start and run_resumed."`
	KeptTrials  *int             `json:"keptTrials,omitempty" doc:"In run_resumed: how many trials keep their results."`
	Status      string           `json:"status,omitempty" doc:"Verdict of the trial or task that completed: passed, failed, error, timeout, cancelled, skipped or needs_review; status of the run in run_complete."`
	Score       *float64         `json:"score,omitempty" doc:"Score of the trial, or mean score of the task, 0 to 1; absent when nothing was graded, or a person has yet to."`
	DurationMS  *int64           `json:"durationMs,omitempty" doc:"How long what completed has taken, in milliseconds."`
	Error       string           `json:"error,omitempty" doc:"Why the trial that completed is in error, took too long or was cancelled, cut to some KiB; absent for others."`
	Cached      bool             `json:"cached,omitempty" doc:"Whether the trial that completed was taken over from an earlier run; absent when not."`
}

type logParams struct {
	RunID    string `json:"runId"`
	Seq      int64  `json:"seq" doc:"Number of the event in its run, from 1 without gaps."`
	Level    string `json:"level" doc:"debug, info, warning or error."`
	Message  string `json:"message"`
	TaskID   string `json:"taskId,omitempty"`
	TaskName string `json:"taskName,omitempty"`
}

type completeParams struct {
	RunID   string          `json:"runId"`
	Seq     int64           `json:"seq" doc:"Number of the event in its run: the last."`
	Status  runner.Status   `json:"status" doc:"completed, failed, cancelled or interrupted."`
	Summary *runner.Summary `json:"summary,omitempty" doc:"What came out, when the run completed."`
	Error   string          `json:"error,omitempty" doc:"Why it did not, otherwise."`
}

// notificationOf gives the notification that tells of an event.
func notificationOf(runID string, e *runner.Event) (method string, params any) {
	switch e.Type {
	case runner.Log:
		return "eval.log", &logParams{RunID: runID, Seq: e.Seq, Level: e.Level, Message: e.Message, TaskID: e.TaskID, TaskName: e.TaskName}
	case runner.End:
		p := &completeParams{RunID: runID, Seq: e.Seq, Status: e.Status, Error: failure(e.Status, e.Error)}
		if e.Status == runner.StatusCompleted {
			p.Summary = e.Summary
		}
		return "eval.complete", p
	}
	p := &progressParams{
		RunID: runID, Seq: e.Seq, Event: e.Type,
		TaskID: e.TaskID, TaskName: e.TaskName, TaskNum: e.TaskNum, TotalTasks: e.TotalTasks, Role: e.Role,
		TrialNum: e.TrialNum, TotalTrials: e.TotalTrials, Status: string(e.Verdict), Score: e.Score, Cached: e.Cached,
	}
	switch e.Type {
	case runner.RunResumed:
		p.KeptTrials = &e.KeptTrials
	case runner.RunComplete:
		p.Status, p.DurationMS = string(e.Status), &e.DurationMS
	case runner.TaskComplete:
		p.DurationMS = &e.DurationMS
	case runner.TrialComplete:
		p.DurationMS, p.Error = &e.DurationMS, e.Error
	}
	return "eval.progress", p
}

// failure is the sentence that tells why a run did not complete; empty for one
// that did, or that still runs.
func failure(status runner.Status, reason string) string {
	switch status {
	case runner.StatusFailed:
		return "Eval execution failed: " + reason
	case runner.StatusCancelled:
		if reason != "" { // nobody cancelled it: its budget is spent
			return "Eval execution cancelled: " + reason
		}
		return "Eval execution cancelled"
	case runner.StatusInterrupted:
		return "Eval execution failed: interrupted, its process ended before it did"
	}
	return ""
}

// A follower sends the notifications of one run to one session, each once. Its
// goroutine blocks while the client does not read, which costs no memory: what
// it will need it finds in the run's journal.
type follower struct {
	run    runner.Handle
	live   bool  // the run goes on in this process
	first  int64 // number of the first event it sends
	next   atomic.Int64
	skip   []span // the session had these already
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
}

// span is a range of events: from is in it, to is not.
type span struct{ from, to int64 }

// had says whether the session was sent the event before this follower began.
func (f *follower) had(seq int64) bool {
	return slices.ContainsFunc(f.skip, func(s span) bool { return s.from <= seq && seq < s.to })
}

// follow lets the session receive a run from the event seq on, once ready is
// closed, and tells which event comes first.
//
// A session receives a run once. When it does so already, nothing that it was
// sent is sent again: the follower goes on or, when seq is further back than
// what it began with, sends what was left out and then goes on.
func (s *session) follow(run runner.Handle, seq int64, ready <-chan struct{}) int64 {
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

// followOn lets the session receive a run that it has just taken up again: its new
// events and, before them, what it was still to be sent of those before.
func (s *session) followOn(run *runner.Run, ready <-chan struct{}) {
	seq, skip := run.First(), []span(nil)
	if old := s.follower(run.ID()); old != nil {
		s.unfollow(run.ID())
		seq, skip = min(seq, old.next.Load()), old.sent()
	}
	s.pumpFrom(run, seq, skip, ready)
}

// sent is what the session was sent by this follower and those before it.
func (f *follower) sent() []span {
	return append(slices.Clone(f.skip), span{f.first, f.next.Load()})
}

// pumpFrom starts a follower.
func (s *session) pumpFrom(run runner.Handle, seq int64, skip []span, ready <-chan struct{}) {
	f := &follower{run: run, first: seq, skip: skip, done: make(chan struct{})}
	_, f.live = run.(*runner.Run)
	f.next.Store(seq)
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers[run.ID()] = f
	s.following.Go(func() {
		defer s.forget(f)
		defer f.cancel()
		defer close(f.done)
		s.pump(ctx, f, ready)
	})
}

func (s *session) follower(runID string) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followers[runID]
}

// forget takes a follower that has ended off the list.
func (s *session) forget(f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followers[f.run.ID()] == f {
		delete(s.followers, f.run.ID())
	}
}

// unfollow ends the follower of a run. It says whether there was one. Nothing
// of the run is sent after it has returned.
func (s *session) unfollow(runID string) bool {
	s.mu.Lock()
	f := s.followers[runID]
	delete(s.followers, runID)
	s.mu.Unlock()
	if f == nil {
		return false
	}
	f.cancel()
	<-f.done
	return true
}

// yieldAfter is after how many notifications a follower lets others run. Where
// the client keeps up nothing else stops it, and a request would wait for the
// end of its time slice.
const yieldAfter = 16

// pump sends the events of the follower's run until they end, or ctx does.
func (s *session) pump(ctx context.Context, f *follower, ready <-chan struct{}) {
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
			if e.Type == runner.End {
				return
			}
			if e.Seq%yieldAfter == 0 {
				runtime.Gosched()
			}
		}
	}
}

// closing sends the eval.complete of a run whose events end without one: its
// process was killed, or its journal cannot be read.
func (s *session) closing(ctx context.Context, f *follower, err error) {
	if ctx.Err() != nil {
		return
	}
	e := &runner.Event{Seq: f.next.Load(), Type: runner.End, Status: runner.StatusInterrupted}
	if errors.Is(err, io.EOF) {
		p, perr := f.run.Progress()
		if perr == nil && (isOver(p.Status) || e.Seq > p.Seq+1) {
			return // the client asked for events beyond the last
		}
	} else {
		s.server.log.Error("run cannot be followed", "run", f.run.ID(), "error", err)
		e.Status, e.Error = runner.StatusFailed, fmt.Sprintf("its events cannot be read: %v", err)
	}
	method, params := notificationOf(f.run.ID(), e)
	_ = s.stream.Notify(ctx, method, params)
}

// isOver says whether a run has told its last event.
func isOver(status runner.Status) bool {
	return status == runner.StatusCompleted || status == runner.StatusFailed || status == runner.StatusCancelled
}
