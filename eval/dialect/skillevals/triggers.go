package skillevals

import (
	"slices"
	"strings"

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

// Keys with which cases name skills: those that agents should use for it, and the one that it is about.
var (
	expectedSkillKeys = []string{"expected_skill", "expected_skills"}
	caseSkillKeys     = []string{"skill", "skill_name", "target_skill", "skills"}
)

// namesSkill reports whether a case names the skill that it is about, or those that agents should use.
func namesSkill(c *yaml.Node) bool { return hasAny(c, expectedSkillKeys) || hasAny(c, caseSkillKeys) }

// addExpectedSkills adds a trigger test for each skill that agents should use for the case, or one that they should
// use none.
func (c *caseTranslator) addExpectedSkills(to *triggers) {
	for _, key := range expectedSkillKeys {
		n := decode.Follow(decode.Lookup(c.node, key))
		if n == nil || c.isTrigger {
			continue
		}
		c.read[key] = true
		names := dialect.Items(textsOf(n))
		forbidden := c.get("forbidden_skills")
		if forbidden != nil {
			forbidden = textsOf(forbidden)
		}
		if n.Kind == yaml.MappingNode || len(names) == 0 && n.Kind == yaml.ScalarNode && !decode.IsNull(n) {
			c.Reportf(c.Source, n, decode.Error, decode.CodeWrongType, "%s must name skills, got %s", key, decode.Describe(n))
			continue
		}
		c.isTrigger = true
		if len(names) == 0 || len(names) == 1 && slices.Contains([]string{"none", "null"}, strings.ToLower(names[0].Value)) {
			c.addPrompt(to, false, nil, forbidden)
			continue
		}
		for _, name := range names {
			c.addPrompt(to, true, name, forbidden)
		}
	}
	if c.isTrigger && dialect.TextOf(decode.Lookup(c.node, "expected_output")) != "" {
		// The judge decides the case besides.
		c.alsoJudged = !hasSign(c.node)
	}
}

func hasSign(c *yaml.Node) bool { key, _ := signOf(c); return key != "" }

// addPrompt adds a trigger test with the prompt of the case.
func (c *caseTranslator) addPrompt(to *triggers, should bool, skill, forbidden *yaml.Node) {
	p := dialect.NewMap(c.node)
	for _, key := range promptKeysOf(c.node) {
		if n := decode.Follow(decode.Lookup(c.node, key)); decode.IsText(n) && p.Get("prompt") == nil {
			c.read[key] = true
			p.Set("prompt", dialect.Scalar(n, n.Value))
		}
	}
	if p.Get("prompt") == nil {
		c.Reportf(c.Source, c.node, decode.Warning, decode.CodeNoEffect, "waza tests the use of skills only for a case whose prompt is a text")
		return
	}
	if skill != nil && skill.Value != c.skill {
		p.Set("skill", dialect.Scalar(skill, skill.Value))
		to.others = true
	}
	if forbidden != nil && len(forbidden.Content) > 0 {
		p.Set("forbidden_skills", forbidden)
		to.others = true
	}
	for _, key := range []string{"id", "name"} {
		c.get(key)
	}
	to.append(should, p)
}

// append adds a trigger test.
func (t *triggers) append(should bool, p dialect.Map) {
	list, key := t.negative, "should_not_trigger_prompts"
	if should {
		list, key = t.positive, "should_trigger_prompts"
	}
	list.Content = append(list.Content, p.Node)
	t.Set(key, list)
}

// signOf returns the key and the value with which a case says that it is a trigger test; nil for other cases.
func signOf(c *yaml.Node) (key string, sign *yaml.Node) {
	for _, key := range []string{"should_trigger"} {
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
	to.append(should, p)
}
