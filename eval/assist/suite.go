package assist

import (
	"path/filepath"
	"slices"

	"waza/eval"
)

// suiteText is the suite that a document belongs to. It knows the names that the suite defines,
// and where.
type suiteText struct {
	*eval.Suite // if it could not be loaded, it contains only its paths
	options     eval.Options
	tree        *tree // of its text; nil until a question needs it
}

// text returns the tree of the suite's text; one without a root if it cannot be read.
func (s *suiteText) text() *tree {
	if s.tree == nil {
		text, _ := eval.ReadText(s.File, s.options)
		s.tree, _ = scan(text, noMark)
	}
	return s.tree
}

// setting returns the value below a path of keys; nil if the suite has none.
func (s *suiteText) setting(keys ...string) *node {
	n := s.text().root
	for _, key := range keys {
		n = s.text().value(n, key)
	}
	return n
}

func (s *suiteText) place(r Range) Target { return Target{s.File, lineOf(s.text().text, r.Start)} }

// graders returns the graders that the suite defines.
func (s *suiteText) graders() []namedGrader { return s.text().graders(s.text().root) }

func (s *suiteText) files(pattern string) []string {
	found, _ := s.TaskFiles(pattern, s.options)
	return found
}

// skillFile returns the file of a skill of the suite; "" if there is no such skill.
func (s *suiteText) skillFile(name string) string {
	for _, k := range s.Skills() {
		if slices.Contains(k.Names, name) {
			return filepath.Join(k.Dir, "SKILL.md")
		}
	}
	return ""
}

// columns returns the variables of tasks that come from a dataset and not from the suite.
func (s *suiteText) columns() []string {
	var out []string
	if s.TasksFrom == "" || len(s.Tasks) == 0 {
		return nil
	}
	inputs := s.setting("inputs")
	for name := range s.Tasks[len(s.Tasks)-1].Vars {
		if inputs.get(name) == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// graders returns the graders of a map, each with its effective name.
func (t *tree) graders(n *node) []namedGrader {
	var out []namedGrader
	for _, it := range t.value(n, "graders").values() {
		g := t.follow(it)
		if g == nil || g.kind != mapping {
			continue
		}
		one := namedGrader{node: g, kind: t.value(g, "type").text()}
		if one.name = t.value(g, "name").text(); one.name == "" {
			one.name = one.kind
		}
		if one.name != "" {
			out = append(out, one)
		}
	}
	return out
}

type namedGrader struct {
	node       *node
	name, kind string
}
