package grader

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
)

// A ScopeCall is a tool call as code of suites sees it.
type ScopeCall struct {
	Type       string          `json:"type,omitempty"`
	AtMS       *int64          `json:"at_ms,omitempty"`
	ID         string          `json:"id,omitempty"`
	Name       string          `json:"name"`
	Kind       string          `json:"kind,omitempty"`
	Title      string          `json:"title,omitempty"`
	Arguments  json.RawMessage `json:"arguments"`
	Result     json.RawMessage `json:"result"`
	Status     string          `json:"status"`
	DurationMS int64           `json:"duration_ms"`
	// SelfReported is that of [record.ToolCall].
	SelfReported bool `json:"self_reported"`
}

func newScopeCall(c *record.ToolCall) ScopeCall {
	args := validJSON(c.Arguments)
	if string(args) == "null" {
		args = json.RawMessage("{}")
	}
	return ScopeCall{
		ID: c.ID, Name: c.Name, Kind: c.Kind, Title: c.Title, Arguments: args,
		Result: validJSON(c.Result), Status: c.Status, DurationMS: c.DurationMS,
		SelfReported: c.SelfReported,
	}
}

// validJSON returns raw, null if raw is empty, or a JSON string if raw is not JSON.
func validJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	if json.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// ScopeToolCalls returns the tool calls of a trial as code of suites sees them.
func ScopeToolCalls(s *Subject) []ScopeCall {
	calls := make([]ScopeCall, len(s.ToolCalls))
	for i := range s.ToolCalls {
		calls[i] = newScopeCall(&s.ToolCalls[i])
	}
	return calls
}

// A scopeEntry is an entry of the transcript as code of suites sees it, other than a tool call.
type scopeEntry struct {
	Type string `json:"type"`
	AtMS int64  `json:"at_ms"`
	Role string `json:"role,omitempty"`
	Text string `json:"text"`
}

// ScopeTranscript returns the transcript of a trial as code of suites sees it: tool calls, and other entries.
func ScopeTranscript(s *Subject) []any {
	entries := make([]any, len(s.Transcript))
	for i := range s.Transcript {
		e := &s.Transcript[i]
		if e.Tool == nil {
			entries[i] = scopeEntry{Type: string(e.Type), AtMS: e.AtMS, Role: e.Role, Text: e.Text}
			continue
		}
		call := newScopeCall(e.Tool)
		call.Type, call.AtMS = string(e.Type), &e.AtMS
		entries[i] = call
	}
	return entries
}

// maxCreatedFiles limits the files that CreatedFiles lists.
const maxCreatedFiles = 20_000

// CreatedFiles returns the sorted, slash-separated paths of the files that the agent created: not
// directories, not links, and no files that the workspace contained when the agent started.
func (s *Subject) CreatedFiles(ctx context.Context) ([]string, error) {
	root, err := OpenWorkspace(s)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	given, err := s.GivenFiles()
	if err != nil {
		return nil, err
	}
	created := []string{}
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || !entry.Type().IsRegular() || given(path):
			return nil // skip what cannot be read
		case len(created) == maxCreatedFiles:
			return fmt.Errorf("the agent created more than %d files", maxCreatedFiles)
		}
		created = append(created, path)
		return nil
	})
	return created, err
}

// Mentions reports whether a name occurs in a source outside of quotes. If the quotes are not
// plain, names inside of them count, too.
func Mentions(source, name string) bool {
	if !strings.Contains(source, name) {
		return false
	}
	if notPlain().MatchString(source) {
		return true
	}
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(quoted().ReplaceAllString(source, `""`))
}

var (
	// notPlain matches texts with embedded code, texts over several lines, comments and possible
	// regular expressions of JavaScript.
	notPlain = text.Pattern("(?i)\\bf?r?f['\"]|`|\"\"\"|'''|[#/]")
	quoted   = text.Pattern(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
)
