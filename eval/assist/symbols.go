package assist

import (
	"path/filepath"
	"strconv"
	"strings"

	"waza/eval/text"
)

// A SymbolSort is the type of a symbol; editors show an icon for each.
type SymbolSort int

// The types of symbols.
const (
	SuiteSymbol  SymbolSort = iota
	TaskSymbol              // a task
	FilesSymbol             // a pattern of task files
	GraderSymbol            // a grader
	MapSymbol               // any other map
	ListSymbol              // any other list
	ValueSymbol             // any other value
)

// A Symbol is a part of a document with a name.
type Symbol struct {
	Name, Detail string
	Sort         SymbolSort
	Range        Range // all of it
	Selection    Range // its name
	Children     []Symbol
}

// maxSymbols limits the symbols of a document.
const maxSymbols = 20_000

// Symbols returns the outline of a document: the suite with its settings, graders and tasks, or
// the task with its graders.
func (a *Assistant) Symbols(d Document) []Symbol {
	q := a.ask(d)
	if q == nil {
		return nil
	}
	t := q.tree
	o := &outline{query: q}
	switch {
	case t.root == nil:
		return nil
	case t.root.kind != mapping:
		return o.children(t.root, "tasks")
	case q.isTask:
		base := filepath.Base(d.Path)
		return []Symbol{o.task(t.root, t.root.extent(), strings.TrimSuffix(base, filepath.Ext(base)))}
	case q.isSuite:
		return []Symbol{o.suite(t.root)}
	}
	return o.children(t.root, "")
}

type outline struct {
	*query
	count int
}

func (o *outline) suite(n *node) Symbol {
	s := Symbol{Name: "suite", Sort: SuiteSymbol, Range: n.extent(), Children: o.children(n, "")}
	s.Selection = Range{s.Range.Start, s.Range.Start}
	if name := n.get("name"); name.text() != "" {
		s.Name, s.Selection = oneLine(name.text()), name.span
	}
	s.Detail = oneLine(n.get("skill").text())
	return s
}

// task returns the symbol of a task. otherwise is its name if it has no id.
func (o *outline) task(n *node, whole Range, otherwise string) Symbol {
	s := Symbol{Name: otherwise, Sort: TaskSymbol, Range: whole, Selection: Range{whole.Start, whole.Start}, Children: o.children(n, "")}
	id, name := o.tree.value(n, "id"), o.tree.value(n, "name")
	switch {
	case id.text() != "":
		s.Name, s.Selection, s.Detail = oneLine(id.text()), id.span, oneLine(name.text())
	case name.text() != "":
		s.Detail, s.Selection = oneLine(name.text()), name.span
	}
	if g := len(o.tree.graders(n)); g > 0 {
		s.Detail = strings.TrimPrefix(s.Detail+" · "+text.Count(g, "grader", "graders"), " · ")
	}
	return o.fit(s)
}

// fit keeps the selection of a symbol within its range, because an alias can lead elsewhere.
func (o *outline) fit(s Symbol) Symbol {
	if s.Selection.Start < s.Range.Start || s.Selection.End > s.Range.End {
		s.Selection = Range{s.Range.Start, s.Range.Start}
	}
	return s
}

// children returns the symbols of the keys of a map, or of the items of the list of a key.
func (o *outline) children(n *node, key string) []Symbol {
	var out []Symbol
	for _, p := range n.pairs {
		if p.key == nil || p.colon < 0 || o.full() {
			continue
		}
		out = append(out, o.pair(p))
	}
	for i, it := range n.items {
		if it.value == nil || o.full() {
			continue
		}
		if s, ok := o.item(it, i, key); ok {
			out = append(out, s)
		}
	}
	return out
}

func (o *outline) full() bool {
	o.count++
	return o.count > maxSymbols
}

func (o *outline) pair(p *pair) Symbol {
	s := Symbol{Name: oneLine(p.key.text()), Sort: ValueSymbol, Range: p.extent(), Selection: p.key.span}
	if s.Name == "" {
		s.Name = `""`
	}
	v := p.value
	switch {
	case v == nil || v.kind == alias:
	case v.kind == scalar:
		s.Detail = oneLine(v.text())
	case v.kind == mapping:
		s.Sort, s.Children = MapSymbol, o.children(v, "")
	default:
		s.Sort, s.Children = ListSymbol, o.children(v, p.key.text())
		s.Detail = strconv.Itoa(len(v.values()))
	}
	return s
}

// item returns the symbol of a list item. Only texts that are patterns of tasks have one.
func (o *outline) item(it *item, i int, key string) (Symbol, bool) {
	v := it.value
	whole := v.extent()
	if it.dash >= 0 {
		whole.Start = min(whole.Start, it.dash)
	}
	switch {
	case v.kind == scalar:
		s := Symbol{Name: oneLine(v.text()), Sort: FilesSymbol, Range: whole, Selection: v.span}
		return s, key == "tasks" && s.Name != ""
	case v.kind != mapping:
		return Symbol{}, false
	case key == "tasks":
		return o.task(v, whole, "task-"+strconv.Itoa(i+1)), true
	default:
		return o.entry(v, whole, i, key), true
	}
}

// entry returns the symbol of a map in a list, named by the first of its keys that can name an
// item.
func (o *outline) entry(v *node, whole Range, i int, key string) Symbol {
	s := Symbol{Name: "[" + strconv.Itoa(i) + "]", Sort: MapSymbol, Range: whole, Selection: Range{whole.Start, whole.Start}}
	if key == "graders" {
		s.Sort, s.Detail = GraderSymbol, oneLine(o.tree.value(v, "type").text())
	}
	for _, by := range []string{"name", "type", "path", "prompt", "match", "command", "tool", "pattern"} {
		if n := o.tree.value(v, by); n.text() != "" {
			s.Name, s.Selection = oneLine(n.text()), n.span
			break
		}
	}
	if s.Detail == s.Name {
		s.Detail = ""
	}
	return o.fit(s)
}

// oneLine shortens a text for a list: to a part of its first line.
func oneLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return text.ClipRunes(strings.TrimSpace(s), 80)
}
