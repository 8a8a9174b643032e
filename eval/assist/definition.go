package assist

import (
	"cmp"
	"path/filepath"
	"strings"
)

// A Target is a place in a file: the start of a text, or of the file. Line counts from 0.
type Target struct {
	Path string
	Line int
}

// A Definition lists the places where the text in Range is defined. A pattern has one place for
// each matching file.
type Definition struct {
	Range   Range
	Targets []Target
}

// Define finds the definition of the name at an offset; nil if there is no name or no
// definition.
func (a *Assistant) Define(d Document, offset int) *Definition {
	q := a.ask(d)
	if q == nil {
		return nil
	}
	offset = within(d.Text, offset)
	n := q.scanned().root.at(offset)
	if n == nil {
		return nil
	}
	out := &Definition{Range: n.span}
	switch {
	case n.kind == alias:
		if to := q.tree.follow(n); to != nil {
			out.Targets = []Target{{q.Path, lineOf(q.Text, to.extent().Start)}}
		}
	case n.isKey():
	default:
		if r, ok := braces(d.Text, offset); ok && n.kind == scalar {
			out.Range, out.Targets = r, q.variableAt(d.Text[r.Start:r.End])
			break
		}
		out.Targets = q.targets(n, refersTo(q.guide.of(q.tree, n)))
	}
	if len(out.Targets) == 0 {
		return nil
	}
	return out
}

// targets returns the existing targets of a scalar.
func (q *query) targets(n *node, to refers) []Target {
	switch {
	case to == toTaskFiles:
		files, _ := q.suite.TaskFiles(n.text(), q.options())
		out := make([]Target, len(files))
		for i, f := range files {
			out[i] = Target{Path: f}
		}
		return out
	case to == toGrader || to == toNamesake:
		return q.graderAt(n, to)
	case to == toSkill:
		if file := q.skillFile(n.text()); file != "" {
			return []Target{{Path: file}}
		}
	case to == toTaskID:
		if t := q.suite.Task(n.text()); t != nil {
			return []Target{{Path: t.File, Line: max(0, t.Line-1)}}
		}
	case to.isFile():
		if path, _ := q.file(n, to); path != "" {
			return q.opened(path)
		}
	}
	return nil
}

// opened returns the file itself, or the files to open for a directory: its SKILL.md, or the
// files in it.
func (q *query) opened(path string) []Target {
	entries := q.list(path)
	if len(entries) == 0 {
		return []Target{{Path: path}}
	}
	var out []Target
	for _, e := range entries {
		skill := filepath.Join(path, e.name, "SKILL.md")
		switch {
		case e.name == "SKILL.md":
			return []Target{{Path: filepath.Join(path, e.name)}}
		case !e.dir:
			out = append(out, Target{Path: filepath.Join(path, e.name)})
		case q.exists(skill):
			out = append(out, Target{Path: skill})
		}
	}
	return out
}

// graderAt finds the suite's graders of a name. In the suite, the name of a grader is its own
// definition.
func (q *query) graderAt(n *node, to refers) []Target {
	if q.isSuite() && to == toNamesake && !q.inTask(n) {
		return nil
	}
	t := q.ofSuite()
	var named, typed []Target
	for _, g := range q.suiteGraders() {
		at := Target{q.suite.File, lineOf(t.text, g.node.extent().Start)}
		switch n.text() {
		case g.name:
			named = append(named, at)
		case g.kind:
			typed = append(typed, at)
		}
	}
	if len(named) > 0 {
		return named
	}
	if to == toNamesake {
		return nil
	}
	return typed
}

// inTask reports whether a node is in a task of the suite file.
func (q *query) inTask(n *node) bool {
	for ; n.parent != nil; n = n.parent {
		if n.parent == q.tree.root {
			return n.pair != nil && n.pair.key != nil && n.pair.key.text() == "tasks"
		}
	}
	return false
}

// variableAt finds the place where the suite sets a template variable.
func (q *query) variableAt(name string) []Target {
	if _, rest, dotted := strings.Cut(name, "."); dotted {
		name = rest
	}
	suite := q.ofSuite()
	inputs := suite.value(suite.root, "inputs")
	matrix := suite.value(suite.value(suite.root, "config"), "matrix")
	p := cmp.Or(inputs.find(name), matrix.find(name))
	if p == nil {
		return nil
	}
	return []Target{{q.suite.File, lineOf(suite.text, p.key.span.Start)}}
}

// A Link is the name of an existing file.
type Link struct {
	Range   Range
	Path    string
	Tooltip string
}

// maxLinks limits the links of a document, each of which needs a disk access.
const maxLinks = 2000

// Links finds the names of files in a document. It leaves out directories and patterns that
// match several files; [Assistant.Define] returns what they contain.
func (a *Assistant) Links(d Document) []Link {
	q := a.ask(d)
	if q == nil || q.scanned().root == nil {
		return nil
	}
	var out []Link
	q.guide.visit(q.tree, q.tree.root, q.guide.of(q.tree, nil), func(n *node, views []view) {
		to := refersTo(views)
		if len(out) >= maxLinks || n.kind != scalar || n.style == literal || !to.isFile() && to != toTaskFiles {
			return
		}
		if path := q.single(n, to); path != "" {
			out = append(out, Link{Range: n.inner(), Path: path, Tooltip: q.shown(path)})
		}
	})
	return out
}

// single returns the only file that a scalar names, or "".
func (q *query) single(n *node, to refers) string {
	if to != toTaskFiles {
		path, _ := q.file(n, to)
		if q.list(path) != nil {
			return "" // editors cannot open a directory
		}
		return path
	}
	if strings.ContainsAny(n.text(), "*?[{") {
		return ""
	}
	if files, _ := q.suite.TaskFiles(n.text(), q.options()); len(files) == 1 {
		return files[0]
	}
	return ""
}
