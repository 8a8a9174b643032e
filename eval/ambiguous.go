package eval

import (
	"os"
	"path/filepath"
	"strings"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// fileOptions maps the options of graders that hold paths of the suite's files to whether
// microsoft/waza looks for these files in the current directory.
var fileOptions = map[string]bool{
	"schema_file": true, "skill_path": true, "command": true, "snapshot": true, "rubric": true, "script": false, "args": false,
}

// maxPathsLooked limits how many paths of one grader are checked.
const maxPathsLooked = 200

// checkPaths reports the paths in a grader's options that name different files in the
// directories that are searched.
func (l graderLoader) checkPaths(g *Grader, task *Task) {
	looked := 0
	var walk func(n *yaml.Node, key string)
	walk = func(n *yaml.Node, key string) {
		n = decode.Follow(n)
		switch {
		case n == nil || looked > maxPathsLooked:
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(n.Content[i+1], n.Content[i].Value)
			}
		case n.Kind == yaml.SequenceNode:
			for _, item := range n.Content {
				walk(item, key)
			}
		default:
			if elsewhere, isFile := fileOptions[key]; isFile {
				looked++
				l.checkPath(g.src, n, n.Value, task, elsewhere)
			}
		}
	}
	walk(g.config, "")
}

// checkPath compares the file that a path of a grader leads to with the other candidates.
func (l graderLoader) checkPath(src *decode.Source, at *yaml.Node, path string, task *Task, elsewhere bool) {
	if path == "" || len(path) > 300 || strings.ContainsAny(path, "\n\x00") || filepath.IsAbs(path) {
		return
	}
	taken, _, ok := l.suite.Resolve(path, l.beside(task))
	if !ok { // a skill can be named by its directory
		if taken, _, ok = l.suite.Resolve(filepath.Join(path, "SKILL.md"), l.beside(task)); !ok {
			return
		}
		path = filepath.Join(path, "SKILL.md")
	}
	if beside := l.beside(task); beside != "" && l.loader.reportAmbiguous(src, at, taken, filepath.Join(beside, filepath.FromSlash(path))) {
		return
	}
	if wd, err := os.Getwd(); elsewhere && err == nil {
		other := filepath.Join(wd, filepath.FromSlash(path))
		if other != taken && files.IsRegular(other) && l.suite.Allows(other) == nil && !reach.Same(taken, other) {
			l.Reportf(src, at, decode.Warning, decode.CodeOtherMeaning,
				"%s is used; microsoft/waza would use a different %s, in the current directory", l.display(taken),
				text.Clip(path, 80))
		}
	}
}

// reportAmbiguous reports a path of a task file that leads to taken, although a different file or
// directory of that name exists beside the task. It returns whether it did.
func (l *loader) reportAmbiguous(src *decode.Source, at *yaml.Node, taken, beside string) bool {
	if taken == beside || !exists(taken) || !exists(beside) || l.suite.Allows(beside) != nil || reach.Same(taken, beside) {
		return false
	}
	l.Reportf(src, at, decode.Warning, decode.CodeAmbiguousPath,
		"%s is used; %s beside the task has different content", l.display(taken), l.display(beside))
	return true
}

// reportUnnamed reports the first task that has several graders without a name, of any type, and
// how many other tasks have, too.
func (l graderLoader) reportUnnamed() {
	var first *Task
	var names []string
	others := 0
	for _, t := range l.suite.Tasks {
		unnamed := t.unnamedGraders()
		switch {
		case len(unnamed) < 2:
		case first == nil:
			first = t
			for _, g := range unnamed {
				names = append(names, g.Name)
			}
		default:
			others++
		}
	}
	if first == nil {
		return
	}
	and := ""
	if others > 0 {
		and = " and of " + text.Count(others, "other task", "other tasks")
	}
	second := first.unnamedGraders()[1]
	l.Reportf(second.src, decode.Place(second.node), decode.Warning, decode.CodeOtherMeaning, "several graders of task %q%s have no "+
		"name; all of them count, as %s; in microsoft/waza only the last one counts; name them",
		text.Clip(first.ID, 60), and, text.Clip(strings.Join(names, ", "), 200))
}

// unnamedGraders returns the graders of a task whose suite gives them no name.
func (t *Task) unnamedGraders() []*Grader {
	var list []*Grader
	for _, g := range t.Effective {
		if g.node != nil && decode.IsNull(decode.Follow(decode.Lookup(g.node, "name"))) {
			list = append(list, g)
		}
	}
	return list
}
