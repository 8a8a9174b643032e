package skillevals

import (
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// triggers collects the trigger tests among the cases.
type triggers struct {
	dialect.Map
	positive, negative *yaml.Node
}

func newTriggers(at *yaml.Node) triggers {
	return triggers{Map: dialect.NewMap(at), positive: dialect.List(at), negative: dialect.List(at)}
}

// addTrigger adds a case with should_trigger to the trigger tests.
func (c *caseTranslator) addTrigger(to *triggers) {
	n := c.get("should_trigger")
	if n == nil {
		n = c.get("shouldTrigger")
	}
	if n == nil {
		return
	}
	var should bool
	if n.ShortTag() != "!!bool" || n.Decode(&should) != nil {
		c.Reportf(c.Source, n, decode.Error, decode.CodeWrongType, "should_trigger must be true or false, got %s", decode.Describe(n))
		return
	}
	c.isTrigger = true
	for _, key := range []string{"id", "name", "expected_output", "files"} {
		c.get(key)
	}
	p := dialect.NewMap(c.node)
	for _, key := range promptKeys {
		if n := c.get(key); decode.IsText(n) && p.Get("prompt") == nil {
			p.Set("prompt", dialect.Scalar(n, n.Value))
		}
	}
	for _, key := range []string{"reason", "rationale"} {
		if n := c.get(key); decode.IsText(n) && p.Get("reason") == nil {
			p.Set("reason", dialect.Scalar(n, n.Value))
		}
	}
	list, key := to.negative, "should_not_trigger_prompts"
	if should {
		list, key = to.positive, "should_trigger_prompts"
	}
	list.Content = append(list.Content, p.Node)
	to.Set(key, list)
}
