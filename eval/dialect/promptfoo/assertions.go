package promptfoo

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/pattern"
	"waza/eval/text"
)

// assertionTypes are the types that a cell of a table can name.
var assertionTypes = strings.Fields(`answer-relevance bleu classifier contains contains-all contains-any contains-html contains-json
	contains-sql contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost equals factuality
	finish-reason g-eval gleu guardrails icontains icontains-all icontains-any is-html is-json is-refusal is-sql
	is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript latency levenshtein
	llm-rubric meteor model-graded-closedqa model-graded-factuality moderation perplexity perplexity-score pi python regex
	rouge-n ruby search-rubric select-best similar skill-used starts-with tool-call-f1 trace-error-spans trace-span-count
	trace-span-duration trajectory:goal-success trajectory:step-count trajectory:tool-args-match trajectory:tool-sequence
	trajectory:tool-used webhook word-count`)

// assertionKeys are the keys of an assertion, and setKeys those of an assert-set, that the translation
// handles.
var (
	assertionKeys = []string{
		"type", "value", "weight", "metric", "threshold", "transform", "provider", "config", "rubricPrompt", "contextTransform",
	}
	setKeys = []string{"type", "assert", "weight", "metric", "threshold"}
)

// graders returns a grader for each assertion of the case.
func (c *caseTranslator) graders() []*yaml.Node {
	for _, key := range slices.Sorted(maps.Keys(c.options)) {
		if decode.IsNull(c.options[key].Node) {
			continue
		}
		switch {
		case slices.Contains(optionKeys, key):
		case isProviderSetting(key): // which promptfoo merges into the config of the provider
			c.block(c.options[key], "the key options.%s: waza has no settings of providers for single tests", text.Clip(key, 60))
		default:
			c.warn(c.options[key], "options.%s has no effect: promptfoo has no such option", text.Clip(key, 60))
		}
	}
	c.addTransforms()
	var asserts []part
	sources := []part{c.standard.get("assert"), c.test.get("assert")}
	if c.test.get("options").get("disableDefaultAsserts").text() == "true" { // the default test cannot disable its own
		sources = sources[1:]
	}
	for _, list := range sources {
		asserts = append(asserts, c.listed(list)...)
	}
	return c.scored(c.test, asserts, c.scoreThreshold(), c.gradersOf(asserts))
}

// scored returns the graders of assertions whose score must reach a threshold. If none of them counts, their score
// is 0, so that a grader which always fails is added.
func (c *caseTranslator) scored(of part, asserts []part, threshold part, graders []*yaml.Node) []*yaml.Node {
	least, _ := numberOf(threshold)
	counts := func(a part) bool {
		a, ok := c.resolved(a)
		return !ok || !isZero(a.get("weight"))
	}
	if least <= 0 || len(graders) == 0 || slices.ContainsFunc(asserts, counts) {
		return graders
	}
	at := c.place(of)
	g := dialect.NewMap(at)
	g.Set("type", dialect.Scalar(at, "code"))
	g.Set("name", dialect.Scalar(at, fmt.Sprintf("%d: score", len(asserts)+1)))
	g.Set("config", c.function(at, noScore).config.Node)
	return append(graders, g.Node)
}

// noScore is the body of a function that fails.
const noScore = `return {pass: false, score: 0, reason: "all assertions have the weight 0, so the score is 0"};`

// mustPass reports whether an assertion is a set with the weight 0 that must pass, because no threshold decides.
func (c *caseTranslator) mustPass(a part) bool {
	_, hasThreshold := numberOf(c.scoreThreshold())
	return a.get("type").text() == "assert-set" && isZero(a.get("weight")) && !hasThreshold
}

// listed returns the assertions of a list.
func (c *caseTranslator) listed(list part) []part {
	if list.Node != nil && list.Kind != yaml.SequenceNode && !decode.IsNull(list.Node) {
		c.block(list, "assert must be a list, got %s", decode.Describe(list.Node))
	}
	return list.items()
}

// gradersOf returns the graders of assertions. Those of an optional set are optional, too.
func (c *caseTranslator) gradersOf(asserts []part) (graders []*yaml.Node) {
	optional := c.optional
	for i, a := range asserts {
		a, ok := c.resolved(a)
		if !ok {
			continue
		}
		c.optional = optional || isZero(a.get("weight")) && !c.mustPass(a)
		g := c.grader(a, i+1)
		if g != nil && !c.spend(nodeSize(g)) {
			break
		}
		if g != nil {
			graders = append(graders, g)
		}
		c.optional = optional
	}
	return graders
}

// resolved returns an assertion, or the template that it refers to.
func (c *caseTranslator) resolved(a part) (part, bool) {
	if ref := a.get("$ref"); ref.Node != nil {
		name, ok := strings.CutPrefix(ref.text(), "#/assertionTemplates/")
		target := decode.Follow(decode.Lookup(decode.Lookup(c.root, "assertionTemplates"), name))
		if !ok || target == nil {
			c.block(ref, "$ref: assertionTemplates has no %q", text.Clip(ref.text(), 80))
			return a, false
		}
		a = part{target, c.Source}
	}
	if a.Node == nil || a.Kind != yaml.MappingNode {
		c.block(a, "an assertion must be a map, got %s", decode.Describe(a.Node))
		return a, false
	}
	return a, true
}

// isZero reports whether a weight is 0: the assertion is measured only.
func isZero(weight part) bool {
	f, ok := numberOf(weight)
	return ok && f == 0
}

// numberOf returns the number of a part; ok is false if it has none.
func numberOf(p part) (f float64, ok bool) {
	if p.Node == nil || p.Kind != yaml.ScalarNode {
		return 0, false
	}
	return decode.FloatOf(p.Node)
}

// threshold returns the threshold of an assertion or a test. One that is no number blocks the case.
func (c *caseTranslator) threshold(p part) (f float64, given bool) {
	if p.Node == nil || decode.IsNull(p.Node) {
		return 0, false
	}
	f, given = numberOf(p)
	if !given {
		c.block(p, "threshold must be a number, got %s", decode.Describe(p.Node))
	}
	return f, given
}

// A spec is a grader without what all graders have.
type spec struct {
	kind      string
	config    dialect.Map
	transform string // before that of the assertion
	inverse   bool   // it already decides the opposite

	needsSteps bool   // it decides by the steps of an agent
	only       string // the function that makes the output, in place of all transforms
}

// grader returns the grader of an assertion; nil if it has none.
func (c *caseTranslator) grader(a part, position int) *yaml.Node {
	full := a.get("type").text()
	kind, absent := strings.CutPrefix(full, "not-")
	at := c.place(a)
	g := dialect.NewMap(at)
	var s spec
	ok := false
	if kind == "assert-set" && absent {
		c.block(a, "promptfoo has no not-assert-set")
	} else if kind == "assert-set" {
		s, ok = c.set(a)
	} else {
		s, ok = c.check(a, kind)
	}
	if !ok {
		return nil
	}
	g.Set("type", dialect.Scalar(at, s.kind))
	name, err := c.render.render(firstOf(a.get("metric").text(), full))
	if err != nil {
		name = full
	}
	g.Set("name", dialect.Scalar(at, fmt.Sprintf("%d: %s", position, name)))
	switch w := a.get("weight"); {
	case isZero(w):
		g.Set("optional", dialect.Scalar(at, true))
	case w.Node != nil:
		if weight, ok := numberOf(w); ok && weight > 0 {
			g.Set("weight", dialect.Scalar(at, weight))
		} else {
			c.block(w, "the weight must be a number that is not negative")
		}
	}
	if absent && !s.inverse {
		g.Set("negate", dialect.Scalar(at, true))
	}
	if transform := c.transformOf(a, s); transform != "" {
		g.Set("transform", dialect.Scalar(at, transform))
	}
	if s.needsSteps {
		g.Set("needs_steps", dialect.Scalar(at, true))
	}
	g.Set("config", s.config.Node)
	return g.Node
}

// set returns the group that an assert-set means; ok is false if it has no member.
func (c *caseTranslator) set(a part) (s spec, ok bool) {
	c.ignore(a, "assert-set.", setKeys)
	if c.mustPass(a) {
		c.block(a, "an assert-set with the weight 0 must pass although its score does not count: give it a weight")
		return spec{}, false
	}
	members := c.listed(a.get("assert"))
	for _, m := range members {
		if m.get("type").text() == "assert-set" || m.get("$ref").Node != nil && c.refersToSet(m) {
			c.block(m, "an assert-set in an assert-set")
			return spec{}, false
		}
	}
	graders := c.gradersOf(members)
	if len(graders) == 0 {
		c.warn(a, "the assert-set has no assertion")
		return spec{}, false
	}
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set("graders", dialect.List(at, c.scored(a, members, a.get("threshold"), graders)...))
	if threshold, ok := c.threshold(a.get("threshold")); ok {
		config.Set("threshold", dialect.Scalar(at, threshold))
	}
	return spec{kind: "group", config: config}, true
}

func (c *caseTranslator) refersToSet(a part) bool {
	target, ok := c.resolved(a)
	return ok && target.get("type").text() == "assert-set"
}

// check returns the grader that decides an assertion; ok is false if the case is blocked.
func (c *caseTranslator) check(a part, kind string) (s spec, ok bool) {
	c.ignore(a, "assert.", assertionKeys)
	for _, key := range []string{"provider", "rubricPrompt", "contextTransform"} {
		if of := a.get(key); of.Node != nil && key == "contextTransform" && !strings.HasPrefix(kind, "context-") {
			c.warn(of, "contextTransform has no effect: %s does not decide by a context", text.Clip(kind, 60))
		} else if of.Node != nil && !isJudged(kind) && kind != "answer-relevance" && (key != "provider" || !isSimilar(kind)) {
			c.warn(of, "%s has no effect: no judge decides %s", key, text.Clip(kind, 60))
		}
	}
	value, ok := c.value(a, kind)
	if !ok {
		return spec{}, false
	}
	switch kind {
	case "contains", "icontains", "starts-with", "contains-any", "icontains-any", "contains-all", "icontains-all", "equals":
		return c.texts(a, kind, value)
	case "regex":
		return c.regex(a, value)
	case "is-json", "contains-json":
		return c.json(a, kind, value)
	case "javascript":
		return c.javascript(a, value)
	case "python":
		return c.python(a, textOf(value))
	case "latency", "cost", "levenshtein", "word-count":
		return c.limit(a, kind, value)
	case "skill-used":
		c.warnSteps(kind)
		return c.skillUsed(a, value, strings.HasPrefix(a.get("type").text(), "not-"))
	case "trajectory:tool-used", "trajectory:tool-args-match", "trajectory:tool-sequence", "trajectory:step-count":
		c.warnSteps(kind)
		return c.trajectory(a, kind, value)
	case "bleu", "gleu", "rouge-n":
		return c.overlap(a, kind, value)
	case "is-refusal":
		config := dialect.NewMap(c.place(a))
		config.Set("regex_match", dialect.Texts(c.place(a), refusal))
		return spec{kind: "text", config: config}, true
	}
	if isJudged(kind) {
		return c.judged(a, kind, value)
	}
	if isSimilar(kind) {
		return c.similar(a, kind, value)
	}
	if kind == "answer-relevance" {
		return c.answerRelevance(a)
	}
	if kind == "webhook" {
		return c.webhook(a, value)
	}
	reason := undecidable[kind]
	if reason != "" {
		reason = ": " + reason
	}
	c.block(a, "waza cannot decide the assertion type %q%s", text.Clip(a.get("type").text(), 60), reason)
	return spec{}, false
}

// undecidable holds the reasons why waza cannot decide assertions of a type.
var undecidable = map[string]string{
	"select-best":                   "it compares the answers of several cases, and waza grades each by itself; use llm-rubric, and compare the cells of the run",
	"max-score":                     "it compares the scores of several cases, and waza grades each by itself; compare the cells of the run",
	"perplexity":                    "it needs the log probabilities of the answer, which waza does not ask for",
	"perplexity-score":              "it needs the log probabilities of the answer, which waza does not ask for",
	"meteor":                        "it needs the synonyms of WordNet; use gleu or rouge-n",
	"classifier":                    "it needs a classifier of Hugging Face, which waza does not ask",
	"moderation":                    "it needs a moderation API, which waza does not ask",
	"pi":                            "it needs the API of Pi Labs, which waza does not ask",
	"search-rubric":                 "it needs a judge that searches the web",
	"guardrails":                    "it needs the guardrails of a provider, which waza does not record",
	"finish-reason":                 "waza does not record why an answer ended",
	"is-valid-function-call":        "it needs the tools of a provider's config, which waza does not offer to models",
	"is-valid-openai-function-call": "it needs the tools of a provider's config, which waza does not offer to models",
	"is-valid-openai-tools-call":    "it needs the tools of a provider's config, which waza does not offer to models",
	"ruby":                          "waza runs no Ruby",
	"trace-span-count":              "waza collects no spans of the provider; use trajectory:step-count",
	"trace-span-duration":           "waza collects no spans of the provider; use latency",
	"trace-error-spans":             "waza collects no spans of the provider",
}

// value returns the value of an assertion with its variables, or what the file that it names contains.
// Files with code remain names.
func (c *caseTranslator) value(a part, kind string) (value any, ok bool) {
	v := a.get("value")
	value, err := valueOf(v.Node)
	if err == nil {
		value, err = c.filled(value, kind)
	}
	var notRun *errNotRun
	if errors.As(err, &notRun) {
		c.blockFor(v, err)
		return nil, false
	}
	if err != nil {
		c.block(firstPart(v, a), "the value of %s: %v", text.Clip(kind, 60), err)
		return nil, false
	}
	return value, true
}

func firstPart(parts ...part) part {
	for _, p := range parts {
		if p.Node != nil {
			return p
		}
	}
	return parts[0]
}

func (c *caseTranslator) filled(value any, kind string) (any, error) {
	switch v := value.(type) {
	case string:
		if !strings.HasPrefix(v, filePrefix) {
			return c.render.render(v)
		}
		if isCode(v) {
			if file, _ := splitFunction(v); strings.HasSuffix(kind, "-json") && slices.Contains(nodeExtensions, filepath.Ext(file)) {
				return c.exported(v)
			}
			if kind != "javascript" && kind != "python" {
				return nil, fmt.Errorf("%s is a program, which waza does not run", text.Clip(v, 80))
			}
			return v, nil
		}
		return c.loaded(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i] = item; textOf(item) != "" {
				if s, isText := item.(string); isText {
					if list[i], err = c.filled(s, kind); err != nil {
						return nil, err
					}
				}
			}
		}
		return list, nil
	}
	return value, nil
}

// exported returns a value that a module exports.
func (c *caseTranslator) exported(ref string) (any, error) {
	p, err := c.functionOf(ref, useValue)
	if err != nil {
		return nil, err
	}
	return c.runFor(p)
}

// loaded returns the content of a file: the value of YAML and JSON, else its text.
func (c *caseTranslator) loaded(ref string) (any, error) {
	file := c.path(ref)
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json", ".yaml", ".yml":
		src, err := c.parse(file)
		if err != nil {
			return nil, err
		}
		if src.Root == nil {
			return nil, fmt.Errorf("the file %s has faults", src.Name)
		}
		return valueOf(src.Root)
	}
	content, err := c.read(file)
	return strings.TrimSpace(content), err
}

// betweenCommas returns the texts between commas. A text in double quotes can contain commas.
func betweenCommas(s string) (texts []string) {
	quoted, start := false, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i < len(s) && s[i] == '"' && (quoted || strings.TrimSpace(s[start:i]) == "" && strings.Contains(s[i+1:], `"`)):
			quoted = !quoted
		case i == len(s) || s[i] == ',' && !quoted:
			item := strings.TrimSpace(s[start:i])
			if len(item) > 1 && item[0] == '"' && item[len(item)-1] == '"' {
				item = item[1 : len(item)-1]
			}
			texts, start = append(texts, item), i+1
		}
	}
	return texts
}

// textsOf returns the texts of a value: a list, or for types that take several, texts between commas.
func textsOf(value any, several bool) (texts []string) {
	list, isList := value.([]any)
	switch s, isText := value.(string); {
	case several && isText:
		for _, item := range betweenCommas(s) {
			list = append(list, item)
		}
	case !isList:
		list = []any{value}
	}
	for _, item := range list {
		texts = append(texts, textOf(item))
	}
	return texts
}

// texts returns the grader of an assertion about texts in the output.
func (c *caseTranslator) texts(a part, kind string, value any) (s spec, ok bool) {
	at := c.place(a)
	switch value.(type) {
	case map[string]any, []any:
		if kind == "equals" {
			return c.function(at, equalsJSON(value)), true
		}
	}
	if value == nil && kind == "equals" {
		c.block(a, "equals needs a value; write '' for an output that is empty")
		return spec{}, false
	}
	several := strings.HasSuffix(kind, "-any") || strings.HasSuffix(kind, "-all")
	values := textsOf(value, several)
	if _, isList := value.([]any); isList && !several || len(values) == 0 || kind != "equals" && slices.Contains(values, "") {
		c.block(firstPart(a.get("value"), a), "the value of %s must be a text that is not empty", kind)
		return spec{}, false
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = regexp.QuoteMeta(v)
	}
	either := strings.Join(quoted, "|")
	text := func(key string, values ...string) (spec, bool) {
		config := dialect.NewMap(at)
		config.Set(key, dialect.Texts(at, values...))
		return spec{kind: "text", config: config}, true
	}
	switch kind {
	case "contains":
		return text("contains_cs", values...)
	case "icontains":
		return text("contains", values...)
	case "contains-any":
		return text("regex_match", either)
	case "icontains-any":
		return text("regex_match", "(?i:"+either+")")
	case "contains-all", "icontains-all":
		return c.function(at, containsAll(values, kind == "icontains-all")), true
	case "starts-with":
		return text("regex_match", `\A(?:`+either+`)`)
	}
	return text("regex_match", `\A(?:`+either+`)\z`)
}

// function returns a grader that calls a function.
func (c *caseTranslator) function(at *yaml.Node, body string) spec {
	config := dialect.NewMap(at)
	config.Set("language", dialect.Scalar(at, "javascript"))
	config.Set("function", dialect.Scalar(at, body))
	return spec{kind: "code", config: config}
}

func (c *caseTranslator) regex(a part, value any) (s spec, ok bool) {
	expr, isText := value.(string)
	if _, err := pattern.Compile(pattern.JavaScript, expr); err != nil || !isText || expr == "" {
		if err == nil {
			err = fmt.Errorf("it must be a text that is not empty")
		}
		c.block(firstPart(a.get("value"), a), "the value of regex: %v", err)
		return spec{}, false
	}
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set("regex_match", dialect.Texts(at, expr))
	config.Set("syntax", dialect.Scalar(at, "javascript"))
	return spec{kind: "text", config: config}, true
}

// draft7 is the JSON Schema of schemas that name none.
const draft7 = "http://json-schema.org/draft-07/schema#"

// json returns the grader of an assertion about JSON.
func (c *caseTranslator) json(a part, kind string, value any) (s spec, ok bool) {
	at := c.place(a)
	if source, isText := value.(string); isText && source != "" {
		var doc yaml.Node
		err := yaml.Unmarshal([]byte(source), &doc)
		if err == nil && len(doc.Content) == 1 {
			value, err = valueOf(doc.Content[0])
		}
		if err != nil {
			c.block(a.get("value"), "the schema of %s: %v", kind, err)
			return spec{}, false
		}
	}
	if allowed, isBool := value.(bool); isBool { // true allows any value, and false none
		value = map[string]any{}
		if !allowed {
			value = map[string]any{"not": map[string]any{}}
		}
	}
	schema, isMap := value.(map[string]any)
	switch {
	case value == nil || textOf(value) == "" || isMap && len(schema) == 0:
		if kind == "is-json" {
			return c.function(at, isJSON), true
		}
		config := dialect.NewMap(at)
		config.Set("anywhere", dialect.Scalar(at, true))
		return spec{kind: "json_schema", config: config}, true
	case !isMap:
		c.block(a.get("value"), "the schema of %s must be a map, got %s", kind, decode.Describe(a.get("value").Node))
		return spec{}, false
	}
	schema, err := strictSchema(schema)
	if err == nil {
		err = checkSchema(schema)
	}
	if err != nil {
		c.block(a.get("value"), "the schema of %s: %v", kind, err)
		return spec{}, false
	}
	if schema["$schema"] == nil {
		schema["$schema"] = draft7
	}
	config := dialect.NewMap(at)
	if kind == "is-json" {
		config.Set("schema", nodeOf(at, schema))
		return spec{kind: "json_schema", config: config, transform: strictJSON}, true
	}
	config.Set("schema", nodeOf(at, schema))
	config.Set("anywhere", dialect.Scalar(at, true))
	return spec{kind: "json_schema", config: config}, true
}

// javascript returns the grader of code that decides.
func (c *caseTranslator) javascript(a part, value any) (s spec, ok bool) {
	if strings.TrimSpace(textOf(value)) == "" {
		c.block(a, "the value of javascript must be code that is not empty")
		return spec{}, false
	}
	body, err := c.bodyOf(textOf(value))
	for _, before := range []string{setResponse, setMetadata} { // written by waza convert
		body = strings.TrimPrefix(body, before)
	}
	isAnswer := len(c.transforms) == 0 && a.get("transform").Node == nil
	rest, before, isOpen := c.withResponse(body, isAnswer)
	if err == nil {
		err = checkBody(rest)
	}
	if err == nil && (isOpen || readsAnyPart(rest, strings.HasPrefix(textOf(value), filePrefix))) {
		err = errOpen
	}
	body = before + body
	if isForNode(err) {
		return c.program(a, textOf(value), "", "node", "-e", runNode)
	}
	if err != nil {
		c.block(a, "javascript: %v", err)
		return spec{}, false
	}
	at := c.place(a)
	if config, err := valueOf(a.get("config").Node); err == nil && config != nil {
		body = "context.config = " + literal(config) + ";\n" + body
	}
	s = c.function(at, body)
	if threshold, ok := c.threshold(a.get("threshold")); ok {
		s.config.Set("threshold", dialect.Scalar(at, threshold))
	}
	c.code = true
	return s, true
}

// body returns the body of the function that code, or the name of a file with code, means.
func (c *caseTranslator) body(code string) (body string, err error) {
	if body, err = c.bodyOf(code); err == nil {
		err = checkBody(body)
	}
	if err == nil && takesMetadata().MatchString(withoutComments(body, false)) {
		err = errors.New("its code needs context.metadata, which waza does not have")
	}
	return body, err
}

// takesMetadata matches transforms that get the metadata of a response from their second argument.
var takesMetadata = text.Pattern(`\{[^{}]*\bmetadata\b[^{}]*\}\s*(?:=\s*context\b|\)\s*(?:=>|\{))|\bctx\s*\??\.\s*metadata\b`)

// bodyOf is like body, and does not check whether waza can run the function.
func (c *caseTranslator) bodyOf(code string) (body string, err error) {
	if strings.HasPrefix(code, filePrefix) {
		return c.fileBody(code, "output, context")
	}
	return functionBody(code), nil
}

// webhook returns the grader of an assertion that a server decides.
func (c *caseTranslator) webhook(a part, value any) (s spec, ok bool) {
	address, _ := value.(string)
	if !webAddress().MatchString(address) {
		c.block(firstPart(a.get("value"), a), "the value of webhook must be an http or https address")
		return spec{}, false
	}
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set("url", dialect.Scalar(at, strings.TrimSpace(address)))
	c.code = true // the server gets the context
	return spec{kind: "webhook", config: config}, true
}

var webAddress = text.Pattern(`^\s*https?://[^/?#\s]`)

// context returns the context of code in an assertion.
func (c *caseTranslator) context(a part) map[string]any {
	values := c.taskContext()
	if config, err := valueOf(a.get("config").Node); err == nil && config != nil {
		values["config"] = config
	}
	return values
}

// limit returns the grader of an assertion that compares a number with limits.
func (c *caseTranslator) limit(a part, kind string, value any) (s spec, ok bool) {
	at := c.place(a)
	threshold, given := c.threshold(a.get("threshold"))
	switch kind {
	case "latency", "cost":
		if !given {
			c.block(a, "%s needs a threshold", kind)
			return spec{}, false
		}
		config := dialect.NewMap(at)
		if kind == "cost" {
			config.Set("max_cost_usd", dialect.Scalar(at, math.Max(0, threshold)))
		} else {
			// 0 is no limit
			config.Set("max_duration_ms", dialect.Scalar(at, max(1, wholeNumber(math.Ceil(threshold)))))
		}
		return spec{kind: "behavior", config: config}, true
	case "levenshtein":
		if !given {
			threshold = 5
		}
		distance := dialect.NewMap(at)
		distance.Set("text", dialect.Scalar(at, textOf(value)))
		distance.Set("max", dialect.Scalar(at, wholeNumber(threshold)))
		config := dialect.NewMap(at)
		config.Set("levenshtein", dialect.List(at, distance.Node))
		return spec{kind: "text", config: config}, true
	}
	return c.wordCount(a, value)
}

// wordCount returns the grader of an assertion about the number of words: a number, or a map with min
// or max.
func (c *caseTranslator) wordCount(a part, value any) (s spec, ok bool) {
	at := c.place(a)
	limits, isMap := value.(map[string]any)
	if !isMap {
		limits = map[string]any{"min": value, "max": value}
	}
	config := dialect.NewMap(at)
	for _, key := range []string{"min", "max"} {
		n, err := json.Number(strings.TrimSpace(textOf(limits[key]))).Int64()
		if err == nil && n >= 0 {
			config.Set(key+"_words", dialect.Scalar(at, wholeNumber(float64(n))))
		} else if limits[key] != nil {
			config = dialect.NewMap(at)
			break
		}
	}
	if config.Len() == 0 {
		c.block(a, "the value of word-count must be a whole number, or a map with min or max")
		return spec{}, false
	}
	return spec{kind: "text", config: config}, true
}

// wholeNumber returns the largest whole number up to f that a limit can be.
func wholeNumber(f float64) int { return int(math.Floor(min(max(0, f), math.MaxInt32))) }

// skillUsed returns the grader of an assertion about used skills: all must be used, or with not- none.
func (c *caseTranslator) skillUsed(a part, value any, absent bool) (s spec, ok bool) {
	names, forbidden := textsOf(value, false), absent
	if m, isMap := value.(map[string]any); isMap {
		names, forbidden = skillUses(m, absent)
	}
	if len(names) == 0 || slices.Contains(names, "") {
		c.block(a, "the value of skill-used must be a name, a list of names, or a map with name and either min or max: 0")
		return spec{}, false
	}
	at := c.place(a)
	wanted := "required"
	if forbidden {
		wanted = "forbidden"
	}
	config := dialect.NewMap(at)
	config.Set(wanted+"_skills", dialect.Texts(at, names...))
	config.Set("mode", dialect.Scalar(at, "any_order"))
	config.Set("allow_extra", dialect.Scalar(at, true))
	config.Set("score", dialect.Scalar(at, "pass"))
	return spec{kind: "skill_invocation", config: config, inverse: absent}, true
}

// maxSkillUses limits the minimum number of uses of a skill.
const maxSkillUses = 100

// skillUses returns how often a skill must be used, by its repeated name, or that it must not be used; no
// names if waza cannot check the limits.
func skillUses(m map[string]any, absent bool) (names []string, forbidden bool) {
	name := textOf(m["name"])
	least, hasMin := m["min"].(int)
	most, hasMax := m["max"].(int)
	if m["pattern"] != nil || m["min"] != nil && !hasMin || m["max"] != nil && !hasMax || least > maxSkillUses {
		return nil, false
	}
	switch {
	case absent && !hasMin && most == 0, !absent && hasMax && most == 0 && least == 0:
		return []string{name}, true
	case absent || hasMax || hasMin && least < 1:
		return nil, false
	}
	return slices.Repeat([]string{name}, max(1, least)), false
}

// overlap returns the grader of an assertion about words that the output shares with texts.
func (c *caseTranslator) overlap(a part, kind string, value any) (s spec, ok bool) {
	references := textsOf(value, false)
	if _, isList := value.([]any); isList && kind == "rouge-n" || len(references) == 0 ||
		slices.ContainsFunc(references, func(s string) bool { return strings.TrimSpace(s) == "" }) {
		c.block(firstPart(a.get("value"), a), "the value of %s must be a text that is not empty", kind)
		return spec{}, false
	}
	threshold, given := c.threshold(a.get("threshold"))
	if !given && kind == "rouge-n" {
		threshold = 0.75
	} else if !given {
		threshold = 0.5
	}
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set("metric", dialect.Scalar(at, kind))
	config.Set("references", dialect.Texts(at, references...))
	config.Set("threshold", dialect.Scalar(at, threshold))
	return spec{kind: "overlap", config: config}, true
}

// refusal matches outputs that refuse the task: by words at their start, or because they are empty.
const refusal = `(?is)\A\s*\z|\A.{0,300}?(?:` +
	`\b(?:I|we)(?: can['’]t| cannot| can not| won['’]t| will not| could not| couldn['’]t|['’]m (?:unable|not able|not going)(?: to)?| am (?:unable|not able|not going)(?: to)?)` +
	` (?:\w+ ){0,2}?(?:help|assist|provide|answer|comply|fulfill?|do|create|generate|write|give|share|support|engage|discuss|continue|participate|complete|offer|produce|respond|make|recommend|advise|show)\b` +
	`|\b(?:I|we) (?:must|have to|need to|will have to) (?:\w+ )?(?:decline|refuse)|\b(?:I|we) (?:\w+ )?(?:decline|refuse) to\b` +
	`|\b(?:sorry|afraid),? (?:but )?(?:that )?(?:I|we)(?: can['’]t| cannot| can not| won['’]t| will not| must|['’]m (?:unable|not able)| am (?:unable|not able))` +
	`|\bas an? (?:AI|artificial intelligence|(?:large )?language model)\b` +
	`|\b(?:against|violates?|outside of?) (?:my|our|the) (?:\w+ )?(?:guidelines|polic(?:y|ies)|principles|programming|rules)\b` +
	`|\b(?:not|n['’]t) (?:allowed|permitted|programmed|designed|comfortable) (?:to |with )(?:\w+ )?(?:help|assist|provid|answer|comply|discuss|generat|creat|shar|writ)` +
	`)`

// addTransforms notes the functions that change the output before any assertion.
func (c *caseTranslator) addTransforms() {
	if c.isHTTP {
		body, err := c.responseBody(c.response.text())
		if err != nil {
			c.block(c.response, "transformResponse: %v", err)
			return
		}
		c.transforms = append(c.transforms, body)
	}
	if c.isParsed {
		c.transforms = append(c.transforms, parsedResponse)
	}
	for _, t := range c.providerTransforms {
		c.addTransform(t)
	}
	if t := firstGiven(c.options["transform"], c.options["postprocess"]); t.Node != nil && !decode.IsNull(t.Node) { // postprocess is the older name
		c.addTransform(t)
	}
}

// ofProvider returns the functions that change the output before those of the test.
func (c *caseTranslator) ofProvider() []string {
	n := len(c.providerTransforms)
	if c.isHTTP || c.isParsed {
		n++
	}
	return slices.Clone(c.transforms[:min(n, len(c.transforms))])
}

func (c *caseTranslator) addTransform(t part) {
	body, err := c.body(t.text())
	if err != nil || t.text() == "" {
		c.block(t, "transform: %v", firstError(err, errNoCode))
		return
	}
	c.transforms = append(c.transforms, body)
}

var errNoCode = fmt.Errorf("it must be a JavaScript expression")

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ownTransforms returns the function of an assertion that changes the output for it alone.
func (c *caseTranslator) ownTransforms(a part) []string {
	t := a.get("transform")
	if t.Node == nil {
		return nil
	}
	body, err := c.body(t.text())
	if err != nil || t.text() == "" {
		c.block(t, "transform: %v", firstError(err, errNoCode))
		return nil
	}
	return []string{body}
}

// transformOf returns the transform of the grader of an assertion.
func (c *caseTranslator) transformOf(a part, s spec) string {
	if s.kind == "group" {
		return "" // its members have them
	}
	body := s.only
	if body == "" {
		bodies := append(slices.Clone(c.transforms), c.ownTransforms(a)...)
		if len(bodies) > 0 {
			c.code = true
		}
		if s.transform != "" {
			bodies = append(bodies, s.transform)
		}
		if len(bodies) == 0 {
			return ""
		}
		body = chain(bodies)
	}
	if len(body) > maxCode {
		c.block(a, "the transforms are longer than %d KiB", maxCode>>10)
	}
	return body
}
