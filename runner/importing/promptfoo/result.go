package promptfoo

import (
	"cmp"
	"encoding/json"
	"fmt"

	"waza/runner/importing/source"
	"waza/runner/record"
)

// A result is the result of a test with a prompt and a provider.
type result struct {
	Prompt        prompt        `json:"prompt"`
	Success       *bool         `json:"success"`
	Score         source.Number `json:"score"`
	Error         source.Text   `json:"error"`
	FailureReason source.Number `json:"failureReason"`
	LatencyMS     source.Number `json:"latencyMs"`
	Cost          source.Number `json:"cost"`
	Response      *struct {
		Output     source.Text   `json:"output"`
		Error      source.Text   `json:"error"`
		Cached     bool          `json:"cached"`
		TokenUsage tokenUsage    `json:"tokenUsage"`
		Cost       source.Number `json:"cost"`
	} `json:"response"`
	Grading *gradingResult `json:"gradingResult"`
}

type tokenUsage struct {
	Prompt     source.Number `json:"prompt"`
	Completion source.Number `json:"completion"`
	Total      source.Number `json:"total"`
}

// A gradingResult is the result of all assertions or, as a component, of one.
type gradingResult struct {
	Pass       *bool           `json:"pass"`
	Score      source.Number   `json:"score"`
	Reason     source.Text     `json:"reason"`
	TokensUsed *tokenUsage     `json:"tokensUsed"`
	Components []gradingResult `json:"componentResults"`
	Assertion  *struct {
		Type   string        `json:"type"`
		Metric source.Text   `json:"metric"`
		Weight source.Number `json:"weight"`
	} `json:"assertion"`
}

// failedOnError is the failureReason of results without a verdict.
const failedOnError = 2

// broke reports whether the provider or an assertion ended in an error.
func (r *result) broke() bool {
	return r.FailureReason.Known && r.FailureReason.Value == failedOnError ||
		r.Grading == nil && (r.Error != "" || r.Response != nil && r.Response.Error != "")
}

func (r *result) trial() *record.Trial {
	t := &record.Trial{Prompt: r.Prompt.Raw, Graders: r.Grading.graders()}
	took := r.LatencyMS
	var transcript source.Transcript
	transcript.Message("user", r.Prompt.Raw)
	if p := r.Response; p != nil {
		t.Output = string(p.Output)
		transcript.Message("assistant", t.Output)
		if p.Cached { // the times and costs are those of the cache
			took = source.Number{}
		}
	}
	t.Transcript = transcript.Entries
	source.Took(t, took)
	r.spent(t)
	switch {
	case r.broke():
		reason := string(r.Error)
		if r.Response != nil {
			reason = cmp.Or(reason, string(r.Response.Error))
		}
		source.Fail(t, cmp.Or(reason, "the result is an error"))
	case r.Success == nil:
		t.Graders = nil
		source.Judge(t, "the file has no verdict for the result")
	default: // with a threshold, a result can succeed although an assertion failed
		score := source.Pass(*r.Success)
		if r.Score.Share() {
			score = r.Score.Value
		}
		if t.Verdict, t.Score = record.Failed, &score; *r.Success {
			t.Verdict = record.Passed
		}
	}
	return t
}

func (r *result) spent(t *record.Trial) {
	cost := r.Cost
	var used tokenUsage
	if r.Response != nil {
		used = r.Response.TokenUsage
		if !cost.Known {
			cost = r.Response.Cost
		}
	}
	t.Usage = source.Spent(used.Prompt, used.Completion, used.Total, cost)
	if r.Grading == nil || r.Grading.TokensUsed == nil {
		return
	}
	g := r.Grading.TokensUsed
	if judges := source.Spent(g.Prompt, g.Completion, g.Total, source.Number{}); judges != nil && judges.Total() > 0 {
		t.Spent = &record.Ledger{Agent: t.Usage, Judges: judges}
	}
}

// graders returns the results of the assertions.
func (g *gradingResult) graders() []record.Grade {
	if g == nil {
		return nil
	}
	var names source.Names
	var list []record.Grade
	for i := range g.Components {
		c := &g.Components[i]
		r := record.Grade{Name: fmt.Sprintf("assertion %d", i+1), Type: source.TypeImported, Weight: 1}
		if a := c.Assertion; a != nil {
			r.Name, r.Type = cmp.Or(string(a.Metric), a.Type, r.Name), source.GraderType(a.Type)
			if a.Weight.Known && a.Weight.Value >= 0 && a.Weight.Value < 1e9 {
				r.Weight = a.Weight.Value
			}
		}
		r.Name = names.Of(fmt.Sprint(i), r.Name)
		if c.Pass == nil {
			r.Error = cmp.Or(string(c.Reason), "the file has no verdict")
		} else {
			r.Passed, r.Score = *c.Pass, source.Pass(*c.Pass)
			if c.Score.Share() {
				r.Score = c.Score.Value
			}
			if !r.Passed {
				r.Feedback = string(c.Reason)
			}
		}
		list = append(list, r)
	}
	return list
}

// UnmarshalJSON implements [encoding/json.Unmarshaler]. Some versions write a text for the prompt.
func (p *prompt) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &p.Raw)
	}
	type plain prompt
	return source.Decode(raw, (*plain)(p))
}
