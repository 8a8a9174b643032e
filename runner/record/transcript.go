package record

import (
	"encoding/json"
)

// EntryType says what a transcript entry records.
type EntryType string

// The types of transcript entries.
const (
	EntryMessage  EntryType = "message"
	EntryThought  EntryType = "thought"
	EntryToolCall EntryType = "tool_call"
	EntrySkill    EntryType = "skill"
	EntryError    EntryType = "error"
	EntryPlan     EntryType = "plan"
	// EntryPermission is what an agent asked leave for, and the answer.
	EntryPermission EntryType = "permission"
	// EntryStop is why a turn of the agent ended.
	EntryStop    EntryType = "stop"
	EntryDropped EntryType = "dropped"
)

// Entry is one thing that happened in a trial.
type Entry struct {
	Type EntryType `json:"type"`
	// AtMS is the time since the attempt began, in milliseconds.
	AtMS int64 `json:"atMs"`
	// Role of a message: user or assistant.
	Role string `json:"role,omitempty"`
	// Text of a message, thought or error; the name of a skill; the reason of a stop.
	Text string    `json:"text,omitempty"`
	Tool *ToolCall `json:"tool,omitempty"`
	// Plan is the whole plan as it stood then.
	Plan       []PlanStep  `json:"plan,omitempty"`
	Permission *Permission `json:"permission,omitempty"`
}

// PlanStep is a step of an agent's plan.
type PlanStep struct {
	Text     string `json:"text"`
	Priority string `json:"priority,omitempty"`
	Status   string `json:"status,omitempty"`
}

// Permission is what an agent asked leave for, and what it was answered.
type Permission struct {
	// ToolCallID is that of the tool call in question; empty when there is none.
	ToolCallID string `json:"toolCallId,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Title      string `json:"title,omitempty"`
	Allowed    bool   `json:"allowed"`
	// Reason says why it was allowed or refused.
	Reason string `json:"reason,omitempty"`
}

// ToolCall is one use of a tool.
type ToolCall struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Kind and Title are what agents report beside the name.
	Kind  string `json:"kind,omitempty"`
	Title string `json:"title,omitempty"`
	// Arguments and Result are JSON; nil when not reported.
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Status     string          `json:"status,omitempty"`
	DurationMS int64           `json:"durationMs,omitempty"`
}

// Size is the length of all that an agent may fill, in bytes.
func (e *Entry) Size() int {
	size := len(e.Role) + len(e.Text) + e.Tool.Size()
	for _, step := range e.Plan {
		size += len(step.Text)
	}
	if e.Permission != nil {
		size += len(e.Permission.Title) + len(e.Permission.Reason)
	}
	return size
}

// Size returns about how many bytes the call takes.
func (c *ToolCall) Size() int {
	if c == nil {
		return 0
	}
	return len(c.ID) + len(c.Name) + len(c.Kind) + len(c.Title) + len(c.Arguments) + len(c.Result) + len(c.Status)
}
