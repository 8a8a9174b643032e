package runner

import (
	"waza/runner/catalog"
	"waza/runner/journal"
	"waza/runner/regrade"
)

// View is what somebody sees of the runs of a [Runner].
type View struct {
	// User is who the runs belong to that are started; see [Gate]. Empty means the user of
	// this process.
	User string
	// Sees reports whether a run is known to the user; nil means that all are. It is safe
	// for concurrent use, and quick.
	Sees func(runID string) bool
}

// View returns r as somebody sees it: it finds, lists, steers, grades, reuses and deletes
// the runs of the view, and answers for all others as if they did not exist. Everything else
// is shared with r, closing included. The zero View is r itself, and r must not be a view.
func (r *Runner) View(v View) *Runner {
	w := *r
	w.view = v
	if v.Sees == nil {
		return &w
	}
	w.store = journal.View(r.store, v.Sees)
	w.catalog = catalog.New(w.store, w.liveRun, w.log)
	w.planner = r.planner.View(w.catalog)
	w.amender = newAmender(&w)
	return &w
}

// Sees reports whether a run may be known through r, if it exists.
func (r *Runner) Sees(runID string) bool { return r.view.Sees == nil || r.view.Sees(runID) }

func newAmender(r *Runner) *regrade.Amender {
	return &regrade.Amender{Catalog: r.catalog, Planner: r.planner, Begin: r.beginAmend, Ended: r.writeReports, Log: r.log}
}
