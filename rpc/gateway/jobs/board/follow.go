package board

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"waza/eval"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/pause"
	"waza/runner/record"
	"waza/runner/replay"
)

// follow reads the events of an active run until the run ends or is deleted, or ctx ends. It
// reads a fresh run from the start of its session, so that no result is missing. Of a run that
// was active before the board, it reads only new events.
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
		b.log.Warn("run could not be followed", "run", j.ID, "error", err)
	}
	b.settle(ctx, f)
}

// follower follows a session of a run. Only one goroutine uses it.
type follower struct {
	board *Board
	job   *job
	rec   *record.Run
	// handle is the run that rec describes.
	handle record.Handle
	// session is the present session of the run; nil before it starts.
	session *session
	known   func()          // called when the state of the job is loaded, see Board.initial
	skip    int             // number of run_resumed events before the session starts
	turn    <-chan struct{} // closed when the run of a queued job starts; nil for other jobs
	ended   bool
}

func (f *follower) run(ctx context.Context, h record.Handle, fresh bool) error {
	first := int64(1)
	live, isLive := h.(*runner.Run)
	switch {
	case !fresh:
		_, st, err := replay.StateOf(h)
		if err != nil {
			return err
		}
		p := st.Progress
		first, f.job.seq = p.Seq+1, p.Seq
		s := newSession(f.rec, st)
		f.addAnswers(s)
		f.startSession(p.StartedAt, s.state.Cases(), s, false)
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
		if err := f.applyEvents(ctx, h.Subscribe(max(first, f.job.seq+1))); err != nil || f.ended || f.job.isAnnounced(f.board) {
			return err
		}
		// A process is resuming the run and has not written any events yet.
		if info, ok := f.board.o.Runner.Catalog().ReadInfo(f.job.ID); !ok || info.Status != record.StatusRunning {
			return nil
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// consistent returns the record of a run. While another process is resuming the run, it first
// waits until that process has written the record.
func (f *follower) consistent(ctx context.Context, h record.Handle) (record.Handle, error) {
	err := replay.Poll(ctx, func() bool {
		recorded, ok := h.(*replay.RecordedRun)
		if !ok || recorded.Run.ResumerPID() == 0 || recorded.Run.ResumerPID() == recorded.Rec.PID || !recorded.Run.Alive() {
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

// applyEvents applies events until they end, and returns nil, or until ctx ends.
func (f *follower) applyEvents(ctx context.Context, events record.Subscription) error {
	for {
		next, cancel := ctx, context.CancelFunc(func() {})
		if left, pending := f.untilProgress(); pending {
			next, cancel = context.WithTimeout(ctx, left)
		} else if f.turn != nil {
			next, cancel = f.untilTurn(ctx)
		}
		batch, err := events.Next(next)
		late := err != nil && next.Err() != nil && ctx.Err() == nil
		cancel()
		f.dequeue() // before the events that follow the start
		switch {
		case late:
			f.report()
		case errors.Is(err, io.EOF):
			return nil // settle finds out how the run ended
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

// untilTurn returns a context that ends when a queued job can start.
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

// apply applies an event to the job.
func (f *follower) apply(e *record.Event) {
	switch {
	case e.Type == record.RunResumed:
		f.skip = max(0, f.skip-1)
		if f.skip == 0 {
			s := f.resumed()
			s.state.Apply(e)
			f.startSession(e.Time, s.state.Cases(), s, true)
		}
	case f.skip > 0:
	case e.Type == record.RunStart:
		if !f.job.isAnnounced(f.board) { // the board may have found the run before its first event
			s := newSession(f.rec, nil)
			s.state.Apply(e)
			f.startSession(e.Time, 0, s, true)
		}
	default:
		f.publish(e)
	}
	if e.Type == record.End && f.skip == 0 {
		f.end(statusOf(e.Status), e.Time, e.Error)
	}
}

// resumed returns a session of a run that was just resumed.
func (f *follower) resumed() *session {
	_, st, err := replay.StateOf(f.handle)
	if err != nil {
		f.board.log.Warn("earlier events of a run could not be read", "run", f.job.ID, "error", err)
		return newSession(f.rec, nil)
	}
	s := newSession(f.rec, st)
	f.addAnswers(s)
	return s
}

// addAnswers adds the answers of earlier trials to a session of a param_tune.
func (f *follower) addAnswers(s *session) {
	if f.rec.Suite.KindName() != eval.ParamTune {
		return
	}
	err := f.handle.Trials(func(task int, t *record.Trial) error {
		s.add(task, t)
		return nil
	})
	if err != nil {
		f.board.log.Warn("earlier trials of a run could not be read", "run", f.job.ID, "error", err)
	}
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

// startSession starts a session of the job. Only fresh sessions are sent to watchers.
func (f *follower) startSession(at time.Time, done int, s *session, fresh bool) {
	b, j := f.board, f.job
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[j.ID] != j {
		return
	}
	if j.Status == Running || j.Status == Queued { // the run was resumed before the board saw its end
		j.Status = Interrupted
	}
	to := Pending
	if f.turn = b.o.Queued(j.ID); f.turn != nil {
		to = Queued
	}
	if !b.moveLocked(j, to) {
		return
	}
	f.session = s
	j.Type, j.messages, j.announced, j.pending = f.rec.Suite.KindName(), messagesOf(s), true, false
	if j.total == 0 { // the board found the run before its record was written
		j.suite, j.total = f.rec.Suite.Name, casesOf(f.rec)
	}
	j.reopen()
	j.asks, j.deciding = f.rec.Question != nil, s.state.Progress.Deciding
	j.count(done)
	if fresh {
		b.publishLocked(j, j.created(at))
	}
	if f.turn == nil {
		f.startLocked(at, fresh)
	}
}

// startLocked sets the job running.
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

// dequeue sets a queued job running when its turn has come.
func (f *follower) dequeue() {
	select {
	case <-f.turn: // nil, and so never ready, for jobs that are not queued
	default:
		return
	}
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	if f.board.jobs[f.job.ID] == f.job {
		f.startLocked(time.Now(), true)
	}
}

// moveLocked changes the state of a job if the transition is valid.
func (b *Board) moveLocked(j *job, to Status) bool {
	if j.move(to) {
		return true
	}
	b.log.Error("invalid transition of job state", "job", j.ID, "status", string(j.Status), "next", string(to))
	return false
}

// publish sends the messages of the job's kind about an event, and counts ended cases.
func (f *follower) publish(e *record.Event) {
	b, j := f.board, f.job
	if !f.count(e) || f.rec.Question != nil && e.Type == record.TrialComplete && e.Verdict == record.Skipped {
		return // the question did not need the trial
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
	if e.Type != record.DecideProgress && (!isCase(f.rec, e) || e.Verdict == record.Cancelled) {
		return
	}
	j.deciding = f.session.state.Progress.Deciding
	j.count(f.session.state.Cases())
	j.pending = true
	if time.Since(j.sentAt) >= progressPause {
		b.sendProgressLocked(j)
	}
}

// count applies an event to the state of the session, and reports whether the session has started.
func (f *follower) count(e *record.Event) bool {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	if f.session == nil || !f.job.announced {
		return false
	}
	f.session.state.Apply(e)
	return true
}

// untilProgress returns the time until the next progress message is due. pending is false when
// none is due.
func (f *follower) untilProgress() (left time.Duration, pending bool) {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	return max(0, progressPause-time.Since(f.job.sentAt)), f.job.pending && f.job.Status == Running
}

// report sends pending progress.
func (f *follower) report() {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	f.board.sendProgressLocked(f.job)
}

func (b *Board) sendProgressLocked(j *job) {
	if !j.pending {
		return
	}
	j.pending, j.sentAt = false, time.Now()
	b.publishLocked(j, j.progress(j.sentAt))
	if p, ok := j.messages.(progressing); ok {
		b.publishLocked(j, p.progress(j))
	}
}

// end ends the job. When the server shuts down, it sends no message about interrupted jobs,
// because the next server resumes them.
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
		if f.session != nil {
			j.answer = decisionText(f.session.state.Progress.Summary)
		}
		b.endLocked(j, to, at, failure)
	}
}

// isClosing reports whether the server is shutting down and cancels its runs.
func (b *Board) isClosing() bool {
	select {
	case <-b.o.Runner.Closing():
		return true
	default:
		return false
	}
}

// endLocked ends a job and sends the messages about its end.
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

// settle ends the job of a run that ended without a final event, and checks whether the run is
// active again.
func (b *Board) settle(ctx context.Context, f *follower) {
	j := f.job
	for {
		b.mu.Lock()
		j.changed = false
		b.mu.Unlock()
		info, stamp, ok := b.read(j.ID)
		if !ok {
			b.remove(j.ID)
			return
		}
		if !f.ended {
			f.endUnseen(&info)
		}
		b.setDamage(j.ID, &info, stamp)
		b.mu.Lock()
		again := j.changed
		if !again {
			j.followed = false
			b.pruneLocked(j.User)
		}
		b.mu.Unlock()
		switch {
		case again: // the run changed meanwhile
			continue
		case info.Status == record.StatusRunning, f.ended && info.EndedAt != nil && !info.EndedAt.Equal(j.endedAt(b)):
			b.applyChange(ctx, &catalog.Change{Info: info}, true)
		}
		return
	}
}

// endUnseen ends a job without a final event.
func (f *follower) endUnseen(info *catalog.Info) {
	if f.job.hasEnded(f.board, info) {
		return
	}
	if f.rec != nil && !f.job.isAnnounced(f.board) && !f.board.isClosing() { // the run ended before the follower could read it
		f.startSession(info.StartedAt, ended(info.Trials), newSession(f.rec, nil), true)
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

// endedAt returns when the run ended.
func (j *job) endedAt(b *Board) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.ended
}

// hasEnded reports whether watchers already got the end that info describes. In that case the
// job looked active only because the list of runs was older than the end.
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

// isAnnounced reports whether the session has started.
func (j *job) isAnnounced(b *Board) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return j.announced
}
