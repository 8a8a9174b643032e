package eval

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/files"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// maxTasks bounds the tasks of one suite.
const maxTasks = 200_000

// loadTasks fills in the suite's tasks: those of tasks, then those of tasks_from.
func loadTasks(l *loader) {
	ts := &taskSet{loader: l, ids: map[string]*Task{}, files: map[string]bool{l.suite.File: true}}
	list := decode.Lookup(l.src.Root, "tasks")
	switch {
	case !decode.IsNull(decode.Follow(list)):
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
	}
	l.judgeAll(ts.tasks)
	for _, t := range ts.tasks {
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
func (ts *taskSet) entries(src *decode.Source, list *yaml.Node) {
	l := ts.loader
	n := decode.Follow(list)
	if n.Kind == yaml.ScalarNode {
		ts.pattern(src, list, n.Value)
		return
	}
	if n.Kind != yaml.SequenceNode {
		l.Reportf(src, list, decode.Error, decode.CodeWrongType, "tasks must be a list of file patterns and tasks, not %s", decode.Describe(n))
		return
	}
	for i, item := range n.Content {
		switch target := decode.Follow(item); {
		case target.Kind == yaml.MappingNode:
			ts.inline(src, item, i)
		case target.Kind == yaml.ScalarNode && !decode.IsNull(target):
			ts.pattern(src, item, target.Value)
		default:
			l.Reportf(src, item, decode.Error, decode.CodeWrongType, "tasks[%d] must be a file pattern or a task, not %s", i, decode.Describe(target))
		}
	}
}

var taskFiles = text.Pattern(`\.ya?ml$`)

// tasksDirectory takes the files of tasks/ when the suite names none.
func (ts *taskSet) tasksDirectory() {
	l := ts.loader
	dir := filepath.Join(l.suite.Dir, "tasks")
	l.looked(dir)
	if !files.IsDir(dir) {
		return
	}
	found := ts.matches(taskFiles(), dir, 0)
	if len(found) == 0 {
		return
	}
	l.Reportf(l.src, nil, decode.Info, decode.CodeMissingField, "the suite names no tasks; those of %s are used", l.display(dir))
	for _, path := range found {
		ts.file(path, l.src, nil)
	}
}

// file reads a task file; src and at are what names it.
func (ts *taskSet) file(path string, src *decode.Source, at *yaml.Node) {
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
	if taskSrc.Root == nil {
		return
	}
	stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	ts.task(taskSrc, taskSrc.Root, path, stem)
}

func (ts *taskSet) inline(src *decode.Source, n *yaml.Node, i int) {
	ts.task(src, n, src.Path, fmt.Sprintf("task-%d", i+1))
}

// task decodes and checks one task that a node declares.
func (ts *taskSet) task(src *decode.Source, n *yaml.Node, file, fallbackID string) {
	l := ts.loader
	if target := decode.Follow(n); target.Kind != yaml.MappingNode {
		l.Reportf(src, n, decode.Error, decode.CodeWrongType, "a task must be a map of keys such as id, inputs and graders, not %s", decode.Describe(target))
		return
	}
	t := &Task{File: file, RelFile: l.relative(file), Line: n.Line}
	t.SetDefaults()
	before := l.Count()
	l.decoder(src).Into(n, t)
	if t.ID == "" {
		t.ID = fallbackID
	}
	if t.Name == "" {
		t.Name = t.ID
	}
	tc := &taskCheck{loader: l, src: src, node: n, task: t}
	tc.check()
	if !t.Enabled {
		l.Demote(before)
		return
	}
	if ts.add(t, src, n) {
		ts.tasks = append(ts.tasks, t)
	}
}

// add takes a task unless another has its id.
func (ts *taskSet) add(t *Task, src *decode.Source, n *yaml.Node) bool {
	l := ts.loader
	if first := ts.ids[t.ID]; first != nil {
		l.Reportf(src, decode.Place(n, "id"), decode.Error, decode.CodeDuplicateID, "the id %q is that of another task too: %s:%d", text.Clip(t.ID, 80), l.display(first.File), first.Line)
		return false
	}
	if len(ts.ids) >= maxTasks {
		if !ts.full {
			l.Reportf(src, n, decode.Error, decode.CodeTooLarge, "the suite has more than %d tasks", maxTasks)
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

// DecodeShape takes a task with inputs, or a flat one whose inputs stand at its
// top level.
func (t *Task) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	inputs := map[string]bool{}
	for _, key := range decode.Keys(&t.Inputs) {
		inputs[key] = true
	}
	var flat []decode.Pair
	d.Structure(n, reflect.ValueOf(t).Elem(), func(p decode.Pair) bool {
		if inputs[p.Key.Value] {
			flat = append(flat, p)
		} else {
			d.UnknownKey(p.Key, reflect.TypeFor[Task](), decode.Keys(&t.Inputs))
		}
		return true
	})
	nested := decode.Follow(decode.Lookup(n, "inputs"))
	for _, p := range flat {
		if nested != nil && decode.Lookup(nested, p.Key.Value) != nil {
			d.Report(p.Key, decode.Warning, decode.CodeNoEffect, "", "%s has no effect beside inputs.%s", p.Key.Value, p.Key.Value)
			continue
		}
		f := fields.Find(decode.FieldsOf(reflect.TypeFor[Inputs]()), p.Key.Value)
		d.Push(p.Key.Value)
		d.Value(p.Value, reflect.ValueOf(&t.Inputs).Elem().FieldByIndex(f.Index))
		d.Pop()
	}
}

// somethingChecked tells of a task that passes whatever the agent does.
func (ts *taskSet) somethingChecked(t *Task) {
	if ts.loader.suite.Kind == Benchmark || len(t.Effective) > 0 || t.Expected.checksSomething() && ts.loader.suite.Config.GradeExpected != GradeExpectedFalse {
		return
	}
	ts.loader.Report(decode.Diagnostic{File: ts.loader.display(t.File), Line: t.Line, Column: 1, Severity: decode.Warning, Code: decode.CodeNothingChecked,
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
