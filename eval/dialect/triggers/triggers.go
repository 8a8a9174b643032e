// Package triggers translates trigger sets: prompts with the note whether an agent should use a skill
// for them. skills/skill-creator of anthropics/skills defines the format: a list of
// {"query": TEXT, "should_trigger": BOOLEAN}. The package also accepts the forms that other authors
// gave their files.
package triggers

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

var fileName = text.Pattern(`^(trigger[-_]?evals?|evals?[-_]?triggers?|eval_set|routing([-_].*)?)\.json$`)

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name:       "triggers",
		Named:      func(file string) bool { return fileName().MatchString(path.Base(file)) },
		Recognizes: recognizes,
		Home:       func(file string) string { return filepath.Dir(filepath.Dir(file)) },
		Translate:  translate,
	}
}

// Keys of a file and of an entry.
var (
	listKeys    = []string{"cases", "queries", "evals", "tests", "entries"}
	promptKeys  = []string{"query", "prompt", "input"}
	signKeys    = []string{"should_trigger", "shouldTrigger"}
	routeKeys   = []string{"expected_skill", "expected_primary"}
	reasonKeys  = []string{"reason", "rationale", "note", "_comment"}
	ignoredKeys = []string{"id", "name", "tags", "area", "category", "notes", "comment", "acceptable", "should_not_trigger"}
	fileKeys    = []string{"skill_name", "skill", "name", "description", "version", "schema", "$schema", "pass_threshold", "threshold", "_comment", "notes"}
)

// statementKeys are keys of skill evals. A file with them is not only a trigger set.
var statementKeys = []string{"assertions", "expectations", "checks", "expected_behavior"}

func entriesOf(root *yaml.Node) []*yaml.Node { return dialect.Entries(root, listKeys) }

func lookup(n *yaml.Node, keys []string) (key string, value *yaml.Node) {
	for _, key := range keys {
		if v := decode.Follow(decode.Lookup(n, key)); v != nil && !decode.IsNull(v) {
			return key, v
		}
	}
	return "", nil
}

func recognizes(root *yaml.Node) bool {
	if positive, _ := twoLists(root); positive != nil {
		return true
	}
	entries := entriesOf(root)
	for _, e := range entries {
		_, prompt := lookup(e, promptKeys)
		_, sign := lookup(e, slices.Concat(signKeys, routeKeys))
		_, statements := lookup(e, statementKeys)
		if !decode.IsText(prompt) || sign == nil || len(dialect.Items(statements)) > 0 {
			return false
		}
	}
	return len(entries) > 0
}

// twoLists returns the lists of a file that has one for each sign.
func twoLists(root *yaml.Node) (positive, negative *yaml.Node) {
	positive, negative = decode.Follow(decode.Lookup(root, "should_trigger")), decode.Follow(decode.Lookup(root, "should_not_trigger"))
	if positive == nil || negative == nil || positive.Kind != yaml.SequenceNode || negative.Kind != yaml.SequenceNode {
		return nil, nil
	}
	return positive, negative
}

// translator translates one file.
type translator struct {
	*dialect.Translation
	root    *yaml.Node
	skill   string
	tests   dialect.Map
	tasks   *yaml.Node
	unknown map[string]bool
	prompts map[string]*prompt
	order   []*prompt
}

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
		Translation: t, root: decode.Follow(t.Source.Root), tests: dialect.NewMap(t.Source.Root), tasks: dialect.List(t.Source.Root),
		unknown: map[string]bool{}, prompts: map[string]*prompt{},
	}
	suite := dialect.NewMap(tr.root)
	at := tr.findSkill()
	name := tr.skill
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
		tr.warnUnknown(tr.root, slices.Concat(fileKeys, listKeys, signKeys, []string{"should_not_trigger"}))
	}
	tr.addAll()
	tr.addPrompts()
	if len(tr.tasks.Content) > 0 {
		suite.Set("tasks", tr.tasks)
	}
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

func (tr *translator) warnUnknown(n *yaml.Node, known []string) {
	for _, p := range dialect.Pairs(n) {
		if key := p.Key.Value; !slices.Contains(known, key) && !tr.unknown[key] {
			tr.unknown[key] = true
			tr.Reportf(tr.Source, p.Key, decode.Warning, decode.CodeUnknownKey, "key %q is unknown in trigger sets and has no effect", text.Clip(key, 60))
		}
	}
}

func (tr *translator) addAll() {
	if positive, negative := twoLists(tr.root); positive != nil {
		for _, e := range dialect.Items(positive) {
			tr.add(e, true)
		}
		for _, e := range dialect.Items(negative) {
			tr.add(e, false)
		}
		return
	}
	for i, e := range entriesOf(tr.root) {
		key, sign := lookup(e, slices.Concat(signKeys, routeKeys))
		switch {
		case sign == nil:
			tr.Reportf(tr.Source, e, decode.Error, decode.CodeMissingField, "an entry needs should_trigger")
		case sign.ShortTag() == "!!bool":
			var should bool
			_ = sign.Decode(&should) // a boolean decodes
			tr.add(e, should)
		case decode.IsText(sign) && tr.skill != "" && sign.Value == tr.skill:
			tr.add(e, true)
		case decode.IsText(sign):
			tr.addRoute(i, e, key, sign)
		default:
			tr.Reportf(tr.Source, sign, decode.Error, decode.CodeWrongType, "%s must be true, false or the name of a skill, got %s", key, decode.Describe(sign))
		}
	}
}

// add adds an entry. Of entries with the same text, the last sign counts, as in run_eval.py.
func (tr *translator) add(e *yaml.Node, should bool) {
	text := dialect.TextOf(e)
	node := e
	if e.Kind == yaml.MappingNode {
		_, node = lookup(e, promptKeys)
		text = dialect.TextOf(node)
		tr.warnUnknown(e, slices.Concat(promptKeys, signKeys, routeKeys, reasonKeys, ignoredKeys))
	}
	if text == "" {
		tr.Reportf(tr.Source, e, decode.Error, decode.CodeMissingPrompt, "an entry needs a query")
		return
	}
	if first := tr.prompts[text]; first != nil {
		tr.Reportf(tr.Source, node, decode.Warning, decode.CodeDuplicateID, "line %d has the same query; the sign of the last one counts", first.node.Line)
		first.should = should
		return
	}
	m := dialect.NewMap(e)
	m.Set("prompt", dialect.Scalar(node, text))
	if _, reason := lookup(e, reasonKeys); decode.IsText(reason) {
		m.Set("reason", dialect.Scalar(reason, reason.Value))
	}
	p := &prompt{m.Node, should}
	tr.prompts[text] = p
	tr.order = append(tr.order, p)
}

// addRoute adds an entry that names the skill which agents should choose among several.
func (tr *translator) addRoute(i int, e *yaml.Node, key string, sign *yaml.Node) {
	_, node := lookup(e, promptKeys)
	reason := fmt.Sprintf("%s names the skill %q; waza cannot decide yet which of several skills an agent chooses", key, text.Clip(sign.Value, 60))
	tr.Reportf(tr.Source, sign, decode.Warning, decode.CodeNoEffect, "%s, so trials of this entry end in an error", reason)
	task, inputs := dialect.NewMap(e), dialect.NewMap(e)
	task.Set("id", dialect.Scalar(e, fmt.Sprintf("route-%d", i+1)))
	inputs.Set("prompt", dialect.Scalar(node, dialect.TextOf(node)))
	task.Set("inputs", inputs.Node)
	task.Set("blocked", dialect.Scalar(sign, reason))
	tr.tasks.Content = append(tr.tasks.Content, task.Node)
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
