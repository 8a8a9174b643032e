package assist

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval"
)

// values proposes values for a scalar.
func (c *completer) values(views []view) {
	for _, v := range views {
		if kinds, sort := c.kinds(v); kinds != nil {
			c.named(kinds, sort)
			continue
		}
		for _, e := range v.allowed() {
			it := Item{Label: e, Sort: Value}
			if fmt.Sprint(v.fallback) == e {
				it.Detail = "default"
			}
			c.add(it)
		}
	}
	for _, v := range views {
		for _, e := range v.Examples {
			c.text(Item{Label: fmt.Sprint(e), Sort: Value})
		}
	}
	c.referred(refersTo(views))
	for _, v := range views {
		if (v.Type.has("integer") || v.Type.has("number")) && !v.Type.has("string") && v.fallback != nil {
			c.add(Item{Label: fmt.Sprint(v.fallback), Sort: Value, Detail: "default"})
		}
	}
}

// kinds returns the graders or executors in a list of allowed values.
func (q *query) kinds(v view) ([]eval.Kind, string) {
	if q.o.Vocabulary == nil || len(v.Enum) == 0 {
		return nil, ""
	}
	for _, of := range []struct {
		kinds []eval.Kind
		word  string
	}{{q.o.Vocabulary.Graders, "grader"}, {q.o.Vocabulary.Executors, "executor"}} {
		if len(of.kinds) > 0 && !slices.ContainsFunc(of.kinds, func(k eval.Kind) bool { return !slices.Contains(v.Enum, any(k.Name)) }) {
			return of.kinds, of.word
		}
	}
	return nil, ""
}

func (c *completer) named(kinds []eval.Kind, word string) {
	for _, k := range kinds {
		c.add(Item{Label: k.Name, Sort: Kind, Detail: word, Doc: c.kindDocument(k)})
	}
}

// referred proposes the names of things that a value can refer to.
func (c *completer) referred(to refers) {
	switch to {
	case toTaskFiles:
		c.taskFiles()
	case toSkill:
		c.skills()
		c.clients() // for graders, the names of clients are skills
	case toClient:
		c.clients()
	case toGrader:
		c.graderNames(true)
	case toNamesake:
		if !c.isSuite() {
			c.graderNames(false)
		}
	case toTaskID:
		if c.guide == c.guides.task {
			base := filepath.Base(c.Path)
			c.text(Item{Label: strings.TrimSuffix(base, filepath.Ext(base)), Sort: Name, Detail: "name of the file"})
		}
	case toAgent:
		c.agents()
	case "":
	default:
		c.files(to)
	}
}

// text proposes a text, in quotes where YAML needs them.
func (c *completer) text(it Item) {
	if c.node.item != nil && slices.ContainsFunc(c.node.parent.values(), func(n *node) bool { return n.text() == it.Label }) {
		return // already in the list
	}
	it.Insert = it.Label
	if c.node.style == plain {
		it.Insert = quoted(it.Label)
	}
	c.add(it)
}

// quoted returns a text as YAML: in quotes if it must be.
func quoted(text string) string {
	if b, err := yaml.Marshal(text); err == nil && !strings.Contains(strings.TrimSpace(string(b)), "\n") {
		return strings.TrimSpace(string(b))
	}
	return text
}

func (c *completer) skills() {
	for _, s := range c.suite.Skills() {
		c.text(Item{Label: s.Names[len(s.Names)-1], Sort: Name, Detail: "skill", Doc: inCode(c.shown(s.Dir))})
	}
}

// clients proposes the clients that the suite describes for its router.
func (c *completer) clients() {
	t := c.ofSuite()
	for _, it := range t.value(t.value(t.value(t.root, "config"), "router"), "clients").values() {
		if name := t.value(t.follow(it), "name").text(); name != "" {
			c.text(Item{Label: name, Sort: Name, Detail: "client"})
		}
	}
}

// graderNames proposes the names of the suite's graders. With types, it also proposes their
// types and the metrics that need no grader.
func (c *completer) graderNames(types bool) {
	own := ""
	if c.node.parent != nil {
		own = c.tree.value(c.node.parent, "type").text()
	}
	var kinds []string
	for _, g := range c.suiteGraders() {
		if g.node.extent().holds(c.offset) && c.isSuite() {
			continue // the one that is being typed
		}
		if types || own == "" || own == g.kind {
			c.text(Item{Label: g.name, Sort: Name, Detail: "grader of the suite, " + g.kind})
		}
		kinds = append(kinds, g.kind)
	}
	if !types {
		return
	}
	for _, k := range kinds {
		c.text(Item{Label: k, Sort: Name, Detail: "type of graders"})
	}
}

func (c *completer) agents() {
	if p := c.suite.Project; p != nil {
		names := make([]string, 0, len(p.Agents))
		for name := range p.Agents {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			c.text(Item{Label: name, Sort: Name, Detail: "agent of " + filepath.Base(p.File)})
		}
	}
}
