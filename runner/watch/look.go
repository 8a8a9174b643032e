package watch

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"waza/eval/decode"
	"waza/runner"
	"waza/runner/plan"
)

// suiteState is a suite as a watch read it, with everything it depends on.
type suiteState struct {
	plan        *plan.Plan // nil when the suite cannot be run
	diagnostics decode.Diagnostics
	err         error             // why the suite cannot run, besides diagnostics
	sums        map[string]string // digests of the files that were read; empty for missing files
	paths       []string          // those files, and directories that were searched
}

// readSuite reads the suite again. The caller owns the plan in it.
func (w *Watch) readSuite(ctx context.Context) *suiteState {
	l := &suiteState{}
	paths := map[string]bool{w.path: true}
	req := w.o.Request
	req.Cache = false // the tasks to run are determined later
	p, err := w.runner.Planner().Prepare(ctx, w.o.Path, req,
		plan.PrepareOptions{Accessed: func(path string) { paths[path] = true }, Later: true, WithPrograms: true})
	l.plan, l.diagnostics, l.err = p.Plan, p.Diagnostics, err
	l.gather(ctx, paths)
	return l
}

// gather lists the files and directories that the suite depends on.
func (l *suiteState) gather(ctx context.Context, paths map[string]bool) {
	files := &plan.Digests{Ctx: ctx, Left: plan.MaxContent, Files: map[string]string{}}
	if l.plan != nil {
		files.Files = l.plan.Files.Files
		for path := range files.Files {
			paths[path] = true
		}
		for dir := range l.plan.Files.Dirs {
			paths[dir] = true
		}
	}
	l.paths = slices.Sorted(maps.Keys(paths))
	l.sums = map[string]string{}
	for _, path := range l.paths {
		if isDirectory(path) {
			continue // the relevant files in it are listed separately
		}
		l.sums[path], _ = files.File(path)
	}
}

// known contains the reported state of files: their digests, and the directories that were
// searched. An unreadable suite does not show which files it refers to, so only removed files
// are dropped.
type known struct {
	sums map[string]string
	dirs map[string]bool
}

// changed lists the files that differ from their reported state, were removed, or have appeared
// where the suite searches for files. Other files that the suite refers to for the first time
// are not changes: the cause is the file that refers to them.
func (k *known) changed(l *suiteState) []string {
	var list []string
	for path, sum := range l.sums {
		before, reported := k.sums[path]
		if reported && before != sum || !reported && sum != "" && k.searched(path) {
			list = append(list, path)
		}
	}
	for path, before := range k.sums {
		if _, looked := l.sums[path]; !looked && before != "" && !isThere(path) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// searched reports whether a directory above the path was searched.
func (k *known) searched(path string) bool {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if k.dirs[dir] {
			return true
		}
	}
	return false
}

// learn stores the state that was read, once it is reported.
func (k *known) learn(l *suiteState) {
	for path := range k.sums {
		if _, looked := l.sums[path]; !looked && !isThere(path) {
			delete(k.sums, path)
		}
	}
	maps.Copy(k.sums, l.sums)
	for _, path := range l.paths {
		if _, file := l.sums[path]; !file {
			k.dirs[path] = true
		}
	}
}

func (l *suiteState) close() {
	if l != nil && l.plan != nil {
		l.plan.Close()
		l.plan = nil
	}
}

// content identifies a task for a watch. Two tasks with equal content are the same: their trials
// have the same hashes and numbers, and the same thresholds.
type content struct {
	hash          string
	first, trials int
	threshold     float64
	stopping      float64 // the confidence at which no more trials start
}

func contentOf(p *plan.Plan, t *plan.Task) content {
	return content{t.Hash, t.First, t.Trials, t.Threshold, p.Config.Stopping.Confidence}
}

// contents returns the contents of all tasks by id; nil when the suite cannot run.
func (l *suiteState) contents() map[string]content {
	if l.plan == nil {
		return nil
	}
	contents := make(map[string]content, len(l.plan.Tasks))
	for _, t := range l.plan.Tasks {
		contents[t.ID] = contentOf(l.plan, t)
	}
	return contents
}

// due lists the ids of the tasks that were not finished in their current form. A task and its
// baseline are compared, so either both are due or none is.
func (l *suiteState) due(finished map[string]content) map[string]bool {
	due := map[string]bool{}
	for _, t := range l.plan.Tasks {
		if finished[t.ID] == contentOf(l.plan, t) {
			continue
		}
		due[t.ID] = true
		if t.Baseline != nil {
			due[t.Baseline.ID] = true
		}
	}
	for _, t := range l.plan.Tasks {
		if t.Baseline != nil && due[t.Baseline.ID] {
			due[t.ID] = true
		}
	}
	return due
}

// start starts a run of the due tasks. The run owns the plan; without a run, start closes it.
// Findings list what this machine lacks. If they contain errors, no run starts.
func (l *suiteState) start(
	ctx context.Context, r *runner.Runner, due map[string]bool, cache bool,
) (*runner.Run, decode.Diagnostics, error) {
	p := l.plan
	l.plan = nil
	p.Keep(due)
	if p.Asked.Cache = cache; cache {
		p.FindReusable(r.Planner())
	}
	ds := p.Preflight(ctx)
	if ds.HasErrors() || ctx.Err() != nil {
		p.Close()
		return nil, ds, context.Cause(ctx)
	}
	run, err := r.Start(p)
	return run, ds, err
}
