package board

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/pause"
	"waza/runner/record"
	"waza/runner/replay"
)

// follow takes the events of an active run until the run ends, is gone, or ctx ends. A
// fresh run is followed from the start of its session, so that no result is missing; one
// that was active before the board, from now on.
func (f *follower) follow(ctx context.Context, fresh bool) {
	b, j := f.board, f.job
	h, err := b.o.Runner.Catalog().Run(j.ID)
	if err == nil {
		f.rec, f.handle = h.Record(), h
		err = f.run(ctx, h, fresh)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		b.log.Warn("run cannot be followed", "run", j.ID, "error", err)
	}
	b.settle(ctx, f)
}

// follower follows a session of a run. It belongs to one goroutine.
type follower struct {
	board *Board
	job   *job
	rec   *record.Run
	// handle is the run of rec.
	handle record.Handle
	known  func()          // called when the job is known, see Board.initial
	skip   int             // times that the run is resumed before the session starts
	turn   <-chan struct{} // closed when the run of a queued job begins; nil for others
	ended  bool
}

func (f *follower) run(ctx context.Context, h record.Handle, fresh bool) error {
	first := int64(1)
	live, isLive := h.(*runner.Run)
	switch {
	case !fresh:
		p, err := h.Progress()
		if err != nil {
			return err
		}
		first, f.job.seq = p.Seq+1, p.Seq
		f.begin(p.StartedAt, ended(p.Trials), f.past(), false)
		f.known()
		if p.EndedAt != nil {
			return nil
		}
	case isLive:
		first = live.First()
	case f.job.seq > 0:
		first = f.job.seq + 1
	default:
		var err error
		if h, err = f.consistent(ctx, h); err != nil {
			return err
		}
		f.rec, f.handle = h.Record(), h
		f.skip = f.rec.Resumed
	}
	for wait := time.Duration(0); ; wait = replay.NextPause(wait) {
		if err := f.read(ctx, h.Subscribe(max(first, f.job.seq+1))); err != nil || f.ended || f.job.isBegun(f.board) {
			return err
		}
		// The run is being resumed, and its new session has yet to write something.
		if info, ok := catalog.Look(f.board.o.Runner.Catalog(), f.job.ID); !ok || info.Status != record.StatusRunning {
			return nil
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// consistent returns the record of a run that is perhaps being resumed, when the process
// that does so has written what is asked.
func (f *follower) consistent(ctx context.Context, h record.Handle) (record.Handle, error) {
	err := replay.Poll(ctx, func() bool {
		recorded, ok := h.(*replay.Recorded)
		if !ok || recorded.Run.Resumer() == 0 || recorded.Run.Resumer() == recorded.Rec.PID || !recorded.Run.Alive() {
			return true
		}
		again, err := f.board.o.Runner.Catalog().Run(f.job.ID)
		if err != nil {
			return true
		}
		h = again
		return false
	})
	return h, err
}

// read takes events until they end, whose error is nil, or ctx does.
func (f *follower) read(ctx context.Context, events record.Subscription) error {
	for {
		next, cancel := ctx, context.CancelFunc(func() {})
		if left, pending := f.owed(); pending {
			next, cancel = context.WithTimeout(ctx, left)
		} else if f.turn != nil {
			next, cancel = f.untilTurn(ctx)
		}
		batch, err := events.Next(next)
		late := err != nil && next.Err() != nil && ctx.Err() == nil
		cancel()
		f.dequeue() // before what the run does then
		switch {
		case late:
			f.report()
		case errors.Is(err, io.EOF):
			return nil // settle looks how the run ended
		case err != nil:
			return err
		}
		for _, e := range batch {
			f.job.seq = e.Seq
			if f.apply(e); f.ended {
				return nil
			}
		}
	}
}

// untilTurn returns a context that ends when the turn of a queued job has come.
func (f *follower) untilTurn(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	turn := f.turn
	waiting.Go(func() {
		select {
		case <-turn:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		waiting.Wait()
	}
}

// apply takes an event.
func (f *follower) apply(e *record.Event) {
	switch {
	case e.Type == record.RunResumed:
		f.skip = max(0, f.skip-1)
		if f.skip == 0 {
			f.begin(e.Time, f.kept(e), f.past(), true)
		}
	case f.skip > 0:
	case e.Type == record.RunStart:
		if !f.job.isBegun(f.board) { // the board may have found the run before its first event
			f.begin(e.Time, 0, past{}, true)
		}
	default:
		f.publish(e)
	}
	if e.Type == record.End && f.skip == 0 {
		f.end(statusOf(e.Status), e.Time, e.Error)
	}
}

// past is what has happened in a run.
func (f *follower) past() past {
	_, st, err := replay.StateOf(f.handle)
	if err != nil {
		f.board.log.Warn("what has happened in a run cannot be read", "run", f.job.ID, "error", err)
		return past{}
	}
	return past{st.Results(), st.Prompts}
}

// casesOf counts the cases of a run.
func casesOf(rec *record.Run) (n int) {
	for i := range rec.Tasks {
		if rec.Tasks[i].Role == record.RoleTask {
			n += rec.Tasks[i].Trials
		}
	}
	return n
}

// kept counts the cases that an earlier session of the run has done.
func (f *follower) kept(e *record.Event) (n int) {
	for i := range f.rec.Tasks {
		if f.rec.Tasks[i].Role == record.RoleTask {
			for _, r := range e.Kept[f.rec.Tasks[i].ID] {
				n += r[1] - r[0] + 1
			}
		}
	}
	return n
}

// begin starts a session of the job. Watchers learn of a fresh one.
func (f *follower) begin(at time.Time, done int, before past, fresh bool) {
	b, j := f.board, f.job
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[j.ID] != j {
		return
	}
	if j.Status == Running || j.Status == Queued { // resumed before its end was seen
		j.Status = Interrupted
	}
	to := Pending
	if f.turn = b.o.Queued(j.ID); f.turn != nil {
		to = Queued
	}
	if !b.moveLocked(j, to) {
		return
	}
	j.Type, j.messages, j.begun, j.pending = f.rec.Suite.KindName(), messagesOf(f.rec, before), true, false
	if j.total == 0 { // the board found the run before its record was written
		j.suite, j.total = f.rec.Suite.Name, casesOf(f.rec)
	}
	j.reopen()
	j.count(done)
	if fresh {
		b.publishLocked(j, j.created(at))
	}
	if f.turn == nil {
		f.startLocked(at, fresh)
	}
}

// startLocked starts the work of the job.
func (f *follower) startLocked(at time.Time, fresh bool) {
	b, j := f.board, f.job
	f.turn = nil
	if !b.moveLocked(j, Running) {
		return
	}
	if j.Started = &(Time{at}); fresh {
		b.publishLocked(j, encode(j.lifecycle("job_started", at)))
		b.publishLocked(j, j.messages.init(j, false))
		if o, ok := j.messages.(opening); ok {
			for _, msg := range o.opening() {
				b.publishLocked(j, msg)
			}
		}
	}
}

// dequeue starts the work of a queued job whose turn it is.
func (f *follower) dequeue() {
	select {
	case <-f.turn: // never for a job that is not queued
	default:
		return
	}
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	if f.board.jobs[f.job.ID] == f.job {
		f.startLocked(time.Now(), true)
	}
}

// moveLocked changes the state of a job, which may follow the one before.
func (b *Board) moveLocked(j *job, to Status) bool {
	if j.move(to) {
		return true
	}
	b.log.Error("job has an impossible state", "job", j.ID, "status", string(j.Status), "next", string(to))
	return false
}

// publish sends what the kind of the job says of an event, and counts cases that have
// ended.
func (f *follower) publish(e *record.Event) {
	b, j := f.board, f.job
	if !j.isBegun(b) {
		return
	}
	list := j.messages.event(e) // only this goroutine sets j.messages
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[j.ID] != j || j.Status != Running || e.Verdict == record.Cancelled && b.isClosing() {
		return
	}
	for _, msg := range list {
		b.publishLocked(j, msg)
	}
	if !isCase(f.rec, e) || e.Verdict == record.Cancelled {
		return
	}
	j.count(j.done + 1)
	j.pending = true
	if time.Since(j.sentAt) >= progressPause {
		b.tellLocked(j)
	}
}

// owed returns how long it is until progress is to be sent; pending is false when none is.
func (f *follower) owed() (left time.Duration, pending bool) {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	return max(0, progressPause-time.Since(f.job.sentAt)), f.job.pending && f.job.Status == Running
}

// report sends the progress that is owed.
func (f *follower) report() {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	f.board.tellLocked(f.job)
}

func (b *Board) tellLocked(j *job) {
	if !j.pending {
		return
	}
	j.pending, j.sentAt = false, time.Now()
	b.publishLocked(j, j.progress(j.sentAt))
	if p, ok := j.messages.(progressing); ok {
		b.publishLocked(j, p.progress(j))
	}
}

// end ends the job. When the server ends, it says nothing about jobs that it interrupts
// and resumes when it is back.
func (f *follower) end(to Status, at time.Time, failure string) {
	f.ended = true
	b, j := f.board, f.job
	if to == Cancelled && b.isClosing() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[j.ID] == j && !j.Status.IsOver() {
		j.ended = at
		b.endLocked(j, to, at, failure)
	}
}

// isClosing reports whether the server ends, and cancels its runs.
func (b *Board) isClosing() bool {
	select {
	case <-b.o.Runner.Closing():
		return true
	default:
		return false
	}
}

// endLocked ends a job and says so.
func (b *Board) endLocked(j *job, to Status, at time.Time, failure string) {
	switch to {
	case Interrupted:
		failure = "the process of the run has ended; the run can be resumed"
	case Failed:
		if failure = Failure(failure); failure == "" {
			failure = "the run failed"
		}
	case Cancelled, Done:
		failure = ""
	}
	if b.moveLocked(j, to) {
		j.pending = false
		j.finish(at, failure)
		if m, ok := j.messages.(interface {
			last(to Status, failure string) []byte
		}); ok {
			if msg := m.last(to, failure); msg != nil {
				b.publishLocked(j, msg)
			}
		}
		b.publishLocked(j, j.over(at))
	}
}

// settle ends the job of a run that has ended without an event, and looks whether the run
// is active again.
func (b *Board) settle(ctx context.Context, f *follower) {
	j := f.job
	for {
		b.mu.Lock()
		j.changed = false
		b.mu.Unlock()
		info, ok := catalog.Look(b.o.Runner.Catalog(), j.ID)
		if !ok {
			b.remove(j.ID)
			return
		}
		if !f.ended {
			f.endUnseen(&info)
		}
		b.mu.Lock()
		again := j.changed
		if !again {
			j.followed = false
			b.pruneLocked(j.User)
		}
		b.mu.Unlock()
		switch {
		case again: // while it was looked at
			continue
		case info.Status == record.StatusRunning, f.ended && info.EndedAt != nil && !info.EndedAt.Equal(j.endedAt(b)):
			b.change(ctx, &catalog.Change{Info: info}, true)
		}
		return
	}
}

// endUnseen ends a job whose events have ended without the last.
func (f *follower) endUnseen(info *catalog.Info) {
	if f.job.hasEnded(f.board, info) {
		return
	}
	if f.rec != nil && !f.job.isBegun(f.board) && !f.board.isClosing() { // it came and went before it could be read
		f.begin(info.StartedAt, ended(info.Trials), past{}, true)
	}
	to, at := statusOf(info.Status), time.Now()
	if to == Running {
		to = Interrupted
	}
	if info.EndedAt != nil {
		at = *info.EndedAt
	}
	f.end(to, at, "")
}

// endedAt is when the run ended.
func (j *job) endedAt(b *Board) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.ended
}

// hasEnded reports whether the watchers know of the end that the list of runs has. The job
// looked active again because the list was older than the end.
func (j *job) hasEnded(b *Board, info *catalog.Info) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !j.Status.IsOver() || info.EndedAt == nil || j.Finished == nil || !j.Finished.Equal(*info.EndedAt) {
		return false
	}
	j.describe(info)
	if j.Status == Done {
		j.count(j.total)
	}
	return true
}

// isBegun reports whether the session has begun.
func (j *job) isBegun(b *Board) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.begun
}
