package executor

import (
	"fmt"
	"sync"
	"time"

	"waza/runner/record"
)

// Limits on what one attempt may leave behind. What goes beyond is dropped and
// the transcript says so, so that an agent which floods cannot exhaust memory.
const (
	MaxOutputBytes       = 4 << 20
	MaxTranscriptBytes   = 8 << 20
	MaxTranscriptEntries = 20_000
)

// Transcript is the ordered record of an attempt, bounded in size. It is safe
// for concurrent use.
type Transcript struct {
	start time.Time

	mu      sync.Mutex // guards the fields below
	entries []record.Entry
	bytes   int
	dropped int
	closed  bool
}

// NewTranscript begins a record whose times count from now.
func NewTranscript() *Transcript { return &Transcript{start: time.Now()} }

// Add appends an entry and stamps its time. Entries that come after the
// attempt has ended, or beyond the limits, are dropped.
func (t *Transcript) Add(e record.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(e)
}

// AddAt is as Add, for what happened at a time that is known only afterwards: it is
// taken for the nearest time between the beginning of the record and now. The zero time
// means now.
func (t *Transcript) AddAt(e record.Entry, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.addLocked(e) && !at.IsZero() {
		added := &t.entries[len(t.entries)-1]
		added.AtMS = min(max(at.Sub(t.start).Milliseconds(), 0), added.AtMS)
	}
}

// addLocked returns whether the entry was taken.
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
	t.entries = append(t.entries, e)
	return true
}

// Track records the use of a tool that has not ended. The function it returns puts
// what is known of the call later in place of what was known before; what does
// not fit any more, or comes after the attempt has ended, is dropped.
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

// Message records what was said by role.
func (t *Transcript) Message(role, text string) {
	t.Add(record.Entry{Type: record.EntryMessage, Role: role, Text: text})
}

// ToolCall records the use of a tool.
func (t *Transcript) ToolCall(c record.ToolCall) {
	t.Add(record.Entry{Type: record.EntryToolCall, Tool: &c})
}

// Skill records that the agent invoked a skill.
func (t *Transcript) Skill(name string) { t.Add(record.Entry{Type: record.EntrySkill, Text: name}) }

// Close ends the record and returns its entries, which the caller owns.
func (t *Transcript) Close() []record.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && t.dropped > 0 {
		t.entries = append(t.entries, record.Entry{
			Type: record.EntryDropped,
			AtMS: sinceMS(t.start),
			Text: fmt.Sprintf("%d entries beyond the limit of %d entries or %d bytes were dropped", t.dropped, MaxTranscriptEntries, MaxTranscriptBytes),
		})
	}
	t.closed = true
	return t.entries
}
