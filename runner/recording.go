package runner

import (
	"context"
	"io"
	"time"

	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/pause"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
)

// recording is the record of a run while this process writes it. It owns the journal's writer and
// the feed, which alone appends to the journal, and the fold of the events that are recorded.
type recording struct {
	rec   *record.Run
	log   *journal.Writer
	fold  *replay.Fold
	tally *tally.Run // of the trials that fold counts; the lock of fold guards it
	feed  *feed
	lost  *record.Damage // of the journal when the run was resumed; nil without
}

// newRecording returns a record that continues from a state. onFailure is called once, when the
// journal cannot be written.
func newRecording(
	rec *record.Run, log *journal.Writer, state *replay.State, sums *tally.Run, keys *secrets.Redactor,
	onFailure func(error),
) *recording {
	r := &recording{rec: rec, log: log, fold: replay.NewFold(state, sums), tally: sums}
	r.feed = newFeed(log, r.fold, keys, onFailure)
	return r
}

// ID returns the id of the run.
func (r *recording) ID() string { return r.rec.RunID }

// Record returns the record of the run. The caller must not change it.
func (r *recording) Record() *record.Run { return r.rec }

// Progress returns the current state of the run. The error is always nil.
func (r *recording) Progress() (record.Progress, error) { return r.fold.Progress(), nil }

// Results returns the results of the tasks so far. The error is always nil.
func (r *recording) Results() (list []*record.Task, err error) {
	r.fold.View(func(st *replay.State) { list = st.Results() })
	return list, nil
}

// State returns a copy of the run's current state. The error is always nil.
func (r *recording) State() (*replay.State, error) { return r.fold.Snapshot(), nil }

// Files returns the directory of the run's record.
func (r *recording) Files() *journal.Run { return r.log.Run() }

// Subscribe returns a subscription to the events of the run, starting at fromSeq.
func (r *recording) Subscribe(fromSeq int64) record.Subscription {
	return &liveSubscription{feed: r.feed, next: max(1, fromSeq)}
}

// SubscribeHeads is like Subscribe, but events may lack their trials.
func (r *recording) SubscribeHeads(fromSeq int64) record.Subscription {
	return &liveSubscription{feed: r.feed, next: max(1, fromSeq), heads: true}
}

// First returns the number of the first event of the run in this process: 1 unless the run was
// resumed.
func (r *recording) First() int64 { return r.feed.first }

// pace is the shortest time between two wake-ups of a subscriber. A busy run records a batch every
// few microseconds, and following each of them would cost as much as the trials.
const pace = time.Millisecond

type liveSubscription struct {
	feed  *feed
	next  int64
	heads bool      // events may lack their trials
	woken time.Time // when Next last waited for events
}

func (s *liveSubscription) Next(ctx context.Context) ([]*record.Event, error) {
	for {
		events, news, err := s.feed.available(s.next, s.heads)
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			s.next = events[len(events)-1].Seq + 1
			return events, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if early := pace - time.Since(s.woken); early > 0 {
			if err := pause.For(ctx, early); err != nil {
				return nil, err
			}
		}
		s.woken = time.Now()
	}
}

// WriteResult writes the result so far.
func (r *recording) WriteResult(w io.Writer) error {
	return replay.WriteResult(w, r.Files(), r.rec, r.fold.Snapshot(), replay.ResultOptions{Damage: r.lost})
}

// Trials visits the trials that have ended so far.
func (r *recording) Trials(visit func(task int, t *record.Trial) error) error {
	return replay.VisitTrials(r.log.Run(), r.fold.Snapshot(), visit)
}

// Outcomes is like [Run.Trials], without transcripts, the outputs of earlier attempts and the rest
// of long outputs.
func (r *recording) Outcomes(visit func(task int, t *record.Trial, more int64) error) error {
	return replay.VisitOutcomes(r.log.Run(), r.fold.Snapshot(), visit)
}

// Chosen visits those of the trials that have ended so far that choose accepts.
func (r *recording) Chosen(choose func(task, num int) bool, visit func(task int, t *record.Trial) error) error {
	return replay.VisitChosen(r.log.Run(), r.fold.Snapshot(), choose, visit)
}

// Damage describes what the journal lost before the run was resumed. The caller must not change it.
// The error is always nil.
func (r *recording) Damage() (*record.Damage, error) { return r.lost, nil }

// Blobs opens the workspace contents of trials that have ended so far. It may miss later
// contents.
func (r *recording) Blobs() (record.Blobs, error) { return r.log.Run().Blobs() }

// summary returns the summary of all events that were emitted, unless the journal failed.
func (r *recording) summary() (sum *record.Summary) {
	_ = r.feed.sync() // Run.finish reports the error
	r.fold.View(func(st *replay.State) { sum = r.tally.Summary(st, r.rec.Metrics) })
	return sum
}

// verdicts returns the digest of the judges' verdicts, see [tally.Run.Verdicts].
func (r *recording) verdicts() (digest string) {
	r.fold.View(func(*replay.State) { digest = r.tally.Verdicts() })
	return digest
}

// emitAndAwait records an event. The error is that of the journal.
func (r *recording) emitAndAwait(e *record.Event) error { return r.feed.await(r.feed.emit(e)) }
