package importing

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

// Saved is the result of saving a file.
type Saved struct {
	RunID string
	// Already reports whether the state directory had these results, so that nothing was
	// recorded. Original reports whether the run there is the one from which the file was
	// exported.
	Already, Original bool
}

// Save records the file as a run of the store. The run becomes visible when it is completely
// recorded. The same results are recorded only once. The error is a [*source.Error], the cause of ctx,
// or an error of writing.
func Save(ctx context.Context, store *journal.Store, f *File) (*Saved, error) {
	if found, err := find(store, f); found != nil || err != nil {
		return found, err
	}
	stage, err := store.NewStage()
	if err != nil {
		return nil, err
	}
	defer stage.Close()
	if err := Write(ctx, stage.Store, f, WriteOptions{}); err != nil {
		return nil, err
	}
	if err := stage.Publish(f.Run.RunID); err != nil {
		return nil, err
	}
	return &Saved{RunID: f.Run.RunID}, nil
}

// find looks for the results in the store.
func find(store *journal.Store, f *File) (*Saved, error) {
	// Only the format of waza's own exports names the run they come from. Ids of others mean nothing here.
	if from := f.Run.Imported; from.Format == "" {
		if _, err := store.Open(from.EvalID); err == nil {
			return &Saved{RunID: from.EvalID, Already: true, Original: true}, nil
		}
	}
	ids, err := store.List()
	if err != nil {
		return nil, err
	}
	suffix := f.Run.RunID[strings.LastIndexByte(f.Run.RunID, '-'):]
	for _, id := range ids {
		if strings.HasSuffix(id, suffix) {
			return &Saved{RunID: id, Already: true}, nil
		}
	}
	return nil, nil
}

// WriteOptions control the recording of a file. The zero value works.
type WriteOptions struct {
	// Workspace stores the files that all trials left. If it is nil, the files are unknown, and
	// graders of files report that.
	Workspace func(blobs *journal.Blobs) (*record.Snapshot, error)
}

// unknownFiles is the reason why graders cannot look at files.
const unknownFiles = "the imported results do not contain the files that the agent left"

// Write records the file as a run of a store that does not have it. After an error the store can
// contain a part of it.
func Write(ctx context.Context, store *journal.Store, f *File, o WriteOptions) (err error) {
	rec := *f.Run
	rec.PID = os.Getpid()
	b, err := json.MarshalIndent(&rec, "", "  ")
	if err != nil {
		return err
	}
	log, err := store.Create(rec.RunID, append(b, '\n'))
	if err != nil {
		return err
	}
	defer func() {
		if cerr := log.Close(); err == nil {
			err = cerr
		}
	}()
	w := &writer{
		ctx: ctx, rec: &rec, log: log, enc: new(replay.Encoder), fold: replay.NewFold(replay.NewState(&rec), nil),
		results: f.Tasks, at: -1,
	}
	w.workspace = &record.Snapshot{Entries: []record.SnapshotEntry{}, Incomplete: unknownFiles}
	if o.Workspace != nil {
		if w.workspace, err = o.Workspace(log.Blobs()); err != nil {
			return err
		}
	}
	return w.write(f)
}

// A writer records the events of an imported run as the run itself would have.
type writer struct {
	ctx     context.Context
	rec     *record.Run
	log     *journal.Writer
	enc     *replay.Encoder
	fold    *replay.Fold
	results []*record.Task
	at      int // index of the current task
	bytes   int // not flushed yet
	// workspace belongs to all trials.
	workspace *record.Snapshot
}

func (w *writer) write(f *File) error {
	if err := w.add(&record.Event{Type: record.RunStart, TotalTasks: len(w.rec.Tasks), Record: w.rec}); err != nil {
		return err
	}
	err := f.Read(func(task int, t *record.Trial) error {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		return w.trial(task, t)
	})
	if err == nil {
		err = w.upTo(len(w.rec.Tasks))
	}
	if err != nil {
		return err
	}
	sum := f.Summary
	if err := w.add(&record.Event{
		Type: record.RunComplete, Status: f.Status, DurationMS: sum.DurationMS, TotalTasks: len(w.rec.Tasks),
	}); err != nil {
		return err
	}
	if err := w.add(&record.Event{Type: record.End, Status: f.Status, Summary: sum}); err != nil {
		return err
	}
	if err := w.log.Flush(); err != nil {
		return err
	}
	return w.log.WriteResult(func(out io.Writer) error {
		return replay.WriteResult(out, w.log.Run(), w.rec, w.fold.Snapshot(), replay.ResultOptions{Stored: true})
	})
}

// trial records a trial, after the events of the tasks before it.
func (w *writer) trial(task int, t *record.Trial) error {
	if err := w.upTo(task); err != nil {
		return err
	}
	ref := &w.rec.Tasks[task]
	if t.TaskID = ref.ID; t.Verdict != record.Skipped {
		t.StartedAt, t.Workspace = w.rec.CreatedAt, w.workspace // it started then or later
	}
	return w.add(&record.Event{
		Type: record.TrialComplete, TaskID: ref.ID, TaskName: ref.Name, TaskNum: task + 1, TotalTasks: len(w.rec.Tasks), Role: ref.Role,
		TrialNum: t.TrialNum, TotalTrials: ref.Trials, Verdict: t.Verdict, Score: t.Score, DurationMS: t.DurationMS,
		Error: text.Clip(t.Error, maxReason), Trial: t,
	})
}

// maxReason limits the reason in an event, in bytes. The trial contains all of it.
const maxReason = 16 << 10

// upTo ends the current task and starts the one at an index.
func (w *writer) upTo(task int) error {
	if task == w.at {
		return nil
	}
	if w.at >= 0 {
		ref, res := &w.rec.Tasks[w.at], w.results[w.at]
		e := &record.Event{
			Type: record.TaskComplete, TaskID: ref.ID, TaskName: ref.Name, TaskNum: w.at + 1, TotalTasks: len(w.rec.Tasks), Role: ref.Role,
			TotalTrials: ref.Trials, Verdict: res.Verdict, Task: res,
		}
		if err := w.add(e); err != nil {
			return err
		}
	}
	if w.at = task; task == len(w.rec.Tasks) {
		return nil
	}
	ref := &w.rec.Tasks[task]
	return w.add(&record.Event{
		Type: record.TaskStart, TaskID: ref.ID, TaskName: ref.Name, TaskNum: task + 1, TotalTasks: len(w.rec.Tasks),
		Role: ref.Role, TotalTrials: ref.Trials,
	})
}

// flushAt is the number of bytes that are gathered before they are written.
const flushAt = 1 << 20

// add records an event. Events at the end get the time after the duration of the run, all others
// the time of its start, because the file contains no times of events.
func (w *writer) add(e *record.Event) error {
	e.Seq, e.Time = w.log.Number(), w.rec.CreatedAt
	if e.Type == record.RunComplete || e.Type == record.End {
		e.Time = w.rec.CreatedAt.Add(time.Duration(w.duration(e)) * time.Millisecond)
	}
	e, at, size, err := w.enc.Append(w.log, e, nil)
	if err != nil {
		return fmt.Errorf("an event of run %s: %w", w.rec.RunID, err)
	}
	if w.bytes += size; w.bytes > flushAt {
		w.bytes = 0
		if err := w.log.Flush(); err != nil {
			return err
		}
	}
	w.fold.Apply([]*record.Event{e}, []replay.Place{at})
	return nil
}

func (w *writer) duration(e *record.Event) int64 {
	if e.Summary != nil {
		return e.Summary.DurationMS
	}
	return e.DurationMS
}
