package grader

import (
	"context"
	"encoding/json"
	"fmt"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/grader/assertion"
)

// callScope maps the names that a function can use, besides output and context, to the functions that
// return their values.
var callScope = map[string]func(ctx context.Context, s *Subject) (any, error){
	"transcript":    func(_ context.Context, s *Subject) (any, error) { return ScopeTranscript(s), s.TranscriptCut() },
	"tool_calls":    func(_ context.Context, s *Subject) (any, error) { return ScopeToolCalls(s), s.TranscriptCut() },
	"created_files": func(ctx context.Context, s *Subject) (any, error) { return s.CreatedFiles(ctx) },
}

// Call calls a JavaScript function, which is given as its body, with the output and the context of a
// trial. The function can also use the transcript, the tool calls and the paths of the files that the
// agent created, if its code mentions their names. Call returns the result as JSON, or a complaint if
// the function failed. An error means that the function could not be called, or needs what only
// Node.js has.
func (e *Env) Call(ctx context.Context, s *Subject, body string) (value json.RawMessage, complaint string, err error) {
	if err := s.OutputCut(); err != nil {
		return nil, "", err
	}
	scope := map[string]any{"output": s.Output, "context": map[string]any{}}
	if s.Value != nil {
		scope["output"] = s.Value
	}
	if s.Task != nil && s.Task.Inputs.Context != nil {
		scope["context"] = jsonwalk.Plain(s.Task.Inputs.Context)
	}
	for name, valueOf := range callScope {
		if !Mentions(body, name) {
			continue
		}
		if scope[name], err = valueOf(ctx, s); err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
	}
	subject, err := jsonwalk.Encode(scope)
	if err != nil {
		return nil, "", err
	}
	value, complaint, err = e.Interpreters(LanguageJavaScript).Value(ctx, subject, assertion.Call(body), e.AssertionLimit())
	if missing := ofNode().FindString(complaint); missing != "" && err == nil {
		return nil, "", fmt.Errorf("%s: waza has no Node.js", missing)
	}
	return value, complaint, err
}

// ofNode matches the exception of a function that uses a name that only Node.js has.
var ofNode = text.Pattern(`^(?:the promise was rejected: )?ReferenceError: (?:require|module|process|global|fetch|Headers|AbortController|Blob|Buffer|` +
	`URL|URLSearchParams|TextEncoder|TextDecoder|setTimeout|setInterval|setImmediate|queueMicrotask|performance|Intl|` +
	`__dirname|__filename|structuredClone|atob|btoa|crypto) is not defined`)

// transformed returns the trial with what the transform of the suite makes of the output, or a complaint if the
// transform failed.
func (b *Bound) transformed(ctx context.Context, s *Subject) (changed *Subject, complaint string, err error) {
	if b.transform == "" {
		return s, "", nil
	}
	value, complaint, err := b.env.Call(ctx, s, b.transform)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("transform: %w", err)
	case complaint == "" && string(value) == "null":
		complaint = "returned null, which is no output"
	}
	if complaint != "" {
		return nil, fmt.Sprintf("transform: %s\noutput: %s", complaint, Excerpt(s.Output)), nil
	}
	changed = new(*s)
	if changed.Output, changed.Value = "", nil; json.Unmarshal(value, &changed.Output) != nil {
		changed.Output, changed.Value = string(value), value
	}
	return changed, "", nil
}
