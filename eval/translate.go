package eval

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/dialect/builtin"
	"waza/eval/reach"
	"waza/eval/text"
)

// translate returns the eval.yaml that a file in the format of another tool means; nil if the file is
// in no such format. It reports a file that has the name of a format and another content, and returns
// false.
func (l *loader) translate(src *decode.Source) (translated *decode.Source, ok bool) {
	if IsTriggerTests(src.Path) {
		return nil, true
	}
	params := &dialect.Params{Values: l.options.Params}
	defer func() {
		l.reportSecrets(src)
		for _, name := range params.Unused() {
			l.Reportf(src, nil, decode.Warning, decode.CodeNoEffect, "the parameter %s has no effect, because the suite does not contain ${%[1]s}", text.Clip(name, 60))
		}
	}()
	d := builtin.Recognize(src)
	if d == nil {
		if reason := builtin.Refusal(src); reason != "" {
			l.Reportf(src, nil, decode.Error, decode.CodeOtherDialect, "%s", reason)
			return nil, false
		}
		if reason := foreignJSON(src); reason != "" {
			l.Reportf(src, nil, decode.Error, decode.CodeOtherDialect, "%s", reason)
			return nil, false
		}
		return nil, true
	}
	l.suite.Format = d.Name
	l.suite.Places = reach.AtHome(l.suite.File, d.HomeOf(l.suite.File))
	l.places = l.suite.Places
	t := &dialect.Translation{Findings: &l.Findings, Source: src, Files: &dialect.Files{
		Places: l.places, View: l.view, Shown: l.display, Parse: l.parse,
	}, Results: l.options.Results, Params: params, Chosen: dialect.Chosen{
		Agent: l.options.Agent != "" && !l.options.Recorded, Executor: l.options.Executor != "" && !l.options.Recorded,
		Judge: l.options.JudgeModel+l.options.JudgeAgent != "",
	}}
	before := l.Count()
	d.Translate(t)
	l.suite.more, l.suite.original, l.suite.untranslated, l.suite.calls = t.Tasks, src, l.Since(before), t.Calls
	suite := *src
	suite.Root = t.Suite
	return &suite, true
}

// reportSecrets warns about parameters that are secret by their names, and remembers the values of all secret ones.
func (l *loader) reportSecrets(src *decode.Source) {
	for _, name := range slices.Sorted(maps.Keys(l.options.Params)) {
		value := l.options.Params[name]
		named := dialect.IsSecretVariable(name, value)
		if named || slices.Contains(l.options.SecretParams, name) {
			l.suite.secrets = append(l.suite.secrets, value)
		}
		if named {
			l.Reportf(src, nil, decode.Warning, decode.CodeOtherMeaning, "the parameter %s is secret by its name, so waza does not record its value, "+
				"and needs it again to resume or grade a run", text.Clip(name, 60))
		}
	}
}

// Secrets returns the values of parameters that are secrets.
func (s *Suite) Secrets() []string { return s.secrets }

// Calls returns the calls of programs whose results the suite lacks, see [Options.Results]. The tasks that
// depend on them are blocked.
func (s *Suite) Calls() []dialect.Call { return s.calls }

// Node returns the suite as the root of an eval.yaml. Paths in it are relative to the suite's
// directory. Of a suite in the format of another tool, it contains all tasks, and comments with the
// findings of the translation before the tasks that they are about; of an eval.yaml, it is the content of
// the file. The caller owns it. The error is that of [dialect.Copy].
func (s *Suite) Node() (*yaml.Node, error) {
	node, err := dialect.Copy(s.src.Root)
	if err != nil || s.original == nil {
		return node, err
	}
	root := dialect.Map{Node: node}
	tasks := root.Get("tasks")
	if tasks == nil && len(s.more) > 0 {
		tasks = dialect.List(nil)
		root.Set("tasks", tasks)
	}
	for _, t := range s.more {
		task, err := dialect.Copy(t.Node)
		if err != nil {
			return nil, err
		}
		s.movePrograms(task, filepath.Dir(t.Source.Path))
		tasks.Content = append(tasks.Content, task)
	}
	s.addComments(root.Node, dialect.Items(tasks))
	return root.Node, nil
}

// movePrograms changes the paths of programs beside the file of a task, which are graders, so that they are
// relative to the suite.
func (s *Suite) movePrograms(task *yaml.Node, dir string) {
	if dir == s.Dir {
		return
	}
	for _, g := range dialect.Items(decode.Lookup(task, "graders")) {
		config := decode.Lookup(g, "config")
		command := decode.Lookup(config, "command")
		if dialect.TextOf(decode.Lookup(g, "type")) != "program" || dialect.TextOf(command) == "" {
			continue
		}
		nodes := append([]*yaml.Node{command}, dialect.Items(decode.Lookup(config, "args"))...)
		words := make([]string, len(nodes))
		for i, n := range nodes {
			words[i] = dialect.TextOf(n)
		}
		if i, file := dialect.ProgramFile(dir, words); i >= 0 {
			if rel, err := filepath.Rel(s.Dir, file); err == nil {
				nodes[i].Value = filepath.ToSlash(rel)
			}
		}
	}
}

// addComments adds the findings of the translation as comments: before the first task that comes from their
// place, else before the suite.
func (s *Suite) addComments(root *yaml.Node, tasks []*yaml.Node) {
	own := len(tasks) - len(s.more)
	places := make([]extent, len(tasks))
	for i, n := range tasks {
		src := s.original
		if i >= own {
			src = s.more[i-own].Source
		}
		places[i] = extentOf(src, n)
	}
	for _, d := range slices.SortedStableFunc(slices.Values(s.untranslated), byPlace) {
		at, place := root, fmt.Sprintf("line %d: ", d.Line)
		line := place + strings.TrimPrefix(d.Message, place)
		if d.Line == 0 {
			line = d.Message
		}
		if d.File != s.original.Name {
			line = fmt.Sprintf("%s: %s", path.Base(d.File), line)
		}
		best := -1
		for i, place := range places {
			if place.contains(d) && (best < 0 || place.start != places[best].start && places[best].start.before(place.start)) {
				best = i
			}
		}
		if best < 0 { // a file beside that of a task belongs to it
			best = slices.IndexFunc(places, func(e extent) bool {
				return e.file != s.original.Name && strings.HasPrefix(d.File, path.Dir(e.file)+"/")
			})
		}
		if best >= 0 {
			at = tasks[best]
		}
		dialect.AddComment(at, line)
	}
}

func byPlace(a, b decode.Diagnostic) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// A place is a line and a column of a file.
type place struct{ line, column int }

func (p place) before(q place) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// An extent is the part of a file from which a task comes.
type extent struct {
	file       string // its name in findings
	start, end place
}

func (e extent) contains(d decode.Diagnostic) bool {
	at := place{d.Line, d.Column}
	return d.File == e.file && d.Line > 0 && !at.before(e.start) && !e.end.before(at)
}

// extentOf returns the extent of the part of a file that has the place of a node.
func extentOf(src *decode.Source, n *yaml.Node) extent {
	e := extent{file: src.Name, start: place{n.Line, n.Column}, end: place{n.Line, n.Column}}
	if original := nodeAt(src.Root, e.start); original != nil {
		e.end = endOf(original)
	}
	return e
}

// nodeAt returns the outermost value that starts at a place, or nil. Aliases are not followed.
func nodeAt(n *yaml.Node, at place) *yaml.Node {
	switch {
	case n == nil || at.before(place{n.Line, n.Column}):
		return nil
	case n.Kind != yaml.DocumentNode && n.Line == at.line && n.Column == at.column:
		return n
	}
	for _, c := range n.Content {
		if found := nodeAt(c, at); found != nil {
			return found
		}
	}
	return nil
}

// endOf returns the place of the last value in a node.
func endOf(n *yaml.Node) place {
	end := place{n.Line, n.Column}
	for _, c := range n.Content {
		if last := endOf(c); end.before(last) {
			end = last
		}
	}
	return end
}

// foreignJSON returns the reason why a JSON file that no dialect recognizes is no suite; empty for files with a key of
// an eval.yaml, whose faults are reported one by one.
func foreignJSON(src *decode.Source) string {
	root := decode.Follow(src.Root)
	if filepath.Ext(src.Path) != ".json" || root == nil {
		return ""
	}
	for _, key := range []string{"name", "tasks", "inputs", "config", "graders", "executor", "trigger_tests"} {
		if decode.Lookup(root, key) != nil {
			return ""
		}
	}
	return "this is no suite that waza knows: it has neither cases with a prompt, as in skill evals, nor entries with a query and " +
		"should_trigger, as in trigger sets"
}
