package vally

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"waza/runner/importing/source"
	"waza/runner/record"
)

// A trialResult is a record of a trial.
type trialResult struct {
	Stimulus   stimulus      `json:"stimulus"`
	Status     string        `json:"status"`
	Error      source.Text   `json:"error"`
	DurationMS source.Number `json:"durationMs"`
	Grade      *gradeResult  `json:"gradeResult"`
	Trajectory struct {
		Events  []event `json:"events"`
		Metrics struct {
			WallTimeMS source.Number `json:"wallTimeMs"`
			TokenUsage struct {
				Input  source.Number `json:"inputTokens"`
				Output source.Number `json:"outputTokens"`
				Total  source.Number `json:"totalTokens"`
			} `json:"tokenUsage"`
			Cost source.Number `json:"costUsd"`
		} `json:"metrics"`
		Output source.Text `json:"output"`
	} `json:"trajectory"`
}

// A gradeResult is the result of all graders or, in details, of one.
type gradeResult struct {
	Passed   *bool         `json:"passed"`
	Score    source.Number `json:"score"`
	Evidence source.Text   `json:"evidence"`
	Name     string        `json:"name"`
	Grader   source.Text   `json:"grader"`
	Type     string        `json:"type"`
	Error    source.Text   `json:"error"`
	Details  []gradeResult `json:"details"`
}

// score returns the score. A score that is missing or on another scale follows from the verdict.
func (g *gradeResult) score() float64 {
	if g.Score.Share() {
		return g.Score.Value
	}
	return source.Pass(*g.Passed)
}

// An event is an event of a trajectory.
type event struct {
	Type      string      `json:"type"`
	Timestamp source.Time `json:"timestamp"`
	Data      eventData   `json:"data"`
}

type eventData struct {
	ToolName   string          `json:"toolName"`
	ToolCallID string          `json:"toolCallId"`
	Arguments  json.RawMessage `json:"arguments"`
	Result     json.RawMessage `json:"result"`
	Output     json.RawMessage `json:"output"`
	Success    *bool           `json:"success"`
	Error      json.RawMessage `json:"error"`
	Skill      source.Text     `json:"skill"`
	SkillName  source.Text     `json:"skillName"`
	Name       source.Text     `json:"name"`
	Role       string          `json:"role"`
	Content    source.Text     `json:"content"`
	Text       source.Text     `json:"text"`
	Message    source.Text     `json:"message"`
}

// UnmarshalJSON implements [encoding/json.Unmarshaler]. Executors define their own events, so data of
// another form is empty.
func (d *eventData) UnmarshalJSON(raw []byte) error {
	type plain eventData
	var p plain
	if json.Unmarshal(raw, &p) == nil {
		*d = eventData(p)
	}
	return nil
}

// trial converts the record.
func (r *trialResult) trial() *record.Trial {
	m := &r.Trajectory.Metrics
	t := &record.Trial{
		Prompt: r.Stimulus.Prompt, Output: string(r.Trajectory.Output), Transcript: r.transcript(),
		Usage: source.Spent(m.TokenUsage.Input, m.TokenUsage.Output, m.TokenUsage.Total, m.Cost),
	}
	took := r.DurationMS
	if !took.Known {
		took = m.WallTimeMS
	}
	source.Took(t, took)
	switch r.Status {
	case "error":
		t.Graders = r.Grade.graders()
		source.Fail(t, cmp.Or(string(r.Error), r.lastError(), "the trial ended in an error"))
	case "skipped":
		t.Verdict, t.Error = record.Skipped, string(r.Error)
	default:
		r.judge(t)
	}
	return t
}

// judge takes the verdict from the file: with scoring, a trial can pass although a grader failed.
func (r *trialResult) judge(t *record.Trial) {
	if r.Grade == nil || r.Grade.Passed == nil {
		source.Judge(t, "the file has no verdict for the trial")
		return
	}
	t.Graders = r.Grade.graders()
	score := r.Grade.score()
	if t.Verdict, t.Score = record.Failed, &score; *r.Grade.Passed {
		t.Verdict = record.Passed
	}
}

// graders returns the results of the single graders; without them, the whole as one.
func (g *gradeResult) graders() []record.Grade {
	if g == nil {
		return nil
	}
	details := g.Details
	if len(details) == 0 && g.Passed != nil {
		details = []gradeResult{{Passed: g.Passed, Score: g.Score, Evidence: g.Evidence, Name: "grade"}}
	}
	var names source.Names
	var list []record.Grade
	for i := range details {
		d := &details[i]
		id := names.Of(fmt.Sprint(i), cmp.Or(d.Name, string(d.Grader), d.Type, fmt.Sprintf("grader %d", i+1)))
		if d.Passed == nil {
			list = append(list, record.Grade{
				Name: id, Type: source.TypeImported, Weight: 1, Error: cmp.Or(string(d.Error), string(d.Evidence), "the file has no verdict"),
			})
			continue
		}
		r := record.Grade{Name: id, Type: source.GraderType(d.Type), Score: d.score(), Passed: *d.Passed, Weight: 1}
		if !r.Passed {
			r.Feedback = string(d.Evidence)
		}
		list = append(list, r)
	}
	return list
}

func (r *trialResult) lastError() string {
	for i := len(r.Trajectory.Events) - 1; i >= 0; i-- {
		if e := &r.Trajectory.Events[i]; strings.Contains(e.Type, "error") {
			return e.Data.text()
		}
	}
	return ""
}

// text returns the text of an event under any of its names.
func (d *eventData) text() string {
	var reason source.Text
	if len(d.Error) > 0 && json.Unmarshal(d.Error, &reason) != nil {
		reason = ""
	}
	return string(cmp.Or(d.Content, d.Text, d.Message, reason))
}

// transcript converts the events. It omits types that say nothing about the conversation.
func (r *trialResult) transcript() []record.Entry {
	var t source.Transcript
	var start source.Time
	for i := range r.Trajectory.Events {
		e, d := &r.Trajectory.Events[i], &r.Trajectory.Events[i].Data
		if start.IsZero() {
			start = e.Timestamp
		}
		t.At(e.Timestamp.Since(start))
		switch {
		case e.Type == "tool_call":
			t.Call(d.ToolCallID, d.ToolName, d.Arguments)
		case e.Type == "tool_result":
			result := d.Result
			if len(result) == 0 {
				result = d.Output
			}
			if len(result) == 0 && d.text() != "" {
				result = source.Quote(d.text())
			}
			failed := d.Success != nil && !*d.Success || len(d.Error) > 0 && string(d.Error) != "null"
			t.Result(d.ToolCallID, d.ToolName, result, failed)
		case e.Type == "skill_activation":
			t.Note(record.EntrySkill, string(cmp.Or(d.SkillName, d.Skill, d.Name)))
		case strings.Contains(e.Type, "error"):
			t.Note(record.EntryError, d.text())
		case strings.Contains(e.Type, "reasoning"), strings.Contains(e.Type, "thinking"):
			t.Note(record.EntryThought, d.text())
		case strings.HasPrefix(e.Type, "user"), d.Role == "user":
			t.Message("user", d.text())
		case strings.Contains(e.Type, "message"):
			t.Message("assistant", d.text())
		}
	}
	return t.Entries
}
