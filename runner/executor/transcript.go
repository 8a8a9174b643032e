package executor

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"waza/runner/record"
)

// Limits of what one attempt can record. Entries beyond them are dropped, and the transcript
// notes it, so that an agent with excessive output cannot exhaust memory.
const (
	MaxOutputBytes       = 4 << 20
	MaxTranscriptBytes   = 8 << 20
	MaxTranscriptEntries = 20_000
)

// Transcript is the ordered record of an attempt. Its size is bounded. It is safe for concurrent
// use.
type Transcript struct {
	start time.Time

	mu      sync.Mutex // guards the fields below
	entries []record.Entry
	bytes   int
	dropped int
	closed  bool
}

// NewTranscript returns an empty transcript. Its times count from now.
func NewTranscript() *Transcript {
	t := &Transcript{}
	t.Start(time.Now())
	return t
}

// Start makes the times of an empty transcript count from start.
func (t *Transcript) Start(start time.Time) { t.start = start }

// Add appends an entry and sets its time. Entries beyond the limits or after the end of the
// attempt are dropped.
func (t *Transcript) Add(e record.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(e)
}

// AddAt is like Add, for an event whose time is known only afterwards. It clamps the time to
// between the start of the record and now. The zero time means now.
func (t *Transcript) AddAt(e record.Entry, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.addLocked(e) && !at.IsZero() {
		added := &t.entries[len(t.entries)-1]
		added.AtMS = min(max(at.Sub(t.start).Milliseconds(), 0), added.AtMS)
	}
}

// addLocked reports whether it added the entry.
func (t *Transcript) addLocked(e record.Entry) bool {
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
	if t.entries == nil {
		t.entries = make([]record.Entry, 0, 2) // a prompt and its answer
	}
	t.entries = append(t.entries, e)
	return true
}

// Track records a tool call that has not ended. The returned function replaces the call by its
// newer state. An update is dropped if it exceeds the limits or comes after the end of the
// attempt.
func (t *Transcript) Track(c record.ToolCall) (update func(record.ToolCall)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.addLocked(record.Entry{Type: record.EntryToolCall, Tool: &c}) {
		return func(record.ToolCall) {}
	}
	at := len(t.entries) - 1
	return func(c record.ToolCall) {
		t.mu.Lock()
		defer t.mu.Unlock()
		grown := t.bytes + c.Size() - t.entries[at].Tool.Size()
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

// Message records a message of role.
func (t *Transcript) Message(role, text string) {
	t.Add(record.Entry{Type: record.EntryMessage, Role: role, Text: text})
}

// ToolCall records a tool call.
func (t *Transcript) ToolCall(c record.ToolCall) {
	t.Add(record.Entry{Type: record.EntryToolCall, Tool: &c})
}

// Skill records that the agent invoked a skill.
func (t *Transcript) Skill(name string) { t.Add(record.Entry{Type: record.EntrySkill, Text: name}) }

// Entries returns a copy of the entries recorded until now. The caller must not change what the
// entries refer to.
func (t *Transcript) Entries() []record.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.entries)
}

// Close ends the record and returns its entries, which the caller owns.
func (t *Transcript) Close() []record.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && t.dropped > 0 {
		t.entries = append(t.entries, record.Entry{
			Type: record.EntryDropped,
			AtMS: sinceMS(t.start),
			Text: fmt.Sprintf("dropped %d entries beyond the limit of %d entries or %d bytes", t.dropped, MaxTranscriptEntries, MaxTranscriptBytes),
		})
	}
	t.closed = true
	return t.entries
}
