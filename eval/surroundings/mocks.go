package surroundings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/text"
)

// An MCPMock is an MCP server that waza simulates for the agent.
type MCPMock struct {
	// Name of the server for the agent. The server of the same name in config.mcp_servers is not started.
	Name string `yaml:"name" jsonschema:"required"`
	// YAML or JSON file that contains the tools, in place of tools. The path is relative to the suite.
	Fixtures string `yaml:"fixtures" jsonschema_extras:"x-refers=suite-file" path:"maybe"`
	// Tools of the server, by name.
	Tools map[string]MockTool `yaml:"tools"`
}

// A MockTool is a tool of a mocked MCP server.
type MockTool struct {
	// Description of the tool for the agent.
	Description string `yaml:"description"`
	// JSON Schema of the arguments, of type object; any object when absent.
	InputSchema map[string]any `yaml:"input_schema"`
	// JSON Schema that the arguments of each call must match. A call that does not ends the trial at once: the agent failed, with score 0.
	ExpectSchema map[string]any `yaml:"expect_schema" json:",omitempty"`
	// Responses to calls: the first one that matches is used. A call without a match gets an error that names tool and arguments.
	Responses []MockResponse `yaml:"responses"`
}

// A MockResponse is a response of a tool of a mocked MCP server. It matches a call when all its
// conditions hold; without conditions it matches every call.
type MockResponse struct {
	// Required values of arguments, by name. Other arguments can have any value.
	Match map[string]any `yaml:"match"`
	// Regular expression (RE2) to find in the arguments as JSON, or a map from argument to an expression to find in its text.
	MatchRegex any `yaml:"match_regex"`
	// JSON Schema that the arguments must match.
	MatchSchema map[string]any `yaml:"match_schema"`
	// Result of the tool: a text unchanged, any other value as JSON.
	Return any `yaml:"return"`
	// Error text of the tool, in place of return.
	Error string `yaml:"error"`
	// Whether {{input.NAME}} in a text of return or error, also in one below a map or a list of return, is the
	// argument NAME of the call: a string unchanged, any other value as JSON, nothing if the call has no such argument. {{input.A.B}} is the
	// member B of the argument A.
	FillInput bool `yaml:"fill_input" json:",omitempty"`
}

// DecodeShape decodes the map of a response.
func (r *MockResponse) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map")
		return
	}
	returns := false
	for _, p := range d.Pairs(n) {
		returns = returns || p.Key.Value == "return"
	}
	d.Structure(n, r, nil)
	switch {
	case returns && r.Error != "":
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s has both return and error; use only one", d.Here())
	case !returns && r.Error == "":
		d.Report(n, decode.Error, decode.CodeMissingField, "", "%s has neither return nor error; set one of them", d.Here())
	}
}

// Limits of a list of mocks.
const (
	maxMocks     = 100     // servers, and tools of all servers together
	maxMockBytes = 1 << 20 // all tools as JSON
	maxMockName  = 64
)

var toolName = text.Pattern(`^[A-Za-z0-9_.-]{1,128}$`)

// MergeMocks returns the mocks of a task: those of the suite, replaced by the task's mocks of
// the same names, then the task's other mocks. The caller owns the slice.
func MergeMocks(suite, task []MCPMock) []MCPMock {
	list := slices.Clone(suite)
	for _, m := range task {
		at := slices.IndexFunc(list, func(other MCPMock) bool { return other.Name == m.Name })
		if at < 0 {
			list = append(list, m)
		} else {
			list[at] = m
		}
	}
	return list
}

// Reading contains the functions that find and read the files of mocks, and collects the
// findings.
type Reading struct {
	reach.Places
	Read     func(path string) ([]byte, error)
	Parse    func(path string, data []byte) *decode.Source
	Shown    func(path string) string // returns a path as messages show it
	Looked   func(paths ...string)
	Findings *decode.Findings
}

// Mocks checks the list of mocks at a node, and fills in the tools of mocks with a fixture. It
// returns nil for a list that is too large.
func (r Reading) Mocks(mocks []MCPMock, src *decode.Source, node *yaml.Node) []MCPMock {
	report := r.reportBelow(src, node)
	if len(mocks) > maxMocks {
		report(decode.At(), decode.Error, decode.CodeTooLarge, "mcp_mocks has %d servers; the limit is %d", len(mocks), maxMocks)
		return nil
	}
	names, tools, room := map[string]bool{}, 0, maxMockBytes
	for i := range mocks {
		m := &mocks[i]
		checkName(m.Name, i, names, report)
		at := r.reportBelow(src, decode.Place(node, i, "tools"))
		if m.Fixtures != "" && m.Tools != nil {
			report(decode.At(i, "fixtures"), decode.Error, decode.CodeInvalidValue, "mcp_mocks[%d] has both fixtures and tools; use only one", i)
			continue
		}
		if m.Fixtures != "" {
			var ok bool
			if at, ok = r.loadFixture(m, src, decode.Place(node, i, "fixtures")); !ok {
				continue
			}
		}
		if len(m.Tools) == 0 {
			report(decode.At(i), decode.Error, decode.CodeMissingField, "mcp_mocks[%d] has no tools; add tools or fixtures", i)
			continue
		}
		if tools += len(m.Tools); tools > maxMocks {
			report(decode.At(), decode.Error, decode.CodeTooLarge, "mcp_mocks has more than %d tools", maxMocks)
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(m.Tools)) {
			if room -= sizeOf(m.Tools[name], room); room < 0 {
				report(decode.At(), decode.Error, decode.CodeTooLarge, "the tools of mcp_mocks have more than %s as JSON", files.Size(maxMockBytes))
				return nil
			}
			checkTool(name, m.Tools[name], at)
		}
	}
	return mocks
}

// reportBelow reports findings about the children of a node.
func (r Reading) reportBelow(src *decode.Source, node *yaml.Node) Reporter {
	return func(at decode.Path, severity decode.Severity, code decode.Code, format string, args ...any) {
		r.Findings.Reportf(src, decode.Place(node, at...), severity, code, format, args...)
	}
}

// loadFixture sets the tools of a mock from its file. If tools is the only key of the file, its
// value is used, else the whole file. Faults of the file are reported where it is named.
func (r Reading) loadFixture(m *MCPMock, src *decode.Source, named *yaml.Node) (at Reporter, ok bool) {
	path, tried, found := r.Resolve(m.Fixtures, "")
	r.Looked(tried...)
	report := r.reportBelow(src, named)
	if !found {
		for i := range tried {
			tried[i] = r.Shown(tried[i])
		}
		report(decode.At(), decode.Error, decode.CodeMissingFile, "no such file: %s (tried %s)",
			text.Clip(m.Fixtures, 200), strings.Join(tried, ", "))
		return nil, false
	}
	if err := r.Allows(path); err != nil {
		report(decode.At(), decode.Error, decode.CodeEscapingPath, "%s is %s", r.Shown(path), err)
		return nil, false
	}
	data, err := r.Read(path)
	if err != nil {
		r.Findings.Unreadable(r.Shown(path), src, named, err)
		return nil, false
	}
	file := r.Parse(path, data)
	root := decode.Follow(file.Root)
	if root == nil {
		return nil, false
	}
	if root.Kind == yaml.MappingNode && len(root.Content) == 2 && root.Content[0].Value == "tools" {
		root = root.Content[1]
	}
	before := r.Findings.Errors()
	decode.NewDecoder(file, r.Findings).Into(root, &m.Tools)
	return r.reportBelow(file, root), r.Findings.Errors() == before
}

func checkName(name string, i int, names map[string]bool, report Reporter) {
	switch {
	case strings.TrimSpace(name) == "": // reported by the decoder
	case len(name) > maxMockName || strings.ContainsFunc(name, unicode.IsControl):
		report(decode.At(i, "name"), decode.Error, decode.CodeInvalidValue,
			"the name of an MCP server must be one line of at most %d bytes, got %q", maxMockName,
			text.Clip(name, 80))
	case names[name]:
		report(decode.At(i, "name"), decode.Error, decode.CodeInvalidValue, "mcp_mocks has two servers named %q", name)
	}
	names[name] = true
}

func checkTool(name string, t MockTool, report Reporter) {
	if !toolName().MatchString(name) {
		report(decode.At(name), decode.Error, decode.CodeInvalidValue,
			"tool name %q must have 1 to 128 letters, digits and _ - .", text.Clip(name, 80))
	}
	if kind, given := t.InputSchema["type"]; given && kind != "object" {
		report(decode.At(name, "input_schema", "type"), decode.Error, decode.CodeBadSchema,
			"tool %s: the type of input_schema must be object", name)
	} else if _, err := MockSchema(t.InputSchema); err != nil {
		report(decode.At(name, "input_schema"), decode.Error, decode.CodeBadSchema, "tool %s: input_schema: %s", name, err)
	}
	if _, err := MockSchema(t.ExpectSchema); err != nil {
		report(decode.At(name, "expect_schema"), decode.Error, decode.CodeBadSchema, "tool %s: expect_schema: %s", name, err)
	}
	if len(t.Responses) == 0 {
		report(decode.At(name), decode.Warning, decode.CodeNoEffect, "tool %s has no responses, so each call returns an error", name)
	}
	for i, r := range t.Responses {
		at := func(elems ...any) decode.Path { return append(decode.At(name, "responses", i), elems...) }
		if _, err := r.Patterns(); err != nil {
			code := decode.CodeWrongType
			if bad := (*badPattern)(nil); errors.As(err, &bad) {
				code = decode.CodeBadRegex
			}
			report(at("match_regex"), decode.Error, code, "tool %s: %s", name, err)
		}
		if _, err := MockSchema(r.MatchSchema); err != nil {
			report(at("match_schema"), decode.Error, decode.CodeBadSchema, "tool %s: match_schema: %s", name, err)
		}
		for _, v := range []struct {
			key   string
			value any
		}{{"match", r.Match}, {"return", r.Return}} {
			if _, err := json.Marshal(v.value); err != nil {
				report(at(v.key), decode.Error, decode.CodeInvalidValue, "tool %s: %s cannot be encoded as JSON: %s", name, v.key, err)
			}
		}
	}
}

// Patterns are the compiled regular expressions of match_regex.
type Patterns struct {
	Whole  *regexp.Regexp            // for the arguments as JSON; may be nil
	ByName map[string]*regexp.Regexp // for single arguments
}

type badPattern struct{ error }

// Patterns compiles match_regex.
func (r *MockResponse) Patterns() (p Patterns, err error) {
	compile := func(where, expr string) *regexp.Regexp {
		re, fault := regexp.Compile(expr)
		if fault != nil {
			err = &badPattern{fmt.Errorf("%s: invalid regular expression: %s", where, text.RegexpFault(fault))}
		}
		return re
	}
	switch v := r.MatchRegex.(type) {
	case nil:
	case string:
		p.Whole = compile("match_regex", v)
	case map[string]any:
		p.ByName = map[string]*regexp.Regexp{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			expr, ok := v[name].(string)
			if !ok {
				return Patterns{}, fmt.Errorf("match_regex.%s must be a regular expression", text.Clip(name, 60))
			}
			p.ByName[name] = compile("match_regex."+text.Clip(name, 60), expr)
		}
	default:
		err = errors.New("match_regex must be a regular expression, or a map from argument to regular expression")
	}
	return p, err
}

// MockSchema compiles a JSON Schema, which must not contain external references. It returns nil
// for an absent schema.
func MockSchema(schema map[string]any) (*jsonschema.Schema, error) {
	if schema == nil {
		return nil, nil
	}
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	const at = "mem:///schema"
	if err := c.AddResource(at, doc); err != nil {
		return nil, schemaFault(err)
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, schemaFault(err)
	}
	return compiled, nil
}

// schemaFault converts an error of the compiler to a single line.
func schemaFault(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	_, faults, _ := strings.Cut(invalid.Err.Error(), "\n")
	return errors.New("not a valid JSON Schema: " + text.Clip(strings.Join(strings.Fields(faults), " "), 300))
}

// nowhere refuses to load any schema.
type nowhere struct{}

func (nowhere) Load(ref string) (any, error) {
	return nil, fmt.Errorf("%s: schemas must not contain external references", text.Clip(ref, 80))
}

// sizeOf returns the approximate size of a tool as JSON in bytes. It stops counting beyond a
// limit, because aliases can make large values from small files.
func sizeOf(t MockTool, limit int) int {
	n := len(t.Description)
	var count func(v any)
	count = func(v any) {
		if n++; n > limit {
			return
		}
		switch v := v.(type) {
		case string:
			n += len(v) + 2
		case []any:
			for _, one := range v {
				count(one)
			}
		case map[string]any:
			for key, one := range v {
				n += len(key) + 3
				count(one)
			}
		default:
			n += 4
		}
	}
	count(t.InputSchema)
	count(t.ExpectSchema)
	for _, r := range t.Responses {
		n += len(r.Error) + 10
		for _, v := range []any{r.Match, r.MatchRegex, r.MatchSchema, r.Return} {
			count(v)
		}
	}
	return n
}
