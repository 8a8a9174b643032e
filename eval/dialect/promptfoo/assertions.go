package promptfoo

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// assertionTypes are the types that a cell of a table can name.
var assertionTypes = strings.Fields(`answer-relevance bleu classifier contains contains-all contains-any contains-html contains-json
	contains-sql contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost equals factuality
	finish-reason g-eval gleu guardrails icontains icontains-all icontains-any is-html is-json is-refusal is-sql
	is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript latency levenshtein
	llm-rubric meteor model-graded-closedqa model-graded-factuality moderation perplexity perplexity-score pi python regex
	rouge-n ruby search-rubric select-best similar skill-used starts-with tool-call-f1 webhook word-count`)

// assertionKeys are the keys of an assertion that the translation handles.
var assertionKeys = []string{"type", "value", "weight", "metric", "threshold"}

// graders returns a grader for each assertion of the case.
func (c *caseTranslator) graders() (graders []*yaml.Node) {
	for _, key := range slices.Sorted(maps.Keys(c.options)) {
		c.refuseOption(key)
	}
	var asserts []part
	sources := []part{c.standard.get("assert"), c.test.get("assert")}
	if c.options["disableDefaultAsserts"].text() == "true" {
		sources = sources[1:]
	}
	for _, list := range sources {
		if list.Node != nil && list.Kind != yaml.SequenceNode && !decode.IsNull(list.Node) {
			c.block(list, "assert must be a list, got %s", decode.Describe(list.Node))
			continue
		}
		asserts = append(asserts, list.items()...)
	}
	for i, a := range asserts {
		if g := c.grader(a, fmt.Sprintf("%d: ", i+1)); g != nil {
			graders = append(graders, g)
		}
	}
	return graders
}

func (c *caseTranslator) refuseOption(key string) {
	if slices.Contains(optionKeys, key) {
		return
	}
	c.block(c.options[key], "waza cannot translate the key options.%s", text.Clip(key, 60))
}

// grader returns the grader of an assertion; nil if it has none.
func (c *caseTranslator) grader(a part, prefix string) *yaml.Node {
	if a.Node == nil || a.Kind != yaml.MappingNode {
		c.block(a, "an assertion must be a map, got %s", decode.Describe(a.Node))
		return nil
	}
	c.refuseIn(a, "assert.", assertionKeys)
	key, values := c.check(a)
	if key == "" {
		return nil
	}
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set(key, dialect.Texts(at, values...))
	g := dialect.NewMap(at)
	g.Set("type", dialect.Scalar(at, "text"))
	g.Set("name", dialect.Scalar(at, prefix+firstOf(a.get("metric").text(), a.get("type").text())))
	if w := a.get("weight"); w.Node != nil {
		if w.Value == "0" || w.Value == "0.0" {
			c.block(w, "waza cannot translate the weight 0: every assertion counts")
		}
		g.Set("weight", w.Node)
	}
	g.Set("config", config.Node)
	return g.Node
}

// check returns the option of the text grader that decides an assertion, and its value.
func (c *caseTranslator) check(a part) (key string, values []string) {
	full := a.get("type").text()
	kind, absent := strings.CutPrefix(full, "not-")
	v := a.get("value")
	items := v.items()
	if v.Node != nil && v.Kind == yaml.ScalarNode {
		items = []part{v}
	}
	for _, item := range items {
		value, err := c.render.render(item.text())
		if err != nil || item.Node == nil || item.Kind != yaml.ScalarNode || value == "" || strings.HasPrefix(value, filePrefix) {
			c.block(item, "the value of %s must be a text", text.Clip(full, 60))
			return "", nil
		}
		values = append(values, value)
	}
	if one := !strings.HasSuffix(kind, "-any"); len(values) == 0 || one && (len(values) > 1 || v.Kind != yaml.ScalarNode) {
		c.block(a, "the assertion %q must have a text as its value", text.Clip(full, 60))
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
	c.block(a, "waza cannot translate the assertion type %q", text.Clip(full, 60))
	return "", nil
}
