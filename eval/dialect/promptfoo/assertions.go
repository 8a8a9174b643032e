package promptfoo

import (
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// assertions returns a grader for each assertion of a test.
func (tr *translator) assertions(n *yaml.Node, vars map[string]string) (graders []*yaml.Node) {
	if n = decode.Follow(n); n != nil && n.Kind != yaml.SequenceNode {
		tr.cannot(n, "assert: it must be a list, got %s", decode.Describe(n))
		return nil
	}
	for i, a := range dialect.Items(n) {
		if a == nil || a.Kind != yaml.MappingNode {
			tr.cannot(a, "assert[%d]: an assertion must be a map, got %s", i, decode.Describe(a))
			continue
		}
		tr.refuse(a, fmt.Sprintf("assert[%d].", i), []string{"type", "value", "weight", "metric"})
		key, values := tr.check(a, vars)
		if key == "" {
			continue
		}
		config := dialect.NewMap(a)
		config.Set(key, dialect.Texts(a, values...))
		g := dialect.NewMap(a)
		g.Set("type", dialect.Scalar(a, "text"))
		name := dialect.TextOf(decode.Lookup(a, "metric"))
		if name == "" {
			name = dialect.TextOf(decode.Lookup(a, "type"))
		}
		g.Set("name", dialect.Scalar(a, fmt.Sprintf("%d: %s", i+1, name)))
		if w := decode.Follow(decode.Lookup(a, "weight")); w != nil {
			if w.Value == "0" || w.Value == "0.0" {
				tr.cannot(w, "the weight 0: every assertion counts")
			}
			g.Set("weight", w)
		}
		g.Set("config", config.Node)
		graders = append(graders, g.Node)
	}
	return graders
}

// check returns the option of the text grader that decides an assertion, and its value.
func (tr *translator) check(a *yaml.Node, vars map[string]string) (key string, values []string) {
	full := dialect.TextOf(decode.Lookup(a, "type"))
	kind, absent := strings.CutPrefix(full, "not-")
	n := decode.Follow(decode.Lookup(a, "value"))
	items := dialect.Items(n)
	if n != nil && n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	}
	for _, item := range items {
		value, ok := tr.render(item, vars)
		if !ok {
			return "", nil
		}
		if item.Kind != yaml.ScalarNode || value == "" || strings.HasPrefix(value, "file://") {
			tr.cannot(item, "the value of %s: it must be a text", text.Clip(full, 60))
			return "", nil
		}
		values = append(values, value)
	}
	if one := !strings.HasSuffix(kind, "-any"); len(values) == 0 || one && (len(values) > 1 || n.Kind != yaml.ScalarNode) {
		tr.cannot(a, "the assertion %q: it must have a text as its value", text.Clip(full, 60))
		return "", nil
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = regexp.QuoteMeta(v)
	}
	pattern := strings.Join(quoted, "|")
	match, contains, folds := "regex_match", "contains_cs", "contains"
	if absent {
		match, contains, folds = "regex_not_match", "not_contains_cs", "not_contains"
	}
	switch kind {
	case "contains":
		return contains, values
	case "icontains":
		return folds, values
	case "contains-any":
		return match, []string{pattern}
	case "icontains-any":
		return match, []string{"(?i:" + pattern + ")"}
	case "equals":
		return match, []string{`\A(?:` + pattern + `)\z`}
	case "starts-with":
		return match, []string{`\A(?:` + pattern + `)`}
	}
	tr.cannot(a, "the assertion type %q: it translates contains, icontains, contains-any, icontains-any, equals and "+
		"starts-with, also with not-", text.Clip(full, 60))
	return "", nil
}
