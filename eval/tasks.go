package eval

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// maxTasks bounds the tasks of one suite.
const maxTasks = 200_000

// tasks fills in the suite's tasks: those of tasks, then those of tasks_from.
func (l *loader) tasks() {
	ts := &taskSet{loader: l, ids: map[string]*Task{}, files: map[string]bool{l.suite.File: true}}
	list := lookup(l.src.root, "tasks")
	switch {
	case !isNull(follow(list)):
		ts.entries(l.src, list)
	case l.suite.TasksFrom == "":
		ts.tasksDirectory()
	}
	if l.suite.TasksFrom != "" {
		ts.dataset()
	}
	l.suite.Tasks, l.suite.taskFiles = ts.tasks, ts.files
	for _, t := range ts.tasks {
		t.Effective = effective(l.suite.Graders, t.Graders)
		ts.somethingChecked(t)
	}
}

// taskSet collects the tasks of a suite.
type taskSet struct {
	loader *loader
	tasks  []*Task
	ids    map[string]*Task
	files  map[string]bool // task files that were read, and files that are none
	full   bool
}

// entries reads the items of `tasks`: patterns of files, and tasks themselves.
func (ts *taskSet) entries(src *source, list *yaml.Node) {
	l := ts.loader
	n := follow(list)
	if n.Kind == yaml.ScalarNode {
		ts.pattern(src, list, n.Value)
		return
	}
	if n.Kind != yaml.SequenceNode {
		l.reportf(src, list, Error, CodeWrongType, "tasks must be a list of file patterns and tasks, not %s", describe(n))
		return
	}
	for i, item := range n.Content {
		switch target := follow(item); {
		case target.Kind == yaml.MappingNode:
			ts.inline(src, item, i)
		case target.Kind == yaml.ScalarNode && !isNull(target):
			ts.pattern(src, item, target.Value)
		default:
			l.reportf(src, item, Error, CodeWrongType, "tasks[%d] must be a file pattern or a task, not %s", i, describe(target))
		}
	}
}

var taskFiles = regexp.MustCompile(`\.ya?ml$`)

// tasksDirectory takes the files of tasks/ when the suite names none.
func (ts *taskSet) tasksDirectory() {
	l := ts.loader
	dir := filepath.Join(l.suite.Dir, "tasks")
	l.looked(dir)
	if !isDir(dir) {
		return
	}
	found := ts.matches(taskFiles, dir, 0)
	if len(found) == 0 {
		return
	}
	l.reportf(l.src, nil, Info, CodeMissingField, "the suite names no tasks; those of %s are used", l.display(dir))
	for _, path := range found {
		ts.file(path, l.src, nil)
	}
}

// file reads a task file; src and at are what names it.
func (ts *taskSet) file(path string, src *source, at *yaml.Node) {
	l := ts.loader
	if ts.files[path] {
		return
	}
	ts.files[path] = true
	data, err := l.readFile(path, maxYAMLBytes)
	if err != nil {
		l.unreadable(path, src, at, err)
		return
	}
	taskSrc := l.parse(path, data)
	if taskSrc.root == nil {
		return
	}
	stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	ts.task(taskSrc, taskSrc.root, path, stem)
}

func (ts *taskSet) inline(src *source, n *yaml.Node, i int) {
	ts.task(src, n, src.path, fmt.Sprintf("task-%d", i+1))
}

// task decodes and checks one task that a node declares.
func (ts *taskSet) task(src *source, n *yaml.Node, file, fallbackID string) {
	l := ts.loader
	if target := follow(n); target.Kind != yaml.MappingNode {
		l.reportf(src, n, Error, CodeWrongType, "a task must be a map of keys such as id, inputs and graders, not %s", describe(target))
		return
	}
	t := &Task{File: file, RelFile: l.relative(file), Line: n.Line}
	t.SetDefaults()
	before := len(l.found)
	l.decoder(src).into(n, t)
	if t.ID == "" {
		t.ID = fallbackID
	}
	if t.Name == "" {
		t.Name = t.ID
	}
	tc := &taskCheck{loader: l, src: src, node: n, task: t}
	tc.check()
	if !t.Enabled {
		l.demote(before)
		return
	}
	if ts.add(t, src, n) {
		ts.tasks = append(ts.tasks, t)
	}
}

// add takes a task unless another has its id.
func (ts *taskSet) add(t *Task, src *source, n *yaml.Node) bool {
	l := ts.loader
	if first := ts.ids[t.ID]; first != nil {
		l.reportf(src, place(n, "id"), Error, CodeDuplicateID, "the id %q is that of another task too: %s:%d", text.Clip(t.ID, 80), l.display(first.File), first.Line)
		return false
	}
	if len(ts.ids) >= maxTasks {
		if !ts.full {
			l.reportf(src, n, Error, CodeTooLarge, "the suite has more than %d tasks", maxTasks)
		}
		ts.full = true
		return false
	}
	ts.ids[t.ID] = t
	return true
}

// relative gives a path relative to the suite's directory, with slashes.
func (l *loader) relative(path string) string {
	rel, err := filepath.Rel(l.suite.Dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// decodeShape takes a task with inputs, or a flat one whose inputs stand at its
// top level.
func (t *Task) decodeShape(d *decoder, n *yaml.Node) {
	inputs := map[string]bool{}
	for _, key := range Keys(&t.Inputs) {
		inputs[key] = true
	}
	var flat []pair
	d.structure(n, reflect.ValueOf(t).Elem(), func(p pair) bool {
		if inputs[p.key.Value] {
			flat = append(flat, p)
		} else {
			d.unknownKey(p.key, reflect.TypeFor[Task](), Keys(&t.Inputs))
		}
		return true
	})
	nested := follow(lookup(n, "inputs"))
	for _, p := range flat {
		if nested != nil && lookup(nested, p.key.Value) != nil {
			d.report(p.key, Warning, CodeNoEffect, "", "%s has no effect beside inputs.%s", p.key.Value, p.key.Value)
			continue
		}
		f := findField(fieldsOf(reflect.TypeFor[Inputs]()), p.key.Value)
		d.push(p.key.Value)
		d.value(p.value, reflect.ValueOf(&t.Inputs).Elem().FieldByIndex(f.index))
		d.pop()
	}
}

// somethingChecked tells of a task that passes whatever the agent does.
func (ts *taskSet) somethingChecked(t *Task) {
	if len(t.Effective) > 0 || t.Expected.checksSomething() && ts.loader.suite.Config.GradeExpected != GradeExpectedFalse {
		return
	}
	ts.loader.report(Diagnostic{File: ts.loader.display(t.File), Line: t.Line, Column: 1, Severity: Warning, Code: CodeNothingChecked,
		Message: fmt.Sprintf("task %q: nothing is checked, so every trial passes; give it graders or expected", text.Clip(t.ID, 80))})
}

func (e *Expected) checksSomething() bool {
	if e == nil {
		return false
	}
	b, c := e.Behavior, e.ToolCalls
	return len(e.OutputContains)+len(e.OutputNotContains)+len(e.OutputContainsAny)+len(e.Matches)+len(e.Outcomes) > 0 ||
		e.ShouldTrigger != nil || c != nil && len(c.Required)+len(c.Forbidden) > 0 ||
		b != nil && (b.MaxToolCalls != nil || b.MaxIterations != nil || b.MaxTokens != nil || b.MaxResponseTimeMS != nil ||
			len(b.RequiredTools)+len(b.ForbiddenTools) > 0)
}
