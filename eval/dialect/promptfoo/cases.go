package promptfoo

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// testKeys and optionKeys are the keys of a test, and those of its options, that the translation
// handles or that change no verdict.
var (
	testKeys = []string{"description", "vars", "assert", "options", "threshold", "metadata", "prompts", "type"}

	optionKeys = []string{
		"prefix", "suffix", "provider", "transform", "postprocess", "disableVarExpansion", "disableConversationVar", "disableDefaultAsserts", "runSerially",
		"rubricPrompt", "factuality", "storeOutputAs", "transformVars",
	}
)

// addTasks adds the tasks: one for each test, prompt and combination of the test's variables.
func (tr *translator) addTasks() {
	tr.standard = tr.defaultTest()
	prompts, tests := tr.promptsOrDefault(), tr.tests()
	for _, t := range append([]part{tr.standard}, tests...) {
		if name := t.get("options").get("storeOutputAs").text(); name != "" {
			tr.answers[name] = true
		}
	}
	own := dialect.List(tr.root)
	for _, tr.group = range tr.groups {
		tr.ids, tr.followed = map[string]bool{}, map[string]bool{}
		if !tr.addGroup(prompts, tests, own) {
			break
		}
	}
	if len(own.Content) > 0 {
		tr.suite.Set("tasks", own)
	}
}

// promptsOrDefault returns the prompts of the file, or one that is the variable prompt if it has none.
func (tr *translator) promptsOrDefault() []prompt {
	if n := decode.Lookup(tr.root, "prompts"); n == nil || decode.IsNull(n) {
		return []prompt{{at: tr.root, text: "{{prompt}}"}}
	}
	return tr.prompts()
}

// addGroup adds the tasks of the group. Those of the configuration are added to own. ok is false if there are too many.
func (tr *translator) addGroup(prompts []prompt, tests []part, own *yaml.Node) (ok bool) {
	if prompts = chosen(prompts, tr.chosenBy); len(prompts) == 0 && tr.chosenBy.Node != nil {
		tr.cannotAt(tr.chosenBy, "prompts of a provider: no prompt of the file has such a name")
	}
	for i, t := range tests {
		var nodes []*yaml.Node
		if e := tr.pending[t.Node]; e != nil {
			nodes = []*yaml.Node{tr.pendingTask(t, e)}
		} else {
			nodes = tr.test(t, i+1, prompts)
		}
		if tr.tasks += len(nodes); tr.tasks > maxCases {
			tr.cannotAt(t, "more than %d cases", maxCases)
			return false
		}
		if tr.exceeded() {
			tr.cannotAt(t, "the configuration: %v", errExpanded)
			return false
		}
		for _, n := range nodes {
			if len(tr.cells) > 0 {
				dialect.Map{Node: n}.Set("cells", dialect.Texts(n, tr.cells...))
			}
			if t.src == tr.Source {
				own.Content = append(own.Content, n)
			} else {
				tr.Tasks = append(tr.Tasks, dialect.Task{Source: t.src, Node: n})
			}
		}
	}
	return true
}

// defaultTest returns the test whose variables, assertions and options all tests have.
func (tr *translator) defaultTest() part {
	n := decode.Follow(decode.Lookup(tr.root, "defaultTest"))
	p := part{n, tr.Source}
	if decode.IsText(n) {
		src, err := tr.parse(tr.path(n.Value))
		if err != nil {
			tr.cannot(n, "defaultTest: %v", err)
			return part{nil, tr.Source}
		}
		p = part{decode.Follow(src.Root), src}
	}
	for _, pair := range dialect.Pairs(p.Node) {
		key, at := text.Clip(pair.Key.Value, 60), part{pair.Key, p.src}
		switch {
		case slices.Contains(testKeys, pair.Key.Value) || decode.IsNull(pair.Value):
		case slices.Contains(foreignKeys, pair.Key.Value):
			tr.cannotAt(at, "the key defaultTest.%s", key)
		default:
			tr.warn(at, "defaultTest.%s has no effect: promptfoo has no such key of a test", key)
		}
	}
	return p
}

// caseTranslator translates one combination of a test, its variables and a prompt.
type caseTranslator struct {
	*translator
	test     part
	options  map[string]part
	vars     map[string]any
	order    []string // the names of vars, in the order of the configuration
	render   *renderer
	prompt   string
	blocked  []string
	optional bool // the assertion has the weight 0

	transforms []string // functions that change the output before all assertions
	code       bool     // some code gets a context
	incomplete bool     // code that makes variables did not run
}

// block notes that nobody can run the case. The reason is reported as a warning, because all other
// cases can be run.
func (c *caseTranslator) block(at part, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if c.optional {
		c.warn(at, "%s; the assertion has the weight 0, so verdicts do not change", reason)
		return
	}
	c.warn(at, "%s", inError(reason))
	c.addReason(reason)
}

func (c *caseTranslator) addReason(reason string) {
	if !slices.Contains(c.blocked, reason) {
		c.blocked = append(c.blocked, reason)
	}
}

// test returns the tasks of a test.
func (tr *translator) test(t part, number int, prompts []prompt) (tasks []*yaml.Node) {
	options := map[string]part{}
	for _, p := range []part{tr.standard, t} {
		for _, pair := range dialect.Pairs(decode.Lookup(p.Node, "options")) {
			options[pair.Key.Value] = part{pair.Value, p.src}
		}
	}
	expand := options["disableVarExpansion"].text() != "true"
	vars := tr.addVars(nil, tr.standard.get("vars"), expand)
	vars = tr.addVars(vars, t.get("vars"), expand)
	if tr.exceeded() {
		return nil
	}
	if code := options["transformVars"]; code.Node != nil && !decode.IsNull(code.Node) {
		vars = tr.transformVars(vars, code, expand, fmt.Sprint(number))
	}
	prompts = chosen(prompts, firstGiven(t.get("prompts"), tr.standard.get("prompts")))
	count := len(prompts)
	for _, v := range vars {
		if count *= max(1, len(v.values)); count > maxCases {
			tr.cannotAt(t, "more than %d cases", maxCases)
			return nil
		}
	}
	id := firstOf(t.get("description").text(), fmt.Sprint(number))
	for at := make([]int, len(vars)); at != nil; at = nextCombination(at, vars) {
		for k, p := range prompts {
			c := &caseTranslator{translator: tr, test: t, options: options, vars: map[string]any{}}
			name := id
			for i, v := range vars {
				c.order = append(c.order, v.name)
				if v.reason != "" {
					c.block(t, "%s", v.reason)
				}
				if v.fault != nil {
					c.incomplete = true
					c.blockFor(options["transformVars"], v.fault)
				}
				if len(v.values) > 0 {
					c.vars[v.name] = v.values[at[i]]
				}
				if len(v.values) > 1 {
					name += fmt.Sprintf(" [%s=%s]", v.name, text.Clip(textOf(c.vars[v.name]), 40))
				}
			}
			if len(prompts) > 1 {
				name += fmt.Sprintf(" [%s]", firstOf(p.label, fmt.Sprintf("prompt %d", k+1)))
			}
			if tasks = append(tasks, c.task(name, p)); tr.exceeded() {
				return nil
			}
		}
	}
	return tasks
}

// foreignKeys are the keys of a test that promptfoo knows and that waza cannot honor.
var foreignKeys = []string{"provider", "providers", "providerOutput", "assertScoringFunction", "extensions"}

// checkKeys blocks the case because of keys that waza cannot honor. promptfoo ignores those that it does not know.
func (c *caseTranslator) checkKeys() {
	for _, pair := range dialect.Pairs(c.test.Node) {
		key, at := text.Clip(pair.Key.Value, 60), part{pair.Key, c.test.src}
		switch {
		case slices.Contains(testKeys, pair.Key.Value) || decode.IsNull(pair.Value):
		case slices.Contains(foreignKeys, pair.Key.Value):
			c.block(at, "waza cannot translate the key %s", key)
		default:
			c.warn(at, "%s has no effect: promptfoo has no such key of a test", key)
		}
	}
}

// nextCombination returns the following index of each variable's value; nil after the last. The last
// variable changes fastest.
func nextCombination(at []int, vars []variable) []int {
	at = slices.Clone(at)
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < len(vars[i].values) {
			return at
		}
		at[i] = 0
	}
	return nil
}

// chosen returns the prompts with the names that a test or a provider lists; all if it lists none.
func chosen(prompts []prompt, names part) []prompt {
	wanted := names.items()
	if len(wanted) == 0 {
		return prompts
	}
	return slices.DeleteFunc(slices.Clone(prompts), func(p prompt) bool {
		return !slices.ContainsFunc(wanted, func(name part) bool {
			names := p.names
			if len(names) == 0 {
				names = []string{p.text}
			}
			return name.text() != "" && slices.ContainsFunc(names, func(n string) bool {
				matched, err := path.Match(name.text(), n)
				return n == name.text() || err == nil && matched || strings.HasPrefix(n, name.text()+":")
			})
		})
	})
}

// task returns the task of a case.
func (c *caseTranslator) task(id string, p prompt) *yaml.Node {
	c.checkKeys()
	for _, p := range []part{c.standard.get("options"), c.test.get("options")} {
		if p.Node != nil && p.Kind != yaml.MappingNode && !decode.IsNull(p.Node) {
			c.block(p, "options must be a map, got %s", decode.Describe(p.Node))
		}
	}
	task := dialect.NewMap(c.test.Node)
	task.Set("id", dialect.Scalar(c.test.Node, c.unique(id)))
	if description := c.test.get("description"); description.Node != nil {
		task.Set("id", dialect.Scalar(description.Node, task.Get("id").Value))
	}
	complete := c.runVariables(c.order, p)
	if p.program != nil && p.reason == "" {
		p = c.withText(p, complete)
	}
	resolve(c.vars, c.budget)
	c.render = &renderer{vars: c.vars, env: c.env, budget: c.budget, unknown: c.unknownVariable}
	c.startConversation(p)
	at := c.place(part{p.at, c.Source})
	r := c.requestOf(p)
	c.prompt = r.user
	inputs := dialect.NewMap(at)
	inputs.Set("prompt", dialect.Scalar(at, r.user))
	if r.system != "" {
		inputs.Set("system_prompt", dialect.Scalar(at, r.system))
	}
	if len(r.history) > 0 {
		history := dialect.List(at)
		for _, m := range r.history {
			earlier := dialect.NewMap(at)
			earlier.Set("role", dialect.Scalar(at, m.Role))
			earlier.Set("text", dialect.Scalar(at, textOf(m.Content)))
			history.Content = append(history.Content, earlier.Node)
		}
		inputs.Set("history", history)
	}
	task.Set("inputs", inputs.Node)
	if graders := c.graders(); len(graders) > 0 {
		task.Set("graders", dialect.List(c.test.Node, graders...))
	}
	if values := c.taskContext(); (c.code || c.usesContext) && c.spend(sizeOf(values)) {
		inputs.Set("context", nodeOf(at, values))
	}
	if threshold, ok := c.threshold(c.scoreThreshold()); ok {
		task.Set("score_threshold", dialect.Scalar(c.test.Node, threshold))
	}
	if len(c.blocked) > 0 {
		task.Set("blocked", dialect.Scalar(c.test.Node, strings.Join(c.blocked, "; ")))
	}
	return task.Node
}

// unknownVariable reports a variable that the test does not have. One that contains answers to earlier tests blocks the case.
func (c *caseTranslator) unknownVariable(name string) {
	switch {
	case name == conversation && c.options["disableConversationVar"].text() != "true":
		c.block(c.test, "{{%s}}: the prompt contains the answers to earlier tests, and waza runs each test by itself", conversation)
	case c.answers[name]:
		c.block(c.test, "{{%s}}: the variable is the answer to another test (storeOutputAs), and waza runs each test by itself", text.Clip(name, 60))
	case c.incomplete:
	default:
		c.warn(c.test, "{{%s}}: the test has no such variable, so it is empty", text.Clip(name, 60))
	}
}

// conversation is the variable with the earlier tests of a conversation and the answers to them. The conversationId in
// the metadata of tests names their conversation; tests without one share another.
const conversation = "_conversation"

// startConversation lets the first test of a conversation have an empty list of earlier ones.
func (c *caseTranslator) startConversation(p prompt) {
	if !strings.Contains(p.text, conversation) {
		return
	}
	id := firstPart(c.test.get("metadata").get("conversationId"), c.standard.get("metadata").get("conversationId")).text()
	key := fmt.Sprintf("%d:%s", p.at.Line, id) + p.text
	if _, given := c.vars[conversation]; !c.followed[key] && !given {
		c.render.vars = maps.Clone(c.vars)
		c.render.vars[conversation] = []any{}
	}
	c.followed[key] = true
}

// withText returns a prompt with the text that its program returns. complete means that the case has all of its
// variables, which the program gets.
func (c *caseTranslator) withText(p prompt, complete bool) prompt {
	at := part{p.at, c.Source}
	for _, key := range []string{"prefix", "suffix"} {
		if c.options[key].text() != "" {
			c.warn(c.options[key], "%s has no effect on a prompt that a program returns", key)
		}
	}
	var err error = &errNotRun{p.program.name}
	if complete {
		err = c.runPrompt(&p)
	}
	if err != nil {
		c.blockFor(at, err)
		p.reason = err.Error()
	}
	return p
}

// pendingTask returns the task in place of those of a program that has not run.
func (tr *translator) pendingTask(t part, e *errNotRun) *yaml.Node {
	task, inputs := dialect.NewMap(t.Node), dialect.NewMap(t.Node)
	task.Set("id", dialect.Scalar(t.Node, tr.unique("tests of "+e.name)))
	inputs.Set("prompt", dialect.Scalar(t.Node, "The tests come from the program "+e.name+"."))
	task.Set("inputs", inputs.Node)
	task.Set("blocked", dialect.Scalar(t.Node, e.Error()))
	return task.Node
}

// scoreThreshold returns the threshold of the test, else that of the default test.
func (c *caseTranslator) scoreThreshold() part {
	return firstGiven(c.test.get("threshold"), c.standard.get("threshold"))
}

// firstGiven returns the first part that is not null.
func firstGiven(parts ...part) part {
	for _, p := range parts {
		if p.Node != nil && !decode.IsNull(p.Node) {
			return p
		}
	}
	return parts[0]
}

// requestOf returns what providers get for the case.
func (c *caseTranslator) requestOf(p prompt) request {
	if p.reason != "" {
		c.addReason(p.reason) // reported with the prompt
		return request{user: p.text}
	}
	if p.program == nil {
		p.text = c.options["prefix"].text() + p.text + c.options["suffix"].text()
	}
	r, err := c.renderPrompt(p)
	if err != nil {
		c.block(part{p.at, c.Source}, "%v", err)
		return request{user: p.text}
	}
	return r
}

// place returns the node that a part of the task has its place from: that of the part, or the test if
// the part is in another file.
func (c *caseTranslator) place(p part) *yaml.Node {
	if p.src == c.test.src {
		return p.Node
	}
	return c.test.Node
}

// taskContext returns what code of assertions sees of the case.
func (c *caseTranslator) taskContext() map[string]any {
	test := map[string]any{"vars": c.vars, "description": c.test.get("description").text()}
	for _, p := range []part{c.standard.get("metadata"), c.test.get("metadata")} {
		metadata, err := valueOf(p.Node)
		own, isMap := metadata.(map[string]any)
		shared, isMerged := test["metadata"].(map[string]any)
		switch {
		case err != nil || metadata == nil:
		case isMap && isMerged:
			maps.Copy(shared, own)
		default:
			test["metadata"] = metadata
		}
	}
	return map[string]any{"vars": c.withRequested(c.vars), "prompt": c.prompt, "test": test}
}
