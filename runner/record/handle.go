package record

import (
	"context"
	"io"
)

// Handle gives access to a run: of this process, of another process, or finished.
type Handle interface {
	ID() string
	// Record returns the record of the run. The caller must not change it.
	Record() *Run
	// Progress returns the current state of the run.
	Progress() (Progress, error)
	// Results returns the results of the tasks, in the order of the record and with amendments.
	// The result of a task that has not ended is nil.
	Results() ([]*Task, error)
	// Subscribe follows the run, starting at the event with number fromSeq. Numbers below 1 mean
	// the first event.
	Subscribe(fromSeq int64) Subscription
	// SubscribeHeads is like Subscribe, but the events may lack their trials. A subscriber that
	// falls behind then costs a third as much.
	SubscribeHeads(fromSeq int64) Subscription
	// Trials calls visit for each trial that has ended, in the order of the record, with the
	// index of its task and with amendments. Few trials at a time are in memory; each belongs to
	// visit. An error of visit ends the iteration.
	Trials(visit func(task int, t *Trial) error) error
	// Outcomes is like Trials, but the trials have no transcripts, their earlier attempts no
	// outputs, and of a long output only the start: more is the number of bytes that are missing.
	// It is many times as fast when agents answer at length.
	Outcomes(visit func(task int, t *Trial, more int64) error) error
	// Chosen is like Trials, for the trials that choose accepts by the index of their task and
	// their number. It does not read the others. choose must not depend on anything that visit
	// changes.
	Chosen(choose func(task, num int) bool, visit func(task int, t *Trial) error) error
	// Damage describes what the run's journal lost; nil when it is complete. It reads the whole
	// file.
	Damage() (*Damage, error)
	// Blobs opens the contents of the files in the workspaces of trials. The caller closes it.
	Blobs() (Blobs, error)
	// WriteResult writes the whole result so far, as one line of JSON.
	WriteResult(w io.Writer) error
}

// Blobs reads file contents that are stored beside the events of a run's journal.
type Blobs interface {
	// Get returns the whole content. It returns an error when the content is missing or damaged.
	Get(b Blob) ([]byte, error)
	Close() error
}

// Subscription delivers the events of a run in order, each exactly once. Only one goroutine may
// use it. It needs no closing.
type Subscription interface {
	// Next returns at least one event and blocks until one is available. It returns io.EOF after
	// the last event of a run that has ended. It returns the cause of ctx when ctx ends first.
	// The events are shared: do not change them.
	Next(ctx context.Context) ([]*Event, error)
}
