package skillevals

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// translator translates one file.
type translator struct {
	*dialect.Translation
	root    *yaml.Node
	suite   dialect.Map
	skill   string // name; empty if it is unknown
	isSkill func(name string) bool
	places  []string        // of the files of cases
	ids     map[string]int  // of the cases until now, with the last number that a repetition got
	unknown map[string]bool // keys that were reported
	items   int             // statements until now
	needed  needed          // by each case
	words   *yaml.Node      // the most words of an answer, or nil
	// collection are the places of the skills that agents get if skill only labels the suite; nil otherwise.
	collection []string
}

// fileKeys are the keys of a file besides its cases.
var fileKeys = []string{"skill_name", "skill", "agent_name", "name", "description", "version", "schema", "schema_version", "updated", "$schema", "note", "notes", "comment", "_comment"}

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, root: normal(t.Source.Root), suite: dialect.NewMap(t.Source.Root),
		ids: map[string]int{}, unknown: map[string]bool{},
	}
	tr.translateHead()
	t.Suite = tr.suite.Node
	if t.HeadOnly {
		return
	}
	tr.places = tr.findPlaces()
	tr.needed = tr.neededOf()
	tr.words = tr.wordsOf()
	tasks := dialect.List(tr.root)
	tr.isSkill = t.SkillNames(tr.skill)
	tests := newTriggers(tr.root)
	for i, c := range casesOf(tr.root) {
		if c.Kind != yaml.MappingNode {
			tr.Reportf(t.Source, c, decode.Error, decode.CodeWrongType, "a case must be a map with a prompt, got %s", decode.Describe(c))
			continue
		}
		if key := leftOutBy(c); key != nil {
			tr.Reportf(t.Source, decode.Lookup(c, key.Value), decode.Warning, decode.CodeNoEffect, "this case is left out, because its key %s says so", key.Value)
			continue
		}
		cs := &caseTranslator{translator: tr, node: c, number: i + 1, read: map[string]bool{}}
		cs.addTrigger(&tests)
		cs.addExpectedSkills(&tests)
		if cs.isTrigger && !cs.alsoJudged && !cs.hasChecks() {
			cs.warnUnknown()
			continue
		}
		tasks.Content = append(tasks.Content, cs.translate())
		cs.warnUnknown()
	}
	if len(tasks.Content) > 0 {
		tr.suite.Set("tasks", tasks)
	}
	if tests.Len() > 0 {
		if tests.others && tr.collection == nil {
			places, _ := tr.UsualSkills()
			tr.setSkills(tr.root, places)
		}
		tr.suite.Set("trigger_tests", tests.Node)
	}
}

// translateHead sets the name, the skill and the settings of the suite.
func (tr *translator) translateHead() {
	var at *yaml.Node
	for _, key := range []string{"skill_name", "skill"} {
		if n := decode.Follow(decode.Lookup(tr.root, key)); tr.skill == "" && decode.IsText(n) {
			tr.skill, at = n.Value, n
		}
	}
	label := tr.skill
	dir, found := tr.SkillDir(tr.skill)
	if found {
		tr.skill, _ = tr.SkillIn(dir) // as agents know it
		label = tr.skill
	} else if !slices.ContainsFunc(casesOf(tr.root), needsSkill) {
		if places, ok := tr.LabelPlaces(tr.skill, at); ok {
			tr.skill, tr.collection = "", places
		} else if tr.skill == "" && slices.ContainsFunc(casesOf(tr.root), namesSkill) {
			tr.collection, _ = tr.UsualSkills()
		}
	}
	agent := dialect.TextOf(decode.Lookup(tr.root, "agent_name"))
	name := firstOf(label, agent, dialect.TextOf(decode.Lookup(tr.root, "name")),
		filepath.Base(filepath.Dir(filepath.Dir(tr.Source.Path))))
	tr.suite.Set("name", dialect.Scalar(at, name))
	for _, key := range []string{"description", "version"} {
		if n := decode.Follow(decode.Lookup(tr.root, key)); n != nil && n.Kind == yaml.ScalarNode && !decode.IsNull(n) {
			tr.suite.Set(key, dialect.Scalar(n, n.Value))
		}
	}
	if tr.skill != "" {
		tr.suite.Set("skill", dialect.Scalar(at, tr.skill))
	}
	if found && tr.skill != "" || tr.collection != nil {
		// Both definitions run each case with and without the skill.
		tr.suite.Set("baseline", dialect.Scalar(at, true))
	}
	tr.setSkills(at, tr.collection)
	tr.suite.Set("literal", dialect.Scalar(nil, true))
	if tr.root.Kind == yaml.MappingNode && !isCase(tr.root) && !tr.HeadOnly {
		_, lists := listsOf(tr.root)
		tr.warnUnknown(tr.root, slices.Concat(fileKeys, lists, thresholdKeys))
		if n := decode.Lookup(tr.root, "agent_name"); n != nil {
			tr.Reportf(tr.Source, n, decode.Warning, decode.CodeNoEffect, "agent_name only names the suite; choose the agent with --agent")
		}
	}
}

// setSkills sets the places of the skills that agents get besides the skill of the file.
func (tr *translator) setSkills(at *yaml.Node, places []string) {
	if len(places) > 0 {
		config := dialect.NewMap(at)
		config.Set("skill_directories", dialect.Texts(at, places...))
		tr.suite.Set("config", config.Node)
	}
}

// warnUnknown reports keys of a map that have no effect, each once in the file.
func (tr *translator) warnUnknown(n *yaml.Node, known []string) {
	for _, p := range dialect.Pairs(n) {
		key := p.Key.Value
		if slices.Contains(known, key) || tr.unknown[key] {
			continue
		}
		tr.unknown[key] = true
		tr.Reportf(tr.Source, p.Key, decode.Warning, decode.CodeUnknownKey, "key %q is unknown in skill evals and has no effect", text.Clip(key, 60))
	}
}

// caseTranslator translates one case.
type caseTranslator struct {
	*translator
	node      *yaml.Node
	number    int             // from 1
	read      map[string]bool // keys that were translated
	isTrigger bool
	// alsoJudged means that a trigger test is also a case for a judge, because it has an expected output.
	alsoJudged bool
	promptKey  string // of a prompt that is a text
	material   string // after the prompt
	task       dialect.Map
	inputs     dialect.Map
	blocked    []string // reasons why the case cannot be carried out
}

// get returns the value of a key, and marks the key as known; nil if it is absent or null.
func (c *caseTranslator) get(key string) *yaml.Node {
	n := decode.Follow(decode.Lookup(c.node, key))
	if n != nil {
		c.read[key] = true
	}
	if decode.IsNull(n) {
		return nil
	}
	return n
}

// labelKeys are keys of cases that describe a case to people.
var labelKeys = []string{"tags", "category", "area", "notes", "note", "comment", "_comment", "reason", "rationale", "type", "difficulty", "priority"}

func (c *caseTranslator) warnUnknown() { c.translator.warnUnknown(c.node, c.known()) }

// known returns the keys that were translated, and those that describe the case.
func (c *caseTranslator) known() []string {
	return slices.Concat(slices.Collect(maps.Keys(c.read)), labelKeys, caseSkillKeys, leftOutKeys, enabledKeys)
}

// blockUnchecked blocks a case that nothing checks, because such a case would always pass. It names the keys
// that waza does not know, which can be its checks.
func (c *caseTranslator) blockUnchecked() {
	var unknown []string
	for known, pairs := c.known(), dialect.Pairs(c.node); len(pairs) > 0; pairs = pairs[1:] {
		if key := pairs[0].Key.Value; !slices.Contains(known, key) {
			unknown = append(unknown, strconv.Quote(text.Clip(key, 60)))
		}
	}
	reason := "the case checks nothing; add expectations or expected_output"
	if len(unknown) > 0 {
		reason = "the case checks nothing that waza knows; its unknown keys are " + text.Clip(strings.Join(unknown, ", "), 300)
	}
	c.blocked = append(c.blocked, reason)
	c.Reportf(c.Source, c.node, decode.Warning, decode.CodeNothingChecked, "case %q: %s; its trials end in an error",
		text.Clip(dialect.TextOf(c.task.Get("id")), 60), reason)
}

func (c *caseTranslator) translate() *yaml.Node {
	c.task, c.inputs = dialect.NewMap(c.node), dialect.NewMap(c.node)
	c.addID()
	for _, key := range []string{"name", "eval_name", "title"} {
		if n := c.get(key); n != nil && c.task.Get("name") == nil {
			c.task.Set("name", dialect.Scalar(n, dialect.TextOf(n)))
		}
	}
	if n := c.get("description"); decode.IsText(n) {
		c.task.Set("description", dialect.Scalar(n, n.Value))
	}
	if n := c.get("tags"); n != nil && len(dialect.Items(n)) > 0 {
		tags := dialect.List(n)
		for _, item := range dialect.Items(n) {
			if tag := dialect.TextOf(item); tag != "" {
				tags.Content = append(tags.Content, dialect.Scalar(item, tag))
			}
		}
		c.task.Set("tags", tags)
	}
	prompt, at := c.prompt()
	named := c.addFiles()
	if c.material != "" {
		prompt += "\n\n" + c.material
	}
	if len(named) > 0 {
		// Both definitions give the agent the list, and neither says where it sees the files.
		prompt += inputFiles(named)
	}
	c.inputs.Set("prompt", dialect.Scalar(at, prompt))
	graders := c.graders()
	c.addWordLimit()
	c.task.Set("inputs", c.inputs.Node)
	if len(graders) > 0 {
		c.task.Set("graders", dialect.List(c.node, graders...))
	}
	c.addThreshold(graders)
	if len(graders) == 0 && len(c.blocked) == 0 {
		c.blockUnchecked()
	}
	if len(c.blocked) > 0 {
		c.task.Set("blocked", dialect.Scalar(c.node, strings.Join(c.blocked, "; ")))
	}
	return c.task.Node
}

// inputFiles returns the text after a prompt that names the input files.
func inputFiles(names []string) string { return "\n\nInput files:\n- " + strings.Join(names, "\n- ") }

// addID sets the id: that of the case, else its name, else its number. A repeated id gets a number.
func (c *caseTranslator) addID() {
	at, id := c.node, ""
	for _, key := range []string{"id", "eval_id", "name", "eval_name"} {
		if n := c.get(key); n != nil && dialect.TextOf(n) != "" {
			at, id = n, dialect.TextOf(n)
			break
		}
	}
	if id == "" {
		id = fmt.Sprint(c.number)
	}
	if c.ids[id] > 0 {
		first := id
		for c.ids[id] > 0 {
			c.ids[first]++
			id = fmt.Sprintf("%s-%d", first, c.ids[first])
		}
		c.Reportf(c.Source, at, decode.Warning, decode.CodeDuplicateID, "two cases have the id %q; this one becomes %q",
			text.Clip(first, 60), text.Clip(id, 70))
	}
	c.ids[id] = 1
	c.task.Set("id", dialect.Scalar(at, id))
}

// prompt returns the prompt and its node. Further prompts become follow-up prompts.
func (c *caseTranslator) prompt() (string, *yaml.Node) {
	for _, key := range promptKeysOf(c.node) {
		n := c.get(key)
		switch {
		case n == nil:
			continue
		case n.Kind == yaml.SequenceNode:
			if first := c.turns(n); first != nil {
				return dialect.TextOf(first), first
			}
			c.block(n, fmt.Sprintf("line %d: %s has no message of the user", n.Line, key), "")
			return "", n
		case decode.IsText(n):
			c.promptKey = key
			c.readCopies(n.Value)
			c.readTurns(n)
			return n.Value, n
		}
		c.Reportf(c.Source, n, decode.Error, decode.CodeWrongType, "%s must be a text or a list of texts, got %s", key, decode.Describe(n))
		return "", n
	}
	if n := c.get("prompt_file"); n != nil {
		return c.promptFile(n), n
	}
	if n := c.get("command"); n != nil {
		args := c.get("args")
		words := []string{dialect.TextOf(n)}
		if args != nil && args.Kind == yaml.ScalarNode {
			words = append(words, args.Value)
		}
		for _, item := range dialect.Items(args) {
			words = append(words, dialect.TextOf(item))
		}
		return strings.Join(words, " "), n
	}
	c.Reportf(c.Source, c.node, decode.Warning, decode.CodeMissingPrompt, "case %q has no prompt, so its trials end in an error",
		text.Clip(dialect.TextOf(c.task.Get("id")), 60))
	c.blocked = append(c.blocked, "the case has no prompt")
	return "", c.node
}

// readCopies marks the other keys of the prompt as known if they repeat it.
func (c *caseTranslator) readCopies(prompt string) {
	for _, key := range promptKeysOf(c.node) {
		if textIn(c.node, key) == prompt {
			c.read[key] = true
		}
	}
}

// readTurns reads lists of messages beside a prompt: a conversation that starts with it, or else nobody knows their
// order.
func (c *caseTranslator) readTurns(prompt *yaml.Node) {
	for _, key := range turnKeys {
		n := decode.Follow(decode.Lookup(c.node, key))
		if n == nil || n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			continue
		}
		c.read[key] = true
		if first := c.turns(n); first == nil || strings.TrimSpace(first.Value) != strings.TrimSpace(prompt.Value) {
			c.inputs.Remove("follow_up_prompts")
			c.block(n, fmt.Sprintf("line %d: the case has a prompt and %s that do not start with it, and waza does not know their order", n.Line, key), "")
		}
	}
}

// messageKeys are the keys of the text of a message.
var messageKeys = []string{"content", "prompt", "text", "query", "input", "user", "message"}

// turns returns the first message of a list, and sets the others as follow-up prompts. A message is a
// text, or a map with the role user.
func (c *caseTranslator) turns(list *yaml.Node) *yaml.Node {
	var texts []*yaml.Node
	for _, item := range dialect.Items(list) {
		n := item
		if item.Kind == yaml.MappingNode {
			if role := dialect.TextOf(decode.Lookup(item, "role")); role != "" && !slices.Contains([]string{"user", "human"}, strings.ToLower(role)) {
				c.Reportf(c.Source, item, decode.Warning, decode.CodeNoEffect, "a message of the role %q is not sent", text.Clip(role, 40))
				continue
			}
			for _, key := range messageKeys {
				if n = decode.Follow(decode.Lookup(item, key)); n != nil {
					break
				}
			}
			c.translator.warnUnknown(item, slices.Concat(messageKeys, labelKeys, []string{"role", "id", "turn", "turn_id"}))
		}
		if decode.IsText(n) {
			texts = append(texts, n)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if len(texts) > 1 {
		more := dialect.List(texts[1])
		for _, n := range texts[1:] {
			more.Content = append(more.Content, dialect.Scalar(n, n.Value))
		}
		c.inputs.Set("follow_up_prompts", more)
	}
	return texts[0]
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func numberOf(n *yaml.Node) (float64, bool) {
	if n = decode.Follow(n); n == nil || n.Kind != yaml.ScalarNode {
		return 0, false
	}
	var f float64
	err := n.Decode(&f)
	return f, err == nil && n.ShortTag() != "!!str"
}
