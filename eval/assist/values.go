package assist

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
)

// valueProposals propose values for the scalar at the mark.
type valueProposals struct {
	*query
	*proposals
}

func (c valueProposals) propose(views []view) {
	for _, v := range views {
		if kinds, sort := c.words.kinds(v); kinds != nil {
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

func (c valueProposals) named(kinds []eval.Kind, word string) {
	for _, k := range kinds {
		c.add(Item{Label: k.Name, Sort: Kind, Detail: word, Doc: c.words.kind(k)})
	}
}

func (c valueProposals) referred(to refers) {
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
		if !c.isSuite {
			c.graderNames(false)
		}
	case toTaskID:
		if c.isTask {
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

func (c valueProposals) skills() {
	for _, s := range c.suite.Skills() {
		c.text(Item{Label: s.Names[len(s.Names)-1], Sort: Name, Detail: "skill", Doc: inCode(c.paths.shown(s.Dir))})
	}
}

func (c valueProposals) clients() {
	t := c.suite.text()
	for _, it := range c.suite.setting("config", "router", "clients").values() {
		if name := t.value(t.follow(it), "name").text(); name != "" {
			c.text(Item{Label: name, Sort: Name, Detail: "client"})
		}
	}
}

// graderNames proposes the names of the suite's graders. With types, it also proposes their
// types and the metrics that need no grader.
func (c valueProposals) graderNames(types bool) {
	own := ""
	if c.node.parent != nil {
		own = c.tree.value(c.node.parent, "type").text()
	}
	var kinds []string
	for _, g := range c.suite.graders() {
		if g.node.extent().holds(c.offset) && c.isSuite {
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

func (c valueProposals) agents() {
	if p := c.suite.Project; p != nil {
		for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
			c.text(Item{Label: name, Sort: Name, Detail: "agent of " + filepath.Base(p.File)})
		}
	}
}

// variables proposes template variables if the cursor is in double braces.
func (c valueProposals) variables() bool {
	if c.node.isKey() || c.node.parent == nil {
		return false
	}
	r, ok := braces(c.document, c.offset)
	if !ok || r.Start < c.node.span.Start {
		return false
	}
	c.replace = r
	rest := strings.TrimLeft(c.document[r.End:min(len(c.document), r.End+8)], " ")
	closing := "}}"
	switch {
	case strings.HasPrefix(rest, "}}"):
		closing = ""
	case c.document[r.Start-1] == ' ':
		closing = " }}"
	}
	for _, v := range c.known(c.node) {
		c.add(Item{Label: v.name, Sort: Variable, Detail: v.meaning, Insert: v.name + closing})
	}
	return true
}
