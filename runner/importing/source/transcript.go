package source

import (
	"encoding/json"
	"strings"

	"waza/eval/jsonwalk"
	"waza/runner/record"
)

// A Transcript gathers the entries of a trial. The zero value is empty.
type Transcript struct {
	Entries []record.Entry
	calls   map[string]*record.ToolCall // by id
	at      int64                       // milliseconds
}

// At sets the time of the following entries since the start; unknown means as before.
func (t *Transcript) At(ms Number) { t.at = max(t.at, ms.Milliseconds()) }

func (t *Transcript) add(e record.Entry) {
	e.AtMS = t.at
	t.Entries = append(t.Entries, e)
}

// Message adds a message unless its text is empty.
func (t *Transcript) Message(role, text string) {
	if text != "" {
		t.add(record.Entry{Type: record.EntryMessage, Role: role, Text: text})
	}
}

// Note adds an entry with a text unless the text is empty.
func (t *Transcript) Note(typ record.EntryType, text string) {
	if text != "" {
		t.add(record.Entry{Type: typ, Text: text})
	}
}

// Content adds the parts of a message.
func (t *Transcript) Content(role string, content json.RawMessage) {
	var parts []Part
	if len(content) == 0 {
		return
	}
	if content[0] == '[' && json.Unmarshal(content, &parts) == nil {
		for _, p := range parts {
			if p.Thought {
				t.Note(record.EntryThought, p.Text)
			}
		}
		t.Message(role, joined(parts))
		return
	}
	t.Message(role, textOf(content))
}

// Call adds a tool call. Of arguments that are the text of a JSON object, it takes the object.
func (t *Transcript) Call(id, name string, arguments json.RawMessage) {
	call := &record.ToolCall{ID: id, Name: name, Status: "started"}
	var text string
	switch {
	case len(arguments) == 0 || string(arguments) == "null":
	case json.Unmarshal(arguments, &text) == nil && strings.HasPrefix(text, "{") && jsonwalk.Depth(text) <= maxDepth && json.Valid([]byte(text)):
		call.Arguments = json.RawMessage(text)
	default:
		call.Arguments = arguments
	}
	if t.calls == nil {
		t.calls = map[string]*record.ToolCall{}
	}
	t.calls[id] = call
	t.add(record.Entry{Type: record.EntryToolCall, Tool: call})
}

// Result adds the result of a tool call. Results without a call are a call of an unknown tool.
func (t *Transcript) Result(id, name string, result json.RawMessage, failed bool) {
	call := t.calls[id]
	if call == nil {
		t.Call(id, name, nil)
		call = t.calls[id]
	}
	if call.Status = "completed"; failed {
		call.Status = "failed"
	}
	if len(result) > 0 && string(result) != "null" {
		call.Result = result
	}
}

// Quote returns a text as JSON.
func Quote(text string) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return b
}
