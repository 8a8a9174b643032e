// Package mcpmock runs the mock MCP servers that suites describe under mcp_mocks. Call [Serve]
// once for each attempt at a trial.
package mcpmock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"waza/eval/jsonwalk"
	"waza/eval/surroundings"
	"waza/eval/template"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/internal/given"
	"waza/runner/mcptools"
)

// maxShown is the number of bytes of the arguments that an error for the agent quotes.
const maxShown = 2000

// A Listener hears of calls. Its functions are called from any goroutine, and are not nil.
type Listener struct {
	// Seen is called with each call of a tool.
	Seen func(tool string, arguments json.RawMessage)
	// Broken is called with the reason if the arguments of a call do not match expect_schema.
	Broken func(reason string)
}

// Serve starts a server for each mock. All servers end with the context or when stop is called.
// stop is never nil. Sockets are created below dir, see [mcptools.Serve].
func Serve(
	ctx context.Context, mocks []surroundings.MCPMock, dir string, on Listener,
) (list []executor.Server, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, end := range stops {
			end()
		}
	}
	for i := range mocks {
		m := &mocks[i]
		server := mcp.NewServer(&mcp.Implementation{Name: m.Name, Version: "1"}, nil)
		names := slices.Sorted(maps.Keys(m.Tools))
		for _, name := range names {
			t, err := newTool(m.Name, name, m.Tools[name])
			if err != nil {
				return nil, stop, executor.Permanent(fmt.Errorf("mcp_mocks: server %s, tool %s: %w", m.Name, name, err))
			}
			if err := add(server, &mcp.Tool{Name: name, Description: m.Tools[name].Description, InputSchema: t.schema}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				on.Seen(t.name, r.Params.Arguments)
				answer, err := t.call(ctx, r)
				if broken := (*brokenError)(nil); errors.As(err, &broken) {
					on.Broken(broken.Error())
					return result(broken.Error(), true), nil
				}
				return answer, err
			}); err != nil {
				return nil, stop, executor.Permanent(fmt.Errorf("mcp_mocks: server %s, tool %s: %w", m.Name, name, err))
			}
		}
		s, end, err := mcptools.Serve(ctx, dir, m.Name, names, server)
		if err != nil {
			return nil, stop, err
		}
		stops, list = append(stops, end), append(list, s)
	}
	return list, stop, nil
}

// add adds a tool to a server. The SDK panics if the schema is invalid; add returns that as an
// error.
func add(server *mcp.Server, t *mcp.Tool, h mcp.ToolHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	server.AddTool(t, h)
	return nil
}

// tool answers the calls of one tool. It is safe for concurrent use.
type tool struct {
	server, name string
	schema       json.RawMessage    // of its arguments, for the agent
	expect       *jsonschema.Schema // nil if all arguments are expected
	responses    []response
}

// brokenError means that an agent called a tool with arguments that the suite does not expect.
type brokenError struct{ reason string }

func (e *brokenError) Error() string { return e.reason }

// response is one possible answer of a tool.
type response struct {
	match    map[string]any // decoded with [jsonschema.UnmarshalJSON]
	patterns surroundings.Patterns
	fits     *jsonschema.Schema // nil if all arguments are valid
	result   *mcp.CallToolResult
	fill     bool // result contains arguments
	value    any  // what result is the JSON of; nil if it is a text
}

func newTool(server, name string, m surroundings.MockTool) (*tool, error) {
	schema := map[string]any{"type": "object"}
	maps.Copy(schema, m.InputSchema)
	t := &tool{server: server, name: name, schema: compact(schema)}
	var err error
	if t.expect, err = surroundings.MockSchema(m.ExpectSchema); err != nil {
		return nil, fmt.Errorf("expect_schema: %w", err)
	}
	for i := range m.Responses {
		r, err := newResponse(&m.Responses[i])
		if err != nil {
			return nil, fmt.Errorf("responses[%d]: %w", i, err)
		}
		t.responses = append(t.responses, r)
	}
	return t, nil
}

func newResponse(m *surroundings.MockResponse) (r response, err error) {
	if r.patterns, err = m.Patterns(); err != nil {
		return r, err
	}
	if r.fits, err = surroundings.MockSchema(m.MatchSchema); err != nil {
		return r, err
	}
	if r.match, err = object(compact(m.Match)); err != nil {
		return r, err
	}
	said, isText := m.Return.(string)
	if !isText {
		said = string(compact(m.Return))
	}
	if m.Error != "" {
		said = m.Error
	}
	r.result, r.fill = result(said, m.Error != ""), m.FillInput
	if m.Error == "" && !isText {
		if r.value, err = jsonschema.UnmarshalJSON(strings.NewReader(said)); err != nil {
			return r, err
		}
	}
	return r, nil
}

func result(said string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: isError, Content: []mcp.Content{&mcp.TextContent{Text: said}}}
}

// call answers with the first matching response. If none matches, the answer is an error for the
// agent.
func (t *tool) call(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args, err := object(req.Params.Arguments)
	if err != nil {
		return result(fmt.Sprintf("the arguments of tool %s must be a JSON object: %s", t.name,
			text.Clip(string(req.Params.Arguments), maxShown)),
			true), nil
	}
	whole := string(compact(args))
	if t.expect != nil {
		if err := t.expect.Validate(args); err != nil {
			return nil, &brokenError{fmt.Sprintf("the agent called tool %s of MCP server %s with arguments that the mock does not expect: %s: %s",
				t.name, t.server, text.Clip(whole, maxShown), text.Clip(faultOf(err), maxShown))}
		}
	}
	for _, r := range t.responses {
		if r.matches(args, whole) {
			return r.answer(args), nil
		}
	}
	return result(fmt.Sprintf("the mock of tool %s of MCP server %s has no response for the arguments %s", t.name,
		t.server, text.Clip(whole, maxShown)),
		true), nil
}

// faultOf returns the first fault of arguments, with its place.
func faultOf(err error) string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	return fmt.Sprintf("%s: %s", cmp.Or(strings.Join(invalid.InstanceLocation, "."), "arguments"), invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// inputName is a place of an argument in an answer.
var inputName = text.Pattern(`\{\{\s*input\.([^{}\s]+)\s*\}\}`)

// maxAnswer limits an answer with arguments in it, in bytes.
const maxAnswer = 4 << 20

// answer returns the result for the arguments of a call.
func (r *response) answer(args map[string]any) *mcp.CallToolResult {
	if !r.fill {
		return r.result
	}
	content, _ := r.result.Content[0].(*mcp.TextContent) // the only kind of newResponse
	left := maxAnswer - len(content.Text)
	fill := func(text string) string {
		return inputName().ReplaceAllStringFunc(text, func(place string) (filled string) {
			if left < 0 {
				return ""
			}
			defer func() { left -= len(filled) }()
			var v any = args
			for key := range strings.SplitSeq(inputName().FindStringSubmatch(place)[1], ".") {
				object, _ := v.(map[string]any)
				v = object[key]
			}
			switch v := v.(type) {
			case nil:
				return ""
			case string:
				return v
			}
			return string(compact(v))
		})
	}
	said := ""
	if r.value == nil {
		said = fill(content.Text)
	} else {
		said = string(compact(template.ExpandTexts(r.value, fill)))
	}
	if left < 0 {
		return result(fmt.Sprintf("the answer of the mock has more than %d bytes", maxAnswer), true)
	}
	return result(said, r.result.IsError)
}

// matches reports whether all conditions of a response hold.
func (r *response) matches(args map[string]any, whole string) bool {
	for name, want := range r.match {
		if got, ok := args[name]; !ok || !given.SameJSON(want, got) {
			return false
		}
	}
	if r.patterns.Whole != nil && !r.patterns.Whole.MatchString(whole) {
		return false
	}
	for name, re := range r.patterns.ByName {
		if got, ok := args[name]; !ok || !found(re, got) {
			return false
		}
	}
	return r.fits == nil || r.fits.Validate(args) == nil
}

// found reports whether an expression matches an argument: a string directly, any other value as
// JSON.
func found(re *regexp.Regexp, value any) bool {
	if s, ok := value.(string); ok {
		return re.MatchString(s)
	}
	return re.Match(compact(value))
}

// object decodes a JSON object and keeps its numbers as [json.Number]. An empty text is an empty
// object.
func object(raw json.RawMessage) (map[string]any, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return map[string]any{}, nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("not an object")
	}
	return m, nil
}

// compact returns a value as JSON with sorted keys and minimal escaping.
func compact(v any) json.RawMessage {
	b, err := jsonwalk.Encode(v)
	if err != nil {
		return json.RawMessage("null") // validation rejects suites with such values
	}
	return b
}
