package runner

import (
	"waza/runner/catalog"
	"waza/runner/regrade"
)

// A View restricts a [Runner] to the runs that one user can see.
type View struct {
	// User owns the runs that are started through the view, see [Gate]. Empty means the user of
	// this process.
	User string
	// Sees reports whether the user can see a run; nil means all runs. It must be fast and safe
	// for concurrent use.
	Sees func(runID string) bool
}

// View returns r restricted to a view. The result finds, lists, controls, grades, reuses and
// deletes only the runs of the view, and treats all others as if they did not exist. Everything
// else is shared with r, including Close. The zero View returns r itself. r must not be a view.
func (r *Runner) View(v View) *Runner {
	w := *r
	w.view = v
	if v.Sees == nil {
		return &w
	}
	w.store = r.store.View(v.Sees)
	w.catalog = catalog.New(w.store, w.liveRun, w.log)
	w.planner = r.planner.View(w.catalog)
	w.amender = w.newAmender()
	return &w
}

// Sees reports whether the run, if it exists, is visible through r.
func (r *Runner) Sees(runID string) bool { return r.view.Sees == nil || r.view.Sees(runID) }

func (r *Runner) newAmender() *regrade.Amender {
	return &regrade.Amender{Catalog: r.catalog, Planner: r.planner, Admit: r.startAmend, Ended: r.writeReports, Log: r.log}
}
