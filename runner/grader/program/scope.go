package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"waza/eval/jsonwalk"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
)

// Limits of what assertions see of a workspace. Files beyond them are listed with a null text,
// and so are binary files.
const (
	maxScopeFiles     = 20_000
	maxScopeFileBytes = 1 << 20
	maxScopeBytes     = 16 << 20
	// maxScopeDepth is the deepest nesting of output_json, because interpreters recurse.
	maxScopeDepth = 500
)

// scopeJSON encodes the named parts of the scope as one JSON object on one line.
func scopeJSON(ctx context.Context, s *grader.Subject, names []string) (json.RawMessage, error) {
	scope := make(map[string]any, len(names))
	for _, name := range names {
		v, err := scopeNames[name](ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		scope[name] = v
	}
	return jsonwalk.Encode(scope)
}

// scopeOutputJSON returns the value of an output that is one JSON text, and null for any other.
func scopeOutputJSON(s *grader.Subject) json.RawMessage {
	text := []byte(match.JSONText(s.Output))
	if jsonwalk.Depth(text) > maxScopeDepth || !json.Valid(text) {
		return json.RawMessage("null")
	}
	return bytes.ToValidUTF8(text, []byte("\uFFFD"))
}

func scopeOutcome(s *grader.Subject) map[string]any {
	return map[string]any{
		"type": "task_completed", "status": "completed", "completed": true,
		"errors": len(s.Errors), "tool_calls": len(s.ToolCalls), "skills": append([]string{}, s.Skills...),
	}
}

func scopeContext(s *grader.Subject) any {
	if s.Task == nil || s.Task.Inputs.Context == nil {
		return map[string]any{}
	}
	return jsonwalk.Plain(s.Task.Inputs.Context)
}

// scopeFiles reads the workspace: slash-separated path to text.
func scopeFiles(ctx context.Context, s *grader.Subject) (any, error) {
	root, err := grader.OpenWorkspace(s)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, total := map[string]any{}, 0
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !entry.Type().IsRegular() {
			return nil // skip what cannot be read; do not follow links
		}
		if len(files) == maxScopeFiles {
			return fmt.Errorf("the workspace contains more than %d files", maxScopeFiles)
		}
		files[path] = nil
		info, err := entry.Info()
		if err != nil || info.Size() > maxScopeFileBytes || total+int(info.Size()) > maxScopeBytes {
			return nil
		}
		if data, err := grader.ReadFile(root, path); err == nil && utf8.Valid(data) {
			total += len(data)
			files[path] = string(data)
		}
		return nil
	})
	return files, err
}
