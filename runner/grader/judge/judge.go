// Package judge grades a trial by asking models: one judge or several, each for a score or for the better of two answers.
// Call [Prompt] through the registry of [waza/runner/grader/builtin]; [Endpoints] lists where the judges of a suite are.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/figure"
	"waza/runner/grader"
	"waza/runner/provider"
	"waza/runner/record"
)

// judgeGrader asks its judges, all at once, and makes one verdict of theirs:
//
//	independent:  judge ─► score, passed, reason
//	pairwise:     judge (with, without) ─► better ┐ the same ─► won or lost
//	              judge (without, with) ─► better ┘ not      ─► tie
//
// A judge that cannot be reached, or whose answer makes no sense twice, makes the
// trial an error. Its calls have been retried then, so doing the whole trial
// again would be a waste: the error is permanent, and a later grading of the
// recorded trial may do better.
type judgeGrader struct {
	options *PromptOptions
	rubric  string
	judges  []judge
	redact  *provider.Redactor
}

func (g *judgeGrader) Asks(s *grader.Subject) any {
	o := *g.options
	o.Prompt, o.Rubric, o.Reference = "", g.criteria(s), s.Expanded(g.options.Reference)
	o.Model, o.Judges, o.Provider, o.Endpoint = "", nil, "", provider.Endpoint{}
	o.Files = make([]string, len(g.options.Files))
	for i, f := range g.options.Files {
		o.Files[i] = s.Expanded(f)
	}
	judges := make([]judgeSource, len(g.judges))
	for i, j := range g.judges {
		judges[i] = j.source
	}
	var without *record.Baseline
	if g.options.comparesWithBaseline() {
		without = s.Baseline // else it is there for another grader of the task
	}
	return []any{o, judges, without}
}

// opinion is what one judge makes of a trial.
type opinion struct {
	Judge  string  `json:"judge"`
	Score  float64 `json:"score"`
	Passed bool    `json:"passed"`
	Reason string  `json:"reason,omitempty"`
	// Winner is with, without or tie; of pairwise judges only.
	Winner string `json:"winner,omitempty"`
	// Orders are what it said in each order of the outputs.
	Orders []string `json:"orders,omitempty"`

	usage provider.Usage
}

// judgement is the details of the grader.
type judgement struct {
	Mode     string    `json:"mode"`
	Opinions []opinion `json:"opinions"`
	// Agreement is the share of judges, 0 to 1, whose opinion is the verdict's.
	Agreement float64       `json:"agreement"`
	Aggregate string        `json:"aggregate,omitempty"`
	Usage     *record.Usage `json:"usage,omitempty"`
}

func (g *judgeGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	pairwise := g.options.Mode == modePairwise
	if pairwise && s.Baseline == nil && g.options.Reference == "" {
		return grader.Score{}, executor.Permanent(errors.New("there is nothing to compare with: pairwise needs a run without skills (baseline: true) or a reference"))
	}
	if pairwise && g.options.Reference == "" && s.Baseline.Missing != "" {
		return grader.Score{}, executor.Permanent(fmt.Errorf("there is nothing to compare with: %s", s.Baseline.Missing))
	}
	for _, f := range g.options.Files {
		if err := s.LostAt(s.Expanded(f)); err != nil && !pairwise {
			return grader.Score{}, err
		}
	}
	opinions := make([]opinion, len(g.judges))
	errs := make([]error, len(g.judges))
	var wg sync.WaitGroup
	for i, j := range g.judges {
		wg.Go(func() {
			if pairwise {
				opinions[i], errs[i] = g.compare(ctx, j, s)
			} else {
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
	return g.verdict(opinions), nil
}

// judgeFault says that a judge could not do its work.
func judgeFault(model string, err error) error {
	fault := executor.ProviderFault(err)
	if executor.AsStop(fault) == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		fault = executor.Permanent(err)
	}
	return fmt.Errorf("judge %s: %w", model, fault)
}

// verdict makes one of the opinions.
func (g *judgeGrader) verdict(opinions []opinion) grader.Score {
	d := judgement{Mode: g.options.Mode, Opinions: opinions}
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
		s.Passed = s.Score >= threshold(g.options.Threshold, 0.5)
	}
	if !s.Passed {
		votes = n - votes
	}
	d.Agreement = float64(votes) / float64(n)
	d.Usage = usageOf(opinions)
	s.Details, s.Usage = d, d.Usage
	if !s.Passed {
		s.Feedback = feedbackOf(opinions)
	}
	return s
}

// usageOf is what the opinions cost; nil when nobody answered.
func usageOf(opinions []opinion) *record.Usage {
	var sum provider.Usage
	for _, o := range opinions {
		sum = sum.Add(o.usage)
	}
	if sum.Tokens() == 0 {
		return nil
	}
	return &record.Usage{InputTokens: sum.InputTokens, OutputTokens: sum.OutputTokens, CostUSD: sum.CostUSD}
}

// threshold compares with a margin: a mean of floats is not exact.
func threshold(t *float64, otherwise float64) float64 {
	if t == nil {
		return otherwise
	}
	return *t - 1e-9
}

// feedbackOf are the reasons of those who did not let the trial pass, or of all.
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

// judgeAnswer is how an independent judge answers.
type judgeAnswer struct {
	Score  *float64 `json:"score"`
	Passed *bool    `json:"passed"`
	Reason string   `json:"reason"`
}

func (g *judgeGrader) judge(ctx context.Context, j judge, s *grader.Subject) (opinion, error) {
	o := opinion{Judge: j.model}
	err := g.ask(ctx, j, g.brief(s, false), verdictAnswer, &o.usage, func(raw json.RawMessage) error {
		var a judgeAnswer
		if err := json.Unmarshal(raw, &a); err != nil {
			return err
		}
		switch {
		case a.Score == nil:
			return errors.New("score is missing")
		case math.IsNaN(*a.Score) || *a.Score < 0 || *a.Score > 1:
			return fmt.Errorf("the score %v is not between 0 and 1", *a.Score)
		case a.Passed == nil && g.options.Threshold == nil:
			return errors.New("passed is missing")
		}
		o.Score, o.Reason = *a.Score, g.reason(a.Reason)
		if g.options.Threshold != nil {
			o.Passed = o.Score >= threshold(g.options.Threshold, 0)
		} else {
			o.Passed = *a.Passed
		}
		return nil
	})
	return o, err
}

func (g *judgeGrader) compare(ctx context.Context, j judge, s *grader.Subject) (opinion, error) {
	o := opinion{Judge: j.model}
	var winners, reasons [2]string
	for i, swapped := range []bool{false, true} {
		err := g.ask(ctx, j, g.brief(s, swapped), winnerAnswer, &o.usage, func(raw json.RawMessage) error {
			var a struct{ Winner, Reason string }
			if err := json.Unmarshal(raw, &a); err != nil {
				return err
			}
			switch w := strings.ToUpper(strings.TrimSpace(a.Winner)); {
			case w == "TIE":
				winners[i] = "tie"
			case w != "A" && w != "B":
				return fmt.Errorf("the winner %q is none of A, B and tie", text.Clip(a.Winner, 40))
			case (w == "A") != swapped:
				winners[i] = "with"
			default:
				winners[i] = "without"
			}
			reasons[i] = g.reason(a.Reason)
			return nil
		})
		if err != nil {
			return o, err
		}
	}
	o.Orders = winners[:]
	o.Winner, o.Reason = winners[0], reasons[0]
	if winners[0] != winners[1] {
		o.Winner = "tie"
		o.Reason = fmt.Sprintf("the judge does not stand by its choice when the order changes: %s, then %s", winners[0], winners[1])
	}
	o.Score = map[string]float64{"with": 1, "tie": 0.5, "without": 0}[o.Winner]
	o.Passed = o.Score >= threshold(g.options.Threshold, 0.5)
	return o, nil
}

// maxReason bounds what is kept of a judge's reason.
const maxReason = 4 << 10

func (g *judgeGrader) reason(given string) string {
	return g.redact.Text(text.Clip(strings.TrimSpace(strings.ToValidUTF8(given, "\uFFFD")), maxReason))
}

// ask asks a judge. An answer that take cannot make sense of is asked for once
// more; faults of the network are retried by the client.
func (g *judgeGrader) ask(ctx context.Context, j judge, b brief, a provider.Answer, usage *provider.Usage, take func(json.RawMessage) error) error {
	if j.fault != nil {
		return j.fault
	}
	a.AsSchema = g.options.Answer == answerSchema
	r := &provider.Request{
		System: b.system, Params: g.options.Params, Answer: &a,
		Messages: []provider.Message{{Role: provider.User, Text: b.text}},
	}
	var wrong error
	for range 2 {
		if wrong != nil {
			// Not as a further turn: what the judge wrote may have been talked into it.
			r.Messages[0].Text = b.text + fmt.Sprintf("\n\nAn earlier answer could not be used (%s). Answer with %s, and with nothing else.", text.Clip(wrong.Error(), 200), a.Name)
		}
		reply, err := j.client.Complete(ctx, r)
		*usage = usage.Add(reply.Usage)
		if err != nil {
			return err
		}
		if reply.Answer == nil {
			wrong = fmt.Errorf("it did not answer with %s but said %s", a.Name, grader.Excerpt(g.redact.Text(reply.Message.Text)))
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
			"score":  map[string]any{"type": "number", "minimum": 0, "maximum": 1, "description": "How well the work meets the criteria: 0 not at all, 1 fully."},
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
