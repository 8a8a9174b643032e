package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"waza/eval/files"
	"waza/eval/project"
	"waza/eval/reach"
	"waza/eval/text"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

// Catalog finds, lists, watches and removes the runs of a state directory, those of
// other processes included. It is safe for concurrent use.
type Catalog struct {
	Store *journal.Store
	log   *slog.Logger
	// live returns the run with that id if it is active in this process, else nil.
	live func(id string) Live
}

// Live is a run that is active in this process.
type Live interface {
	record.Handle
	// Status is the status of Progress, except that a cancelled run is cancelled at
	// once, even while its processes are being killed.
	Status() record.Status
	// Done is closed when the run has ended and its result is written.
	Done() <-chan struct{}
}

// New returns the catalog of a store. live returns the run with a given id if it is active in
// this process, else nil. log receives problems that callers need not handle.
func New(store *journal.Store, live func(id string) Live, log *slog.Logger) *Catalog {
	return &Catalog{Store: store, live: live, log: log}
}

// StateDir returns the directory that holds the records of all runs.
func (r *Catalog) StateDir() string { return r.Store.Dir() }

// Run returns the run with that id, or [record.ErrRunNotFound].
func (r *Catalog) Run(id string) (record.Handle, error) {
	if run := r.live(id); run != nil {
		return run, nil
	}
	return replay.Open(r.Store, id)
}

// Settle waits until this process has written the end of a run, so that its record can
// be changed. The error is a [*record.BusyError] while the run is active, or the cause
// of ctx.
func (r *Catalog) Settle(ctx context.Context, id string) error {
	live := r.live(id)
	if live == nil {
		return nil
	}
	if p, err := live.Progress(); err == nil && p.EndedAt == nil {
		return &record.BusyError{RunID: id, Running: true}
	}
	select {
	case <-live.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// LatestRun names the newest run of a project. A run dated in the future is the newest only if
// there is no other run.
const LatestRun = "latest"

// leastPrefix is the minimum number of characters of an abbreviated id.
const leastPrefix = 4

// An AmbiguousRunError reports that a reference matches several runs.
type AmbiguousRunError struct {
	Ref string
	// RunIDs are the runs that match, newest first.
	RunIDs []string
}

func (e *AmbiguousRunError) Error() string {
	return fmt.Sprintf("%q matches %d runs: %s", e.Ref, len(e.RunIDs), text.Names(e.RunIDs))
}

// Find returns the run that ref names: its id, a prefix of its id or of the part after the last
// hyphen (at least four characters), or latest. The latest run is the newest one whose suite is
// in the project of the directory dir, see [project.Root]; imported runs without a suite file
// belong to every project. With an empty dir, it is the newest of all runs. A suffix ~N counts N
// runs of the same suite file back, for example latest~1. The error is [record.ErrRunNotFound],
// an [*AmbiguousRunError], or the reason why the run cannot be read.
func (r *Catalog) Find(dir, ref string) (record.Handle, error) {
	name, back, err := cutBack(ref)
	if err != nil {
		return nil, err
	}
	h, err := r.findNamed(dir, name)
	if err != nil || back == 0 {
		return h, err
	}
	before := 0
	err = r.Earlier(h.ID(), func(o record.Handle) bool {
		if sameSuite(&o.Record().Suite, &h.Record().Suite) {
			before++
			h = o
		}
		return before < back
	})
	if err == nil && before < back {
		err = fmt.Errorf("%w: %s: the suite has only %s", record.ErrRunNotFound, ref, text.Count(before, "earlier run", "earlier runs"))
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// sameSuite reports whether two runs are of one suite. Imported runs may have no suite file;
// their suites are compared by name.
func sameSuite(a, b *record.SuiteRef) bool {
	return a.Path == b.Path && (a.Path != "" || a.Name == b.Name)
}

// cutBack splits ref~N.
func cutBack(ref string) (name string, back int, err error) {
	name, number, ok := strings.Cut(ref, "~")
	if !ok {
		return ref, 0, nil
	}
	if number == "" {
		return name, 1, nil
	}
	if back, err = strconv.Atoi(number); err != nil || back < 0 {
		return "", 0, fmt.Errorf("%w: %s: ~ must be followed by a number of runs", record.ErrRunNotFound, ref)
	}
	return name, back, nil
}

func (r *Catalog) findNamed(dir, name string) (record.Handle, error) {
	if name == LatestRun {
		return r.newest(dir)
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

// newest returns the newest run of the project of dir, or of all with an empty dir.
func (r *Catalog) newest(dir string) (record.Handle, error) {
	p, err := projectOf(dir)
	if err != nil {
		return nil, err
	}
	var newest, elsewhere record.Handle
	err = r.Earlier("", func(h record.Handle) bool {
		if p.has(h.Record().Suite.Path) {
			newest = h
		} else if elsewhere == nil {
			elsewhere = h
		}
		return newest == nil
	})
	switch {
	case err != nil:
		return nil, err
	case newest != nil:
		return newest, nil
	case elsewhere != nil:
		return nil, fmt.Errorf("%w: %s: no run of a suite in %s is recorded; the newest run of other projects is %s, of the suite %s",
			record.ErrRunNotFound, LatestRun, p.root, elsewhere.ID(), elsewhere.Record().Suite.Path)
	}
	return nil, fmt.Errorf("%w: %s: no runs are recorded", record.ErrRunNotFound, LatestRun)
}

// LatestBack returns how many runs of the same suite before the latest a reference means, if it
// is latest or latest~N.
func LatestBack(ref string) (back int, ok bool) {
	name, back, err := cutBack(ref)
	return back, err == nil && name == LatestRun
}

// Suites returns the newest runs of each suite of the project of the directory dir: at most n of
// each suite, newest first. The suite of the newest run is the first. Others count only if their
// file still exists.
func (r *Catalog) Suites(dir string, n int) ([][]record.Handle, error) {
	p, err := projectOf(dir)
	if err != nil {
		return nil, err
	}
	type key struct{ path, name string }
	at := map[key]int{} // -1: not a suite of the project
	var suites [][]record.Handle
	err = r.Earlier("", func(h record.Handle) bool {
		ref := &h.Record().Suite
		k := key{path: ref.Path}
		if ref.Path == "" {
			k.name = ref.Name
		}
		i, known := at[k]
		if !known {
			if i = -1; p.has(ref.Path) && (len(suites) == 0 || files.IsRegular(ref.Path)) {
				i, suites = len(suites), append(suites, nil)
			}
			at[k] = i
		}
		if i >= 0 && len(suites[i]) < n {
			suites[i] = append(suites[i], h)
		}
		return true
	})
	return suites, err
}

// projectSuites are the suites of a project.
type projectSuites struct{ root string }

// projectOf returns the suites of the project of a directory, see [project.Root]; with an empty
// dir, all suites.
func projectOf(dir string) (projectSuites, error) {
	if dir == "" {
		return projectSuites{}, nil
	}
	root, err := project.Root(dir)
	return projectSuites{root}, err
}

// has reports whether a suite file is in the project, whose root has no links. Suites without a
// file belong to every project.
func (p projectSuites) has(suite string) bool {
	if suite == "" || p.root == "" {
		return true
	}
	dir := filepath.Dir(suite)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return reach.Within(p.root, dir)
}

// EarlierIn is like [Catalog.Earlier] for the runs of the project of a directory, see
// [Catalog.Find]. With an empty dir, it visits the runs of all projects.
func (r *Catalog) EarlierIn(dir, id string, visit func(record.Handle) bool) error {
	p, err := projectOf(dir)
	if err != nil {
		return err
	}
	return r.Earlier(id, func(h record.Handle) bool { return !p.has(h.Record().Suite.Path) || visit(h) })
}

// Earlier calls visit with the runs before one, newest first, until visit returns
// false. With an empty id it visits all runs. It skips runs whose files it cannot read.
func (r *Catalog) Earlier(id string, visit func(record.Handle) bool) error {
	ids, err := r.Store.List()
	if err != nil {
		return err
	}
	for _, other := range ids[slices.Index(ids, id)+1:] { // all runs when the id does not exist
		h, err := r.Run(other)
		if err == nil && !visit(h) {
			break
		}
	}
	return nil
}

// Archive writes the directory of a run's record as a compressed tar file, as it is
// now and without workspaces. The error may be [record.ErrRunNotFound].
func (r *Catalog) Archive(w io.Writer, id string) error {
	run, err := r.Store.Open(id)
	if err != nil {
		return err
	}
	return run.Archive(w)
}

// Unfinished returns the id of the newest run of the project of dir that is interrupted,
// cancelled or failed, or nothing if no run matches. With an empty dir, it searches all projects.
// suite, unless empty, is the path of the suite file that the run must have. Unfinished skips
// imported runs, and runs whose files it cannot read.
func (r *Catalog) Unfinished(dir, suite string) (runID string, err error) {
	err = r.EarlierIn(dir, "", func(h record.Handle) bool {
		if h.Record().Imported != nil || suite != "" && h.Record().Suite.Path != suite {
			return true
		}
		if replay.LacksEnd(h) {
			runID = h.ID()
			return false
		}
		p, err := h.Progress()
		if err != nil {
			return true
		}
		switch p.Status {
		case record.StatusInterrupted, record.StatusCancelled, record.StatusFailed:
			runID = h.ID()
		}
		return runID == ""
	})
	return runID, err
}
