package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/importing/source"
	"waza/runner/record"
)

// A lean holds the parts of a sample that the first reading needs.
type lean struct {
	ID     sampleID         `json:"id"`
	Epoch  source.Number    `json:"epoch"`
	Scores map[string]score `json:"scores"`
}

// A sample is one epoch of a sample. Texts can be references to attachments.
type sample struct {
	Input    json.RawMessage `json:"input"`
	Target   json.RawMessage `json:"target"`
	Messages json.RawMessage `json:"messages"`
	Output   json.RawMessage `json:"output"`
	Scores   json.RawMessage `json:"scores"`
	Error    *struct {
		Message source.Text `json:"message"`
	} `json:"error"`
	Limit *struct {
		Type  string      `json:"type"`
		Limit source.Text `json:"limit"`
	} `json:"limit"`
	TotalTime   source.Number         `json:"total_time"`
	ModelUsage  map[string]modelUsage `json:"model_usage"`
	Attachments map[string]string     `json:"attachments"`

	inserted int // bytes of attachments
}

type modelUsage struct {
	Input  source.Number `json:"input_tokens"`
	Output source.Number `json:"output_tokens"`
	Total  source.Number `json:"total_tokens"`
	Cost   source.Number `json:"total_cost"`
}

func (u *modelUsage) usage() *record.Usage { return source.Spent(u.Input, u.Output, u.Total, u.Cost) }

// A message is a message of a conversation.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID        string          `json:"id"`
		Function  string          `json:"function"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Function   string          `json:"function"`
	Error      json.RawMessage `json:"error"`
}

type output struct {
	Completion source.Text `json:"completion"`
	Choices    []struct {
		Message struct {
			Content source.Text `json:"content"`
		} `json:"message"`
	} `json:"choices"`
	Usage *modelUsage `json:"usage"`
}

func (o *output) text() string {
	if o.Completion == "" && len(o.Choices) > 0 {
		return string(o.Choices[0].Message.Content)
	}
	return string(o.Completion)
}

// maxInserted is the most bytes that the attachments of a sample add to it.
const maxInserted = 64 << 20

var reference = text.Pattern(`"attachment://[^"\\]+"`)

// decode decodes a part of the sample, with attachments in place of the references to them.
func (s *sample) decode(part json.RawMessage, v any) error {
	if len(part) == 0 {
		return nil
	}
	if len(s.Attachments) > 0 && bytes.Contains(part, []byte(`"attachment://`)) {
		part = reference().ReplaceAllFunc(part, func(ref []byte) []byte {
			text, ok := s.Attachments[string(ref[len(`"attachment://`):len(ref)-1])]
			if s.inserted += len(text); !ok || s.inserted > maxInserted {
				return ref
			}
			return source.Quote(text)
		})
	}
	return source.Decode(part, v)
}

// trial converts the sample.
func (s *sample) trial(l *log) (*record.Trial, error) {
	var messages []message
	var out output
	var target source.Text
	var scores map[string]score
	t := &record.Trial{}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
		v    any
	}{
		{"messages", s.Messages, &messages}, {"output", s.Output, &out}, {"target", s.Target, &target}, {"scores", s.Scores, &scores},
	} {
		if err := s.decode(part.raw, part.v); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	var err error
	if t.Prompt, err = s.prompt(); err != nil {
		return nil, err
	}
	t.Transcript = s.transcript(messages)
	if t.Output = out.text(); t.Output == "" {
		t.Output = lastAnswer(messages)
	}
	source.Took(t, s.TotalTime.Times(1000))
	s.spent(t, l, &out, messages)
	if scores, err = single(scores); err != nil {
		return nil, err
	}
	s.grade(t, l.scales.grades(), scores, string(target))
	return t, nil
}

// prompt returns the input, which is a text or messages.
func (s *sample) prompt() (string, error) {
	var text string
	if s.decode(s.Input, &text) == nil {
		return text, nil
	}
	var messages []message
	if err := s.decode(s.Input, &messages); err != nil {
		return "", fmt.Errorf("input: %w", err)
	}
	var texts []string
	for _, m := range messages {
		if m.Role == "user" {
			texts = append(texts, contentOf(m.Content))
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

func contentOf(raw json.RawMessage) string {
	var text source.Text
	if len(raw) == 0 || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return string(text)
}

func lastAnswer(messages []message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == "assistant" {
			return contentOf(messages[i].Content)
		}
	}
	return ""
}

func (s *sample) transcript(messages []message) []record.Entry {
	var t source.Transcript
	for i := range messages {
		m := &messages[i]
		if m.Role == "tool" {
			t.Result(m.ToolCallID, m.Function, m.Content, len(m.Error) > 0 && string(m.Error) != "null")
			continue
		}
		t.Content(m.Role, m.Content)
		for _, c := range m.ToolCalls {
			t.Call(c.ID, c.Function, c.Arguments)
		}
	}
	if s.Error != nil {
		t.Note(record.EntryError, string(s.Error.Message))
	}
	if s.Limit != nil {
		t.Note(record.EntryStop, "limit "+strings.TrimSpace(s.Limit.Type+" "+string(s.Limit.Limit)))
	}
	return t.Entries
}

// spent sets the usage of the trial. Older logs have only that of the last answer, which is all if
// there was one.
func (s *sample) spent(t *record.Trial, l *log, out *output, messages []message) {
	var spent record.Ledger
	for model, u := range s.ModelUsage {
		if l.head.judges(model) {
			spent.Judges = record.AddUsage(spent.Judges, u.usage())
		} else {
			spent.Agent = record.AddUsage(spent.Agent, u.usage())
		}
	}
	if len(s.ModelUsage) == 0 && out.Usage != nil {
		answers := 0
		for i := range messages {
			if messages[i].Role == "assistant" {
				answers++
			}
		}
		if answers == 1 {
			spent.Agent = out.Usage.usage()
		}
	}
	if t.Usage = spent.Agent; spent.Judges != nil {
		t.Spent = &spent
	}
}

// grade sets the graders, the verdict and the score. The scores have one value each.
func (s *sample) grade(t *record.Trial, names []string, scores map[string]score, target string) {
	for _, name := range names {
		given := scores[name]
		v, odd := valueOf(given.Value)
		if odd || !v.Known {
			if s.Error == nil {
				t.Graders = append(t.Graders, source.Unscored(name, "the log has no score of the scorer "+name))
			}
			continue
		}
		g := record.Grade{Name: name, Type: source.TypeImported, Score: v.Value, Passed: source.FullScore(v.Value), Weight: 1}
		if !g.Passed {
			g.Feedback = feedback(&given, target)
		}
		g.Details = details(&given, target)
		t.Graders = append(t.Graders, g)
	}
	if s.Error != nil {
		source.Fail(t, orElse(string(s.Error.Message), "the sample ended in an error"))
		return
	}
	source.Judge(t, "the log has no score of the sample")
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// feedback explains a score that is not full.
func feedback(s *score, target string) string {
	switch {
	case s.Explanation != "":
		return string(s.Explanation)
	case target != "" && s.Answer != "":
		return fmt.Sprintf("answered %q, expected %q", s.Answer, target)
	case target != "":
		return fmt.Sprintf("expected %q", target)
	}
	return ""
}

func details(s *score, target string) map[string]any {
	d := map[string]any{"value": s.Value}
	if s.Answer != "" {
		d["answer"] = string(s.Answer)
	}
	if target != "" {
		d["target"] = target
	}
	if len(s.Metadata) > 0 && string(s.Metadata) != "null" && string(s.Metadata) != "{}" {
		d["metadata"] = s.Metadata
	}
	return d
}
