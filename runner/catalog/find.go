package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

// Catalog finds, lists and removes the runs of a state directory, those of other
// processes included. It is safe for concurrent use.
type Catalog struct {
	Store *journal.Store
	log   *slog.Logger
	// live returns the run with that id if it is active in this process, else nil.
	live func(id string) Live
}

// Live is a run that is active in this process.
type Live interface {
	record.Handle
	// Status is that of Progress, except that a run that was cancelled is so from
	// then on, even while its processes are being ended.
	Status() record.Status
	// Done is closed when the run has ended and its result is written.
	Done() <-chan struct{}
}

// New returns the catalog of a store. live returns the run with that id if
// it is active in this process, else nil; log takes what has no other place.
func New(store *journal.Store, live func(id string) Live, log *slog.Logger) *Catalog {
	return &Catalog{Store: store, live: live, log: log}
}

// StateDir is the directory that all runs are recorded in.
func (r *Catalog) StateDir() string { return r.Store.Dir() }

// Run returns the run with that id, or [ErrRunNotFound].
func (r *Catalog) Run(id string) (record.Handle, error) {
	if run := r.live(id); run != nil {
		return run, nil
	}
	return replay.Open(r.Store, id)
}

// Settle returns when nothing of this process keeps the record of a run from being
// changed. The error is a [*BusyError] when the run is active, or the cause of ctx.
func (r *Catalog) Settle(ctx context.Context, id string) error {
	live := r.live(id)
	if live == nil {
		return nil
	}
	if p, err := live.Progress(); err == nil && p.EndedAt == nil {
		return &record.BusyError{RunID: id, GoesOn: true}
	}
	select {
	case <-live.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// LatestRun names the newest run. A run that is dated in the
// future is it only when there is no other.
const LatestRun = "latest"

// leastPrefix is how much of an id must be given.
const leastPrefix = 4

// AmbiguousRunError says that what should name a run fits several.
type AmbiguousRunError struct {
	Ref string
	// RunIDs are those it fits, newest first.
	RunIDs []string
}

func (e *AmbiguousRunError) Error() string {
	return fmt.Sprintf("%q fits %d runs: %s", e.Ref, len(e.RunIDs), text.Names(e.RunIDs))
}

// Find returns the run that ref names: by its id, by the beginning of the id or of
// what follows its last hyphen (four characters at least), or as latest. With ~N
// after it, it is the Nth run before that one of the same suite file: latest~1.
// The error is [ErrRunNotFound], an [*AmbiguousRunError], or tells why the
// run cannot be read.
func (r *Catalog) Find(ref string) (record.Handle, error) {
	name, back, err := cutBack(ref)
	if err != nil {
		return nil, err
	}
	h, err := r.findNamed(name)
	if err != nil || back == 0 {
		return h, err
	}
	before := 0
	err = r.Earlier(h.ID(), func(o record.Handle) bool {
		if o.Record().Suite.Path == h.Record().Suite.Path {
			before++
			h = o
		}
		return before < back
	})
	if err == nil && before < back {
		err = fmt.Errorf("%w: %s: of that suite there are %d before it", record.ErrRunNotFound, ref, before)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// cutBack takes ~N off.
func cutBack(ref string) (name string, back int, err error) {
	name, number, ok := strings.Cut(ref, "~")
	if !ok {
		return ref, 0, nil
	}
	if number == "" {
		return name, 1, nil
	}
	if back, err = strconv.Atoi(number); err != nil || back < 0 {
		return "", 0, fmt.Errorf("%w: %s: after ~ stands how many runs before", record.ErrRunNotFound, ref)
	}
	return name, back, nil
}

func (r *Catalog) findNamed(name string) (record.Handle, error) {
	if name == LatestRun {
		return r.newest()
	}
	h, err := r.Run(name)
	if !errors.Is(err, record.ErrRunNotFound) || len(name) < leastPrefix {
		return h, err
	}
	ids, err := r.Store.List()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, id := range ids {
		if strings.HasPrefix(id, name) || strings.HasPrefix(id[strings.LastIndexByte(id, '-')+1:], name) {
			found = append(found, id)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %s", record.ErrRunNotFound, name)
	case len(found) > 1:
		return nil, &AmbiguousRunError{Ref: name, RunIDs: found}
	}
	return r.Run(found[0])
}

func (r *Catalog) newest() (record.Handle, error) {
	var newest record.Handle
	err := r.Earlier("", func(h record.Handle) bool {
		newest = h
		return false
	})
	if err == nil && newest == nil {
		err = fmt.Errorf("%w: %s, for none is recorded", record.ErrRunNotFound, LatestRun)
	}
	if err != nil {
		return nil, err
	}
	return newest, nil
}

// Earlier visits the runs before one, newest first, as long as visit wants more.
// An empty id visits all. Runs whose files cannot be read are left out.
func (r *Catalog) Earlier(id string, visit func(record.Handle) bool) error {
	ids, err := r.Store.List()
	if err != nil {
		return err
	}
	for _, other := range ids[slices.Index(ids, id)+1:] { // all when there is no such id
		h, err := r.Run(other)
		if err == nil && !visit(h) {
			break
		}
	}
	return nil
}

// Archive writes the directory of a run's record as a compressed tar file, as it is
// at the moment; workspaces are none of it. The error may be [ErrRunNotFound].
func (r *Catalog) Archive(w io.Writer, id string) error {
	run, err := r.Store.Open(id)
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("%w: %s", record.ErrRunNotFound, id)
	}
	if err != nil {
		return err
	}
	return run.Archive(w)
}

// Unfinished returns the newest run that did not come to its end: interrupted,
// cancelled or failed. With a suite, the path of its file, only runs of that count.
// It is empty when there is none. Runs whose files cannot be read are left out.
func (r *Catalog) Unfinished(suite string) (runID string, err error) {
	ids, err := r.Store.List()
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		h, err := r.Run(id)
		if err != nil || suite != "" && h.Record().Suite.Path != suite {
			continue
		}
		p, err := h.Progress()
		if err != nil {
			continue
		}
		switch p.Status {
		case record.StatusInterrupted, record.StatusCancelled, record.StatusFailed:
			return id, nil
		}
	}
	return "", nil
}
