package tau2

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waza/runner/importing/source"
	"waza/runner/record"
)

// A simulation is a conversation of an agent with a simulated user.
type simulation struct {
	StartTime source.Time   `json:"start_time"`
	Duration  source.Number `json:"duration"` // seconds
	Ended     string        `json:"termination_reason"`
	AgentCost source.Number `json:"agent_cost"`
	UserCost  source.Number `json:"user_cost"`
	Reward    *reward       `json:"reward_info"`
	Messages  []message     `json:"messages"`
}

// A reward is the product of its parts.
type reward struct {
	Reward    source.Number            `json:"reward"`
	Breakdown map[string]source.Number `json:"reward_breakdown"`
	Actions   []struct {
		Action struct {
			Name string `json:"name"`
		} `json:"action"`
		Match *bool `json:"action_match"`
	} `json:"action_checks"`
	Communicated []check `json:"communicate_checks"`
	Assertions   []check `json:"nl_assertions"`
	Environment  []struct {
		Assertion struct {
			Name string `json:"func_name"`
		} `json:"env_assertion"`
		Met *bool `json:"met"`
	} `json:"env_assertions"`
}

// A check is one statement of a part.
type check struct {
	Info      string `json:"info"`
	Assertion string `json:"nl_assertion"`
	Met       *bool  `json:"met"`
}

// A message is a message of the conversation, or the result of a tool.
type message struct {
	ID        string        `json:"id"`
	Role      string        `json:"role"`
	Content   source.Text   `json:"content"`
	Timestamp source.Time   `json:"timestamp"`
	Error     bool          `json:"error"`
	Requestor string        `json:"requestor"`
	Usage     *messageUsage `json:"usage"`
	ToolCalls []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Requestor string          `json:"requestor"`
	} `json:"tool_calls"`
	Several []message `json:"tool_messages"`
}

type messageUsage struct {
	Prompt     source.Number `json:"prompt_tokens"`
	Completion source.Number `json:"completion_tokens"`
}

const byUser = "user"

func (s *simulation) trial() *record.Trial {
	t := &record.Trial{Transcript: s.transcript(), Graders: s.Reward.graders()}
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Role == byUser && t.Prompt == "" {
			t.Prompt = string(m.Content)
		}
		if m.Role == "assistant" && m.Content != "" {
			t.Output = string(m.Content)
		}
	}
	source.Took(t, s.Duration.Times(1000))
	s.spent(t)
	if s.Reward == nil || !s.Reward.Reward.Share() {
		reason := "the simulation has no reward from 0 to 1"
		if s.Ended != "" {
			reason += ": it ended with " + s.Ended
		}
		source.Fail(t, reason)
		return t
	}
	score := s.Reward.Reward.Value
	if t.Verdict, t.Score = record.Failed, &score; source.FullScore(score) {
		t.Verdict = record.Passed
	}
	return t
}

func (s *simulation) spent(t *record.Trial) {
	agent, user := &messageUsage{}, &messageUsage{}
	for i := range s.Messages {
		m := &s.Messages[i]
		to := agent
		if m.Role == byUser {
			to = user
		}
		if m.Usage != nil && m.Role != "tool" {
			to.Prompt, to.Completion = plus(to.Prompt, m.Usage.Prompt), plus(to.Completion, m.Usage.Completion)
		}
	}
	t.Usage = source.Spent(agent.Prompt, agent.Completion, source.Number{}, s.AgentCost)
	if u := source.Spent(user.Prompt, user.Completion, source.Number{}, s.UserCost); u != nil {
		t.Spent = &record.Ledger{Agent: t.Usage, Responder: u}
	}
}

func plus(a, b source.Number) source.Number {
	return source.Number{Known: a.Known || b.Known, Value: a.Value + b.Value}
}

// graders returns the reward, which decides, and its parts, which only explain it.
func (r *reward) graders() []record.Grade {
	if r == nil || !r.Reward.Share() {
		return nil
	}
	list := []record.Grade{grade("reward", r.Reward.Value, "")}
	for _, part := range slices.Sorted(maps.Keys(r.Breakdown)) {
		if v := r.Breakdown[part]; v.Share() {
			g := grade(part, v.Value, r.unmet(part))
			g.Optional = true
			list = append(list, g)
		}
	}
	return list
}

func grade(name string, score float64, feedback string) record.Grade {
	g := record.Grade{Name: name, Type: source.TypeImported, Score: score, Passed: source.FullScore(score), Weight: 1}
	if !g.Passed {
		g.Feedback = feedback
	}
	return g
}

// unmet lists the checks of a part that were not met.
func (r *reward) unmet(part string) string {
	var names []string
	add := func(name string, met *bool) {
		if met != nil && !*met {
			names = append(names, name)
		}
	}
	switch part {
	case "ACTION":
		for _, a := range r.Actions {
			add(a.Action.Name, a.Match)
		}
	case "COMMUNICATE":
		for _, c := range r.Communicated {
			add(c.Info, c.Met)
		}
	case "NL_ASSERTION":
		for _, c := range r.Assertions {
			add(c.Assertion, c.Met)
		}
	case "ENV_ASSERTION":
		for _, e := range r.Environment {
			add(e.Assertion.Name, e.Met)
		}
	case "DB":
		return "the database differs from the expected one"
	}
	if len(names) == 0 {
		return ""
	}
	return "not met: " + strings.Join(names, "; ")
}

func (s *simulation) transcript() []record.Entry {
	var t source.Transcript
	for i := range s.Messages {
		m := &s.Messages[i]
		t.At(m.Timestamp.Since(s.StartTime))
		if m.Role == "tool" {
			m.result(&t)
			for k := range m.Several {
				m.Several[k].result(&t)
			}
			continue
		}
		t.Message(m.Role, string(m.Content))
		for _, c := range m.ToolCalls {
			if c.Requestor == byUser || m.Role == byUser { // not a tool call of the agent
				t.Message(byUser, fmt.Sprintf("[calls %s %s]", c.Name, c.Arguments))
				continue
			}
			t.Call(c.ID, c.Name, c.Arguments)
		}
	}
	if s.Ended != "" {
		t.Note(record.EntryStop, s.Ended)
	}
	return t.Entries
}

// result adds the result of a tool.
func (m *message) result(t *source.Transcript) {
	switch {
	case len(m.Several) > 0:
	case m.Requestor == byUser:
		t.Message(byUser, fmt.Sprintf("[gets %s]", m.Content))
	default:
		t.Result(m.ID, "", source.Quote(string(m.Content)), m.Error)
	}
}
