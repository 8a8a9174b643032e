package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/workspace"
)

// Remove deletes a run with its record and workspaces, and returns how many bytes it
// freed. Other processes see the whole run disappear at once. The error is
// [record.ErrRunNotFound], a [*record.BusyError] for a run that is active or being
// changed, or the reason why some files remain; [Catalog.Collect] deletes these later.
func (r *Catalog) Remove(id string) (bytes int64, err error) {
	if err := r.Settle(context.Background(), id); err != nil { // writing the end takes only a moment
		return 0, err
	}
	trash, err := r.Store.Discard(id)
	switch {
	case errors.Is(err, record.ErrRunNotFound):
		return 0, err
	case errors.Is(err, journal.ErrRecorded):
		return 0, &record.BusyError{RunID: id, Running: true}
	case errors.Is(err, journal.ErrAmended):
		return 0, &record.BusyError{RunID: id}
	}
	if trash != "" {
		bytes = workspace.TreeSize(trash)
		err = errors.Join(err, workspace.RemoveAll(trash))
	}
	if err != nil {
		return bytes, fmt.Errorf("run %s: %w", id, err)
	}
	return bytes, nil
}

// Retention determines which runs to remove. The zero value keeps all runs. A run is removed
// when every field that is set allows it; an active run is never removed. The age of a run dated
// in the future is unknown: Keep does not count it and keeps it, unless Keep is 0.
type Retention struct {
	// Keep, unless nil, keeps that many of the newest runs with one of Statuses.
	Keep *int
	// OlderThan, when positive, keeps runs that ended more recently. An interrupted
	// run counts from its start.
	OlderThan time.Duration
	// Statuses, unless empty, keeps runs with another status.
	Statuses []record.Status
}

func (o Retention) isZero() bool { return o.Keep == nil && o.OlderThan <= 0 && len(o.Statuses) == 0 }

// choose returns the runs to remove. infos are sorted from new to old.
func (o Retention) choose(infos []Info, now time.Time) []Info {
	if o.isZero() {
		return nil
	}
	var list []Info
	kept := 0
	for _, info := range infos {
		ended := info.StartedAt
		if info.EndedAt != nil {
			ended = *info.EndedAt
		}
		switch {
		case info.Status == record.StatusRunning:
		case len(o.Statuses) > 0 && !slices.Contains(o.Statuses, info.Status):
		case info.Ahead && (o.Keep != nil && *o.Keep > 0 || o.OlderThan > 0): // its age is unknown
		case o.Keep != nil && kept < *o.Keep:
			kept++
		case o.OlderThan > 0 && now.Sub(ended) < o.OlderThan:
		default:
			list = append(list, info)
		}
	}
	return list
}

// Removed is something that Collect removed, or would remove.
type Removed struct {
	// Kind is one of: run; workspaces (of a run whose process was killed); trash (a run that was
	// not removed completely); file (that was being written when its process was killed);
	// unrecorded (a run whose process was killed before it was recorded); index (unused entries
	// of the cache's index).
	Kind  string `json:"what"`
	RunID string `json:"runId,omitempty"`
	// Path is the path of anything but a run.
	Path  string `json:"path,omitempty"`
	Bytes int64  `json:"bytes"`
	// Status and StartedAt are set for a run.
	Status    record.Status `json:"status,omitempty"`
	StartedAt *time.Time    `json:"startedAt,omitempty"`
}

// Values of [Removed.Kind], besides the kinds of [journal.Garbage].
const (
	RemovedRun   = "run"
	RemovedIndex = "index"
)

// Collect removes garbage, and the runs that o does not keep. With dryRun it removes nothing and
// returns what it would remove. Even with an error it returns what it removed. The error joins
// the reasons why something remains, or is the cause of ctx. A run that is resumed in the
// meantime remains. A dry run does not list the cache's index.
func (r *Catalog) Collect(ctx context.Context, o Retention, dryRun bool) ([]Removed, error) {
	c := &collection{catalog: r, dryRun: dryRun}
	if err := c.runs(ctx, o); err != nil {
		return c.removed, errors.Join(c.err, err)
	}
	err := r.Store.Collect(time.Now(), func(g journal.Garbage) {
		if ctx.Err() == nil {
			c.remove(Removed{Kind: g.Kind, RunID: g.Run, Path: g.Path, Bytes: workspace.TreeSize(g.Path)}, func() error { return workspace.RemoveAll(g.Path) })
		}
	})
	if err == nil && ctx.Err() == nil && !dryRun {
		err = c.index()
	}
	return c.removed, errors.Join(c.err, err, context.Cause(ctx))
}

func (c *collection) runs(ctx context.Context, o Retention) error {
	r := c.catalog
	if o.isZero() {
		return nil
	}
	infos, err := r.List(0)
	if err != nil {
		return err
	}
	for _, info := range infos {
		_ = r.Settle(ctx, info.RunID) // active runs remain, see below
	}
	for _, info := range o.choose(infos, time.Now()) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		run := r.Store.At(info.RunID)
		if run.Busy() {
			continue
		}
		c.remove(Removed{
			Kind: RemovedRun, RunID: info.RunID, Bytes: workspace.TreeSize(run.Dir()) + workspace.TreeSize(run.WorkDir()), Status: info.Status,
			StartedAt: &info.StartedAt,
		}, func() error {
			_, err := r.Remove(info.RunID)
			return err
		})
	}
	return nil
}

// index drops the entries of removed runs from the index.
func (c *collection) index() error {
	index := c.catalog.Store.Index()
	before := workspace.TreeSize(index.Dir())
	dropped, err := index.Clean()
	if dropped > 0 {
		c.removed = append(c.removed, Removed{Kind: RemovedIndex, Path: index.Dir(), Bytes: max(0, before-workspace.TreeSize(index.Dir()))})
	}
	if errors.Is(err, journal.ErrIndexBusy) {
		return nil // another process does the same
	}
	return err
}

// collection collects removed items, and the errors of failed removals.
type collection struct {
	catalog *Catalog
	dryRun  bool
	removed []Removed
	err     error
}

func (c *collection) remove(what Removed, remove func() error) {
	var err error
	if !c.dryRun {
		err = remove()
	}
	var busy *record.BusyError
	switch {
	case err == nil:
		c.removed = append(c.removed, what)
	case errors.As(err, &busy), errors.Is(err, record.ErrRunNotFound): // another process resumed or removed it
	default:
		c.err = errors.Join(c.err, fmt.Errorf("%s: %w", cmp.Or(what.Path, what.RunID), err))
	}
}
