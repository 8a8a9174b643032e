// Package judge grades a trial by asking models: one or several judges, each for a score or for
// the better of two answers, or a model that turns texts into vectors. Use [Prompt], [Similar] and
// [AnswerRelevance] through the registry of [waza/runner/grader/builtin].
// [Endpoints] lists the addresses of a suite's judges.
package judge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/figure"
	"waza/runner/grader"
	"waza/runner/internal/given"
	"waza/runner/internal/secrets"
	"waza/runner/provider"
	"waza/runner/record"
)

// A judgeGrader asks all its judges concurrently and combines their opinions to one verdict:
//
//	independent:  judge ─► score, passed, reason
//	pairwise:     judge (with, without) ─► better ┐ the same ─► won or lost
//	              judge (without, with) ─► better ┘ not      ─► tie
//
// If a judge cannot be reached, or its answer is unusable twice, the trial is an error. The
// judge's calls were already retried, so repeating the whole trial would be a waste. The error
// is therefore permanent; grading the recorded trial later can succeed.
//
// It owns the questions of a grader: its rubric, its judges and the options that say how to ask
// and combine them. They do not change, so trials can be graded concurrently. Clients and agents
// belong to the Env.
type judgeGrader struct {
	options *PromptOptions
	rubric  rubric
	judges  []judge
	redact  *secrets.Redactor
	env     *grader.Env
}

func (g *judgeGrader) Asks(s *grader.Subject) any {
	o := *g.options
	o.Prompt, o.Rubric, o.Reference = "", g.criteria(s), s.Expanded(g.options.Reference)
	if g.byCriteria() && !mentionsGrades(o.Rubric) {
		o.Rubric = "by criteria: " + o.Rubric // differs from the same text with one verdict
	}
	o.Model, o.Judges, o.Provider, o.Endpoint = "", nil, "", provider.Endpoint{}
	o.Statements = make([]Statement, len(g.options.Statements))
	for i, st := range g.options.Statements {
		st.Text = s.Expanded(st.Text)
		o.Statements[i] = st
	}
	o.Files = make([]string, len(g.options.Files))
	for i, f := range g.options.Files {
		o.Files[i] = s.Expanded(f)
	}
	judges := make([]judgeSource, len(g.judges))
	for i, j := range g.judges {
		judges[i] = j.source
	}
	var without *record.Baseline
	if g.options.SkillsOnly() {
		without = s.Baseline // otherwise another grader of the task needs the baseline
	}
	return []any{o, judges, without}
}

// An opinion is the result of one judge.
type opinion struct {
	Judge  string  `json:"judge"`
	Score  float64 `json:"score"`
	Passed bool    `json:"passed"`
	Reason string  `json:"reason,omitempty"`
	// Winner is with, without or tie; only for pairwise judges.
	Winner string `json:"winner,omitempty"`
	// Orders holds the judge's winner for each order of the outputs.
	Orders []string `json:"orders,omitempty"`
	// Magnitudes states for each order how much better the winner is, if the judge states it.
	Magnitudes []string `json:"magnitudes,omitempty"`
	// Passes and Failures hold the answers about criteria, if the judge passes or fails
	// criteria.
	Passes   []string `json:"passes,omitempty"`
	Failures []string `json:"failures,omitempty"`

	// Statements holds the mark of each statement, if the judge marks statements.
	Statements []mark `json:"statements,omitempty"`

	// Response is the judge's text beside its calls, if the judge passes or fails criteria.
	Response string `json:"response,omitempty"`

	usage record.Usage
}

// A judgement holds the details of the grader.
type judgement struct {
	Mode     string    `json:"mode"`
	Opinions []opinion `json:"opinions"`
	// Agreement is the share of judges, 0 to 1, who agree with the verdict.
	Agreement float64       `json:"agreement"`
	Aggregate string        `json:"aggregate,omitempty"`
	Usage     *record.Usage `json:"usage,omitempty"`
	// Rubric describes a rubric with a name; otherwise it is absent.
	Rubric *rubricInfo `json:"rubric,omitempty"`
	*criteriaDetails
}

// criteriaDetails holds the answers about criteria, in the form that other tools use.
type criteriaDetails struct {
	// Response is the judges' text beside their calls. Prompt holds the criteria.
	Response string   `json:"response"`
	Prompt   string   `json:"prompt"`
	Passes   []string `json:"passes"`
	Failures []string `json:"failures"`
}

func (g *judgeGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	pairwise := g.options.Mode == modePairwise
	if pairwise && s.Baseline == nil && g.options.Reference == "" {
		return grader.Score{}, executor.Permanent(errors.New("nothing to compare with: pairwise needs a run without " +
			"skills (baseline: true) or a reference"))
	}
	if pairwise && g.options.Reference == "" && s.Baseline.Missing != "" {
		return grader.Score{}, executor.Permanent(fmt.Errorf("nothing to compare with: %s", s.Baseline.Missing))
	}
	for _, f := range g.options.Files {
		if err := s.MissingAt(s.Expanded(f)); err != nil && !pairwise {
			return grader.Score{}, err
		}
	}
	opinions := make([]opinion, len(g.judges))
	errs := make([]error, len(g.judges))
	var wg sync.WaitGroup
	for i, j := range g.judges {
		wg.Go(func() {
			switch {
			case pairwise:
				opinions[i], errs[i] = g.compare(ctx, j, s)
			case len(g.options.Statements) > 0:
				opinions[i], errs[i] = g.judgeStatements(ctx, j, s)
			case g.byCriteria():
				opinions[i], errs[i] = g.judgeCriteria(ctx, j, s)
			default:
				opinions[i], errs[i] = g.judge(ctx, j, s)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return grader.Score{Usage: usageOf(opinions)}, judgeFault(g.judges[i].model, err)
		}
	}
	return g.verdict(opinions, s), nil
}

// judgeFault returns the error of a judge that could not do its work.
func judgeFault(model string, err error) error { return modelFault("judge "+model, err) }

// modelFault returns the error of a model that could not do its work. The calls were already retried, so that
// repeating the trial is no remedy.
func modelFault(name string, err error) error {
	fault := executor.ProviderFault(err)
	if executor.AsStop(fault) == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		fault = executor.Permanent(err)
	}
	return fmt.Errorf("%s: %w", name, fault)
}

// verdict combines the opinions.
func (g *judgeGrader) verdict(opinions []opinion, of *grader.Subject) grader.Score {
	d := judgement{Mode: g.options.Mode, Opinions: opinions, Rubric: g.rubric.info}
	if g.byCriteria() {
		d.criteriaDetails = detailsOf(opinions, clipCriteria(g.criteria(of)))
	}
	votes, sum := 0, 0.0
	for _, o := range opinions {
		sum += o.Score
		if o.Passed {
			votes++
		}
	}
	n := len(opinions)
	s := grader.Score{Score: sum / float64(n), Passed: 2*votes > n}
	if n > 1 {
		d.Aggregate = g.options.Aggregate
	}
	if n > 1 && d.Aggregate == byMean {
		s.Passed = s.Score >= threshold(g.options.Threshold, 0.5) && (s.Passed || !g.options.verdictsCount())
	}
	if !s.Passed {
		votes = n - votes
	}
	d.Agreement = float64(votes) / float64(n)
	d.Usage = usageOf(opinions)
	s.Details, s.Usage = d, d.Usage
	switch {
	case s.Passed:
	case (g.byCriteria() || len(g.options.Statements) > 0) && n == 1 && opinions[0].Reason != "":
		s.Feedback = opinions[0].Reason // the form that other tools use
	default:
		s.Feedback = feedbackOf(opinions)
	}
	return s
}

// detailsOf combines the criteria of all judges.
func detailsOf(opinions []opinion, prompt string) *criteriaDetails {
	d := &criteriaDetails{Prompt: prompt, Passes: []string{}, Failures: []string{}}
	var responses []string
	for _, o := range opinions {
		d.Passes, d.Failures = append(d.Passes, o.Passes...), append(d.Failures, o.Failures...)
		if o.Response != "" {
			responses = append(responses, o.Response)
		}
	}
	d.Response = strings.Join(responses, "\n")
	return d
}

// usageOf returns the cost of the opinions, or nil if no judge answered.
func usageOf(opinions []opinion) *record.Usage {
	var sum record.Usage
	for _, o := range opinions {
		sum = sum.Add(o.usage)
	}
	if sum.Total() == 0 {
		return nil
	}
	return &sum
}

// threshold returns *t or the default, with a margin below *t because a mean of floats is not
// exact.
func threshold(t *float64, otherwise float64) float64 {
	if t == nil {
		return otherwise
	}
	return *t - 1e-9
}

// verdictsCount reports whether the verdicts of judges count beside the threshold.
func (o *PromptOptions) verdictsCount() bool { return o.VerdictCounts && o.Threshold != nil }

// passes reports whether the work passes with a judge's score and verdict.
func (o *PromptOptions) passes(score float64, verdict bool) bool {
	if o.Threshold == nil || o.verdictsCount() && o.Aggregate == byMean && len(o.Judges) > 1 { // only the mean must reach the threshold
		return verdict
	}
	return score >= threshold(o.Threshold, 0) && (verdict || !o.VerdictCounts)
}

// feedbackOf lists the reasons of the judges that did not pass the trial.
func feedbackOf(opinions []opinion) string {
	var lines []string
	for _, o := range opinions {
		if !o.Passed {
			lines = append(lines, fmt.Sprintf("%s (%s): %s", o.Judge, figure.Score(o.Score), o.Reason))
		}
	}
	if len(lines) == 0 {
		return "the judges' scores are too low"
	}
	return strings.Join(lines, "\n")
}

// A judgeAnswer is the answer of an independent judge.
type judgeAnswer struct {
	Score  given.Score `json:"score"`
	Passed given.Bool  `json:"passed"`
	Reason string      `json:"reason"`
}

func (g *judgeGrader) judge(ctx context.Context, j judge, s *grader.Subject) (opinion, error) {
	o := opinion{Judge: j.model}
	err := g.ask(ctx, j, g.brief(s, false), verdictAnswer, &o.usage, func(raw json.RawMessage) error {
		var a judgeAnswer
		if err := json.Unmarshal(raw, &a); err != nil {
			return err
		}
		switch {
		case !a.Score.Given:
			return errors.New("score is missing")
		case !a.Passed.Given && (g.options.Threshold == nil || g.options.VerdictCounts):
			return errors.New("passed is missing")
		}
		o.Score, o.Reason = a.Score.Value, g.reason(a.Reason)
		o.Passed = g.options.passes(o.Score, a.Passed.Value)
		return nil
	})
	return o, err
}

func (g *judgeGrader) compare(ctx context.Context, j judge, s *grader.Subject) (opinion, error) {
	o := opinion{Judge: j.model}
	var winners, reasons, magnitudes [2]string
	form := g.winnerForm()
	for i, swapped := range []bool{false, true} {
		err := g.ask(ctx, j, g.brief(s, swapped), form, &o.usage, func(raw json.RawMessage) error {
			var a struct {
				Winner                       given.Text
				Reason, Reasoning, Magnitude string
			}
			if err := json.Unmarshal(raw, &a); err != nil {
				return err
			}
			switch w := strings.ToUpper(strings.TrimSpace(a.Winner.Value)); {
			case w == "TIE":
				winners[i] = "tie"
			case w != "A" && w != "B":
				return fmt.Errorf("the winner must be A, B or tie, got %q", text.Clip(a.Winner.Value, 40))
			case (w == "A") != swapped:
				winners[i] = "with"
			default:
				winners[i] = "without"
			}
			reasons[i] = g.reason(cmp.Or(a.Reason, a.Reasoning))
			magnitudes[i] = text.Clip(g.reason(a.Magnitude), 40)
			return nil
		})
		if err != nil {
			return o, err
		}
	}
	o.Orders = winners[:]
	if magnitudes != [2]string{} {
		o.Magnitudes = magnitudes[:]
	}
	o.Winner, o.Reason = winners[0], reasons[0]
	if winners[0] != winners[1] {
		o.Winner = "tie"
		o.Reason = fmt.Sprintf("the judge changes its choice with the order of the outputs: %s, then %s", winners[0], winners[1])
	}
	o.Score = map[string]float64{"with": 1, "tie": 0.5, "without": 0}[o.Winner]
	o.Passed = o.Score >= threshold(g.options.Threshold, 0.5)
	return o, nil
}

// maxReason is the most bytes kept of a judge's reason.
const maxReason = 4 << 10

func (g *judgeGrader) reason(given string) string {
	return g.redact.Text(text.Clip(strings.TrimSpace(strings.ToValidUTF8(given, "\uFFFD")), maxReason))
}

// ask asks a judge. If take rejects the answer, ask asks once more. The client retries after
// network faults.
func (g *judgeGrader) ask(
	ctx context.Context, j judge, b brief, a provider.Answer, usage *record.Usage,
	take func(json.RawMessage) error,
) error {
	if j.agent != "" {
		return g.askAgentForm(ctx, j, b, a, usage, take)
	}
	if j.fault != nil {
		return j.fault
	}
	a.AsSchema = g.options.Answer == answerSchema
	r := &provider.Request{
		System: b.system, Params: g.options.Params, Answer: &a,
		Messages: []provider.Message{{Role: provider.User, Text: b.text}},
	}
	var wrong error
	for n := range 2 {
		if wrong != nil {
			// Not as a further turn: the judge's first answer may have been influenced by the
			// data.
			r.Messages[0].Text = b.text + fmt.Sprintf("\n\nAn earlier answer could not be used (%s). Answer with %s, and with nothing else.",
				text.Clip(wrong.Error(), 200), a.Name)
		}
		reply, err := j.client.Complete(ctx, r)
		*usage = usage.Add(reply.Usage)
		if err != nil {
			return err
		}
		if reply.Answer == nil && n > 0 && usable(reply.Message.Text, a, take) {
			return nil
		}
		if reply.Answer == nil {
			wrong = fmt.Errorf("it did not answer with %s but with %s", a.Name, grader.Excerpt(g.redact.Text(reply.Message.Text)))
			continue
		}
		if wrong = take(reply.Answer); wrong == nil {
			return nil
		}
	}
	return fmt.Errorf("no usable answer, asked twice: %w", wrong)
}

var verdictAnswer = provider.Answer{
	Name: "submit_verdict", Description: "Gives the verdict on the agent's work.",
	Schema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"reason": map[string]any{"type": "string", "description": "Why, in a few sentences that name what the verdict rests on."},
			"score": map[string]any{
				"type": "number", "minimum": 0, "maximum": 1,
				"description": "How well the work meets the criteria: 0 not at all, 1 fully.",
			},
			"passed": map[string]any{"type": "boolean", "description": "Whether the work is good enough by the criteria."},
		},
		"required": []string{"reason", "score", "passed"}, "additionalProperties": false,
	},
}

var winnerAnswer = provider.Answer{
	Name: "submit_comparison", Description: "Says which of two outputs is better.",
	Schema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"reason": map[string]any{"type": "string", "description": "Why, in a few sentences."},
			"winner": map[string]any{"type": "string", "enum": []string{"A", "B", "tie"}, "description": "The better output by the criteria."},
		},
		"required": []string{"reason", "winner"}, "additionalProperties": false,
	},
}

// fieldWinnerAnswer is the form that prompts of other tools name.
var fieldWinnerAnswer = provider.Answer{
	Name: setWinner, Description: "Says which of two outputs is better, and how much.",
	Schema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"winner": map[string]any{"type": "string", "enum": []string{"A", "B", "tie"}, "description": "The better output by the criteria."},
			"magnitude": map[string]any{
				"type": "string", "enum": []string{"much-better", "slightly-better", "equal"},
				"description": "How much better it is.",
			},
			"reasoning": map[string]any{"type": "string", "description": "Why, in a few sentences."},
		},
		"required": []string{"winner", "magnitude", "reasoning"}, "additionalProperties": false,
	},
}

// winnerForm returns the form in which a judge names the better of two outputs.
func (g *judgeGrader) winnerForm() provider.Answer {
	if strings.Contains(g.rubric.text, setWinner) {
		return fieldWinnerAnswer
	}
	return winnerAnswer
}
