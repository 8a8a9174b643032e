package promptfoo

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/dialect"
	"waza/eval/text"
)

// writtenName is the usual name of a file that waza writes.
const writtenName = "promptfooconfig.yaml"

// writer writes a suite as a configuration.
type writer struct {
	system     string // of the suite: providers of OpenAI take it only in chats
	noProvider bool   // in the place of that of the suite is echo
	chats      chatForm
	*dialect.Document
	prompts   []string // each once, as templates
	variable  bool     // prompts are values of the variable prompt
	threshold *float64 // the least score of tests that have none of their own
}

// write returns a suite as a configuration. Every task becomes the test that the translation reads as the
// same task.
func write(d *dialect.Document) ([]dialect.File, error) {
	w := &writer{Document: d, variable: true}
	root := dialect.NewMap(nil)
	root.Set("description", dialect.Scalar(nil, d.Name))
	if threshold, ok := dialect.Take[float64](&d.Others, "score_threshold"); ok {
		w.threshold = &threshold
	}
	w.setProviders(root)
	for i := range d.Cases {
		w.variable = w.variable && w.system == "" && fitsVariable(&d.Cases[i])
	}
	tests := dialect.List(nil)
	for i := range d.Cases {
		t := &testWriter{writer: w, from: &d.Cases[i], to: dialect.NewMap(nil)}
		t.write(i + 1)
		tests.Content = append(tests.Content, t.to.Node)
	}
	w.setPrompts(root, tests)
	w.setOptions(root)
	root.Set("tests", tests)
	w.loseRest()
	return dialect.YAMLFile(d, writtenName, root.Node)
}

// loseRest reports the parts of the suite that are not in the file.
func (w *writer) loseRest() {
	for _, p := range []struct{ key, value string }{{"description", w.Description}, {"version", w.Version}, {"skill", w.Skill}} {
		if p.value != "" {
			w.Lose(p.key == "skill", p.key, "a configuration has none")
		}
	}
	w.LoseKeys()
	w.LoseArms("promptfoo")
	if len(w.Cases) == 0 {
		w.Lose(true, "tasks", "the suite has none")
	}
}

// fitsVariable reports whether the prompt of a case can be the value of a variable.
func fitsVariable(c *dialect.Case) bool {
	return !c.Others.Has("inputs.system_prompt") && !c.Others.Has("inputs.history") && !c.Others.Has("inputs.context") && !strings.HasSuffix(c.Prompt, "\n") &&
		!slices.ContainsFunc(c.Checks, func(check dialect.Check) bool { _, ok := codeOf(&check); return ok }) &&
		!strings.HasPrefix(c.Prompt, filePrefix) && !promptMention().MatchString(c.Prompt)
}

var promptMention = text.Pattern(`\{\{\s*prompt\s*\}\}`)

// setProviders sets the providers: the model of the suite, or those of its cells.
func (w *writer) setProviders(root dialect.Map) {
	settings := map[string]any{}
	for _, key := range w.Settings {
		settings[strings.TrimPrefix(key.Name, "config.")] = key.Value
	}
	providers := dialect.List(nil)
	if cells, ok := dialect.Take[[]any](&w.Others, "config.cells"); ok {
		for i, c := range cells {
			cell, _ := c.(map[string]any)
			if p := providerOf(withParams(cell, settings)); p != nil {
				if own := withParams(cell, settings); own["executor"] == "openai" && own["system_prompt"] != nil {
					w.Lose(true, fmt.Sprintf("config.cells[%d] system_prompt", i), "providers of OpenAI have none in promptfoo")
				}
				providers.Content = append(providers.Content, p)
			} else {
				w.Lose(true, fmt.Sprintf("config.cells[%d]", i), "promptfoo has no such provider")
			}
		}
		dialect.Take[map[string]any](&w.Settings, "config.params")
	} else if p := providerOf(settings); p != nil {
		if settings["executor"] == "openai" {
			w.system, _ = settings["system_prompt"].(string)
		}
		providers.Content = append(providers.Content, p)
		w.Settings = slices.DeleteFunc(w.Settings, func(k dialect.Key) bool {
			return slices.Contains(providerSettings, strings.TrimPrefix(k.Name, "config."))
		})
	}
	if len(providers.Content) == 0 {
		providers.Content = append(providers.Content, dialect.Scalar(nil, "echo"))
		w.noProvider = true
		w.Lose(false, "providers", "the suite names no model that promptfoo has, so the provider is echo; name yours")
	}
	root.Set("providers", providers)
	w.chats = chatsOf(providers.Content)
}

// withParams returns the settings of a cell with its options and its parameters, which it has beside the other keys,
// and those of all cells.
func withParams(cell, shared map[string]any) map[string]any {
	settings, params := map[string]any{}, map[string]any{}
	if all, ok := shared["params"].(map[string]any); ok {
		maps.Copy(params, all)
	}
	options, _ := cell["options"].(map[string]any)
	for key, value := range options {
		settings[key] = value
	}
	own, _ := options["params"].(map[string]any)
	maps.Copy(params, own)
	for key, value := range cell {
		switch {
		case key == "options":
		case key == "name":
			settings["label"] = value
		case slices.Contains(providerSettings, key):
			settings[key] = value
		default:
			params[key] = value
		}
	}
	if len(params) > 0 {
		settings["params"] = params
	}
	return settings
}

// providerSettings are the keys of config that a provider has.
var providerSettings = []string{"executor", "model", "base_url", "api_key_env", "params", "system_prompt", "command", "prompt_as", "no_steps"}

// providerOf returns the provider with some settings of a suite; nil if promptfoo has none.
func providerOf(settings map[string]any) *yaml.Node {
	texts := map[string]string{}
	for _, key := range append([]string{"label"}, providerSettings...) {
		texts[key], _ = settings[key].(string)
	}
	label := texts["label"]
	labelled := func(id string) *yaml.Node {
		if label == "" || label == id || label == texts["model"] {
			return dialect.Scalar(nil, id)
		}
		m := dialect.NewMap(nil)
		m.Set("id", dialect.Scalar(nil, id))
		m.Set("label", dialect.Scalar(nil, label))
		return m.Node
	}
	switch {
	case texts["executor"] == "command" && texts["command"] == "cat":
		return labelled("echo")
	case texts["executor"] == "command" && texts["prompt_as"] == "env":
		if command, ok := strings.CutSuffix(texts["command"], programArguments); ok {
			return labelled("exec:" + command)
		}
		return nil
	case texts["executor"] != "openai" && texts["executor"] != "anthropic" || texts["model"] == "":
		return nil
	}
	id, config := texts["executor"]+":"+texts["model"], dialect.NewMap(nil)
	service := ""
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if s := services[name]; s.url != "" && s.url == texts["base_url"] && s.keyEnv == texts["api_key_env"] {
			service = name
		}
	}
	if service != "" {
		id = service + ":" + texts["model"]
	} else {
		for _, p := range [][2]string{{"base_url", "apiBaseUrl"}, {"api_key_env", "apiKeyEnvar"}} {
			if texts[p[0]] != "" {
				config.Set(p[1], dialect.Scalar(nil, texts[p[0]]))
			}
		}
	}
	if texts["system_prompt"] != "" && texts["executor"] != "openai" {
		config.Set("systemPrompt", dialect.Scalar(nil, texts["system_prompt"]))
	}
	params, _ := settings["params"].(map[string]any)
	extra := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if parameters[name] == name {
			config.Set(name, dialect.Encoded(params[name]))
		} else {
			extra[name] = params[name]
		}
	}
	if len(extra) > 0 {
		config.Set("passthrough", dialect.Encoded(extra))
	}
	if config.Len() == 0 {
		return labelled(id)
	}
	m := dialect.NewMap(nil)
	m.Set("id", dialect.Scalar(nil, id))
	if label != "" && label != texts["model"] {
		m.Set("label", dialect.Scalar(nil, label))
	}
	m.Set("config", config.Node)
	return m.Node
}

// setPrompts sets the prompts. With several, each test names its own.
func (w *writer) setPrompts(root dialect.Map, tests *yaml.Node) {
	if w.variable {
		root.Set("prompts", dialect.Texts(nil, "{{prompt}}"))
		return
	}
	if len(w.prompts) == 1 {
		raw := dialect.NewMap(nil)
		raw.Set("raw", dialect.Scalar(nil, w.prompts[0]))
		root.Set("prompts", dialect.List(nil, raw.Node))
		for _, n := range tests.Content {
			remove(n, "prompts")
		}
		return
	}
	list := dialect.List(nil)
	for i, p := range w.prompts {
		m := dialect.NewMap(nil)
		m.Set("label", dialect.Scalar(nil, label(i)))
		m.Set("raw", dialect.Scalar(nil, p))
		list.Content = append(list.Content, m.Node)
	}
	root.Set("prompts", list)
}

func label(i int) string { return fmt.Sprintf("prompt %d", i+1) }

// remove removes a key of a map.
func remove(n *yaml.Node, key string) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// setOptions sets the number of trials and of workers.
func (w *writer) setOptions(root dialect.Map) {
	options := dialect.NewMap(nil)
	if trials, ok := dialect.Take[int](&w.Settings, "config.trials_per_task"); ok {
		options.Set("repeat", dialect.Scalar(nil, trials))
	}
	if _, ok := dialect.Take[bool](&w.Settings, "config.parallel"); ok {
		workers, given := dialect.Take[int](&w.Settings, "config.workers")
		if !given {
			workers = 4 // the default of both tools
		}
		options.Set("maxConcurrency", dialect.Scalar(nil, workers))
	}
	if options.Len() > 0 {
		root.Set("evaluateOptions", options.Node)
	}
}

// testWriter writes one task.
type testWriter struct {
	*writer
	from *dialect.Case
	to   dialect.Map
}

func (t *testWriter) lose(verdict bool, part, reason string) {
	t.LoseIn(t.from, t.to.Node, verdict, part, reason)
}

func (t *testWriter) write(number int) {
	c := t.from
	if c.ID != strconv.Itoa(number) {
		t.to.Set("description", dialect.Scalar(nil, c.ID))
	}
	if c.Name != c.ID {
		t.lose(false, "name", "the description of a test is its id")
	}
	if c.Description != "" {
		t.lose(false, "description", "the description of a test is its id")
	}
	for _, tag := range c.Tags {
		t.lose(false, "tag "+tag, "")
	}
	if len(c.FollowUps) > 0 {
		t.lose(true, "inputs.follow_up_prompts", "a test has one prompt")
	}
	for _, f := range c.Files {
		t.lose(true, "file "+f.Path, "promptfoo gives no files to agents")
	}
	t.setPrompt()
	threshold, own := dialect.Take[float64](&c.Others, "score_threshold")
	switch {
	case own:
		t.to.Set("threshold", dialect.Scalar(nil, threshold))
	case t.threshold != nil:
		t.to.Set("threshold", dialect.Scalar(nil, *t.threshold))
	}
	list := t.assertions(c.Checks)
	if reason, ok := blockedBy(c); ok {
		list = append(list, failing(reason))
	}
	if len(list) > 0 {
		t.to.Set("assert", dialect.List(nil, list...))
	}
	for _, key := range c.Others {
		reason, _ := key.Value.(string)
		if key.Name != "blocked" {
			reason = ""
		}
		t.lose(true, key.Name, reason)
	}
}

// blockedBy returns the reason of a blocked case.
func blockedBy(c *dialect.Case) (reason string, ok bool) {
	for _, key := range c.Others {
		if key.Name == "blocked" {
			reason, _ = key.Value.(string)
			return reason, true
		}
	}
	return "", false
}

// failing returns an assertion that fails with a reason: a test of a blocked case must not pass.
func failing(reason string) *yaml.Node {
	quoted, _ := json.Marshal(reason)
	m := dialect.NewMap(nil)
	m.Set("type", dialect.Scalar(nil, "javascript"))
	m.Set("value", dialect.Scalar(nil, "(() => { throw new Error("+strings.ReplaceAll(string(quoted), "{", `\u007b`)+") })()"))
	return m.Node
}

// setPrompt sets the prompt, and the variables that code of assertions sees.
func (t *testWriter) setPrompt() {
	c := t.from
	if t.Templates && strings.Contains(c.Prompt, "{{") {
		t.lose(true, "prompt", "the template variables of waza have other names and values")
	}
	vars := dialect.NewMap(nil)
	if t.variable {
		vars.Set("prompt", dialect.Scalar(nil, c.Prompt))
		t.to.Set("vars", vars.Node)
		return
	}
	t.setContext()
	prompt := t.raw(c.Prompt, "prompt")
	var system string
	ok := false
	if t.chats != chatsAsText {
		system, ok = dialect.Take[string](&c.Others, "inputs.system_prompt")
	}
	if t.system != "" {
		system, ok = strings.TrimSuffix(t.system+"\n\n"+system, "\n\n"), true
	}
	var history []message
	if t.chats == chatsAsMessages {
		history = t.history()
	}
	trimmed := strings.TrimSpace(c.Prompt)
	looksLikeChat := t.chats != chatsAsText && (strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "- role:"))
	if ok || len(history) > 0 || looksLikeChat {
		chat := slices.Concat(history, []message{{Role: "user", Content: prompt}})
		if ok {
			chat = append([]message{{Role: "system", Content: t.raw(system, "system_prompt")}}, chat...)
		}
		data, err := json.MarshalIndent(chat, "", "  ")
		if err != nil {
			t.lose(true, "prompt", err.Error())
		}
		prompt = string(data)
	} else if isFile(prompt) || strings.HasPrefix(prompt, "exec:") || strings.Contains(prompt, "://") && !strings.Contains(prompt, " ") {
		prompt = "{% raw %}" + prompt + "{% endraw %}"
	}
	i := slices.Index(t.prompts, prompt)
	if i < 0 {
		i, t.prompts = len(t.prompts), append(t.prompts, prompt)
	}
	t.to.Set("prompts", dialect.Texts(nil, label(i)))
}

// history returns the messages before the prompt.
func (t *testWriter) history() (chat []message) {
	earlier, _ := dialect.Take[[]dialect.Message](&t.from.Others, "inputs.history")
	for _, m := range earlier {
		chat = append(chat, message{Role: m.Role, Content: t.raw(m.Text, "history")})
	}
	return chat
}

// setContext sets the variables and metadata from the context that the translation made of them.
func (t *testWriter) setContext() {
	context, ofTask := dialect.Take[map[string]any](&t.from.Others, "inputs.context")
	for i := 0; i < len(t.from.Checks) && context == nil; i++ {
		if call, ok := codeOf(&t.from.Checks[i]); ok {
			context = call.Context
			delete(context, "config") // of the assertion
		}
	}
	if context == nil {
		return
	}
	vars, _ := context["vars"].(map[string]any)
	test, isTest := context["test"].(map[string]any)
	if !isTest || context["prompt"] != t.from.Prompt || len(context) != 3 || vars == nil {
		t.lose(true, "inputs.context", "")
		return
	}
	t.setVars(vars)
	if metadata, ok := test["metadata"]; ok {
		t.to.Set("metadata", dialect.Encoded(metadata))
	}
	if description, _ := test["description"].(string); description != dialect.TextOf(t.to.Get("description")) {
		t.lose(false, "inputs.context", "programs see the id of the task as the description of the test")
	}
	if ofTask && t.noProvider && !slices.ContainsFunc(t.from.Checks, func(c dialect.Check) bool { return c.Type == "code" }) {
		t.lose(false, "inputs.context", "the provider of the suite, which sees it, is not written")
	}
}

// setVars sets the variables of a test.
func (t *testWriter) setVars(vars map[string]any) {
	if len(vars) == 0 {
		return
	}
	to := dialect.NewMap(nil)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		list, _ := vars[name].([]any)
		if _, ofTexts := firstItem(list).(string); ofTexts { // which would multiply the test
			options := dialect.NewMap(nil)
			options.Set("disableVarExpansion", dialect.Scalar(nil, true))
			t.to.Set("options", options.Node)
		}
		to.Set(name, encodedOrNull(vars[name]))
	}
	t.to.Set("vars", to.Node)
}

func encodedOrNull(v any) *yaml.Node {
	if n := dialect.Encoded(v); n != nil {
		return n
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// raw returns a template that is rendered as a text.
func (t *testWriter) raw(s, part string) string {
	if !strings.Contains(s, "{{") && !strings.Contains(s, "{%") && !strings.Contains(s, "{#") {
		return s
	}
	if endRaw().MatchString(s) {
		t.lose(true, part, "it contains the tag endraw")
	}
	return "{% raw %}" + s + "{% endraw %}"
}

// A groupWritten is an assert-set that is being written.
type groupWritten struct {
	name    string
	members *yaml.Node
}

// assertions returns the assertions for graders. Members of a group follow each other.
func (t *testWriter) assertions(checks []dialect.Check) (list []*yaml.Node) {
	var open *groupWritten
	for i := range checks {
		c := &checks[i]
		group, inGroup := dialect.Take[dialect.Group](&c.Others, "group")
		if !inGroup {
			open = nil
			list = append(list, t.assertion(c, len(list)+1)...)
			continue
		}
		if open == nil || open.name != group.Name {
			open = &groupWritten{name: group.Name, members: dialect.List(nil)}
			if group.Aggregate != "" {
				t.lose(true, fmt.Sprintf("group %q aggregate", group.Name), "promptfoo takes the weighted mean of a set")
			}
			list = append(list, t.set(group, open.members, len(list)+1))
		}
		written := t.assertion(c, len(open.members.Content)+1)
		open.members.Content = append(open.members.Content, written...)
	}
	return list
}

// set returns an assert-set without its members.
func (t *testWriter) set(group dialect.Group, members *yaml.Node, position int) *yaml.Node {
	m := dialect.NewMap(nil)
	m.Set("type", dialect.Scalar(nil, "assert-set"))
	t.setMetric(m, group.Name, "assert-set", position)
	setWeight(m, group.Weight, group.Optional)
	if group.Threshold != nil {
		m.Set("threshold", dialect.Scalar(nil, *group.Threshold))
	}
	m.Set("assert", members)
	return m.Node
}

func setWeight(m dialect.Map, weight float64, optional bool) {
	switch {
	case optional:
		m.Set("weight", dialect.Scalar(nil, 0))
	case weight != 1:
		m.Set("weight", dialect.Scalar(nil, weight))
	}
}

// setMetric sets the metric from the name of a grader, which starts with the position of the assertion.
func (t *testWriter) setMetric(m dialect.Map, name, kind string, position int) {
	metric, ok := strings.CutPrefix(name, fmt.Sprintf("%d: ", position))
	if !ok { // positions change if an earlier assertion has no grader
		if before, rest, found := strings.Cut(name, ": "); found && isNumber().MatchString(before) {
			metric = rest
			t.lose(false, fmt.Sprintf("grader %q", name), "its number changes, because the assertions are numbered again")
		} else {
			metric = name
		}
	}
	if metric != kind {
		m.Set("metric", dialect.Scalar(nil, t.raw(metric, "metric")))
	}
}

var isNumber = text.Pattern(`^[0-9]+$`)

// written is an assertion without what all have.
type written struct {
	kind      string
	value     any // nil for none
	threshold any // nil for none
	config    any // nil for none
	provider  *yaml.Node
	opposite  bool // it decides the opposite
}

// checkWriter writes one grader as assertions.
type checkWriter struct {
	*testWriter
	from   *dialect.Check
	left   map[string]any // options that are not written yet
	negate bool
	strict bool // the output must be JSON
	out    []written
}

// writers write graders by the types of waza. Options that remain are reported.
var writers = map[string]func(*checkWriter){
	"text": (*checkWriter).text, "code": (*checkWriter).code, "json_schema": (*checkWriter).schema, "program": (*checkWriter).program,
	"prompt": (*checkWriter).judge, "behavior": (*checkWriter).limits, "skill_invocation": (*checkWriter).skills,
	"tool_calls": (*checkWriter).tools, "overlap": (*checkWriter).overlap, "similar": (*checkWriter).similar,
	"webhook": (*checkWriter).webhook, "answer_relevance": (*checkWriter).relevance,
}

func (t *testWriter) assertion(from *dialect.Check, position int) (list []*yaml.Node) {
	c := &checkWriter{testWriter: t, from: from, left: maps.Clone(from.Config)}
	part := from.Named()
	if t.Templates && dialect.HasVariable(from.Config) {
		t.lose(true, part, "the template variables of waza have other names and values")
	}
	c.negate, _ = dialect.Take[bool](&from.Others, "negate")
	needsSteps, _ := dialect.Take[bool](&from.Others, "needs_steps")
	optional, _ := dialect.Take[bool](&from.Others, "optional")
	transform, _ := dialect.Take[string](&from.Others, "transform")
	transform, c.strict = withoutStrictJSON(transform)
	if !t.noProvider {
		transform = withoutParsing(transform)
	}
	write := writers[from.Type]
	if write == nil {
		t.lose(true, fmt.Sprintf("%s (%s)", part, from.Type), "promptfoo has no such assertion")
		return nil
	}
	write(c)
	for _, key := range slices.Sorted(maps.Keys(c.left)) {
		t.lose(true, fmt.Sprintf("%s (%s) %s", part, from.Type, key), "")
	}
	for _, key := range from.Others {
		t.lose(true, part+" "+key.Name, "")
	}
	if needsSteps && slices.ContainsFunc(c.out, func(a written) bool { return !strings.HasPrefix(a.kind, "trajectory:") }) {
		t.lose(true, part+" needs_steps", "")
	}
	if len(c.out) > 1 {
		t.lose(false, part, "each of its options becomes an assertion of its own")
		if c.negate {
			t.lose(true, part+" negate", "")
		}
	}
	for _, a := range c.out {
		m := dialect.NewMap(nil)
		kind := a.kind
		if (c.negate && len(c.out) == 1) != a.opposite {
			kind = "not-" + kind
		}
		m.Set("type", dialect.Scalar(nil, kind))
		m.Set("value", c.value(a.value))
		m.Set("threshold", dialect.Encoded(a.threshold))
		t.setMetric(m, from.Name, kind, position+len(list))
		setWeight(m, from.Weight, optional)
		m.Set("config", dialect.Encoded(a.config))
		m.Set("provider", a.provider)
		if transform != "" {
			m.Set("transform", dialect.Scalar(nil, c.source(transform)))
		}
		list = append(list, m.Node)
	}
	return list
}

// value returns the value of an assertion, whose texts are templates.
func (c *checkWriter) value(v any) *yaml.Node {
	switch v := v.(type) {
	case fileReference:
		return dialect.Scalar(nil, string(v))
	case string:
		if strings.HasPrefix(v, filePrefix) {
			return dialect.Scalar(nil, "{% raw %}"+v+"{% endraw %}")
		}
		return dialect.Scalar(nil, c.raw(v, c.from.Named()))
	case []string:
		list := dialect.List(nil)
		for _, item := range v {
			list.Content = append(list.Content, c.value(item))
		}
		return list
	}
	return dialect.Encoded(v)
}

func (c *checkWriter) add(w written) { c.out = append(c.out, w) }

// take removes an option.
func (c *checkWriter) take(key string) any {
	v := c.left[key]
	delete(c.left, key)
	return v
}

// texts removes an option with texts that are not empty.
func (c *checkWriter) texts(key string) []string {
	list, ok := dialect.TextsIn(c.left[key])
	if !ok || slices.Contains(list, "") {
		return nil
	}
	delete(c.left, key)
	return list
}

func (c *checkWriter) text() {
	javascript := c.left["syntax"] == "javascript"
	delete(c.left, "syntax")
	for _, kind := range []struct {
		key, assertion string
		opposite       bool
	}{
		{"contains_cs", "contains", false}, {"contains", "icontains", false}, {"not_contains_cs", "contains", true}, {"not_contains", "icontains", true},
	} {
		for _, v := range c.texts(kind.key) {
			c.add(written{kind: kind.assertion, value: v, opposite: kind.opposite})
		}
	}
	for _, key := range []string{"regex_match", "regex_not_match"} {
		for _, p := range c.texts(key) {
			c.pattern(p, javascript, key == "regex_not_match")
		}
	}
	least, most := c.take("min_words"), c.take("max_words")
	switch {
	case least != nil && least == most:
		c.add(written{kind: "word-count", value: least})
	case least != nil || most != nil:
		limits := map[string]any{}
		if least != nil {
			limits["min"] = least
		}
		if most != nil {
			limits["max"] = most
		}
		c.add(written{kind: "word-count", value: limits})
	}
	distances, _ := c.take("levenshtein").([]any)
	for _, d := range distances {
		m, _ := d.(map[string]any)
		w := written{kind: "levenshtein", value: m["text"]}
		if most, _ := dialect.NumberIn(m["max"]); most != 5 {
			w.threshold = m["max"]
		}
		c.add(w)
	}
}

// pattern writes a regular expression: one of the forms that the translation makes of texts, else regex.
func (c *checkWriter) pattern(p string, javascript, opposite bool) {
	if !javascript {
		if kind, values := textsOfPattern(p); kind != "" {
			w := written{kind: kind, value: values, opposite: opposite}
			if kind == "equals" || kind == "starts-with" {
				w.value = values[0]
			}
			c.add(w)
			return
		}
		if !dialect.LosePattern(p, c.from.Named(), c.lose) {
			return
		}
	}
	c.add(written{kind: "regex", value: p, opposite: opposite})
}

// textsOfPattern returns the assertion, and its texts, that the translation writes as a pattern; "" for
// other patterns.
func textsOfPattern(p string) (kind string, values []string) {
	for _, form := range []struct{ kind, start, end string }{
		{"equals", `\A(?:`, `)\z`}, {"starts-with", `\A(?:`, `)`}, {"icontains-any", `(?i:`, `)`}, {"contains-any", "", ""},
	} {
		inner, starts := strings.CutPrefix(p, form.start)
		inner, ends := strings.CutSuffix(inner, form.end)
		if !starts || !ends {
			continue
		}
		if values := quotedTexts(inner); values != nil && (len(values) == 1 || strings.HasSuffix(form.kind, "-any")) {
			return form.kind, values
		}
	}
	return "", nil
}

// quotedTexts returns the texts of a pattern that is a list of quoted texts; nil for other patterns.
func quotedTexts(p string) (values []string) {
	if _, err := syntax.Parse(p, syntax.Perl); err != nil {
		return nil
	}
	start := 0
	for i := 0; i <= len(p); i++ {
		switch {
		case i == len(p) || p[i] == '|':
			quoted := p[start:i]
			value := dialect.Unquote(quoted)
			if regexp.QuoteMeta(value) != quoted {
				return nil
			}
			values, start = append(values, value), i+1
		case p[i] == '\\':
			i++
		}
	}
	return values
}

// missingTexts matches the start of functions that containsAll returns.
var missingTexts = text.Pattern(`(?s)^const missing = (\[.*?\])\.filter\(v => !text`)

func (c *checkWriter) code() {
	body, _ := c.left["function"].(string)
	if c.left["language"] != "javascript" || body == "" {
		return
	}
	threshold := c.take("threshold")
	defer func() {
		delete(c.left, "function")
		delete(c.left, "language")
	}()
	if rest, ok := strings.CutPrefix(body, asText); ok {
		var values []string
		if m := missingTexts().FindStringSubmatch(rest); m != nil && json.Unmarshal([]byte(m[1]), &values) == nil {
			for kind, folds := range map[string]bool{"contains-all": false, "icontains-all": true} {
				if containsAll(values, folds) == body {
					c.add(written{kind: kind, value: values})
					return
				}
			}
		}
	}
	if body == isJSON {
		c.add(written{kind: "is-json"})
		return
	}
	if at := strings.LastIndex(body, "return same(got, "); at >= 0 {
		var value any
		source := strings.TrimSuffix(body[at+len("return same(got, "):], ");")
		if json.Unmarshal([]byte(source), &value) == nil && equalsJSON(value) == body {
			c.add(written{kind: "equals", value: value})
			return
		}
	}
	if w, ok := trajectoryOf(body); ok {
		c.add(w)
		return
	}
	c.add(written{kind: "javascript", value: c.source(body), threshold: threshold})
}

// trajectoryOf returns the assertion about steps that the translation made a function of; ok is false for others.
func trajectoryOf(body string) (w written, ok bool) {
	data, isCheck := strings.CutPrefix(body, "return "+strings.TrimSpace(checkTrajectory)+"(")
	data, ends := strings.CutSuffix(data, ");")
	var check struct {
		Kind    string
		Value   any
		Inverse bool
	}
	if !isCheck || !ends || json.Unmarshal([]byte(data), &check) != nil {
		return w, false
	}
	return written{kind: "trajectory:" + check.Kind, value: check.Value, opposite: check.Inverse}, true
}

// source returns code that the translation reads as the body of a function.
func (c *checkWriter) source(body string) string {
	code := body
	if expression, ok := strings.CutPrefix(body, "return "); ok && functionBody(expression) == body {
		code = expression
	} else if functionBody(body) != body {
		code = "\n" + body // several lines are the body of the function
	}
	if strings.HasPrefix(code, filePrefix) {
		c.lose(true, c.from.Named(), "its code would be the name of a file")
	}
	return code
}

// withoutParsing returns a transform without parsedResponse before it, because promptfoo parses answers with a JSON schema itself.
func withoutParsing(transform string) string {
	if transform == parsedResponse {
		return ""
	}
	const mark = "\x00"
	start, end, _ := strings.Cut(chain([]string{parsedResponse, mark}), mark)
	rest, starts := strings.CutPrefix(transform, start)
	rest, ends := strings.CutSuffix(rest, end)
	if starts && ends && chain([]string{parsedResponse, rest}) == transform {
		return rest
	}
	return transform
}

// withoutStrictJSON returns a transform without strictJSON after it, and whether it had that.
func withoutStrictJSON(transform string) (before string, strict bool) {
	if transform == strictJSON {
		return "", true
	}
	const mark = "\x00"
	start, end, _ := strings.Cut(chain([]string{mark, strictJSON}), mark)
	rest, starts := strings.CutPrefix(transform, start)
	rest, ends := strings.CutSuffix(rest, end)
	if starts && ends && chain([]string{rest, strictJSON}) == transform {
		return rest, true
	}
	return transform, false
}

func (c *checkWriter) schema() {
	anywhere := c.take("anywhere") == true
	schema, _ := c.left["schema"].(map[string]any)
	kind := "contains-json"
	switch {
	case !anywhere && c.strict && schema != nil:
		kind = "is-json"
	case !anywhere:
		if schema == nil {
			return
		}
		kind = "is-json"
		c.lose(false, c.from.Named(), "the output must be JSON without text around it")
	}
	delete(c.left, "schema")
	w := written{kind: kind}
	if schema != nil {
		schema = maps.Clone(schema)
		if schema["$schema"] == nil {
			c.lose(false, c.from.Named()+" $schema", "promptfoo reads the schema as draft 7")
		}
		if schema["$schema"] == draft7 {
			delete(schema, "$schema")
		}
		if len(schema) == 0 {
			schema["$schema"] = draft7
		}
		w.value = schema
	}
	c.add(w)
}

// A codeCall is the argument of runPython and runNode.
type codeCall struct {
	Code, Function string
	Threshold      any
	Inverse        bool
	Context        map[string]any

	file, kind string
}

// codeOf returns the assertion that the translation made a program of; ok is false for other graders.
func codeOf(c *dialect.Check) (call codeCall, ok bool) {
	args, _ := dialect.TextsIn(c.Config["args"])
	if c.Type != "program" || len(args) < 4 {
		return call, false
	}
	switch args[1] {
	case runPython:
		call.kind = "python"
	case runNode:
		call.kind = "javascript"
	default:
		return call, false
	}
	call.file = args[2]
	return call, json.Unmarshal([]byte(strings.Join(args[3:], "")), &call) == nil
}

func (c *checkWriter) program() {
	call, ok := codeOf(c.from)
	if !ok {
		return
	}
	delete(c.left, "command")
	delete(c.left, "args")
	delete(c.left, "network")
	w := written{kind: call.kind, value: call.Code, threshold: call.Threshold, config: call.Context["config"], opposite: call.Inverse}
	if call.file != "" {
		ref := filePrefix + path.Clean(call.file)
		if call.Function != "" && call.Function != "get_assert" {
			ref += ":" + call.Function
		}
		w.value = fileReference(ref)
	}
	c.add(w)
}

// fileReference is the name of a file as the value of an assertion.
type fileReference string

func (c *checkWriter) judge() {
	criteria, joined := dialect.TakeCriteria(c.left)
	switch {
	case criteria == "":
		return
	case joined:
		c.lose(false, c.from.Named(), "one judge decides about all statements together")
	}
	w := written{kind: "llm-rubric", value: criteria, threshold: c.take("threshold")}
	before, after, _ := strings.Cut(goalCriteria, "%s")
	if goal, ok := strings.CutPrefix(criteria, before); ok && strings.HasSuffix(goal, after) {
		w.kind, w.value = "trajectory:goal-success", strings.TrimSuffix(goal, after)
	}
	if counts, _ := c.take("verdict_counts").(bool); w.threshold != nil && !counts {
		c.lose(true, c.from.Named()+" threshold", "in promptfoo, the judge must also pass the answer")
	}
	w.provider = c.judgeProvider()
	c.add(w)
}

// oneOrMore returns texts as the value of an assertion.
func oneOrMore(texts []string) any {
	if len(texts) == 1 {
		return texts[0]
	}
	return texts
}

func (c *checkWriter) overlap() {
	metric, _ := c.left["metric"].(string)
	references := c.texts("references")
	if references == nil || metric == "rouge-n" && len(references) > 1 {
		return
	}
	delete(c.left, "metric")
	threshold := c.take("threshold")
	if threshold == nil {
		threshold = 0.5
	}
	if n, isNumber := c.left["n"].(int); isNumber && n == 1 {
		delete(c.left, "n")
	}
	c.add(written{kind: metric, value: oneOrMore(references), threshold: threshold})
}

func (c *checkWriter) similar() {
	references := c.texts("references")
	provider := embedderOf(c.left)
	if references == nil || provider == nil {
		return
	}
	w := written{kind: "similar", value: oneOrMore(references), threshold: c.take("threshold"), provider: provider}
	if metric, _ := c.take("metric").(string); metric != "" && metric != similarMetrics[""] {
		w.kind += ":" + metric
	}
	c.add(w)
}

// embedderOf removes the embedding model from options, and returns it as a provider; nil if they name none.
func embedderOf(options map[string]any) *yaml.Node {
	take := func(key string) string {
		s, _ := options[key].(string)
		delete(options, key)
		return s
	}
	if s, _ := options["model"].(string); s == "" {
		return nil
	}
	model, api, config := take("model"), take("provider"), dialect.NewMap(nil)
	id := dialect.Scalar(nil, firstOf(api, "openai")+":embeddings:"+model)
	for _, p := range [][2]string{{"base_url", "apiBaseUrl"}, {"api_key_env", "apiKeyEnvar"}} {
		if own := take(p[0]); own != "" {
			config.Set(p[1], dialect.Scalar(nil, own))
		}
	}
	if config.Len() == 0 {
		return id
	}
	m := dialect.NewMap(nil)
	m.Set("id", id)
	m.Set("config", config.Node)
	return m.Node
}

func (c *checkWriter) relevance() {
	embedding, _ := c.left["embedding"].(map[string]any)
	embedding = maps.Clone(embedding)
	provider := embedderOf(embedding)
	if provider == nil || len(embedding) > 0 {
		return
	}
	delete(c.left, "embedding")
	if question, _ := c.take("question").(string); question != "" {
		c.lose(true, c.from.Named()+" question", "promptfoo compares with the variable query, else with the prompt")
	}
	both := dialect.NewMap(nil)
	both.Set("text", c.judgeProvider())
	both.Set("embedding", provider)
	threshold := c.take("threshold")
	if threshold == nil {
		threshold = relevanceDefault
	}
	c.add(written{kind: "answer-relevance", threshold: threshold, provider: both.Node})
}

// judgeProvider removes the options that select a judge, and returns them as a provider, or nil.
func (c *checkWriter) judgeProvider() *yaml.Node {
	settings := map[string]any{}
	for from, to := range map[string]string{"provider": "executor", "model": "model", "base_url": "base_url", "api_key_env": "api_key_env", "params": "params"} {
		if c.left[from] != nil {
			settings[to] = c.left[from]
		}
	}
	if len(settings) == 0 {
		return nil
	}
	provider := providerOf(settings)
	if provider != nil {
		for _, key := range []string{"provider", "model", "base_url", "api_key_env", "params"} {
			delete(c.left, key)
		}
	}
	return provider
}

func (c *checkWriter) webhook() {
	address, _ := c.take("url").(string)
	if timeout := c.take("timeout"); timeout != nil && asNumber(timeout) != 5 {
		c.lose(true, c.from.Named()+" timeout", "promptfoo has it in the variable WEBHOOK_TIMEOUT, in milliseconds")
	}
	c.add(written{kind: "webhook", value: address})
}

func (c *checkWriter) limits() {
	for _, limit := range [][2]string{{"max_duration_ms", "latency"}, {"max_cost_usd", "cost"}} {
		if v := c.take(limit[0]); v != nil {
			c.add(written{kind: limit[1], threshold: v})
		}
	}
}

func (c *checkWriter) skills() {
	if c.left["mode"] != "any_order" {
		return
	}
	delete(c.left, "mode")
	if c.take("score") != "pass" {
		c.lose(c.threshold != nil, c.from.Named()+" score", "in promptfoo, the score is 1 or 0")
	}
	if c.left["allow_extra"] == true {
		delete(c.left, "allow_extra")
	}
	c.used("skill-used", "_skills")
}

func (c *checkWriter) tools() { c.used("trajectory:tool-used", "_tools") }

func (c *checkWriter) used(kind, suffix string) {
	for _, wanted := range []string{"required", "forbidden"} {
		list := c.texts(wanted + suffix)
		if list == nil {
			continue
		}
		c.add(written{kind: kind, value: oneOrMore(list), opposite: wanted == "forbidden"})
	}
}
