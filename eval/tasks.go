package eval

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// maxTasks limits the tasks of one suite.
const maxTasks = 200_000

// loadTasks fills in the suite's tasks: first those of the key tasks, then those of tasks_from.
func (l *loader) loadTasks() {
	ts := &taskSet{loader: l, ids: map[string]*Task{}, files: map[string]bool{l.suite.File: true}, tree: l.places.Tree()}
	defer ts.tree.Close()
	list := decode.Lookup(l.src.Root, "tasks")
	switch {
	case !decode.IsNull(decode.Follow(list)):
		ts.addEntries(l.src, list)
	case l.suite.Format != "":
	case l.suite.TasksFrom != "":
	case l.suite.Project != nil && l.suite.Project.Files.TaskGlob != "":
		src, at := l.suite.Project.Place("files", "taskGlob")
		ts.addAll(placesOf(ts.findFiles(src, at, l.suite.Project.Files.TaskGlob), src, at))
	default:
		ts.addTasksDirectory()
	}
	if l.suite.TasksFrom != "" {
		ts.addDataset()
	}
	for i, t := range l.suite.more {
		ts.addTask(t.Source, t.Node, t.Source.Path, fmt.Sprintf("task-%d", i+1))
	}
	l.suite.Tasks, l.suite.taskFiles = ts.tasks, ts.files
	for _, t := range ts.tasks {
		t.Effective = effective(l.suite.Graders, t.Graders)
		t.Mocks = surroundings.MergeMocks(l.suite.MCPMocks, t.MCPMocks)
	}
	kindCheck{l}.judgeAll(ts.tasks)
	for _, t := range ts.tasks {
		ts.reportUnchecked(t)
	}
	reportTurns(l, ts.tasks)
	ts.reportOneCluster()
}

// reportOneCluster reports a cluster that contains all tasks. A comparison could then not answer about
// tasks like these.
func (ts *taskSet) reportOneCluster() {
	if len(ts.tasks) < 2 || ts.tasks[0].Cluster == "" {
		return
	}
	for _, t := range ts.tasks {
		if t.Cluster != ts.tasks[0].Cluster {
			return
		}
	}
	ts.loader.Report(decode.Diagnostic{
		File: ts.tasks[0].File, Line: ts.tasks[0].Line, Severity: decode.Warning, Code: decode.CodeNoEffect,
		Message: fmt.Sprintf("all tasks are in the cluster %q, so a comparison cannot answer for tasks like these; "+
			"give tasks that have nothing in common other clusters, or none", text.Clip(ts.tasks[0].Cluster, 60)),
	})
}

// taskSet collects the tasks of a suite.
type taskSet struct {
	loader *loader
	tasks  []*Task
	ids    map[string]*Task
	files  map[string]bool // files that were read, or must not be read, as task files
	tree   *files.Tree     // of the directory that must contain them
	full   bool
}

// addEntries reads the items of `tasks`: file patterns and inline tasks. It first finds the files of
// all patterns, so that they are read together.
func (ts *taskSet) addEntries(src *decode.Source, list *yaml.Node) {
	l := ts.loader
	n := decode.Follow(list)
	if n.Kind == yaml.ScalarNode {
		ts.addAll(placesOf(ts.findFiles(src, list, n.Value), src, list))
		return
	}
	if n.Kind != yaml.SequenceNode {
		l.Reportf(src, list, decode.Error, decode.CodeWrongType, "tasks must be a list of file patterns and tasks, got %s", decode.Describe(n))
		return
	}
	var found []taskPlace
	for i, item := range n.Content {
		switch target := decode.Follow(item); {
		case target.Kind == yaml.MappingNode:
			found = append(found, taskPlace{src: src, at: item, number: i + 1})
		case target.Kind == yaml.ScalarNode && !decode.IsNull(target):
			found = append(found, placesOf(ts.findFiles(src, item, target.Value), src, item)...)
		default:
			l.Reportf(src, item, decode.Error, decode.CodeWrongType,
				"tasks[%d] must be a file pattern or a task, got %s", i, decode.Describe(target))
		}
	}
	ts.addAll(found)
}

var taskFiles = text.Pattern(`\.ya?ml$`)

// addTasksDirectory uses the files of tasks/ when the suite names none.
func (ts *taskSet) addTasksDirectory() {
	l := ts.loader
	dir := filepath.Join(l.suite.Dir, "tasks")
	l.dependsOn(dir)
	if !files.IsDir(dir) {
		return
	}
	found := ts.matches(taskFiles(), dir, 0)
	if len(found) == 0 {
		return
	}
	l.Reportf(l.src, nil, decode.Info, decode.CodeMissingField, "the suite names no tasks; waza uses those in %s", l.display(dir))
	ts.addAll(placesOf(found, l.src, nil))
}

// addTask decodes and checks one task that the node n declares.
func (ts *taskSet) addTask(src *decode.Source, n *yaml.Node, file, fallbackID string) {
	l := ts.loader
	if target := decode.Follow(n); target.Kind != yaml.MappingNode {
		l.Reportf(src, n, decode.Error, decode.CodeWrongType,
			"a task must be a map of keys such as id, inputs and graders, got %s", decode.Describe(target))
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
	if ts.register(t, src, n) {
		ts.tasks = append(ts.tasks, t)
	}
}

// register adds a task unless an earlier one has the same id in the same cells.
func (ts *taskSet) register(t *Task, src *decode.Source, n *yaml.Node) bool {
	l := ts.loader
	if first := ts.sameID(t); first != nil {
		l.Reportf(src, decode.Place(n, "id"), decode.Error, decode.CodeDuplicateID,
			"duplicate task id %q; it is first used at %s:%d", text.Clip(t.ID, 80), l.display(first.File),
			first.Line)
		return false
	}
	if len(ts.tasks) >= maxTasks {
		if !ts.full {
			l.Reportf(src, n, decode.Error, decode.CodeTooLarge, "the suite has more than %d tasks", maxTasks)
		}
		ts.full = true
		return false
	}
	if ts.ids[t.ID] == nil {
		ts.ids[t.ID] = t
	}
	for _, cell := range t.Cells {
		ts.ids[inCell(t.ID, cell)] = t
	}
	return true
}

// sameID returns an earlier task with the same id that some cell does, too; nil if no task has it.
func (ts *taskSet) sameID(t *Task) *Task {
	first := ts.ids[t.ID]
	if first == nil || len(first.Cells) == 0 || len(t.Cells) == 0 {
		return first
	}
	for _, cell := range t.Cells {
		if other := ts.ids[inCell(t.ID, cell)]; other != nil {
			return other
		}
	}
	return nil
}

// inCell returns a key that is no id of a task.
func inCell(id, cell string) string { return id + "\x00" + cell }

// DecodeShape decodes a task with inputs, or a flat one that has the inputs at its top level.
func (t *Task) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	inputs := decode.FieldsOf(reflect.TypeFor[Inputs]())
	var flat []decode.Pair
	d.Structure(n, t, func(p decode.Pair) bool {
		if slices.ContainsFunc(inputs, func(f fields.Field) bool { return f.Name == p.Key.Value }) {
			flat = append(flat, p)
		} else {
			d.UnknownKey(p.Key, reflect.TypeFor[Task](), inputs...)
		}
		return true
	})
	nested := decode.Follow(decode.Lookup(n, "inputs"))
	for _, p := range flat {
		if nested != nil && decode.Lookup(nested, p.Key.Value) != nil {
			d.Report(p.Key, decode.Warning, decode.CodeNoEffect, "", "%s has no effect because inputs.%s is set", p.Key.Value, p.Key.Value)
			continue
		}
		f := fields.Find(inputs, p.Key.Value)
		d.Push(p.Key.Value)
		d.Value(p.Value, reflect.ValueOf(&t.Inputs).Elem().FieldByIndex(f.Index))
		d.Pop()
	}
}

// reportUnchecked reports a task that always passes because nothing checks it.
func (ts *taskSet) reportUnchecked(t *Task) {
	counts := func(g *Grader) bool { return !g.Optional && (g.Group == nil || !g.Group.Optional) }
	if ts.loader.suite.Kind == Benchmark || t.Blocked != "" || len(t.Inputs.Checkpoints) > 0 || slices.ContainsFunc(t.Effective, counts) ||
		t.Expected.checksSomething() && ts.loader.suite.Config.GradeExpected != GradeExpectedFalse {
		return
	}
	why := "nothing is checked; add graders or expected"
	if len(t.Effective) > 0 {
		why = "all its graders are optional; add one that counts"
	}
	ts.loader.Report(decode.Diagnostic{
		File: ts.loader.display(t.File), Line: t.Line, Column: 1, Severity: decode.Warning, Code: decode.CodeNothingChecked,
		Message: fmt.Sprintf("task %q always passes, because %s", text.Clip(t.ID, 80), why)})
}

func (e *Expected) checksSomething() bool {
	if e == nil {
		return false
	}
	b, c := e.Behavior, e.ToolCalls
	return len(e.OutputContains)+len(e.OutputNotContains)+len(e.OutputContainsAny)+len(e.Matches)+len(e.Outcomes) > 0 ||
		e.ShouldTrigger != nil || e.Recipients != nil || c != nil && len(c.Required)+len(c.Forbidden) > 0 ||
		b != nil && (b.MaxToolCalls != nil || b.MaxIterations != nil || b.MaxTokens != nil || b.MaxResponseTimeMS != nil ||
			len(b.RequiredTools)+len(b.ForbiddenTools) > 0)
}
