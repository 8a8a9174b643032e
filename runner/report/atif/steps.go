package atif

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/runner/record"
)

// A builder collects the steps of a trial.
type builder struct {
	trial     *record.Trial
	steps     []*step
	reasoning []string // for the next step of the agent
	calls     map[string]bool
}

// stepsOf returns the steps of a trial, at least one. If the transcript lacks the prompt or the answer,
// they are added.
func stepsOf(t *record.Trial) []*step {
	b := &builder{trial: t, calls: map[string]bool{}}
	first := slices.IndexFunc(t.Transcript, isMessage)
	if t.Prompt != "" && (first < 0 || t.Transcript[first].Role != "user") {
		b.add(byUser, t.Prompt, nil)
	}
	for i := range t.Transcript {
		b.entry(&t.Transcript[i])
	}
	b.think(nil)
	if t.Output != "" && !slices.ContainsFunc(t.Transcript, func(e record.Entry) bool { return isMessage(e) && e.Role != "user" }) {
		b.add(byAgent, t.Output, nil)
	}
	if len(b.steps) == 0 {
		b.add(byUser, t.Prompt, nil)
	}
	return b.steps
}

func isMessage(e record.Entry) bool { return e.Type == record.EntryMessage }

// entry adds an entry of the transcript.
func (b *builder) entry(e *record.Entry) {
	switch {
	case e.Type == record.EntryThought:
		b.reasoning = append(b.reasoning, e.Text)
	case e.Type == record.EntryMessage && e.Role == "user":
		b.think(e)
		b.add(byUser, e.Text, e)
	case e.Type == record.EntryMessage:
		b.add(byAgent, e.Text, e)
	case e.Tool != nil:
		b.call(e)
	case e.Type == record.EntryStop:
	default:
		b.think(e)
		b.add(bySystem, textOf(e), e)
	}
}

// think adds a step for thoughts that no step of the agent follows.
func (b *builder) think(e *record.Entry) {
	if len(b.reasoning) > 0 {
		b.add(byAgent, "", e)
	}
}

// add adds a step at the time of an entry.
func (b *builder) add(source, message string, e *record.Entry) *step {
	s := &step{ID: len(b.steps) + 1, Source: source, Message: message}
	if start := b.trial.StartedAt; e != nil && !start.IsZero() && !b.trial.Untimed {
		s.Timestamp = start.UTC().Add(time.Duration(e.AtMS) * time.Millisecond).Format(time.RFC3339Nano)
	}
	if source == byAgent {
		s.Reasoning, b.reasoning = strings.Join(b.reasoning, "\n\n"), nil
	}
	b.steps = append(b.steps, s)
	return s
}

// call adds a tool call to the message of the agent before it, or else in a step of its own.
func (b *builder) call(e *record.Entry) {
	var s *step
	if n := len(b.steps); n > 0 && len(b.reasoning) == 0 && b.steps[n-1].Source == byAgent && b.steps[n-1].ToolCalls == nil {
		s = b.steps[n-1]
	} else {
		s = b.add(byAgent, "", e)
	}
	id := b.idOf(e.Tool)
	s.ToolCalls = append(s.ToolCalls, toolCall{
		ID: id, Name: cmp.Or(e.Tool.Name, e.Tool.Kind, "unknown"), Arguments: argumentsOf(e.Tool.Arguments),
	})
	if len(e.Tool.Result) > 0 {
		s.Observed = &observation{Results: []observed{{CallID: id, Content: record.PlainText(e.Tool.Result)}}}
	}
}

// idOf returns an id that no other call of the trial has.
func (b *builder) idOf(c *record.ToolCall) string {
	id := c.ID
	for n := len(b.calls) + 1; id == "" || b.calls[id]; n++ {
		id = fmt.Sprintf("call-%d", n)
	}
	b.calls[id] = true
	return id
}

// argumentsOf returns the arguments as a map. Other values become its only member.
func argumentsOf(raw json.RawMessage) map[string]any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || value == nil {
		return map[string]any{}
	}
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{"value": value}
}

// textOf describes an entry that is no step of the agent or the user.
func textOf(e *record.Entry) string {
	text := e.Text
	switch {
	case e.Permission != nil:
		answer := "refused"
		if e.Permission.Allowed {
			answer = "allowed"
		}
		text = fmt.Sprintf("%s: %s %s", e.Permission.Title, answer, e.Permission.Reason)
	case len(e.Plan) > 0:
		var lines []string
		for _, s := range e.Plan {
			lines = append(lines, fmt.Sprintf("- %s (%s)", s.Text, s.Status))
		}
		text = strings.Join(lines, "\n")
	}
	return strings.ReplaceAll(string(e.Type), "_", " ") + ": " + strings.TrimSpace(text)
}
