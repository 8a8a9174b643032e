package skillevals

import (
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// triggers collects the trigger tests among the cases.
type triggers struct {
	dialect.Map
	positive, negative *yaml.Node
	others             bool // a test names a skill other than that of the file
}

func newTriggers(at *yaml.Node) triggers {
	return triggers{Map: dialect.NewMap(at), positive: dialect.List(at), negative: dialect.List(at)}
}

// subjectKeys are the keys with which a trigger test names the skill that it is about.
var subjectKeys = []string{"skill", "skill_name", "target"}

// signOf returns the key and the value with which a case says that it is a trigger test; nil for other cases.
func signOf(c *yaml.Node) (key string, sign *yaml.Node) {
	for _, key := range []string{"should_trigger", "shouldTrigger"} {
		if n := decode.Follow(decode.Lookup(c, key)); n != nil && !decode.IsNull(n) {
			return key, n
		}
	}
	if n := decode.Follow(decode.Lookup(c, "expected")); dialect.NamesTrigger(n) {
		return "expected", n
	}
	return "", nil
}

// needsSkill reports whether a case is a trigger test that is about the skill of the file.
func needsSkill(c *yaml.Node) bool {
	_, sign := signOf(c)
	should, _ := dialect.TriggerSign(sign)
	return should && !slices.ContainsFunc(subjectKeys, func(key string) bool { return textIn(c, key) != "" })
}

// addTrigger adds a case with should_trigger to the trigger tests.
func (c *caseTranslator) addTrigger(to *triggers) {
	key, n := signOf(c.node)
	if n == nil {
		return
	}
	c.read[key] = true
	should, ok := dialect.TriggerSign(n)
	if !ok {
		c.Reportf(c.Source, n, decode.Error, decode.CodeWrongType, "%s must be true or false, got %s", key, decode.Describe(n))
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
	for _, key := range subjectKeys {
		if n := c.get(key); decode.IsText(n) && n.Value != "" && p.Get("skill") == nil && n.Value != c.skill {
			p.Set("skill", dialect.Scalar(n, n.Value))
			to.others = true
		}
	}
	list, key := to.negative, "should_not_trigger_prompts"
	if should {
		list, key = to.positive, "should_trigger_prompts"
	}
	list.Content = append(list.Content, p.Node)
	to.Set(key, list)
}
