// Package trajectory describes a trial as tools around microsoft/vally read it: as events with metrics. Call
// [Of] for a recorded trial.
package trajectory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"waza/runner/record"
)

// A Trajectory is a trial. Numbers that nobody knows are left out.
type Trajectory struct {
	ID       string   `json:"id"`
	Stimulus Stimulus `json:"stimulus"`
	Events   []Event  `json:"events"`
	Metrics  Metrics  `json:"metrics"`
	Output   string   `json:"output"`
	// WorkDir is the path of the workspace; empty if it does not exist any more.
	WorkDir  string            `json:"workDir,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// A Stimulus is the task of a trajectory.
type Stimulus struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
}

// An Event is a step of a trajectory.
type Event struct {
	Type      string         `json:"type"`
	Timestamp string         `json:"timestamp,omitempty"`
	Data      map[string]any `json:"data"`
}

// Metrics are the numbers of a trajectory.
type Metrics struct {
	WallTimeMS *int64  `json:"wallTimeMs,omitempty"`
	Turns      int     `json:"turnCount"`
	ToolCalls  int     `json:"toolCallCount"`
	Tokens     *Tokens `json:"tokenUsage,omitempty"`
}

// Tokens are the numbers of tokens of a trajectory.
type Tokens struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Total  int64 `json:"totalTokens"`
}

// Of returns a trial as a trajectory.
func Of(t *record.Trial) Trajectory {
	r := From(t.Prompt, t.Output, t.Transcript, t.StartedAt)
	if !t.Untimed && !t.StartedAt.IsZero() {
		r.Metrics.WallTimeMS = &t.ExecutorMS
	}
	r.SetUsage(t.Usage)
	return r
}

// From returns the trajectory of a transcript. Events have no time if started is zero.
func From(prompt, output string, transcript []record.Entry, started time.Time) Trajectory {
	r := Trajectory{Stimulus: Stimulus{Prompt: prompt}, Events: []Event{}, Output: output}
	for i := range transcript {
		e := &transcript[i]
		at := ""
		if !started.IsZero() {
			at = started.UTC().Add(time.Duration(e.AtMS) * time.Millisecond).Format(time.RFC3339Nano)
		}
		if e.Type == record.EntryMessage && e.Role == "user" {
			r.Metrics.Turns++
		}
		if e.Tool != nil {
			r.Metrics.ToolCalls++
			r.Events = append(r.Events, callOf(e.Tool, r.Metrics.ToolCalls, at)...)
			continue
		}
		r.Events = append(r.Events, Event{Type: kindOf(e), Timestamp: at, Data: dataOf(e)})
	}
	return r
}

// SetUsage sets the tokens, if they are known.
func (t *Trajectory) SetUsage(u *record.Usage) {
	if u != nil && u.Total() > 0 {
		t.Metrics.Tokens = &Tokens{Input: u.InputTokens, Output: u.OutputTokens, Total: u.Total()}
	}
}

// callOf returns the event of a tool call, and that of its result if there was one.
func callOf(c *record.ToolCall, number int, at string) []Event {
	id := cmp.Or(c.ID, fmt.Sprintf("call-%d", number)) // readers connect calls and results by id
	events := []Event{{Type: "tool_call", Timestamp: at, Data: map[string]any{
		"toolName": c.Name, "toolCallId": id, "arguments": valueOf(c.Arguments),
	}}}
	if len(c.Result) == 0 && c.Status == "" {
		return events
	}
	return append(events, Event{Type: "tool_result", Timestamp: at, Data: map[string]any{
		"toolName": c.Name, "toolCallId": id, "result": valueOf(c.Result), "success": c.Status != "failed",
	}})
}

// valueOf returns a JSON value; null if it is absent or no JSON.
func valueOf(raw json.RawMessage) any {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}

// kindOf returns the type of an event other than a tool call.
func kindOf(e *record.Entry) string {
	switch e.Type {
	case record.EntryMessage:
		return cmp.Or(e.Role, "assistant") + "_message"
	case record.EntryThought:
		return "reasoning"
	case record.EntrySkill:
		return "skill_activation"
	}
	return string(e.Type)
}

func dataOf(e *record.Entry) map[string]any {
	switch {
	case e.Type == record.EntrySkill:
		return map[string]any{"skillName": e.Text}
	case e.Type == record.EntryError:
		return map[string]any{"message": e.Text}
	case e.Plan != nil:
		return map[string]any{"plan": e.Plan}
	case e.Permission != nil:
		return map[string]any{"permission": e.Permission}
	}
	return map[string]any{"content": e.Text}
}
