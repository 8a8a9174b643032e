package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/internal/given"
	"waza/runner/provider"
	"waza/runner/record"
)

// The tools that existing rubrics name. A judge calls one of them for each criterion:
//
//	score  = passes ÷ (passes + fails)
//	passed = at least one pass and no fail
const (
	gradePass = "set_waza_grade_pass"
	gradeFail = "set_waza_grade_fail"
	setWinner = "set_pairwise_winner"
)

// byCriteria reports whether judges pass or fail each criterion separately. They do so if the
// text contains the names of the tools, and for rubrics with the scale pass-fail. Otherwise they
// give one verdict.
func (g *judgeGrader) byCriteria() bool {
	if g.options.Mode == modePairwise || len(g.options.Statements) > 0 {
		return false
	}
	if i := g.rubric.info; i != nil && i.Scale == scalePassFail {
		return true
	}
	return mentionsGrades(g.rubric.text)
}

func mentionsGrades(criteria string) bool {
	return strings.Contains(criteria, gradePass) || strings.Contains(criteria, gradeFail)
}

// Limits of a judge's answers about criteria.
const (
	maxCriteria = 200 // counted calls
	maxTurns    = 60  // answers of a model in one conversation
)

// A criterion is a judge's answer about one criterion.
type criterion struct{ Description, Reason string }

// line returns `fail: DESCRIPTION: REASON` without the missing parts.
func (c criterion) line(verdict string) string {
	parts := []string{verdict}
	for _, s := range []string{c.Description, c.Reason} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// A tally gathers a judge's answers about criteria. It is safe for concurrent use, because
// agents can call tools concurrently.
type tally struct {
	clean func(string) string

	mu            sync.Mutex // guards the fields below
	passes, fails []criterion
}

func (t *tally) add(to *[]criterion, args json.RawMessage) error {
	var in struct{ Description, Reason string }
	if err := json.Unmarshal(args, &in); err != nil {
		return fmt.Errorf("description and reason must be texts: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.passes)+len(t.fails) >= maxCriteria {
		return fmt.Errorf("no more than %d criteria are counted", maxCriteria)
	}
	*to = append(*to, criterion{t.clean(in.Description), t.clean(in.Reason)})
	return nil
}

// counts returns the numbers of passed and failed criteria.
func (t *tally) counts() (passes, fails int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.passes), len(t.fails)
}

func lines(list []criterion, verdict string) []string {
	all := make([]string, len(list))
	for i, c := range list {
		all[i] = c.line(verdict)
	}
	return all
}

// A tool is a tool that a judge can call in a conversation.
type tool struct {
	provider.Tool
	call func(args json.RawMessage) error // the judge sees the error and can try again
}

func (t *tally) tools() []tool {
	schema := func(what string) map[string]any {
		return map[string]any{
			"type": "object",
			"properties": map[string]any{
				"description": map[string]any{"type": "string", "description": "The criterion, in a few words."},
				"reason":      map[string]any{"type": "string", "description": what},
			},
			"additionalProperties": false,
		}
	}
	return []tool{
		{provider.Tool{
			Name:        gradePass,
			Description: "Says that the work meets a criterion. Call it once for each criterion that is met.",
			Parameters:  schema("What in the work shows that it is met."),
		},
			func(args json.RawMessage) error { return t.add(&t.passes, args) }},
		{provider.Tool{
			Name:        gradeFail,
			Description: "Says that the work does not meet a criterion. Call it once for each criterion that is not met.",
			Parameters:  schema("What is missing or wrong."),
		},
			func(args json.RawMessage) error { return t.add(&t.fails, args) }},
	}
}

// criteriaAnswer is the form of answer for judges that cannot call tools.
var criteriaAnswer = provider.Answer{
	Name: "submit_criteria", Description: "Says of each criterion whether the work meets it.",
	Schema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"criteria": map[string]any{"type": "array", "items": map[string]any{
				"type": "object",
				"properties": map[string]any{
					"description": map[string]any{"type": "string", "description": "The criterion, in a few words."},
					"passed":      map[string]any{"type": "boolean", "description": "Whether the work meets it."},
					"reason":      map[string]any{"type": "string", "description": "What shows that, or what is missing or wrong."},
				},
				"required": []string{"description", "passed", "reason"}, "additionalProperties": false,
			}},
		},
		"required": []string{"criteria"}, "additionalProperties": false,
	},
}

// takeAll adds the answers of a [criteriaAnswer].
func (t *tally) takeAll(raw json.RawMessage) error {
	var a struct{ Criteria *[]json.RawMessage }
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	if a.Criteria == nil {
		return errors.New("criteria is missing")
	}
	verdicts := make([]bool, len(*a.Criteria))
	for i, c := range *a.Criteria {
		var v struct{ Passed given.Bool }
		if err := json.Unmarshal(c, &v); err != nil {
			return fmt.Errorf("criteria[%d]: %w", i, err)
		}
		if !v.Passed.Given {
			return fmt.Errorf("criteria[%d]: passed is missing", i)
		}
		verdicts[i] = v.Passed.Value
	}
	for i, c := range *a.Criteria {
		to := &t.fails
		if verdicts[i] {
			to = &t.passes
		}
		if err := t.add(to, c); err != nil {
			return fmt.Errorf("criteria[%d]: %w", i, err)
		}
	}
	return nil
}

// judgeCriteria lets a judge pass or fail each criterion. If the judge does neither for any
// criterion, it is asked once more; after that the trial fails, as in other tools.
func (g *judgeGrader) judgeCriteria(ctx context.Context, j judge, s *grader.Subject) (opinion, error) {
	o := opinion{Judge: j.model}
	var said string
	for n := range 2 {
		t := &tally{clean: g.reason}
		b := g.brief(s, false)
		if n > 0 {
			b.text += fmt.Sprintf("\n\nAn earlier answer called neither %s nor %s. Call one of them for each criterion.", gradePass, gradeFail)
		}
		var err error
		if g.options.Answer == answerSchema && j.agent == "" {
			err = g.ask(ctx, j, b, criteriaAnswer, &o.usage, t.takeAll)
		} else if said, err = g.converse(ctx, j, b, t.tools(), &o.usage); err == nil && n > 0 {
			t.fallBack(said)
		}
		if err != nil {
			return o, err
		}
		if passes, fails := t.counts(); passes+fails > 0 {
			g.count(&o, t, said)
			return o, nil
		}
	}
	o.Response = g.reason(said)
	o.Reason = fmt.Sprintf("the judge was asked twice and called neither %s nor %s", gradePass, gradeFail)
	if o.Response != "" {
		o.Reason += "; it answered " + grader.Excerpt(o.Response)
	}
	return o, nil
}

// count fills in an opinion from a tally.
func (g *judgeGrader) count(o *opinion, t *tally, said string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	passes, fails := len(t.passes), len(t.fails)
	o.Score = float64(passes) / float64(passes+fails)
	o.Passed = g.options.passes(o.Score, passes > 0 && fails == 0)
	o.Passes, o.Failures = lines(t.passes, "pass"), lines(t.fails, "fail")
	o.Reason = strings.Join(o.Failures, ";")
	o.Response = g.reason(said)
}

// fallBack uses a verdict written as JSON instead of calls, if there is one.
func (t *tally) fallBack(said string) {
	before := &tally{clean: t.clean}
	if usable(said, criteriaAnswer, before.takeAll) {
		t.mu.Lock()
		t.passes, t.fails = before.passes, before.fails
		t.mu.Unlock()
	}
}

// converse lets a judge answer by any number of tool calls, and returns the judge's last text.
// It adds the cost to usage, even if it returns an error.
func (g *judgeGrader) converse(ctx context.Context, j judge, b brief, tools []tool, usage *record.Usage) (said string, err error) {
	if j.agent != "" {
		return g.askAgent(ctx, j, b, tools, usage)
	}
	if j.fault != nil {
		return "", j.fault
	}
	r := &provider.Request{
		System: b.system, Params: g.options.Params,
		Messages: []provider.Message{{Role: provider.User, Text: b.text}},
	}
	byName := map[string]tool{}
	for _, t := range tools {
		r.Tools = append(r.Tools, t.Tool)
		byName[t.Name] = t
	}
	for range maxTurns {
		reply, err := j.client.Complete(ctx, r)
		*usage = usage.Add(reply.Usage)
		if err != nil {
			return said, err
		}
		if strings.TrimSpace(reply.Message.Text) != "" {
			said = reply.Message.Text
		}
		if len(reply.Message.Calls) == 0 {
			break
		}
		answers := provider.Message{Role: provider.ToolRole}
		for _, c := range reply.Message.Calls {
			result := provider.Result{ID: c.ID, Text: "recorded"}
			if t, ok := byName[c.Name]; !ok {
				result.Text, result.IsError = "there is no such tool", true
			} else if err := t.call(c.Arguments); err != nil {
				result.Text, result.IsError = err.Error(), true
			}
			answers.Results = append(answers.Results, result)
		}
		r.Messages = append(r.Messages, reply.Message, answers)
	}
	return said, nil
}

// usable passes an answer that was written as JSON among other words to take. It reports whether
// take accepted it. The last object with a member of the form is the answer: if take rejects it,
// no earlier object counts, because it can be an example.
func usable(said string, form provider.Answer, take func(json.RawMessage) error) bool {
	for _, object := range jsonObjects(said, form) {
		if take(object) == nil {
			return true
		}
		var names map[string]json.RawMessage
		if json.Unmarshal(object, &names) != nil || names == nil || slices.ContainsFunc(slices.Collect(maps.Keys(names)), form.Has) {
			return false
		}
	}
	return false
}

// memberName finds the first name of an object, even if the rest of the object is not JSON.
var memberName = text.Pattern(`^\{\s*["']([A-Za-z_]+)["']\s*:`)

// jsonObjects returns the outermost JSON objects in a text, last first. It looks only at the end
// of a long text. A text that resembles an object of the form, but is not JSON, is returned as
// null, so that no object inside it counts.
func jsonObjects(said string, form provider.Answer) []json.RawMessage {
	said = said[max(0, len(said)-maxJudgeOutput):]
	var found []json.RawMessage
	const mostTries = 100
	for tries := 0; tries < mostTries; tries++ {
		i := strings.IndexByte(said, '{')
		if i < 0 {
			break
		}
		d := json.NewDecoder(strings.NewReader(said[i:]))
		var object json.RawMessage
		if d.Decode(&object) != nil {
			if name := memberName().FindStringSubmatch(said[i:]); name != nil && form.Has(name[1]) {
				found = append([]json.RawMessage{json.RawMessage("null")}, found...)
				said = said[i+braceEnd(said[i:]):]
				continue
			}
			said = said[i+1:]
			continue
		}
		found = append([]json.RawMessage{object}, found...)
		said = said[i+int(d.InputOffset()):]
	}
	return found
}

// braceEnd returns the length of the text from its opening brace to the matching one, or of the
// whole text. Unlike a JSON decoder, it accepts anything between them.
func braceEnd(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// clipCriteria shortens criteria for the record.
func clipCriteria(criteria string) string { return text.Clip(criteria, maxReason) }
