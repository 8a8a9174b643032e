package plan

import (
	"regexp"
	"slices"

	"waza/eval"
	"waza/eval/discover"
	"waza/runner/record"
)

// choose applies the filters of a request. Each pattern must match a task; a pattern without a
// match is a mistake that could go unnoticed. Where tasks are chosen, only those trigger tests
// run that a pattern of tasks names.
func (d *draft) choose(tests []triggerTest) ([]*eval.Task, []triggerTest, error) {
	tasks, cells, req := d.Suite.Tasks, d.cells, &d.req
	if len(tasks)+len(tests) == 0 {
		return nil, nil, &record.SelectionError{}
	}
	var ids, tags []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
		tags = append(tags, t.Tags...)
	}
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	byName := func(t *eval.Task) []string { return namesIn(t, cells...) }
	byTag := func(t *eval.Task) []string { return t.Tags }
	testNames := func(t triggerTest) []string {
		names := []string{t.task.ID}
		for _, c := range cells {
			names = append(names, c.id(t.task.ID))
		}
		return names
	}
	if err := CheckPatterns("task", withoutTests(req.Tasks, tests, testNames), tasks, byName, ids); err != nil {
		return nil, nil, err
	}
	if err := CheckPatterns("tag", req.Tags, tasks, byTag, tags); err != nil {
		return nil, nil, err
	}
	if req.Task != "" {
		same, err := chooseID(tasks, req.Task, byName, ids)
		return same, nil, err
	}
	var chosen []*eval.Task
	wanted, tagged := NewFilter(req.Tasks), NewFilter(req.Tags)
	for _, t := range tasks {
		if wanted.Matches(byName(t)) && tagged.Matches(byTag(t)) {
			chosen = append(chosen, t)
		}
	}
	switch {
	case len(req.Tags) > 0 || req.Trial > 0 && len(req.Tasks) == 0 && len(tasks) > 0:
		tests = nil
	default:
		tests = slices.DeleteFunc(tests, func(t triggerTest) bool { return !wanted.Matches(testNames(t)) })
	}
	if len(chosen)+len(tests) == 0 {
		return nil, nil, &record.SelectionError{What: "both task and tag", Patterns: append(slices.Clone(req.Tasks), req.Tags...)}
	}
	return chosen, tests, nil
}

// A TriggerTest is a prompt of the trigger tests of a suite, as a run of an agent whose skills waza sees has it.
type TriggerTest struct {
	ID string
	*record.TriggerRef
	// Trials is the number of trials, in each cell of a matrix.
	Trials int
}

// TriggerTests returns the trigger tests that a request chooses. They do not depend on the executor.
func TriggerTests(suite *eval.Suite, req record.Request) (list []TriggerTest, err error) {
	d := &draft{Plan: &Plan{Suite: suite}, req: req, ids: idsOf(suite)}
	_, tests, err := d.choose(triggerTests(suite, d.ids, req.FirstTool))
	for _, t := range tests {
		list = append(list, TriggerTest{ID: t.task.ID, TriggerRef: t.ref, Trials: max(1, suite.Config.TrialsPerTask)})
	}
	return list, err
}

// namesIn returns the id and the name of a task, and its ids in those of some cells of a matrix that do it.
func namesIn(t *eval.Task, cells ...*Setup) []string {
	names := []string{t.ID, t.Name}
	for _, c := range cells {
		if c.ref != nil && c.does(t) {
			names = append(names, c.id(t.ID))
		}
	}
	return names
}

// wanted returns a filter for the requested ids and names of tasks.
func wanted(req *record.Request) filter {
	if req.Task != "" {
		return filter{names: []string{req.Task}}
	}
	return NewFilter(req.Tasks)
}

// withoutTests returns the patterns that name no trigger test.
func withoutTests(patterns []string, tests []triggerTest, names func(triggerTest) []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool {
		f := NewFilter([]string{p})
		return slices.ContainsFunc(tests, func(t triggerTest) bool { return f.Matches(names(t)) })
	})
}

// chooseID returns the task with an id, or with an id in a cell. Several have it if each is done in cells of
// its own.
func chooseID(tasks []*eval.Task, id string, names func(*eval.Task) []string, known []string) ([]*eval.Task, error) {
	var same []*eval.Task
	for _, t := range tasks {
		if t.ID == id {
			same = append(same, t)
		}
	}
	for i := 0; len(same) == 0 && i < len(tasks); i++ {
		if slices.Contains(names(tasks[i])[2:], id) {
			same = tasks[i : i+1]
		}
	}
	if len(same) == 0 {
		return nil, &record.SelectionError{What: "task", Patterns: []string{id}, Known: known}
	}
	return same, nil
}

// CheckPatterns returns a [*record.SelectionError] for the first pattern that matches no name of
// any task. Such a mistake would otherwise go unnoticed.
func CheckPatterns[T any](what string, patterns []string, tasks []T, names func(T) []string, known []string) error {
	for _, p := range patterns {
		f := NewFilter([]string{p})
		if !slices.ContainsFunc(tasks, func(t T) bool { return f.Matches(names(t)) }) {
			return &record.SelectionError{What: what, Patterns: []string{p}, Known: known}
		}
	}
	return nil
}

// filter matches names by patterns, each a name or a glob.
type filter struct {
	names []string
	globs []*regexp.Regexp
}

// NewFilter compiles patterns of task ids. An invalid glob can still be an id.
func NewFilter(patterns []string) filter {
	f := filter{names: patterns}
	for _, p := range patterns {
		if re, err := discover.CompileGlob(p); err == nil { // an invalid glob can still be a name
			f.globs = append(f.globs, re)
		}
	}
	return f
}

// Matches reports whether a pattern matches one of the names. Without patterns everything matches.
func (f filter) Matches(names []string) bool {
	return len(f.names) == 0 || slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains(f.names, name) ||
			slices.ContainsFunc(f.globs, func(re *regexp.Regexp) bool { return re.MatchString(name) })
	})
}
