package runner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/discover"
)

// SelectionError says that there is nothing to run.
type SelectionError struct {
	What     string // the filter that leaves nothing: "task", "tag" or "trial"; empty when the suite has no task
	Patterns []string
	Known    []string
	// Unmeasured says why trigger tests, of which there are, are nothing to run.
	Unmeasured string
}

func (e *SelectionError) Error() string {
	switch {
	case e.Unmeasured != "":
		return "there is nothing to run but trigger tests: " + e.Unmeasured
	case e.What == "":
		return "the suite has no task to run"
	}
	msg := fmt.Sprintf("no task of the suite matches %s %s", e.What, strings.Join(quoted(e.Patterns), ", "))
	if len(e.Known) > 0 {
		msg += "; there are " + strings.Join(e.Known[:min(len(e.Known), 20)], ", ")
		if n := len(e.Known) - 20; n > 0 {
			msg += fmt.Sprintf(" and %d more", n)
		}
	}
	return msg
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fmt.Sprintf("%q", s)
	}
	return out
}

// choose applies the filters. Each pattern must match some task: one that
// matches none is a slip that would go unnoticed. Where tasks are chosen, of
// the trigger tests only those are run that a pattern of tasks names.
func choose(suite *eval.Suite, tests []triggerTest, cells []*cell, req Request) ([]*eval.Task, []triggerTest, error) {
	tasks := suite.Tasks
	if len(tasks)+len(tests) == 0 {
		return nil, nil, &SelectionError{}
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
	if err := checkPatterns("task", withoutTests(req.Tasks, tests, testNames), tasks, byName, ids); err != nil {
		return nil, nil, err
	}
	if err := checkPatterns("tag", req.Tags, tasks, byTag, tags); err != nil {
		return nil, nil, err
	}
	if req.Task != "" {
		one, err := chooseOne(tasks, req.Task, byName, ids)
		return one, nil, err
	}
	var chosen []*eval.Task
	wanted, tagged := newFilter(req.Tasks), newFilter(req.Tags)
	for _, t := range tasks {
		if wanted.takes(byName(t)) && tagged.takes(byTag(t)) {
			chosen = append(chosen, t)
		}
	}
	switch {
	case len(req.Tags) > 0 || req.Trial > 0 && len(req.Tasks) == 0 && len(tasks) > 0:
		tests = nil
	default:
		tests = slices.DeleteFunc(tests, func(t triggerTest) bool { return !wanted.takes(testNames(t)) })
	}
	if len(chosen)+len(tests) == 0 {
		return nil, nil, &SelectionError{What: "both task and tag", Patterns: append(slices.Clone(req.Tasks), req.Tags...)}
	}
	return chosen, tests, nil
}

// namesIn are the id and the name of a task, and its ids in cells of a matrix.
func namesIn(t *eval.Task, cells ...*cell) []string {
	names := []string{t.ID, t.Name}
	for _, c := range cells {
		if c.ref != nil {
			names = append(names, c.id(t.ID))
		}
	}
	return names
}

// wanted takes the ids and names of tasks that are asked for.
func (req *Request) wanted() filter {
	if req.Task != "" {
		return filter{names: []string{req.Task}}
	}
	return newFilter(req.Tasks)
}

// withoutTests are the patterns that name no trigger test.
func withoutTests(patterns []string, tests []triggerTest, names func(triggerTest) []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool {
		f := newFilter([]string{p})
		return slices.ContainsFunc(tests, func(t triggerTest) bool { return f.takes(names(t)) })
	})
}

func chooseOne(tasks []*eval.Task, id string, names func(*eval.Task) []string, known []string) ([]*eval.Task, error) {
	i := slices.Index(known, id)
	if i < 0 {
		i = slices.IndexFunc(tasks, func(t *eval.Task) bool { return slices.Contains(names(t)[2:], id) })
	}
	if i < 0 {
		return nil, &SelectionError{What: "task", Patterns: []string{id}, Known: known}
	}
	return tasks[i : i+1], nil
}

func checkPatterns(what string, patterns []string, tasks []*eval.Task, names func(*eval.Task) []string, known []string) error {
	for _, p := range patterns {
		f := newFilter([]string{p})
		if !slices.ContainsFunc(tasks, func(t *eval.Task) bool { return f.takes(names(t)) }) {
			return &SelectionError{What: what, Patterns: []string{p}, Known: known}
		}
	}
	return nil
}

// filter takes names by patterns, each a name or a glob.
type filter struct {
	names []string
	globs []*regexp.Regexp
}

func newFilter(patterns []string) filter {
	f := filter{names: patterns}
	for _, p := range patterns {
		if re, err := discover.CompileGlob(p); err == nil { // a bad glob may still be a name
			f.globs = append(f.globs, re)
		}
	}
	return f
}

// takes reports whether one of the names is wanted; without patterns all are.
func (f filter) takes(names []string) bool {
	return len(f.names) == 0 || slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains(f.names, name) ||
			slices.ContainsFunc(f.globs, func(re *regexp.Regexp) bool { return re.MatchString(name) })
	})
}
