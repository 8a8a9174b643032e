package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	// maxSeen is the maximum number of calls that waza answered and that wait for the agent's
	// report.
	maxSeen = 1000
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
	seen    []seenCall // calls that waza answered, without their entry in entries
	watch   func(entries []record.Entry, settled int)
	open    map[int]bool // indexes of calls that can still change in a way that matters to watch
	settled int          // number of entries before the first open call
}

// seenCall is a tool call that waza itself answered for an agent that reports its calls.
type seenCall struct {
	tool      string
	arguments string // in the form of normal
}

// NewTranscript returns an empty transcript. Its times count from now.
func NewTranscript() *Transcript {
	t := &Transcript{}
	t.Start(time.Now())
	return t
}

// Start makes the times of an empty transcript count from start.
func (t *Transcript) Start(start time.Time) { t.start = start }

// Watch lets the transcript call changed after each new or changed call of a tool or skill, with the entries
// until now and the number of entries before the first call that can still become a different one. An agent
// can announce a call before it knows the arguments; the call is settled when it ends or names its skill.
// changed must neither use the transcript nor keep or change the entries. Watch comes before the first entry.
func (t *Transcript) Watch(changed func(entries []record.Entry, settled int)) {
	t.watch, t.open = changed, map[int]bool{}
}

// notifyLocked calls the function of Watch after a change of an entry.
func (t *Transcript) notifyLocked(at int) {
	if t.watch == nil {
		return
	}
	if e := &t.entries[at]; e.Type != record.EntryToolCall && e.Type != record.EntrySkill {
		return
	}
	for t.settled < len(t.entries) && !t.open[t.settled] {
		t.settled++
	}
	t.watch(t.entries, t.settled)
}

// isSettled reports whether the tool, the arguments and the skill of a call no longer change.
func isSettled(c *record.ToolCall) bool {
	return c.Skill != "" || c.Status == "completed" || c.Status == "failed"
}

// Add appends an entry and sets its time. Entries beyond the limits or after the end of the
// attempt are dropped.
func (t *Transcript) Add(e record.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.addLocked(e) {
		t.notifyLocked(len(t.entries) - 1)
	}
}

// AddRefused records something that the sandbox refused. It is a [sandbox.View.OnRefused].
func (t *Transcript) AddRefused(text string) {
	t.Add(record.Entry{Type: record.EntrySandbox, Text: text})
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
	if t.watch != nil && !isSettled(&c) {
		t.open[at] = true
	}
	t.notifyLocked(at)
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
			if isSettled(&c) {
				delete(t.open, at)
			}
			t.notifyLocked(at)
		}
	}
}

// Seen notes that waza itself answered a call of a tool, for an agent that reports its own calls. The
// entry of that call is then not marked as self-reported: the first with the tool's name, with or
// without that of its server before it, and with equal arguments. A call that the agent does not
// report gets no entry.
func (t *Transcript) Seen(tool string, arguments json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && len(t.seen) < maxSeen {
		t.seen = append(t.seen, seenCall{tool, normal(arguments)})
	}
}

// settleLocked unmarks the calls that waza has seen.
func (t *Transcript) settleLocked() {
	for i := 0; i < len(t.entries) && len(t.seen) > 0; i++ {
		c := t.entries[i].Tool
		if c == nil || !c.SelfReported || !slices.ContainsFunc(t.seen, func(s seenCall) bool { return isTool(c.Name, s.tool) }) {
			continue
		}
		arguments := normal(c.Arguments)
		at := slices.IndexFunc(t.seen, func(s seenCall) bool { return s.arguments == arguments && isTool(c.Name, s.tool) })
		if at < 0 {
			continue
		}
		call := *c // others may hold the old one
		call.SelfReported = false
		t.entries[i].Tool = &call
		t.seen = slices.Delete(t.seen, at, at+1)
	}
}

// isTool reports whether an agent means a tool of a server by the name: many put the name of the
// server before it, with a separator.
func isTool(name, tool string) bool {
	server, ok := strings.CutSuffix(name, tool)
	return ok && (server == "" || strings.ContainsRune("_-./:", rune(server[len(server)-1])))
}

// normal returns JSON in a form that is the same for equal values, and the text itself if it is not
// JSON.
func normal(raw json.RawMessage) string {
	v := any(map[string]any{})
	if len(raw) > 0 && json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
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
	t.settleLocked()
	return slices.Clone(t.entries)
}

// Close ends the record and returns its entries, which the caller owns.
func (t *Transcript) Close() []record.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settleLocked()
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
