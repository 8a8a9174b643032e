package record

import (
	"context"
	"io"
)

// Handle is access to a run, be it of this process, of another or of the past.
type Handle interface {
	ID() string
	// Record is what was asked. The caller must not change it.
	Record() *Run
	// Progress is how far the run has come.
	Progress() (Progress, error)
	// Results are those of the tasks, in the order of the record, amendments
	// included; nil for one that has not ended.
	Results() ([]*Task, error)
	// Subscribe follows the run from the event with that number on; numbers
	// below 1 mean from the first.
	Subscribe(fromSeq int64) Subscription
	// Trials calls visit for each trial that has ended, in the order of the
	// record, with the index of its task; amendments are included. One trial at
	// a time is in memory, and belongs to visit. An error of visit ends it.
	Trials(visit func(task int, t *Trial) error) error
	// Damage says what is lost of the run's journal; nil when all is there. It
	// goes through the whole file.
	Damage() (*Damage, error)
	// Blobs opens the contents that entries of trials' workspaces name. The
	// caller closes it.
	Blobs() (Blobs, error)
	// WriteResult writes the whole result, as far as there is one, as one line of JSON.
	WriteResult(w io.Writer) error
}

// Blobs reads contents that a run's journal keeps beside its events.
type Blobs interface {
	// Get returns a content whole; the error says that it is gone or damaged.
	Get(b Blob) ([]byte, error)
	Close() error
}

// Subscription delivers the events of a run in order, each exactly once. It
// belongs to one goroutine and needs no closing.
type Subscription interface {
	// Next returns at least one event, waiting for it if need be. It returns
	// io.EOF after the last event of a run that has ended, and the cause of
	// ctx when that ends first. The events are shared: do not change them.
	Next(ctx context.Context) ([]*Event, error)
}
