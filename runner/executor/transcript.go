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
	EntryDropped  EntryType = "dropped"
)

// Entry is one thing that happened in a trial.
type Entry struct {
	Type EntryType `json:"type"`
	// AtMS is the time since the attempt began, in milliseconds.
	AtMS int64 `json:"atMs"`
	// Role of a message: user or assistant.
	Role string `json:"role,omitempty"`
	// Text of a message, thought or error; the name of a skill.
	Text string    `json:"text,omitempty"`
	Tool *ToolCall `json:"tool,omitempty"`
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
	e.AtMS = sinceMS(t.start)
	size := e.size()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if len(t.entries) >= MaxTranscriptEntries || t.bytes+size > MaxTranscriptBytes {
		t.dropped++
		return
	}
	t.bytes += size
	t.entries = append(t.entries, e)
}

// size is the length of all that an agent may fill.
func (e *Entry) size() int {
	n := len(e.Role) + len(e.Text)
	if c := e.Tool; c != nil {
		n += len(c.ID) + len(c.Name) + len(c.Kind) + len(c.Title) + len(c.Arguments) + len(c.Result) + len(c.Status)
	}
	return n
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
