package skillevals

import (
	"cmp"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// triggerTests collects the trigger tests among the cases.
type triggerTests struct {
	dialect.Map
	positive, negative *yaml.Node
	others             bool // a test names a skill other than that of the file
}

func newTriggers(at *yaml.Node) triggerTests {
	return triggerTests{Map: dialect.NewMap(at), positive: dialect.List(at), negative: dialect.List(at)}
}

// subjectKeys are the keys with which a trigger test names the skill that it is about.
var subjectKeys = []string{"skill", "skill_name", "target", "target_skill"}

// signKeys are the keys with which a case says that it is a trigger test.
var signKeys = []string{"should_trigger", "should_activate", "expect_trigger"}

// Keys with which cases name skills: those that agents should use for it, and the one that it is about.
var (
	expectedSkillKeys = []string{"expected_skill", "expected_skills"}
	caseSkillKeys     = []string{"skill", "skill_name", "target_skill", "skills"}
)

// namesSkill reports whether a case names the skill that it is about, or those that agents should use.
func namesSkill(c *yaml.Node) bool { return hasAny(c, expectedSkillKeys) || hasAny(c, caseSkillKeys) }

// A route is the use of skills that a case expects.
type route struct {
	key          string
	at           *yaml.Node   // its value
	right, wrong []*yaml.Node // names
	own          bool         // the skill that the case is about is right
	none         bool         // no skill is right
}

// routeOf returns the route of a case; its key is empty for a case without one.
func (c *caseTranslator) routeOf() (r route) {
	for _, key := range expectedSkillKeys {
		n := decode.Follow(decode.Lookup(c.node, key))
		if n == nil || r.key != "" {
			continue
		}
		c.read[key] = true
		names := textsOf(n)
		if n.Kind == yaml.MappingNode || len(names.Content) == 0 && n.Kind == yaml.ScalarNode && !decode.IsNull(n) {
			c.Reportf(c.Source, n, decode.Error, decode.CodeWrongType, "%s must name skills, got %s", key, decode.Describe(n))
			continue
		}
		items := dialect.Items(n)
		if n.Kind == yaml.ScalarNode {
			items = []*yaml.Node{n}
		}
		r = route{key: key, at: n, none: true}
		for _, item := range items {
			if item.Kind != yaml.ScalarNode {
				c.Reportf(c.Source, item, decode.Error, decode.CodeWrongType, "%s must name skills, got %s", key, decode.Describe(item))
				continue
			}
			switch to := dialect.ReadRoute(item, c.isSkill); {
			case to.Skill == nil:
				r.own = r.own || to.Should
			case to.Should:
				r.right = append(r.right, to.Skill)
			default:
				r.wrong = append(r.wrong, to.Skill)
			}
		}
		if r.none = len(r.right) == 0 && !r.own; r.right != nil && len(r.right)+len(r.wrong) < len(names.Content) {
			c.Reportf(c.Source, n, decode.Error, decode.CodeInvalidValue, "%s names a skill and the word for no skill", key)
			return route{}
		}
	}
	return r
}

// addExpectedSkills adds a trigger test for each skill that agents should use for the case, or one that they should
// use none.
func (c *caseTranslator) addExpectedSkills(to *triggerTests) {
	if c.isTrigger {
		return
	}
	r := c.routeOf()
	if r.key == "" {
		return
	}
	c.isTrigger = true
	forbidden := c.forbidden()
	switch {
	case r.own:
		c.addPrompt(to, true, c.subject(), append(forbidden, r.wrong...))
	case r.none && len(r.wrong) > 0:
		c.addPrompt(to, false, r.wrong[0], append(forbidden, r.wrong[1:]...))
	case r.none:
		c.addPrompt(to, false, nil, forbidden)
	}
	for _, name := range r.right {
		c.addPrompt(to, true, name, append(forbidden, r.wrong...))
	}
	// The judge decides the case besides.
	c.alsoJudged = textIn(c.node, "expected_output") != "" || textIn(c.node, "expected") != ""
}

// forbidden returns the names of the skills that agents must not use.
func (c *caseTranslator) forbidden() []*yaml.Node {
	n := c.get("forbidden_skills")
	if n == nil {
		return nil
	}
	return slices.Clip(dialect.Items(textsOf(n)))
}

// subject returns the node with the skill that a trigger test is about; nil means that of the file.
func (c *caseTranslator) subject() *yaml.Node {
	for _, key := range subjectKeys {
		if n := c.get(key); decode.IsText(n) && n.Value != "" {
			return n
		}
	}
	return nil
}

func hasSign(c *yaml.Node) bool { key, _ := signOf(c); return key != "" }

// addPrompt adds a trigger test with the prompt of the case.
func (c *caseTranslator) addPrompt(to *triggerTests, should bool, skill *yaml.Node, forbidden []*yaml.Node) {
	p := dialect.NewMap(c.node)
	for _, key := range promptKeysOf(c.node) {
		if n := decode.Follow(decode.Lookup(c.node, key)); decode.IsText(n) && p.Get("prompt") == nil {
			c.read[key] = true
			c.readCopies(n.Value)
			p.Set("prompt", dialect.Scalar(n, n.Value))
		}
	}
	if p.Get("prompt") == nil {
		c.Reportf(c.Source, c.node, decode.Warning, decode.CodeNoEffect, "waza tests the use of skills only for a case whose prompt is a text")
		return
	}
	for _, key := range []string{"reason", "rationale"} {
		if n := c.get(key); hasSign(c.node) && decode.IsText(n) && p.Get("reason") == nil {
			p.Set("reason", dialect.Scalar(n, n.Value))
		}
	}
	if skill != nil && skill.Value != c.skill {
		p.Set("skill", dialect.Scalar(skill, skill.Value))
		to.others = true
	}
	if len(forbidden) > 0 {
		p.Set("forbidden_skills", dialect.List(c.node, forbidden...))
		to.others = true
	}
	for _, key := range []string{"id", "name"} {
		c.get(key)
	}
	to.append(should, p)
}

// append adds a trigger test.
func (t *triggerTests) append(should bool, p dialect.Map) {
	list, key := t.negative, "should_not_trigger_prompts"
	if should {
		list, key = t.positive, "should_trigger_prompts"
	}
	list.Content = append(list.Content, p.Node)
	t.Set(key, list)
}

// signOf returns the key and the value with which a case says that it is a trigger test; nil for other cases.
func signOf(c *yaml.Node) (key string, sign *yaml.Node) {
	for _, key := range signKeys {
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
	return should && !hasAny(c, expectedSkillKeys) && !slices.ContainsFunc(subjectKeys, func(key string) bool { return textIn(c, key) != "" })
}

// addTrigger adds a case with should_trigger to the trigger tests. The skills that are right can be named besides.
func (c *caseTranslator) addTrigger(to *triggerTests) {
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
	for _, key := range []string{"expected_output", "files"} {
		c.get(key)
	}
	subject, r, forbidden := c.subject(), c.routeOf(), c.forbidden()
	name := c.skill
	if subject != nil {
		name = subject.Value
	}
	for _, key := range promptKeysOf(c.node) {
		if decode.IsText(decode.Follow(decode.Lookup(c.node, key))) {
			c.get(key)
			break
		}
	}
	isSubject := func(n *yaml.Node) bool { return n.Value == name }
	switch {
	case should && r.key != "" && r.none && len(r.wrong) == 0 && !decode.IsNull(r.at) && r.at.Kind == yaml.ScalarNode:
		c.Reportf(c.Source, r.at, decode.Error, decode.CodeInvalidValue, "the case names no skill that should be used, but %s is true", key)
	case !should && (r.own || slices.ContainsFunc(r.right, isSubject)):
		c.Reportf(c.Source, r.at, decode.Error, decode.CodeInvalidValue, "%s is false, but %s says that the skill is right", key, r.key)
	case len(r.right) == 0:
		c.addPrompt(to, should, subject, append(forbidden, r.wrong...))
	default:
		forbidden = append(forbidden, r.wrong...)
		if !should && name != "" {
			forbidden = append(forbidden, dialect.Scalar(cmp.Or(subject, n), name))
		}
		for _, right := range r.right {
			c.addPrompt(to, true, right, forbidden)
		}
	}
}
