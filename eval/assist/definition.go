package assist

import (
	"cmp"
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
	return finder{q}.define(within(d.Text, offset))
}

// A finder finds the places and files that a document names.
type finder struct{ *query }

func (f finder) define(offset int) *Definition {
	n := f.tree.root.at(offset)
	if n == nil {
		return nil
	}
	out := &Definition{Range: n.span}
	switch {
	case n.kind == alias:
		if to := f.tree.follow(n); to != nil {
			out.Targets = []Target{{f.Path, lineOf(f.Text, to.extent().Start)}}
		}
	case n.isKey():
	default:
		if r, ok := braces(f.Text, offset); ok && n.kind == scalar {
			out.Range, out.Targets = r, f.variableAt(f.Text[r.Start:r.End])
			break
		}
		out.Targets = f.targets(n, refersTo(f.tree.shapes(n)))
	}
	if len(out.Targets) == 0 {
		return nil
	}
	return out
}

// targets returns the existing targets of a scalar.
func (f finder) targets(n *node, to refers) []Target {
	switch {
	case to == toTaskFiles:
		files := f.suite.files(n.text())
		out := make([]Target, len(files))
		for i, file := range files {
			out[i] = Target{Path: file}
		}
		return out
	case to == toGrader || to == toNamesake:
		return f.graderAt(n, to)
	case to == toSkill:
		if file := f.suite.skillFile(n.text()); file != "" {
			return []Target{{Path: file}}
		}
	case to == toTaskID:
		if t := f.suite.Task(n.text()); t != nil {
			return []Target{{Path: t.File, Line: max(0, t.Line-1)}}
		}
	case to.isFile():
		if path, _ := f.paths.file(n, to); path != "" {
			return f.paths.opened(path)
		}
	}
	return nil
}

// graderAt finds the suite's graders of a name. In the suite, the name of a grader is its own
// definition.
func (f finder) graderAt(n *node, to refers) []Target {
	if f.isSuite && to == toNamesake && !f.inTask(n) {
		return nil
	}
	var named, typed []Target
	for _, g := range f.suite.graders() {
		at := f.suite.place(g.node.extent())
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
func (f finder) inTask(n *node) bool {
	for ; n.parent != nil; n = n.parent {
		if n.parent == f.tree.root {
			return n.pair != nil && n.pair.key != nil && n.pair.key.text() == "tasks"
		}
	}
	return false
}

// variableAt finds the place where the suite sets a template variable.
func (f finder) variableAt(name string) []Target {
	if _, rest, dotted := strings.Cut(name, "."); dotted {
		name = rest
	}
	p := cmp.Or(f.suite.setting("inputs").find(name), f.suite.setting("config", "matrix").find(name))
	if p == nil {
		return nil
	}
	return []Target{f.suite.place(p.key.span)}
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
	if q == nil {
		return nil
	}
	return finder{q}.links()
}

func (f finder) links() []Link {
	var out []Link
	f.tree.visit(f.tree.root, f.tree.shapes(nil), func(n *node, views []view) {
		to := refersTo(views)
		if len(out) >= maxLinks || n.kind != scalar || n.style == literal || !to.isFile() && to != toTaskFiles {
			return
		}
		if path := f.single(n, to); path != "" {
			out = append(out, Link{Range: n.inner(), Path: path, Tooltip: f.paths.shown(path)})
		}
	})
	return out
}

// single returns the only file that a scalar names, or "".
func (f finder) single(n *node, to refers) string {
	if to != toTaskFiles {
		path, _ := f.paths.file(n, to)
		if f.paths.list(path) != nil {
			return "" // editors cannot open a directory
		}
		return path
	}
	if strings.ContainsAny(n.text(), "*?[{") {
		return ""
	}
	if files := f.suite.files(n.text()); len(files) == 1 {
		return files[0]
	}
	return ""
}
