// Package triggers translates trigger sets: prompts with the note whether an agent should use a skill
// for them. skills/skill-creator of anthropics/skills defines the format: a list of
// {"query": TEXT, "should_trigger": BOOLEAN}. The package also accepts the forms that other authors
// gave their files.
package triggers

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

var fileName = text.Pattern(`^(triggers?([-_]?(evals?|queries|tests?|cases|prompts|set))?([-_].*)?|(.*[-_])?triggers?|eval[-_]set|routing([-_].*)?)\.json$`)

// writtenName is the usual name of a file that waza writes.
const writtenName = "trigger-evals.json"

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name:       "triggers",
		Named:      isNamed,
		Recognizes: func(root *yaml.Node) bool { return recognizes(root, true) },
		Placed:     placed,
		Refuses:    refuses,
		Home:       func(file string) string { return filepath.Dir(filepath.Dir(file)) },
		Translate:  translate,
		Target:     writtenName,
		FileName:   writtenName,
		Write:      write,
	}
}

func isNamed(file string) bool { return fileName().MatchString(path.Base(filepath.ToSlash(file))) }

// Keys of a file and of an entry.
var (
	listKeys    = []string{"cases", "queries", "evals", "tests", "test_cases", "entries", "trigger_tests", "trigger_cases", "prompts"}
	promptKeys  = []string{"query", "prompt", "input", "q", "question", "utterance"}
	signKeys    = []string{"should_trigger", "should_activate", "expect_trigger"}
	expectKeys  = []string{"expected", "expect", "expected_trigger", "trigger", "label"} // signs, if their value is one
	subjectKeys = []string{"skill", "skill_name", "target", "target_skill"}
	routeKeys   = []string{"expected_skill", "expected_primary", "expected_skills", "expected_route"}
	choiceKeys  = []string{"acceptable", "should_not_trigger", "allowed_skills", "forbidden_skills"}
	reasonKeys  = []string{"reason", "rationale", "note", "_comment"}
	ignoredKeys = []string{"id", "name", "tags", "area", "category", "notes", "comment", "split", "type", "difficulty", "priority"}
	fileKeys    = []string{"skill_name", "skill", "name", "description", "version", "schema", "$schema", "pass_threshold", "threshold", "_comment", "note", "notes", "schema_version", "meta", "purpose"}
)

// listPairs are the keys of two lists, one for each sign. Only the first pair means the same in a file of any name.
var listPairs = [][2]string{
	{"should_trigger", "should_not_trigger"}, {"positive", "negative"}, {"positives", "negatives"}, {"trigger", "no_trigger"},
	{"should_trigger_prompts", "should_not_trigger_prompts"}, {"positive_cases", "negative_cases"},
	{"positive_prompts", "negative_prompts"}, {"should_activate", "should_not_activate"}, {"should", "should_not"},
	{"must_trigger", "must_not_trigger"},
}

// statementKeys are keys of skill evals. A file with them is not only a trigger set.
var statementKeys = []string{
	"assertions", "expectations", "checks", "expected_behavior", "expected_behaviors", "must_include", "must_mention", "must_contain",
	"must_have", "must_not_include", "rubric", "criteria", "success_criteria", "acceptance_criteria", "pass_criteria", "scorers",
}

func lookup(n *yaml.Node, keys []string) (key string, value *yaml.Node) {
	for _, key := range keys {
		if v := decode.Follow(decode.Lookup(n, key)); v != nil && !decode.IsNull(v) {
			return key, v
		}
	}
	return "", nil
}

// recognizes reports whether a file is a trigger set. named means that the name of the file says so. Entries can be in
// several lists, of which the first one decides.
func recognizes(root *yaml.Node, named bool) bool {
	root = normal(root)
	p := partsOf(root, named)
	if p.hasLists() || len(p.groups) > 0 {
		return true
	}
	return areEntries(dialect.Entries(root, listKeys), named)
}

// refuses returns why a file with signs and without queries is no trigger set.
func refuses(root *yaml.Node) string {
	root = normal(root)
	for _, e := range dialect.Entries(root, listKeys) {
		_, prompt := lookup(e, promptKeys)
		if _, sign := lookup(e, signKeys); sign != nil && !decode.IsText(prompt) {
			return fmt.Sprintf("this is no trigger set: the entry in line %d has no query; an entry is {\"query\": TEXT, \"should_trigger\": true}", e.Line)
		}
	}
	return ""
}

// placed reports whether a file is a trigger set at its path. The values true and yes of the key expected can
// be answers, so the name of the file decides about them.
func placed(file string, root *yaml.Node) bool {
	root = normal(root)
	return isNamed(file) || recognizes(root, false) && !slices.ContainsFunc(dialect.Entries(root, listKeys), func(e *yaml.Node) bool {
		key, sign := signOf(e, false)
		return slices.Contains(expectKeys, key) && !dialect.NamesTrigger(sign)
	})
}

// signOf returns the key and the value with which an entry says whether a skill, or which one, should be used;
// nil for none. named means that the name of the file says that it is a trigger set.
func signOf(e *yaml.Node, named bool) (key string, sign *yaml.Node) {
	if key, sign = lookup(e, slices.Concat(signKeys, routeKeys)); sign != nil || isRoute(e) {
		return key, sign
	}
	for _, key := range expectKeys {
		n := decode.Follow(decode.Lookup(e, key))
		if _, ok := meaningOf(n); ok || named && isName(n) {
			return key, n
		}
	}
	return "", nil
}

// meaningOf returns whether a value asks for the use of a skill; ok is false if it is no sign.
func meaningOf(n *yaml.Node) (should, ok bool) {
	if should, ok = dialect.TriggerSign(n); ok || n == nil {
		return should, ok
	}
	switch strings.ToLower(n.Value) {
	case "positive", "activate":
		return true, true
	case "negative", "skip", "not":
		return false, true
	}
	return false, false
}

// isName reports whether a value can be the name of a skill, or null for no skill.
func isName(n *yaml.Node) bool {
	return n != nil && (decode.IsNull(n) || decode.IsText(n) && !strings.ContainsAny(n.Value, " \n"))
}

// isRoute reports whether an entry has the key of a route, which can be null.
func isRoute(e *yaml.Node) bool {
	return slices.ContainsFunc(routeKeys, func(key string) bool { return decode.Lookup(e, key) != nil })
}

func listIn(n *yaml.Node, key string) *yaml.Node {
	if list := decode.Follow(decode.Lookup(n, key)); list != nil && list.Kind == yaml.SequenceNode {
		return list
	}
	return nil
}

// translator translates one file.
type translator struct {
	*dialect.Translation
	root    *yaml.Node
	parts   parts
	named   bool // the name of the file says that it is a trigger set
	skill   string
	isSkill func(name string) bool
	tests   dialect.Map
	unknown map[string]bool
	prompts map[key]*prompt
	order   []*prompt
	others  bool // an entry names a skill other than that of the file
}

// A key identifies a prompt. Entries with the same query can be about different skills.
type key struct{ skill, query string }

type prompt struct {
	node   *yaml.Node
	should bool
}

// The defaults of scripts/run_eval.py of the skill-creator: runs per query, and the least share of them
// in which the skill is used.
const (
	defaultRuns      = 3
	defaultThreshold = 0.5
)

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, root: normal(t.Source.Root), tests: dialect.NewMap(t.Source.Root),
		named: isNamed(t.Source.Path), unknown: map[string]bool{}, prompts: map[key]*prompt{},
	}
	tr.parts = partsOf(tr.root, tr.named)
	suite := dialect.NewMap(tr.root)
	at := tr.findSkill()
	name := tr.skill
	tr.isSkill = t.SkillNames(name)
	var places []string // of the skills that agents get besides the skill of the file
	label := false
	if tr.namesSkills() {
		if places, label = tr.LabelPlaces(tr.skill, at); label {
			tr.skill = ""
		}
	}
	if name == "" {
		name = filepath.Base(filepath.Dir(filepath.Dir(t.Source.Path)))
	}
	suite.Set("name", dialect.Scalar(at, name+" triggers"))
	if n := decode.Follow(decode.Lookup(tr.root, "description")); decode.IsText(n) {
		suite.Set("description", dialect.Scalar(n, n.Value))
	}
	if tr.skill != "" {
		suite.Set("skill", dialect.Scalar(at, tr.skill))
	}
	suite.Set("literal", dialect.Scalar(nil, true))
	t.Suite = suite.Node
	if t.HeadOnly {
		return
	}
	config := dialect.NewMap(tr.root)
	config.Set("trials_per_task", dialect.Scalar(nil, defaultRuns))
	suite.Set("config", config.Node)
	if tr.root.Kind == yaml.MappingNode {
		known := setOf(fileKeys)
		maps.Copy(known, tr.parts.keys)
		tr.warnUnknown(tr.root, known)
		for _, p := range tr.parts.unread {
			tr.Reportf(t.Source, p.Key, decode.Warning, decode.CodeNoEffect, "%q has no effect, because it has no list of queries with a key such as %s",
				text.Clip(p.Key.Value, 60), listPairs[0][0])
		}
	}
	tr.addAll()
	if tr.others && !label {
		places, _ = tr.UsualSkills()
	}
	if len(places) > 0 {
		config.Set("skill_directories", dialect.Texts(at, places...))
	}
	tr.addPrompts()
	if tr.tests.Len() > 0 {
		tr.addThreshold()
		suite.Set("trigger_tests", tr.tests.Node)
	}
}

// findSkill finds the name of the skill: in the file, in the SKILL.md of the directory that contains it,
// or in the evals.json beside it. It returns the node that names the skill, or nil.
func (tr *translator) findSkill() (at *yaml.Node) {
	for _, key := range []string{"skill_name", "skill"} {
		if n := decode.Follow(decode.Lookup(tr.root, key)); decode.IsText(n) && tr.skill == "" {
			tr.skill, at = n.Value, n
		}
	}
	if tr.skill == "" {
		tr.skill = tr.besideSkill()
	}
	if dir, ok := tr.SkillDir(tr.skill); ok {
		tr.skill, _ = tr.SkillIn(dir) // as agents know it
	}
	return at
}

func (tr *translator) besideSkill() string {
	file := filepath.Join(filepath.Dir(tr.Source.Path), "evals.json")
	data, err := tr.Files.Read(file, decode.MaxTextBytes)
	if err != nil {
		return ""
	}
	root := decode.ParseJSON(file, file, data, &decode.Findings{}).Root
	return dialect.TextOf(decode.Lookup(root, "skill_name"))
}

// isNone reports whether the value with which an entry names a skill means no skill.
func (tr *translator) isNone(n *yaml.Node) bool {
	return dialect.NamesNoSkill(n) && !tr.isSkill(n.Value)
}

func setOf(keys []string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

func (tr *translator) warnUnknown(n *yaml.Node, known map[string]bool) {
	for _, p := range dialect.Pairs(n) {
		if key := p.Key.Value; !known[key] && !tr.unknown[key] {
			tr.unknown[key] = true
			tr.Reportf(tr.Source, p.Key, decode.Warning, decode.CodeUnknownKey, "key %q is unknown in trigger sets and has no effect", text.Clip(key, 60))
		}
	}
}

func (tr *translator) addAll() {
	tr.addSigned(tr.parts.positive, true, nil)
	tr.addSigned(tr.parts.negative, false, nil)
	for _, g := range tr.parts.groups {
		tr.addGroup(g)
	}
	for _, e := range tr.parts.entries {
		if isBlank(e) {
			tr.leaveOut(e)
			continue
		}
		for _, c := range tr.choicesOf(e, nil) {
			tr.add(e, c)
		}
	}
}

// addSigned adds the entries of a list whose key is their sign. They are about the skill if they name no other; nil
// means the skill of the file.
func (tr *translator) addSigned(list []*yaml.Node, should bool, skill *yaml.Node) {
	for _, e := range list {
		c := choice{should: should}
		if subject, ok := tr.subjectOf(e); ok && tr.setSubject(&c, cmp.Or(subject, skill)) {
			tr.add(e, c)
		}
	}
}

// A choice is the use of skills that an entry expects.
type choice struct {
	should bool
	// skill is the node that names the skill which agents should use, or not use; nil means the skill of the file.
	skill *yaml.Node
	// subject is the skill that the entry is about, whatever it expects; empty means the skill of the file.
	subject string
	// acceptable and forbidden are lists of names; nil for none.
	acceptable, forbidden *yaml.Node
}

// choicesOf returns the choices that an entry expects: several if it expects the use of several skills. Each of them
// is a test of its own, because a test is about one skill. The owner is the skill of the part with the entry; nil means
// that of the file.
func (tr *translator) choicesOf(e, owner *yaml.Node) []choice {
	key, sign := signOf(e, tr.named)
	if slices.Contains(routeKeys, key) && sign.Kind == yaml.SequenceNode {
		return tr.routed(e, key, tr.names(e, key))
	}
	should, isSign := meaningOf(sign)
	route, value := lookup(e, routeKeys)
	if value == nil || !isSign || slices.Contains(routeKeys, key) {
		if c, ok := tr.choiceOf(e, owner); ok {
			return []choice{c}
		}
		return nil
	}
	// A sign beside the skills that are right: it is about the skill of the entry, which can be one of them.
	names := tr.names(e, route)
	right, wrong := tr.routes(names)
	switch {
	case should && len(right) > 0:
		return tr.routed(e, route, names)
	case should && len(wrong) == 0:
		tr.Reportf(tr.Source, value, decode.Error, decode.CodeInvalidValue, "the entry names no skill that should be used, but %s is true", key)
		return nil
	case len(right) == 0:
		c, ok := tr.choiceOf(e, owner)
		if !ok {
			return nil
		}
		if len(wrong) > 0 {
			c.forbidden = dialect.List(value, append(dialect.Items(c.forbidden), wrong...)...)
		}
		return []choice{c}
	}
	subject, ok := tr.subjectOf(e)
	if subject = cmp.Or(subject, owner); !ok {
		return nil
	}
	if name := cmp.Or(dialect.TextOf(subject), tr.skill); name != "" {
		if slices.ContainsFunc(right, func(n *yaml.Node) bool { return n.Value == name }) {
			tr.Reportf(tr.Source, value, decode.Error, decode.CodeInvalidValue, "%s is false, but %s says that the skill %q is right", key, route, text.Clip(name, 60))
			return nil
		}
		wrong = []*yaml.Node{dialect.Scalar(cmp.Or(subject, sign), name)}
	}
	choices := tr.routed(e, route, names)
	for i := range choices {
		if subject != nil || tr.skill != "" {
			choices[i].forbidden = dialect.List(value, append(dialect.Items(choices[i].forbidden), wrong...)...)
		}
	}
	return choices
}

// routes returns the skills of a list: those that are right, and those that are wrong.
func (tr *translator) routes(names *yaml.Node) (right, wrong []*yaml.Node) {
	for _, name := range dialect.Items(names) {
		switch r := dialect.ReadRoute(name, tr.isSkill); {
		case r.Skill == nil:
		case r.Should:
			right = append(right, r.Skill)
		default:
			wrong = append(wrong, r.Skill)
		}
	}
	return right, wrong
}

// routed returns the choices of an entry whose key lists skills; nil without one.
func (tr *translator) routed(e *yaml.Node, key string, names *yaml.Node) (choices []choice) {
	_, list := lookup(e, []string{key})
	right, wrong := tr.routes(names)
	if len(right) > 0 && len(right)+len(wrong) < len(dialect.Items(names)) {
		tr.Reportf(tr.Source, list, decode.Error, decode.CodeInvalidValue, "%s names a skill and the word for no skill", key)
		return nil
	}
	forbidden, acceptable := tr.forbidden(e), tr.names(e, "acceptable")
	if len(wrong) > 0 {
		forbidden = dialect.List(list, append(dialect.Items(forbidden), wrong...)...)
	}
	for _, name := range right {
		choices = append(choices, choice{should: true, skill: name, subject: name.Value, acceptable: acceptable, forbidden: forbidden})
	}
	if len(choices) > 0 || names == nil && len(list.Content) > 0 {
		return choices
	}
	if acceptable != nil {
		tr.Reportf(tr.Source, acceptable, decode.Error, decode.CodeInvalidValue, "acceptable needs a skill that should be used")
	}
	allowed := tr.names(e, "allowed_skills")
	switch {
	case allowed == nil && len(wrong) == 0:
		return []choice{{forbidden: forbidden}}
	case forbidden == nil:
		tr.Reportf(tr.Source, allowed, decode.Error, decode.CodeInvalidValue,
			"allowed_skills without a skill in %s needs forbidden_skills", key)
		return nil
	}
	// The agent may use a skill, so only those that are forbidden decide.
	items := dialect.Items(forbidden)
	c := choice{skill: items[0], subject: items[0].Value}
	if len(items) > 1 {
		c.forbidden = dialect.List(forbidden, items[1:]...)
	}
	return []choice{c}
}

// forbidden returns the skills that an entry forbids; nil for none.
func (tr *translator) forbidden(e *yaml.Node) *yaml.Node {
	return cmp.Or(tr.names(e, "should_not_trigger"), tr.names(e, "forbidden_skills"))
}

// choiceOf returns the choice that an entry expects. It reports an entry that expects none.
func (tr *translator) choiceOf(e, owner *yaml.Node) (c choice, ok bool) {
	subject, ok := tr.subjectOf(e)
	if !ok {
		return c, false
	}
	key, sign := signOf(e, tr.named)
	c.acceptable, c.forbidden = tr.names(e, "acceptable"), tr.forbidden(e)
	should, isSign := meaningOf(sign)
	isRouteKey := slices.Contains(routeKeys, key)
	switch {
	case sign == nil && isRoute(e): // no skill is expected
	case sign == nil:
		tr.Reportf(tr.Source, e, decode.Error, decode.CodeMissingField, "an entry needs should_trigger")
		return c, false
	case isSign && (!isRouteKey || !decode.IsText(sign)):
		if c.should = should; !tr.setSubject(&c, cmp.Or(subject, owner)) {
			return c, false
		}
		subject = cmp.Or(subject, owner)
	case decode.IsNull(sign): // no skill is expected
	case decode.IsText(sign) && sign.Value != "":
		r := dialect.ReadRoute(sign, tr.isSkill)
		if c.should, c.skill = r.Should, r.Skill; !r.Should && r.Skill != nil {
			subject = r.Skill
		}
	default:
		tr.Reportf(tr.Source, sign, decode.Error, decode.CodeWrongType, "%s must be true, false or the name of a skill, got %s", key, decode.Describe(sign))
		return c, false
	}
	if subject != nil && !tr.isNone(subject) {
		c.subject = subject.Value
	}
	if !c.should && c.acceptable != nil {
		tr.Reportf(tr.Source, c.acceptable, decode.Error, decode.CodeInvalidValue, "acceptable needs a skill that should be used")
		c.acceptable = nil
	}
	return c, true
}

// subjectOf returns the node with which an entry names the skill that it is about; nil for none. ok is false
// if that is no text, which it reports.
func (tr *translator) subjectOf(e *yaml.Node) (subject *yaml.Node, ok bool) {
	key, n := lookup(e, subjectKeys)
	if n != nil && !decode.IsText(n) {
		tr.Reportf(tr.Source, n, decode.Error, decode.CodeWrongType, "%s must name a skill, got %s", key, decode.Describe(n))
		return nil, false
	}
	if n == nil || n.Value == "" {
		return nil, true
	}
	return n, true
}

// setSubject sets the skill that an entry with a sign is about. It reports an entry that should use no skill,
// and returns false.
func (tr *translator) setSubject(c *choice, subject *yaml.Node) bool {
	switch {
	case subject == nil:
	case !tr.isNone(subject):
		c.skill, c.subject = subject, subject.Value
	case c.should:
		tr.Reportf(tr.Source, subject, decode.Error, decode.CodeInvalidValue, "the entry names no skill that should be used, but should_trigger is true")
		return false
	}
	return true
}

// namesSkills reports whether each entry that asks for the use of a skill names that skill.
func (tr *translator) namesSkills() bool {
	if tr.parts.hasLists() || len(tr.parts.entries) > 0 {
		lacks := func(e *yaml.Node) bool {
			_, subject := lookup(e, subjectKeys)
			return !decode.IsText(subject) || subject.Value == ""
		}
		return !slices.ContainsFunc(tr.parts.positive, lacks) && !slices.ContainsFunc(tr.parts.entries, func(e *yaml.Node) bool {
			_, sign := signOf(e, tr.named)
			should, _ := meaningOf(sign)
			_, route := lookup(e, routeKeys)
			return should && route == nil && lacks(e)
		})
	}
	return true
}

// names returns the skills that a key of an entry names, a text or a list, as a list; nil for none.
func (tr *translator) names(e *yaml.Node, key string) *yaml.Node {
	n := decode.Follow(decode.Lookup(e, key))
	if n == nil || decode.IsNull(n) {
		return nil
	}
	items := dialect.Items(n)
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	}
	list := dialect.List(n)
	for _, item := range items {
		if !decode.IsText(item) || item.Value == "" {
			tr.Reportf(tr.Source, item, decode.Error, decode.CodeWrongType, "%s must name skills, got %s", key, decode.Describe(item))
			continue
		}
		list.Content = append(list.Content, dialect.Scalar(item, item.Value))
	}
	if n.Kind == yaml.MappingNode {
		tr.Reportf(tr.Source, n, decode.Error, decode.CodeWrongType, "%s must be a list of skills, got a map", key)
	}
	if len(list.Content) == 0 {
		return nil
	}
	return list
}

// add adds an entry. Of entries with the same query that are about the same skill, the last one counts, as in
// run_eval.py.
func (tr *translator) add(e *yaml.Node, c choice) {
	text := dialect.TextOf(e)
	node := e
	if e.Kind == yaml.MappingNode {
		_, node = lookup(e, promptKeys)
		text = dialect.TextOf(node)
		key, _ := signOf(e, tr.named)
		tr.warnUnknown(e, setOf(slices.Concat([]string{key}, promptKeys, signKeys, routeKeys, subjectKeys, reasonKeys, choiceKeys, ignoredKeys)))
	}
	if text == "" {
		tr.leaveOut(e)
		return
	}
	id := key{cmp.Or(c.subject, tr.skill), text}
	p := tr.prompts[id]
	if p == nil {
		p = &prompt{}
		tr.prompts[id] = p
		tr.order = append(tr.order, p)
	} else {
		tr.Reportf(tr.Source, node, decode.Warning, decode.CodeDuplicateID, "line %d has the same query; the last one counts", p.node.Line)
	}
	m := dialect.NewMap(e)
	m.Set("prompt", dialect.Scalar(node, text))
	if c.skill != nil && c.skill.Value != tr.skill {
		m.Set("skill", dialect.Scalar(c.skill, c.skill.Value))
		tr.others = true
	}
	tr.others = tr.others || c.acceptable != nil || c.forbidden != nil
	m.Set("acceptable_skills", c.acceptable)
	m.Set("forbidden_skills", c.forbidden)
	if _, reason := lookup(e, reasonKeys); decode.IsText(reason) {
		m.Set("reason", dialect.Scalar(reason, reason.Value))
	}
	p.node, p.should = m.Node, c.should
}

func (tr *translator) leaveOut(e *yaml.Node) {
	tr.Reportf(tr.Source, e, decode.Warning, decode.CodeMissingPrompt, "this entry has no query and is left out")
}

func (tr *translator) addPrompts() {
	for _, l := range []struct {
		key    string
		should bool
	}{{"should_trigger_prompts", true}, {"should_not_trigger_prompts", false}} {
		list := dialect.List(tr.root)
		for _, p := range tr.order {
			if p.should == l.should {
				list.Content = append(list.Content, p.node)
			}
		}
		if len(list.Content) > 0 {
			tr.tests.Set(l.key, list)
		}
	}
}

func (tr *translator) addThreshold() {
	threshold, at := defaultThreshold, (*yaml.Node)(nil)
	if key, n := lookup(tr.root, []string{"pass_threshold", "threshold"}); n != nil {
		var given float64
		if n.Decode(&given) != nil || given <= 0 || given > 1 {
			tr.Reportf(tr.Source, n, decode.Error, decode.CodeInvalidValue, "%s must be above 0 and at most 1, got %s", key, decode.Describe(n))
			return
		}
		threshold, at = given, n
	}
	tr.tests.Set("threshold", dialect.Scalar(at, threshold))
}
