package assist

import (
	"fmt"
	"slices"
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
	offset = within(d.Text, offset)
	t := q.scanned()
	n := t.root.at(offset)
	if n == nil || n.kind != scalar {
		return nil
	}
	if n.isKey() {
		return q.explain(n.span, q.aboutKey(n))
	}
	if r, ok := braces(d.Text, offset); ok {
		return q.aboutVariable(n, r)
	}
	if n.style == literal {
		return nil
	}
	return q.explain(n.span, q.aboutValue(n))
}

func (q *query) explain(r Range, markdown string) *Explanation {
	if markdown == "" {
		return nil
	}
	return &Explanation{Markdown: markdown, Range: r}
}

// aboutKey describes a key.
func (q *query) aboutKey(key *node) string {
	above := q.guide.of(q.tree, key.parent)
	value := q.tree.follow(key.pair.value)
	views := q.guide.property(q.tree, above, key.text(), value)
	if len(views) == 0 || q.document(views) == "" {
		return ""
	}
	head := "**" + inCode(key.text()) + "** · " + typeWords(q.guide.property(q.tree, above, key.text(), nil))
	for _, v := range above {
		if slices.Contains(v.required, key.text()) {
			head += " · required"
			break
		}
	}
	return head + "\n\n" + q.document(views)
}

// aboutValue describes a value: a grader, an executor, or the target of a reference.
func (q *query) aboutValue(n *node) string {
	views := q.guide.of(q.tree, n)
	for _, v := range views {
		kinds, word := q.kinds(v)
		for _, k := range kinds {
			if k.Is(n.text()) {
				return "**" + inCode(k.Name) + "** · " + word + "\n\n" + q.kindDocument(k)
			}
		}
	}
	switch to := refersTo(views); {
	case n.text() == "":
		return ""
	case to == toTaskFiles:
		return q.aboutPattern(n)
	case to == toGrader || to == toNamesake && !q.isSuite():
		return q.aboutGrader(n.text())
	case to == toSkill:
		if file := q.skillFile(n.text()); file != "" {
			return "Skill in " + inCode(q.shown(file))
		}
	case to == toTaskID:
		return q.aboutTask(n.text())
	case to.isFile():
		return q.aboutFile(n, to)
	}
	return ""
}

func (q *query) aboutPattern(n *node) string {
	files, faults := q.suite.TaskFiles(n.text(), q.options())
	switch {
	case len(files) == 0 && len(faults) > 0:
		return escape(faults[0].Message)
	case len(files) == 1:
		return "1 file: " + inCode(q.shown(files[0]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d files:\n", len(files))
	for i, f := range files {
		if i == maxNamed {
			fmt.Fprintf(&b, "\n- and %d more", len(files)-i)
			break
		}
		fmt.Fprintf(&b, "\n- %s", inCode(q.shown(f)))
	}
	return b.String()
}

func (q *query) aboutFile(n *node, to refers) string {
	path, tried := q.file(n, to)
	switch {
	case path != "":
		return inCode(q.shown(path))
	case len(tried) == 0 || to.mayBeElse():
		return ""
	}
	shown := make([]string, len(tried))
	for i, t := range tried {
		shown[i] = q.shown(t)
	}
	what := "file"
	if to == toDirectory {
		what = "directory"
	}
	return "No such " + what + ". Tried: " + codes(shown)
}

func (q *query) aboutGrader(name string) string {
	var kinds []string
	for _, g := range q.suiteGraders() {
		if g.name == name {
			return "Grader of the suite, type " + inCode(g.kind) + ", line " + fmt.Sprint(lineOf(q.ofSuite().text, g.node.span.Start)+1)
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

// aboutTask describes a task by its graders.
func (q *query) aboutTask(id string) string {
	task := q.suite.Task(id)
	if task == nil {
		return ""
	}
	names := make([]string, len(task.Effective))
	for i, g := range task.Effective {
		names[i] = g.Name
	}
	text := "Task " + inCode(id) + " of the suite " + inCode(q.suite.Name)
	if len(names) > 0 {
		text += "\n\nGraders: " + codes(names)
	}
	return text
}

func (q *query) aboutVariable(n *node, r Range) *Explanation {
	name := q.Text[r.Start:r.End]
	for _, v := range q.known(n) {
		if v.name == name || "inputs."+v.name == name || "vars."+strings.ToLower(v.name) == strings.ToLower(name) || "params."+v.name == name {
			return q.explain(r, "**"+inCode("{{"+name+"}}")+"** · "+v.meaning+q.valueOf(v.name))
		}
	}
	return nil
}

// valueOf returns the value of a variable that the suite sets.
func (q *query) valueOf(name string) string {
	suite := q.ofSuite()
	if v := suite.value(suite.value(suite.root, "inputs"), name); v != nil && v.text() != "" {
		return ": " + inCode(text.ClipRunes(v.text(), 80))
	}
	return ""
}

func lineOf(text string, offset int) int {
	return strings.Count(text[:min(offset, len(text))], "\n")
}
