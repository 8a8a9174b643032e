package promptfoo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// judgedTypes are the types of assertions that a judge decides, with the threshold that decides when an
// assertion has none. Where it is absent, the verdict of the judge decides.
var judgedTypes = map[string]*float64{
	"llm-rubric": nil, "model-graded-closedqa": nil, "factuality": new(anyScore), "model-graded-factuality": new(anyScore), "trajectory:goal-success": nil,
	"g-eval": new(0.7), "context-recall": new(0.5), "context-relevance": new(0.5), "context-faithfulness": new(0.5), "conversation-relevance": new(0.0),
}

// anyScore is a threshold that all scores above 0 reach.
const anyScore = 1e-6

func isJudged(kind string) bool {
	_, ok := judgedTypes[kind]
	return ok
}

// A question is what a judge decides.
type question struct {
	criteria  string
	reference string // a text from elsewhere, which the judge sees as data
	transform string // the function that makes the output; empty for the transforms of the test
}

// Criteria of judges, for fmt.
const (
	closedCriteria = "Decide whether the output meets this criterion, and nothing else:\n\n%s\n\nThe work passes with the score 1 if it does, " +
		"and fails with the score 0 if it does not."
	stepsCriteria = "Judge the output by one criterion alone:\n\n%s\n\nFirst derive from the criterion the steps of a check. Then take these " +
		"steps one by one. The score is how far the output meets the criterion, from 0 (not at all) to 1 (fully)."
	recallCriteria = "Judge the reference, which is the context that was found for the task, and not the output. It should contain this " +
		"knowledge:\n\n%s\n\nDivide the knowledge into its statements. The score is the share of statements that the context supports."
	relevanceCriteria = "Judge the reference, which is the context that was found for a question, and not the output. The question:\n\n%s\n\n" +
		"Divide the context into its sentences. The score is the share of sentences that help to answer the question."
	faithfulnessCriteria = "The output answers this question:\n\n%s\n\nThe reference is the context from which it should take its facts. Divide " +
		"the output into its statements. The score is the share of statements that follow from the context, whether or not they are true elsewhere."
	// With contextTransform, the context is the output that the judge sees, or a part of it.
	recallOfOutput = "The output is the context that was found for the task. It should contain this knowledge:\n\n%s\n\nDivide the " +
		"knowledge into its statements. The score is the share of statements that the context supports."
	relevanceOfOutput = "The output is the context that was found for a question. The question:\n\n%s\n\nDivide the context into its " +
		"sentences. The score is the share of sentences that help to answer the question."
	faithfulnessOfOutput = "The output is a JSON object with an answer and its context. The answer answers this question:\n\n%s\n\nThe context " +
		"is the source from which the answer should take its facts. Divide the answer into its statements. The score is the share of statements " +
		"that follow from the context, whether or not they are true elsewhere."
	conversationCriteria = "The score is 1 if the output is a relevant response to the task, and 0 if it ignores the task or leads away from it."
	goalCriteria         = "Did the agent reach this goal?\n\n%s\n\nJudge by its steps in the session and by its output. Steps alone are not enough if " +
		"the goal was not reached. The score is how far it came, from 0 to 1. It passes only if it reached the goal."
)

// judged returns the grader of an assertion that asks a judge.
func (c *caseTranslator) judged(a part, kind string, value any) (s spec, ok bool) {
	if list, isList := value.([]any); isList && kind == "g-eval" {
		return c.meanOf(a, list)
	}
	q, err := c.question(a, kind, value)
	if err == nil {
		q.criteria, err = c.ownPrompt(a, kind, value, q.criteria)
	}
	if err != nil {
		c.block(a, "%s: %v", kind, err)
		return spec{}, false
	}
	s, ok = c.asked(a, kind, q)
	if s.needsSteps = ok && kind == "trajectory:goal-success"; s.needsSteps {
		c.warnSteps(kind)
	}
	return s, ok
}

// asked returns the grader that asks a judge a question.
func (c *caseTranslator) asked(a part, kind string, q question) (s spec, ok bool) {
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set("prompt", dialect.Scalar(at, q.criteria))
	if q.reference != "" {
		config.Set("reference", dialect.Scalar(at, q.reference))
	}
	usual := judgedTypes[kind]
	switch threshold, given := c.threshold(a.get("threshold")); {
	case given && usual == nil:
		config.Set("threshold", dialect.Scalar(at, threshold))
		config.Set("verdict_counts", dialect.Scalar(at, true))
	case given && (threshold != 0 || kind != "g-eval"): // 0 is no threshold there
		config.Set("threshold", dialect.Scalar(at, threshold))
	case usual != nil:
		config.Set("threshold", dialect.Scalar(at, *usual))
		c.warnUsual(a, kind, *usual)
	}
	provider := a.get("provider")
	if provider.Node == nil {
		provider = c.options["provider"]
	}
	if provider.Node != nil {
		if err := c.judgeOf(config, at, provider); err != nil {
			c.block(provider, "the judge: %v", err)
			return spec{}, false
		}
	}
	return spec{kind: "prompt", config: config, only: q.transform}, true
}

// warnUsual warns about the default of a threshold that versions of promptfoo do not share, or that every score
// reaches.
func (c *caseTranslator) warnUsual(a part, kind string, usual float64) {
	switch {
	case usual == 0:
		c.warn(a, "%s has the threshold 0, which every score reaches; write a threshold", kind)
	case strings.HasPrefix(kind, "context-"):
		c.warn(a, "%s has the threshold %v, and older versions of promptfoo 0, which every score reaches; write a threshold", kind, usual)
	}
}

// meanOf returns the group that several criteria mean: the mean of their scores decides.
func (c *caseTranslator) meanOf(a part, criteria []any) (s spec, ok bool) {
	if strings.HasPrefix(a.get("type").text(), "not-") {
		c.block(a, "not-g-eval with several criteria: write an assertion for each")
		return spec{}, false
	}
	at := c.place(a)
	members := dialect.List(at)
	least := *judgedTypes["g-eval"]
	for i, criterion := range criteria {
		if strings.TrimSpace(textOf(criterion)) == "" {
			c.block(a, "the value of g-eval must contain no empty text")
			return spec{}, false
		}
		member, ok := c.asked(a, "g-eval", question{criteria: fmt.Sprintf(stepsCriteria, textOf(criterion))})
		if !ok {
			return spec{}, false
		}
		least, _ = decode.FloatOf(member.config.Get("threshold"))
		g := dialect.NewMap(at)
		g.Set("type", dialect.Scalar(at, member.kind))
		g.Set("name", dialect.Scalar(at, fmt.Sprintf("criterion %d", i+1)))
		if transform := c.transformOf(a, member); transform != "" {
			g.Set("transform", dialect.Scalar(at, transform))
		}
		g.Set("config", member.config.Node)
		members.Content = append(members.Content, g.Node)
	}
	if len(members.Content) == 0 {
		c.block(a, "g-eval needs a value")
		return spec{}, false
	}
	config := dialect.NewMap(at)
	config.Set("graders", members)
	config.Set("threshold", dialect.Scalar(at, least))
	return spec{kind: "group", config: config}, true
}

// question returns what an assertion asks.
func (c *caseTranslator) question(a part, kind string, value any) (q question, err error) {
	wanted := textOf(value)
	if m, isMap := value.(map[string]any); isMap && kind == "trajectory:goal-success" {
		wanted = textOf(m["goal"])
	}
	if strings.TrimSpace(wanted) == "" && !slices.Contains([]string{"context-relevance", "context-faithfulness", "conversation-relevance"}, kind) &&
		(kind != "llm-rubric" || c.rubricPrompt(a).Node == nil) {
		return q, errNoValue
	}
	switch kind {
	case "llm-rubric":
		q.criteria = wanted
	case "model-graded-closedqa":
		q.criteria = fmt.Sprintf(closedCriteria, wanted)
	case "g-eval":
		q.criteria = fmt.Sprintf(stepsCriteria, wanted)
	case "trajectory:goal-success":
		q.criteria = fmt.Sprintf(goalCriteria, wanted)
	case "conversation-relevance":
		if _, several := c.vars["_conversation"]; several {
			return q, fmt.Errorf("waza judges no conversation of the variable _conversation")
		}
		q.criteria = conversationCriteria
	case "context-recall", "context-relevance", "context-faithfulness":
		return c.contextQuestion(a, kind, wanted)
	default:
		q.reference = wanted
		q.criteria, err = c.factuality()
	}
	return q, err
}

var errNoValue = fmt.Errorf("it needs a value")

// contextQuestion returns what an assertion about the variable context asks.
func (c *caseTranslator) contextQuestion(a part, kind, wanted string) (q question, err error) {
	q.reference = contextOf(c.vars["context"])
	query, hasQuery := c.vars["query"].(string)
	own := a.get("contextTransform")
	switch {
	case !decode.IsNull(own.Node) && own.Node != nil:
		if kind != "context-recall" {
			if wanted = query; !hasQuery {
				return q, errNoQuery
			}
		}
		return c.transformedContext(a, kind, wanted)
	case kind == "context-recall":
		if q.reference == "" {
			q.reference = c.prompt
		}
		q.criteria = fmt.Sprintf(recallCriteria, wanted)
		return q, nil
	case q.reference == "":
		return q, fmt.Errorf("the test needs the variable context, a text")
	case !hasQuery:
		return q, errNoQuery
	case kind == "context-relevance":
		q.criteria = fmt.Sprintf(relevanceCriteria, query)
	default:
		q.criteria = fmt.Sprintf(faithfulnessCriteria, query)
	}
	return q, nil
}

var errNoQuery = fmt.Errorf("the test needs the variable query, a text")

// transformedContext returns what an assertion asks about the context that its contextTransform makes of the output of
// the provider. The transform of the test does not change that output.
func (c *caseTranslator) transformedContext(a part, kind, wanted string) (q question, err error) {
	code := a.get("contextTransform").text()
	body, err := c.body(code)
	if err == nil && strings.TrimSpace(code) == "" {
		err = errNoCode
	}
	if err != nil {
		return q, fmt.Errorf("contextTransform: %w", err)
	}
	context := chain(append(c.ofProvider(), body, joinedContext))
	c.code = true
	switch kind {
	case "context-recall":
		return question{criteria: fmt.Sprintf(recallOfOutput, wanted), transform: context}, nil
	case "context-relevance":
		return question{criteria: fmt.Sprintf(relevanceOfOutput, wanted), transform: context}, nil
	}
	answer := "return output;"
	if bodies := append(slices.Clone(c.transforms), c.ownTransforms(a)...); len(bodies) > 0 {
		answer = chain(bodies)
	}
	both := fmt.Sprintf("return (async () => ({answer: await (function (output, context) {%s\n})(output, context),\n"+
		"context: await (function (output, context) {%s\n})(output, context)}))();", answer, context)
	return question{criteria: fmt.Sprintf(faithfulnessOfOutput, wanted), transform: both}, nil
}

// joinedContext is the body of the function that checks the result of a contextTransform: a text, or a list of texts.
const joinedContext = `const texts = [].concat(output);
if (texts.length === 0 || texts.some(t => typeof t !== "string") || texts.join("") === "") throw new Error("contextTransform must return a text that is not empty");
return texts.join("\n\n");`

// contextOf returns the context that a variable contains: a text, or a list of texts.
func contextOf(v any) string {
	list, isList := v.([]any)
	if !isList {
		s, _ := v.(string)
		return s
	}
	var texts []string
	for _, item := range list {
		texts = append(texts, textOf(item))
	}
	return strings.Join(texts, "\n\n")
}

// A factualCase is a relation of the facts in an output to those in a reference.
type factualCase struct {
	key, says string
	score     float64
}

// factuality returns the criteria of a comparison of facts. options.factuality sets the scores.
func (c *caseTranslator) factuality() (string, error) {
	cases := []factualCase{
		{"subset", "the output states a part of the facts in the reference, and contradicts none", 1},
		{"superset", "the output states all facts in the reference and more, and contradicts none", 1},
		{"agree", "both state the same facts", 1},
		{"disagree", "the output contradicts a fact in the reference", 0},
		{"differButFactual", "they differ in details that do not concern the facts", 1},
	}
	own := c.options["factuality"]
	for _, pair := range dialect.Pairs(own.Node) {
		i := slices.IndexFunc(cases, func(f factualCase) bool { return f.key == pair.Key.Value })
		score, ok := numberOf(part{pair.Value, own.src})
		if i < 0 || !ok || score < 0 || score > 1 {
			return "", fmt.Errorf("options.factuality.%s must be one of its scores, from 0 to 1", text.Clip(pair.Key.Value, 40))
		}
		cases[i].score = score
	}
	var b strings.Builder
	b.WriteString("Compare the facts that the output states with those in the reference. Style, grammar and punctuation do not matter. " +
		"Choose the case that applies, and give its score:\n\n")
	for _, f := range cases {
		fmt.Fprintf(&b, "- score %s: %s\n", textOf(f.score), f.says)
	}
	b.WriteString("\nThe output passes if its score is more than 0.")
	return b.String(), nil
}

// rubricPrompt returns the prompt for judges that a suite has itself.
func (c *caseTranslator) rubricPrompt(a part) part {
	return firstPart(a.get("rubricPrompt"), c.options["rubricPrompt"])
}

// ownPrompt returns the criteria of the prompt that a suite has for its judges, or those given. The place of
// the output in it names the data that the judge sees, because nothing in an output can then count as criteria.
func (c *caseTranslator) ownPrompt(a part, kind string, value any, criteria string) (string, error) {
	own := c.rubricPrompt(a)
	if own.Node == nil || decode.IsNull(own.Node) {
		return criteria, nil
	}
	if kind != "llm-rubric" {
		return "", fmt.Errorf("rubricPrompt: waza has its own prompt for %s", kind)
	}
	template, err := valueOf(own.Node)
	if s, isText := template.(string); isText && strings.HasPrefix(s, filePrefix) && err == nil {
		if isCode(s) {
			return "", fmt.Errorf("rubricPrompt: %s is a program, which waza does not run", text.Clip(s, 80))
		}
		template, err = c.loaded(s)
	}
	if err != nil {
		return "", fmt.Errorf("rubricPrompt: %w", err)
	}
	vars := maps.Clone(c.vars)
	vars["output"], vars["rubric"] = "(the data with the name output)", textOf(value)
	r := *c.render
	r.vars = vars
	rendered, err := promptTexts(&r, template)
	if err == nil && strings.TrimSpace(rendered) == "" {
		err = fmt.Errorf("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("rubricPrompt: %w", err)
	}
	return rendered, nil
}

// promptTexts renders a prompt: a text, or the texts of a chat, which can be JSON.
func promptTexts(r *renderer, template any) (string, error) {
	if s, isText := template.(string); isText {
		var chat []any
		if jsonwalk.Depth(s) > decode.MaxDepth || json.Unmarshal([]byte(s), &chat) != nil {
			return r.render(s)
		}
		template = chat
	}
	list, isList := template.([]any)
	if !isList {
		return "", errRubricPrompt
	}
	var texts []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		content, ok := message{Content: m["content"]}.texts()
		if !ok {
			return "", errRubricPrompt
		}
		s, err := r.render(content)
		if err != nil {
			return "", err
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, "\n\n"), nil
}

var errRubricPrompt = fmt.Errorf("it must be a text, or a chat whose messages have texts")
