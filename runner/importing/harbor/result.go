package harbor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/importing/source"
	"waza/runner/record"
)

// A trialResult is the result.json of a trial.
type trialResult struct {
	TaskName string `json:"task_name"`
	Agent    struct {
		Name  string `json:"name"`
		Model struct {
			Name string `json:"name"`
		} `json:"model_info"`
	} `json:"agent_info"`
	AgentResult struct {
		Input  source.Number `json:"n_input_tokens"`
		Output source.Number `json:"n_output_tokens"`
		Cost   source.Number `json:"cost_usd"`
	} `json:"agent_result"`
	Verifier *struct {
		Rewards map[string]source.Number `json:"rewards"`
	} `json:"verifier_result"`
	Exception *struct {
		Type    string      `json:"exception_type"`
		Message source.Text `json:"exception_message"`
	} `json:"exception_info"`
	StartedAt  source.Time `json:"started_at"`
	FinishedAt source.Time `json:"finished_at"`
}

// trial converts the result. Rewards count even if the agent ended in an exception, such as a timeout:
// the verifier saw what the agent left.
func (r *trialResult) trial() *record.Trial {
	t := &record.Trial{Usage: source.Spent(r.AgentResult.Input, r.AgentResult.Output, source.Number{}, r.AgentResult.Cost)}
	source.Took(t, r.FinishedAt.Since(r.StartedAt))
	if r.Verifier == nil || len(r.Verifier.Rewards) == 0 {
		source.Fail(t, r.reason())
		return t
	}
	for _, key := range slices.Sorted(maps.Keys(r.Verifier.Rewards)) {
		v := r.Verifier.Rewards[key]
		if !v.Share() {
			t.Graders = append(t.Graders, source.Unscored(key, "the file has no reward from 0 to 1"))
			continue
		}
		g := record.Grade{Name: key, Type: source.TypeImported, Score: v.Value, Passed: source.FullScore(v.Value), Weight: 1}
		if !g.Passed {
			g.Feedback = fmt.Sprintf("the reward is %g", v.Value)
		}
		t.Graders = append(t.Graders, g)
	}
	source.Judge(t, "")
	return t
}

// reason explains why there is no reward.
func (r *trialResult) reason() string {
	if r.Exception == nil {
		return "the trial has no reward"
	}
	return strings.Trim(r.Exception.Type+": "+string(r.Exception.Message), ": ")
}

// An atif is a trajectory, of any version 1.x.
type atif struct {
	SessionID string `json:"session_id"`
	ID        string `json:"trajectory_id"`
	Agent     struct {
		Name  string `json:"name"`
		Model string `json:"model_name"`
	} `json:"agent"`
	Steps []step `json:"steps"`
	Final struct {
		Prompt     source.Number `json:"total_prompt_tokens"`
		Completion source.Number `json:"total_completion_tokens"`
		Cost       source.Number `json:"total_cost_usd"`
	} `json:"final_metrics"`
	Continued source.Text       `json:"continued_trajectory_ref"`
	Subagents []json.RawMessage `json:"subagent_trajectories"`
}

type step struct {
	Timestamp source.Time     `json:"timestamp"`
	Source    string          `json:"source"`
	Message   json.RawMessage `json:"message"`
	Model     string          `json:"model_name"`
	Reasoning source.Text     `json:"reasoning_content"`
	ToolCalls []struct {
		ID        string          `json:"tool_call_id"`
		Name      string          `json:"function_name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_calls"`
	Observation struct {
		Results []struct {
			Call    string      `json:"source_call_id"`
			Content source.Text `json:"content"`
		} `json:"results"`
	} `json:"observation"`
	Metrics struct {
		Prompt     source.Number `json:"prompt_tokens"`
		Completion source.Number `json:"completion_tokens"`
		Cost       source.Number `json:"cost_usd"`
	} `json:"metrics"`
	Calls  source.Number `json:"llm_call_count"`
	Copied bool          `json:"is_copied_context"`
}

// omitted returns the parts of the trajectory that are not read.
func (a *atif) omitted() (notes []string) {
	if len(a.Subagents) > 0 {
		notes = append(notes, fmt.Sprintf("trajectories of subagents are omitted: %d", len(a.Subagents)))
	}
	if a.Continued != "" {
		notes = append(notes, fmt.Sprintf("the trajectory continues in %s, which is omitted", text.Clip(string(a.Continued), 200)))
	}
	return notes
}

// models returns the models of the agent: that of the agent, else those of its steps.
func (a *atif) models() []string {
	if a.Agent.Model != "" {
		return []string{a.Agent.Model}
	}
	var names []string
	for i := range a.Steps {
		if s := &a.Steps[i]; s.Model != "" && !s.Copied {
			names = append(names, s.Model)
		}
	}
	return names
}

// usage returns what the agent spent: the final metrics, else the sums over its steps. A sum is unknown if one
// of its steps lacks the number.
func (a *atif) usage() *record.Usage {
	if spent := source.Spent(a.Final.Prompt, a.Final.Completion, source.Number{}, a.Final.Cost); spent != nil {
		return spent
	}
	var prompt, completion, cost []source.Number
	for i := range a.Steps {
		if s := &a.Steps[i]; s.Source == "agent" && !s.Copied && s.Calls != (source.Number{Known: true}) {
			prompt, completion, cost = append(prompt, s.Metrics.Prompt), append(completion, s.Metrics.Completion), append(cost, s.Metrics.Cost)
		}
	}
	return source.Spent(sum(prompt), sum(completion), source.Number{}, sum(cost))
}

// sum returns the sum of numbers; unknown if there are no numbers, or if one is unknown.
func sum(numbers []source.Number) (total source.Number) {
	total.Known = len(numbers) > 0
	for _, n := range numbers {
		total.Known = total.Known && n.Known
		total.Value += n.Value
	}
	return total
}

func (a *atif) start() source.Time {
	for i := range a.Steps {
		if at := a.Steps[i].Timestamp; !at.IsZero() {
			return at
		}
	}
	return source.Time{}
}

// apply sets what the trajectory says about a trial.
func (a *atif) apply(t *record.Trial) {
	var transcript source.Transcript
	start := a.start()
	for i := range a.Steps {
		s := &a.Steps[i]
		if s.Copied { // an earlier trajectory has it
			continue
		}
		transcript.At(s.Timestamp.Since(start))
		role := s.Source
		if role == "agent" {
			role = "assistant"
		}
		transcript.Note(record.EntryThought, string(s.Reasoning))
		transcript.Content(role, s.Message)
		for _, c := range s.ToolCalls {
			transcript.Call(c.ID, c.Name, c.Arguments)
		}
		for _, o := range s.Observation.Results {
			if o.Call == "" {
				transcript.Message("system", string(o.Content))
			} else {
				transcript.Result(o.Call, "", source.Quote(string(o.Content)), false)
			}
		}
	}
	t.Transcript = transcript.Entries
	for i := range t.Transcript {
		switch e := &t.Transcript[i]; {
		case e.Type != record.EntryMessage:
		case e.Role == "user" && t.Prompt == "":
			t.Prompt = e.Text
		case e.Role == "assistant":
			t.Output = e.Text
		}
	}
	if t.Usage == nil {
		t.Usage = a.usage()
	}
}
