package executor

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Limits on what one attempt may leave behind. What goes beyond is dropped and
// the transcript says so, so that an agent which floods cannot exhaust memory.
const (
	MaxOutputBytes       = 4 << 20
	MaxTranscriptBytes   = 8 << 20
	MaxTranscriptEntries = 20_000
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

// Transcript is the ordered record of an attempt, bounded in size. It is safe
// for concurrent use.
type Transcript struct {
	start time.Time

	mu      sync.Mutex // guards the fields below
	entries []Entry
	bytes   int
	dropped int
	closed  bool
}

// NewTranscript begins a record whose times count from now.
func NewTranscript() *Transcript { return &Transcript{start: time.Now()} }

// Add appends an entry and stamps its time. Entries that come after the
// attempt has ended, or beyond the limits, are dropped.
func (t *Transcript) Add(e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(e)
}

// addLocked returns whether the entry was taken.
func (t *Transcript) addLocked(e Entry) bool {
	if t.closed {
		return false
	}
	e.AtMS = sinceMS(t.start)
	size := e.Size()
	if len(t.entries) >= MaxTranscriptEntries || t.bytes+size > MaxTranscriptBytes {
		t.dropped++
		return false
	}
	t.bytes += size
	t.entries = append(t.entries, e)
	return true
}

// Size is the length of all that an agent may fill, in bytes.
func (e *Entry) Size() int {
	size := len(e.Role) + len(e.Text) + e.Tool.size()
	for _, step := range e.Plan {
		size += len(step.Text)
	}
	if e.Permission != nil {
		size += len(e.Permission.Title) + len(e.Permission.Reason)
	}
	return size
}

func (c *ToolCall) size() int {
	if c == nil {
		return 0
	}
	return len(c.ID) + len(c.Name) + len(c.Kind) + len(c.Title) + len(c.Arguments) + len(c.Result) + len(c.Status)
}

// Track records the use of a tool that has not ended. The function it returns puts
// what is known of the call later in place of what was known before; what does
// not fit any more, or comes after the attempt has ended, is dropped.
func (t *Transcript) Track(c ToolCall) (update func(ToolCall)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.addLocked(Entry{Type: EntryToolCall, Tool: &c}) {
		return func(ToolCall) {}
	}
	at := len(t.entries) - 1
	return func(c ToolCall) {
		t.mu.Lock()
		defer t.mu.Unlock()
		grown := t.bytes + c.size() - t.entries[at].Tool.size()
		switch {
		case t.closed:
		case grown > MaxTranscriptBytes:
			t.dropped++
		default:
			t.bytes = grown
			t.entries[at].Tool = &c
		}
	}
}

// Message records what was said by role.
func (t *Transcript) Message(role, text string) {
	t.Add(Entry{Type: EntryMessage, Role: role, Text: text})
}

// ToolCall records the use of a tool.
func (t *Transcript) ToolCall(c ToolCall) { t.Add(Entry{Type: EntryToolCall, Tool: &c}) }

// Skill records that the agent invoked a skill.
func (t *Transcript) Skill(name string) { t.Add(Entry{Type: EntrySkill, Text: name}) }

// Close ends the record and returns its entries, which the caller owns.
func (t *Transcript) Close() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && t.dropped > 0 {
		t.entries = append(t.entries, Entry{
			Type: EntryDropped,
			AtMS: sinceMS(t.start),
			Text: fmt.Sprintf("%d entries beyond the limit of %d entries or %d bytes were dropped", t.dropped, MaxTranscriptEntries, MaxTranscriptBytes),
		})
	}
	t.closed = true
	return t.entries
}
