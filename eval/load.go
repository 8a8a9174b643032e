// Package eval reads what a suite says: eval.yaml, the task files, datasets,
// fixtures and skills it refers to. Call [Load] for one suite; package
// discover finds those below a directory. It starts no process and uses no network.
//
// What is wrong with a suite is never an error of Go but a list of
// [decode.Diagnostics], each with its place, a stable [decode.Code] and, where one
// is near, a suggestion. A suite without findings of severity [decode.Error] can be run.
//
// Executors and graders are not known here by name: the program describes them
// in a [Vocabulary], and each [Kind] says which options it takes and checks them.
package eval

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
)

// Options say how suites are read. The zero value checks nothing that needs a
// vocabulary.
type Options struct {
	// Vocabulary names the known executors and graders. Nil means that any
	// name is taken and their options are not looked at.
	Vocabulary *Vocabulary
	// Executor replaces the suite's config.executor, so that its options are
	// the ones that are checked. Empty means that the suite's holds.
	Executor string
	// Agent replaces the suite's config.agent. Empty means that the suite's
	// holds. An executor that drives no agent is a finding then.
	Agent string
	// ContextDir replaces every task's fixture directory. Empty means none.
	ContextDir string
	// Overlay holds the content of files that an editor has changed but not
	// saved, by absolute path. Nil means that the disk is right.
	Overlay map[string][]byte
	// Looked is called with the absolute path of each file that is read or looked
	// for, and of each directory that is searched, whether it is there or not:
	// only a change of one of them can change what is loaded. It is called by
	// Load, before that returns; paths may come more than once. Nil is fine.
	Looked func(path string)
}

// view is what is read of the disk.
func (o Options) view() files.View { return files.View{Overlay: o.Overlay, Looked: o.Looked} }

// Load reads the suite file at path, or the only suite below path when it is a
// directory, and all that the suite refers to.
//
// The suite is as good as the files allow: it is nil when the file is not a YAML
// map, and it must not be run when the diagnostics have errors. The error is a
// [*NotFoundError], an [*AmbiguousError] or what kept the file from being read;
// whatever can be read is judged by diagnostics alone. Time and memory are
// bounded whatever the files hold.
func Load(path string, o Options) (*Suite, decode.Diagnostics, error) {
	path, err := discover.Find(path, o.view())
	if err != nil {
		return nil, nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	l := newLoader(abs, filepath.Dir(path), o)
	data, err := l.readFile(abs, maxYAMLBytes)
	if refused(err) {
		l.unreadable(abs, nil, nil, err)
		return nil, l.Diagnostics(), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s", path, files.Reason(err))
	}
	src := l.parse(abs, data)
	if src.Root == nil {
		return nil, l.Diagnostics(), nil
	}
	if root := decode.Follow(src.Root); root.Kind != yaml.MappingNode {
		l.Reportf(src, root, decode.Error, decode.CodeWrongType, "a suite must be a map of keys such as name, config and tasks, not %s", decode.Describe(root))
		return nil, l.Diagnostics(), nil
	}
	l.load(src)
	return l.suite, l.Diagnostics(), nil
}

func newLoader(abs, shownDir string, o Options) *loader {
	dir := filepath.Dir(abs)
	suite := &Suite{File: abs, Dir: dir, rootDir: files.RootOf(dir)}
	if o.ContextDir != "" {
		suite.contextDir, _ = filepath.Abs(o.ContextDir) // which fails only without a current directory
	}
	l := &loader{
		options:  o,
		suite:    suite,
		shownDir: shownDir,
	}
	l.skills = &skillLoader{loader: l, found: map[string][]skill{}}
	return l
}

// load fills in the suite from its parsed file.
func (l *loader) load(src *decode.Source) {
	s := l.suite
	l.src, s.src = src, src
	if discover.IsWorkflow(decode.Follow(src.Root)) {
		l.Reportf(src, decode.Place(src.Root, "jobs"), decode.Error, decode.CodeOtherDialect, "this is a workflow of GitHub Actions, not a suite")
		l.Quietly(func() { l.decodeSuite() })
		return
	}
	if tool, at := discover.OtherTool(src.Root); tool != "" {
		l.Reportf(src, at, decode.Error, decode.CodeOtherDialect, "this suite is written for %s, which uses the same file name; waza does not read it", tool)
		l.Quietly(func() { l.decodeSuite() })
		return
	}
	s.Project = projectLoader{l}.load()
	l.decodeSuite()
	check, executors := suiteCheck{l}, executorLoader{l}
	matrix := &matrixLoader{executorLoader: executors}
	check.settings()
	matrix.check()
	executors.load()
	s.Graders = graderLoader{l}.load(s.Graders, nil)
	before := l.Errors()
	loadTasks(l)
	matrix.combine()
	check.kind()
	check.baseline()
	s.Triggers = triggerLoader{l}.load()
	check.measured()
	for _, dir := range slices.Sorted(maps.Keys(l.skills.found)) {
		s.skills = append(s.skills, l.skills.found[dir]...)
	}
	if len(s.Tasks) == 0 && s.Triggers == nil && l.Errors() == before {
		l.Reportf(src, decode.Place(src.Root, "tasks"), decode.Error, decode.CodeNoTasks, "the suite has no task to run")
	}
}

func (l *loader) decodeSuite() {
	s := l.suite
	s.Kind = ToolEval
	s.Config.SetDefaults()
	if s.Project != nil {
		s.Project.Defaults.apply(&s.Config)
	}
	d := l.decoder(l.src)
	root, alias, ok := d.Enter(l.src.Root)
	if !ok {
		return
	}
	defer d.Leave(alias)
	d.Structure(root, reflect.ValueOf(s).Elem(), func(p decode.Pair) bool { return p.Key.Value == "tasks" })
}

// unreadable reports a file that cannot be read: at the place that names it, or
// when src is nil at the file itself.
func (l *loader) unreadable(path string, src *decode.Source, at *yaml.Node, err error) {
	l.Findings.Unreadable(l.display(path), src, at, err)
}

// refused reports whether err says that a file exists and is not one to read.
func refused(err error) bool {
	return errors.Is(err, files.ErrTooLarge) || errors.Is(err, files.ErrNotRegular) || errors.Is(err, decode.ErrNotText)
}

// Task returns the task with that id, or nil.
func (s *Suite) Task(id string) *Task {
	for _, t := range s.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}
