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

// look is a suite as a watch found it, with all that it depends on.
type look struct {
	plan        *plan.Plan // nil when the suite cannot be run
	diagnostics decode.Diagnostics
	err         error             // why it cannot be, besides diagnostics
	sums        map[string]string // digests of the files that were looked at; empty for one that is not there
	paths       []string          // those files, and directories that were searched
}

// look reads the suite anew. The plan in it is the caller's.
func (w *Watch) look(ctx context.Context) *look {
	l := &look{}
	paths := map[string]bool{w.path: true}
	req := w.o.Request
	req.Cache = false // what is due is known later
	p, err := w.runner.Planner().Prepare(ctx, w.o.Path, req, plan.Reading{Looked: func(path string) { paths[path] = true }, Later: true})
	l.plan, l.diagnostics, l.err = p.Plan, p.Diagnostics, err
	l.gather(ctx, paths)
	return l
}

// gather lists what the suite depends on.
func (l *look) gather(ctx context.Context, paths map[string]bool) {
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
			continue // the files in it that matter are listed by themselves
		}
		l.sums[path], _ = files.File(path)
	}
}

// known is what was told of files: their digests, and the directories that were
// searched. A suite that cannot be read does not tell what it refers to, so
// nothing is forgotten but files that are gone.
type known struct {
	sums map[string]string
	dirs map[string]bool
}

// changed lists the files that are others in a look than was told, have gone, or
// have appeared where the suite looks for such. Others that it refers to for the
// first time are no change: the cause is the file that does.
func (k *known) changed(l *look) []string {
	var list []string
	for path, sum := range l.sums {
		before, told := k.sums[path]
		if told && before != sum || !told && sum != "" && k.searched(path) {
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

// learn takes over what a look found, once that is told.
func (k *known) learn(l *look) {
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

func (l *look) close() {
	if l != nil && l.plan != nil {
		l.plan.Close()
		l.plan = nil
	}
}

// content is what a task must have in common with one that was run to be the same
// for a watch: its trials by content and number, and what they must reach.
type content struct {
	hash          string
	first, trials int
	threshold     float64
	stopping      float64 // the confidence at which no more trials are started
}

func contentOf(p *plan.Plan, t *plan.Task) content {
	return content{t.Hash, t.First, t.Trials, t.Threshold, p.Config.Stopping.Confidence}
}

// contents are those of all tasks by their ids; nil when the suite cannot be run.
func (l *look) contents() map[string]content {
	if l.plan == nil {
		return nil
	}
	contents := make(map[string]content, len(l.plan.Tasks))
	for _, t := range l.plan.Tasks {
		contents[t.ID] = contentOf(l.plan, t)
	}
	return contents
}

// due lists the ids of the tasks that were not finished as they are now. A task
// and its baseline are compared, so both are due or none.
func (l *look) due(finished map[string]content) map[string]bool {
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

// start begins a run of what is due. The plan is the run's, or gone, then. Findings
// are what this machine lacks; with errors among them there is no run.
func (l *look) start(ctx context.Context, r *runner.Runner, due map[string]bool, cache bool) (*runner.Run, decode.Diagnostics, error) {
	p := l.plan
	l.plan = nil
	p.Keep(due)
	if p.Asked.Cache = cache; cache {
		p.FindEarlier(r.Planner())
	}
	ds := p.Preflight(ctx)
	if ds.HasErrors() || ctx.Err() != nil {
		p.Close()
		return nil, ds, context.Cause(ctx)
	}
	run, err := r.Start(p)
	return run, ds, err
}
