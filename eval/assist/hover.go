package assist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"waza/eval/text"
)

// An Explanation describes the text in a range, in Markdown.
type Explanation struct {
	Markdown string
	Range    Range
}

// maxNamed limits the matching files that are listed for a pattern.
const maxNamed = 10

// Hover explains the text at an offset; nil if there is no explanation.
func (a *Assistant) Hover(d Document, offset int) *Explanation {
	q := a.ask(d)
	if q == nil {
		return nil
	}
	return explainer{q}.explain(within(d.Text, offset))
}

// An explainer describes keys, values and variables of a document.
type explainer struct{ *query }

func (e explainer) explain(offset int) *Explanation {
	n := e.tree.root.at(offset)
	if n == nil || n.kind != scalar {
		return nil
	}
	if n.isKey() {
		return explanation(n.span, e.key(n))
	}
	if r, ok := braces(e.Text, offset); ok {
		return e.variable(n, r)
	}
	if n.style == literal {
		return nil
	}
	return explanation(n.span, e.value(n))
}

func explanation(r Range, markdown string) *Explanation {
	if markdown == "" {
		return nil
	}
	return &Explanation{Markdown: markdown, Range: r}
}

func (e explainer) key(key *node) string {
	above := e.tree.shapes(key.parent)
	value := e.tree.follow(key.pair.value)
	views := e.tree.property(above, key.text(), value)
	if len(views) == 0 || e.words.key(views) == "" {
		return ""
	}
	head := "**" + inCode(key.text()) + "** · " + typeWords(e.tree.property(above, key.text(), nil))
	for _, v := range above {
		if slices.Contains(v.required, key.text()) {
			head += " · required"
			break
		}
	}
	return head + "\n\n" + e.words.key(views)
}

// value describes a value: a grader, an executor, or the target of a reference.
func (e explainer) value(n *node) string {
	views := e.tree.shapes(n)
	for _, v := range views {
		kinds, word := e.words.kinds(v)
		for _, k := range kinds {
			if k.Is(n.text()) {
				return "**" + inCode(k.Name) + "** · " + word + "\n\n" + e.words.kind(k)
			}
		}
	}
	switch to := refersTo(views); {
	case n.text() == "":
		return ""
	case to == toTaskFiles:
		return e.pattern(n)
	case to == toGrader || to == toNamesake && !e.isSuite:
		return e.grader(n.text())
	case to == toSkill:
		if file := e.suite.skillFile(n.text()); file != "" {
			return "Skill in " + inCode(e.paths.shown(file))
		}
	case to == toTaskID:
		return e.task(n.text())
	case to.isFile():
		return e.file(n, to)
	}
	return ""
}

func (e explainer) pattern(n *node) string {
	files, faults := e.suite.TaskFiles(n.text(), e.suite.options)
	switch {
	case len(files) == 0 && len(faults) > 0:
		return escape(faults[0].Message)
	case len(files) == 1:
		return "1 file: " + inCode(e.paths.shown(files[0]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d files:\n", len(files))
	for i, f := range files {
		if i == maxNamed {
			fmt.Fprintf(&b, "\n- and %d more", len(files)-i)
			break
		}
		fmt.Fprintf(&b, "\n- %s", inCode(e.paths.shown(f)))
	}
	return b.String()
}

func (e explainer) file(n *node, to refers) string {
	path, tried := e.paths.file(n, to)
	switch {
	case path != "":
		return inCode(e.paths.shown(path))
	case len(tried) == 0 || to.mayBeElse():
		return ""
	}
	shown := make([]string, len(tried))
	for i, t := range tried {
		shown[i] = e.paths.shown(t)
	}
	what := "file"
	if to == toDirectory {
		what = "directory"
	}
	return "No such " + what + ". Tried: " + codes(shown)
}

func (e explainer) grader(name string) string {
	var kinds []string
	for _, g := range e.suite.graders() {
		if g.name == name {
			return "Grader of the suite, type " + inCode(g.kind) + ", line " + strconv.Itoa(e.suite.place(g.node.span).Line+1)
		}
		if g.kind == name {
			kinds = append(kinds, g.name)
		}
	}
	if len(kinds) > 0 {
		return "Graders of this type: " + codes(kinds)
	}
	return ""
}

// task describes a task by its graders.
func (e explainer) task(id string) string {
	task := e.suite.Task(id)
	if task == nil {
		return ""
	}
	names := make([]string, len(task.Effective))
	for i, g := range task.Effective {
		names[i] = g.Name
	}
	text := "Task " + inCode(id) + " of the suite " + inCode(e.suite.Name)
	if len(names) > 0 {
		text += "\n\nGraders: " + codes(names)
	}
	return text
}

func (e explainer) variable(n *node, r Range) *Explanation {
	name := e.Text[r.Start:r.End]
	for _, v := range e.known(n) {
		if v.name == name || "inputs."+v.name == name || "vars."+strings.ToLower(v.name) == strings.ToLower(name) || "params."+v.name == name {
			return explanation(r, "**"+inCode("{{"+name+"}}")+"** · "+v.meaning+e.valueOf(v.name))
		}
	}
	return nil
}

// valueOf returns the value of a variable that the suite sets.
func (e explainer) valueOf(name string) string {
	if v := e.suite.setting("inputs", name); v != nil && v.text() != "" {
		return ": " + inCode(text.ClipRunes(v.text(), 80))
	}
	return ""
}

func lineOf(text string, offset int) int {
	return strings.Count(text[:min(offset, len(text))], "\n")
}
