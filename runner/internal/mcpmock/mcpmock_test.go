package mcpmock

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval/surroundings"
	"waza/runner/executor"
	"waza/runner/mcptools"
)

// TestMain makes this binary the program that agents start.
func TestMain(m *testing.M) {
	mcptools.Main()
	goleak.VerifyTestMain(m)
}

// answer returns the answer of a tool with these responses to arguments. Errors have the prefix
// "error: ".
func answer(t *testing.T, args string, responses ...surroundings.MockResponse) string {
	t.Helper()
	tool, err := newTool("server", "tool", surroundings.MockTool{Responses: responses})
	require.NoError(t, err)
	r, err := tool.call(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "tool", Arguments: json.RawMessage(args)}})
	require.NoError(t, err)
	return said(r)
}

func said(r *mcp.CallToolResult) string {
	s := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		return "error: " + s
	}
	return s
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r    surroundings.MockResponse
		yes  []string
		none []string
	}{
		"nothing": {surroundings.MockResponse{}, []string{``, `null`, `{}`, `{"a":1}`}, []string{`[1]`, `"x"`}},
		"match": {
			surroundings.MockResponse{Match: map[string]any{"a": 1, "b": map[string]any{"c": []any{"x", true, nil}}}},
			[]string{`{"b":{"c":["x",true,null]},"a":1.0,"more":2}`, `{"a":1e0,"b":{"c":["x",true,null]}}`},
			[]string{`{"a":1}`, `{"a":"1","b":{"c":["x",true,null]}}`, `{"a":1,"b":{"c":["x",true]}}`, `{"a":1,"b":{"c":["x",true,null],"d":1}}`},
		},
		"match null": {surroundings.MockResponse{Match: map[string]any{"a": nil}}, []string{`{"a":null}`}, []string{`{}`, `{"a":0}`}},
		"match large numbers": {
			surroundings.MockResponse{Match: map[string]any{"a": 9007199254740993}},
			[]string{`{"a":9007199254740993}`}, []string{`{"a":9007199254740992}`},
		},
		"regex by name": {
			surroundings.MockResponse{MatchRegex: map[string]any{"a": "^x.z$", "n": "^4"}},
			[]string{`{"a":"xyz","n":42}`}, []string{`{"a":"xyz"}`, `{"a":"xyzz","n":4}`, `{"a":["xyz"],"n":4}`},
		},
		"regex of all": {surroundings.MockResponse{MatchRegex: `"a":"<x>","b"`}, []string{`{"b": 1, "a": "<x>"}`}, []string{`{"b":1}`}},
		"schema": {
			surroundings.MockResponse{
				MatchSchema: map[string]any{"properties": map[string]any{"n": map[string]any{"minimum": 3}}, "required": []any{"n"}},
			},
			[]string{`{"n":3}`}, []string{`{"n":2}`, `{}`},
		},
		"all of them": {
			surroundings.MockResponse{
				Match: map[string]any{"a": 1}, MatchRegex: map[string]any{"b": "x"},
				MatchSchema: map[string]any{"maxProperties": 2},
			},
			[]string{`{"a":1,"b":"x"}`}, []string{`{"a":2,"b":"x"}`, `{"a":1,"b":"y"}`, `{"a":1,"b":"x","c":0}`},
		},
	} {
		c.r.Return = "yes"
		for _, args := range c.yes {
			require.Equal(t, "yes", answer(t, args, c.r), "%s: %s", name, args)
		}
		for _, args := range c.none {
			require.Contains(t, answer(t, args, c.r), "error: ", "%s: %s", name, args)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	one := surroundings.MockResponse{Match: map[string]any{"n": 1}, Return: map[string]any{"b": []any{1, "<&>"}, "a": nil}}
	two := surroundings.MockResponse{Match: map[string]any{"n": 2}, Error: "two is too many"}
	rest := surroundings.MockResponse{Return: "a text"}
	require.Equal(t, `{"a":null,"b":[1,"<&>"]}`, answer(t, `{"n":1}`, one, two, rest))
	require.Equal(t, "error: two is too many", answer(t, `{"n":2}`, one, two, rest))
	require.Equal(t, "a text", answer(t, `{"n":3}`, one, two, rest))
	require.Equal(t, "a text", answer(t, `{"n":1}`, rest, one))
	require.Equal(t, "null", answer(t, `{}`, surroundings.MockResponse{}))
	require.Equal(t, `error: the mock of tool tool of MCP server server has no response for the arguments {"n":3}`,
		answer(t, `{"n": 3}`, one, two))
	long := answer(t, `{"n":"`+strings.Repeat("x", 5000)+`"}`, one)
	require.Less(t, len(long), maxShown+200)
}

// Answers contain arguments of their call only if they ask for them.
func TestFilledAnswers(t *testing.T) {
	t.Parallel()
	filled := surroundings.MockResponse{Return: "{{input.a}}-{{ input.b.c }}-{{input.none}}-{{input.d}}-{{x}}", FillInput: true}
	require.Equal(t, `x {{input.d}}-1--["y"]-{{x}}`, answer(t, `{"a":"x {{input.d}}","b":{"c":1},"d":["y"]}`, filled))
	require.Equal(t, "error: no x", answer(t, `{"a":"x"}`, surroundings.MockResponse{Error: "no {{input.a}}", FillInput: true}))
	require.Equal(t, "{{input.a}}", answer(t, `{"a":"x"}`, surroundings.MockResponse{Return: "{{input.a}}"}))
	require.Equal(t, `[1.5,"x\"",{"b":"{\"c\":1}"}]`, answer(t, `{"a":"x\"","o":{"c":1}}`,
		surroundings.MockResponse{Return: []any{1.5, "{{input.a}}", map[string]any{"b": "{{input.o}}"}}, FillInput: true}))
	require.Equal(t, `["{{input.a}}"]`, answer(t, `{"a":"x"}`, surroundings.MockResponse{Return: []any{"{{input.a}}"}}))
	many := surroundings.MockResponse{Return: strings.Repeat("{{input.a}}", 100), FillInput: true}
	require.Contains(t, answer(t, `{"a":"`+strings.Repeat("x", 50_000)+`"}`, many), "error: the answer of the mock has more than 4194304 bytes")
}

// An agent sees the tools as the suite describes them. The servers end with stop.
func TestServe(t *testing.T) {
	t.Parallel()
	list, stop, err := Serve(t.Context(), []surroundings.MCPMock{{Name: "a", Tools: map[string]surroundings.MockTool{
		"y": {Responses: []surroundings.MockResponse{{Return: "from y"}}},
		"x": {Description: "Does x.", InputSchema: map[string]any{"properties": map[string]any{"n": map[string]any{"type": "number"}}}},
	}}, {Name: "b", Tools: map[string]surroundings.MockTool{"z": {}}}}, t.TempDir(), Listener{Seen: func(string, json.RawMessage) {}, Broken: func(string) {}})
	defer stop()
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "b", list[1].Name)
	require.Equal(t, []string{"x", "y"}, list[0].Tools)

	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(list[0].Command, list[0].Args...)}, nil)
	require.NoError(t, err)
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 2)
	require.Equal(t, "Does x.", tools.Tools[0].Description)
	require.Equal(t, map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number"}}},
		tools.Tools[0].InputSchema)
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "y"})
	require.NoError(t, err)
	require.Equal(t, "from y", said(r))
	stop()
	require.Error(t, exec.Command(list[1].Command, list[1].Args...).Run())
}

// A server that validation would reject is an error, not a panic.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for _, m := range []surroundings.MockTool{
		{Responses: []surroundings.MockResponse{{MatchRegex: "("}}},
		{Responses: []surroundings.MockResponse{{MatchRegex: 1}}},
		{Responses: []surroundings.MockResponse{{MatchSchema: map[string]any{"type": "nope"}}}},
		{InputSchema: map[string]any{"type": "string"}},
	} {
		_, stop, err := Serve(t.Context(), []surroundings.MCPMock{{Name: "a", Tools: map[string]surroundings.MockTool{"t": m}}}, t.TempDir(), Listener{Seen: func(string, json.RawMessage) {}, Broken: func(string) {}})
		stop()
		require.ErrorContains(t, err, "server a, tool t")
		require.True(t, executor.IsPermanent(err))
	}
}

// A call that the mock does not expect is reported, and gets no answer.
func TestExpect(t *testing.T) {
	t.Parallel()
	var broken []string
	tools := map[string]surroundings.MockTool{"buy": {
		ExpectSchema: map[string]any{"properties": map[string]any{"n": map[string]any{"type": "number"}}, "required": []any{"n"}},
		Responses:    []surroundings.MockResponse{{Return: "bought"}},
	}}
	list, stop, err := Serve(t.Context(), []surroundings.MCPMock{{Name: "shop", Tools: tools}}, t.TempDir(),
		Listener{Seen: func(string, json.RawMessage) {}, Broken: func(reason string) { broken = append(broken, reason) }})
	defer stop()
	require.NoError(t, err)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(list[0].Command, list[0].Args...)}, nil)
	require.NoError(t, err)
	defer session.Close()
	call := func(args string) string {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "buy", Arguments: json.RawMessage(args)})
		require.NoError(t, err)
		return said(r)
	}
	require.Equal(t, "bought", call(`{"n":1}`))
	require.Empty(t, broken)
	const why = "the agent called tool buy of MCP server shop with arguments that the mock does not expect: "
	require.Equal(t, "error: "+why+`{"n":"many"}: n: got string, want number`, call(`{"n":"many"}`))
	call(`{}`)
	require.Equal(t, []string{why + `{"n":"many"}: n: got string, want number`, why + `{}: arguments: missing property 'n'`}, broken)
}
