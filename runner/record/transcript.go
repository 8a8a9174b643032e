package record

import (
	"encoding/json"
)

// EntryType is the kind of a transcript entry.
type EntryType string

// The types of transcript entries.
const (
	EntryMessage  EntryType = "message"
	EntryThought  EntryType = "thought"
	EntryToolCall EntryType = "tool_call"
	EntrySkill    EntryType = "skill"
	EntryError    EntryType = "error"
	EntryPlan     EntryType = "plan"
	// EntryPermission is a permission request of the agent, with the answer.
	EntryPermission EntryType = "permission"
	// EntryStop is the reason why a turn of the agent ended.
	EntryStop EntryType = "stop"
	// EntrySandbox is something that the sandbox refused, such as a connection.
	EntrySandbox EntryType = "sandbox"
	// EntryMetadata is an object that a program reported about its answer, as JSON.
	EntryMetadata EntryType = "metadata"
	EntryDropped  EntryType = "dropped"
)

// Entry is something that happened in a trial.
type Entry struct {
	Type EntryType `json:"type"`
	// AtMS is the time since the start of the attempt, in milliseconds.
	AtMS int64 `json:"atMs"`
	// Role is the role of a message: user or assistant.
	Role string `json:"role,omitempty"`
	// Text is the text of a message, thought or error, the name of a skill, the reason of a
	// stop, or the JSON of metadata.
	Text string    `json:"text,omitempty"`
	Tool *ToolCall `json:"tool,omitempty"`
	// Plan is the whole plan at that time.
	Plan       []PlanStep  `json:"plan,omitempty"`
	Permission *Permission `json:"permission,omitempty"`
}

// PlanStep is a step of an agent's plan.
type PlanStep struct {
	Text     string `json:"text"`
	Priority string `json:"priority,omitempty"`
	Status   string `json:"status,omitempty"`
}

// Permission is a permission request of an agent and the answer.
type Permission struct {
	// ToolCallID is the id of the related tool call; empty without one.
	ToolCallID string `json:"toolCallId,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Title      string `json:"title,omitempty"`
	Allowed    bool   `json:"allowed"`
	// Reason explains why the request was allowed or refused.
	Reason string `json:"reason,omitempty"`
}

// ToolCall is one use of a tool.
type ToolCall struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Kind and Title are reported by agents in addition to the name.
	Kind  string `json:"kind,omitempty"`
	Title string `json:"title,omitempty"`
	// Arguments and Result are JSON; nil when not reported.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Status    string          `json:"status,omitempty"`
	// Skill is the skill that the call invokes, even if it fails; empty for none and in older records.
	Skill      string `json:"skill,omitempty"`
	DurationMS int64  `json:"durationMs,omitempty"`
	// SelfReported reports whether only the agent itself says that it made the call: waza neither
	// carried it out nor saw it. It is false in older records, which do not know.
	SelfReported bool `json:"selfReported,omitempty"`
}

// Size returns the total length of all parts that an agent can fill, in bytes.
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

// PlainText returns the text of arguments or results: the text itself if they are a JSON string, else
// their JSON.
func PlainText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// Size returns the approximate size of the call in bytes.
func (c *ToolCall) Size() int {
	if c == nil {
		return 0
	}
	return len(c.ID) + len(c.Name) + len(c.Kind) + len(c.Title) + len(c.Arguments) + len(c.Result) + len(c.Status)
}
