package program

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

// A function decides with a boolean, a number or an object, and fails with anything else.
func TestFunction(t *testing.T) {
	t.Parallel()
	env := patientEnv(2)
	defer env.Close()
	half := 0.5
	s := grader.NewSubject(grader.Subject{
		Output: `{"a": [1, 2]}`, Task: &eval.Task{Inputs: eval.Inputs{Context: map[string]any{"vars": map[string]any{"n": 2}, "prompt": "p"}}},
	})
	for _, c := range []struct {
		body      string
		transform string
		threshold *float64
		score     float64
		passed    bool
		feedback  string
	}{
		{"return JSON.parse(output).a.length === context.vars.n", "", nil, 1, true, ""},
		{"return output.includes('b')", "", nil, 0, false, "the function returned false"},
		{"console.log(output)\nvar x = 1; y = x\nreturn context.prompt === 'p' && y === 1", "", nil, 1, true, ""},
		{"return 0.4", "", nil, 0.4, true, ""},
		{"return 0.4", "", &half, 0.4, false, "the function returned 0.4"},
		{"return 0.5", "", &half, 0.5, true, ""},
		{"return 0", "", nil, 0, false, "the function returned 0"},
		{"return 7", "", nil, 1, true, ""},
		{"return {pass: true, score: 0.3, reason: 'fine'}", "", &half, 0.3, true, "fine"},
		{"return {pass: false, score: 1, reason: 'not fine'}", "", nil, 1, false, "not fine"},
		{"return Promise.resolve(true)", "", nil, 1, true, ""},
		{"return Promise.reject(new Error('no'))", "", nil, 0, false, "the promise was rejected: Error: no"},
		{"return {pass: true}", "", nil, 0, false, "an object with pass, score and reason; it returned {\"pass\":true}"},
		{"return {pass: true, score: 1}", "", nil, 0, false, "it returned {\"pass\":true,\"score\":1}"},
		{"return 'true'", "", nil, 0, false, "it returned \"true\""},
		{"return 0 / 0", "", nil, 0, false, "returned NaN"},
		{"output.length", "", nil, 0, false, "returned undefined"},
		{"return undefinedName", "", nil, 0, false, "ReferenceError: undefinedName is not defined"},
		{"return new Function('return true')()", "", nil, 0, false, "ReferenceError: Function is not defined"},
		{"return output.a[0] === 1", "return JSON.parse(output)", nil, 1, true, ""},
		{"return output === 'A'", "return 'a'.toUpperCase()", nil, 1, true, ""},
	} {
		spec := &eval.Grader{Type: "code", Transform: c.transform, Options: &CodeOptions{Function: c.body, Threshold: c.threshold, Language: "python"}}
		b, err := gradertest.Registry.Bind(spec, env)
		require.NoError(t, err, c.body)
		got, err := b.Grade(t.Context(), s)
		require.NoError(t, err, c.body)
		require.Equal(t, []any{c.score, c.passed}, []any{got.Score, got.Passed}, "%s: %s", c.body, got.Feedback)
		require.Contains(t, got.Feedback, c.feedback, c.body)
	}
}

// Functions and transforms can use the transcript, the tool calls, and the files that the agent created.
func TestFunctionScope(t *testing.T) {
	t.Parallel()
	env := patientEnv(2)
	defer env.Close()
	dir := t.TempDir()
	gradertest.WriteFiles(t, dir, map[string]string{"given.txt": "x", "out/made.md": "y", "z.md": "z"})
	subject := func() *grader.Subject {
		return grader.NewSubject(grader.Subject{
			Output: "text", Dir: func() (string, error) { return dir, nil },
			Given: func() (func(string) bool, error) { return func(path string) bool { return path == "given.txt" }, nil },
			Transcript: []record.Entry{
				{Type: record.EntryMessage, Role: "assistant", Text: "Hello."},
				{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "Read", Arguments: []byte(`{"path":"a"}`)}},
			},
		})
	}
	for _, c := range []struct{ body, transform string }{
		{"return transcript.length === 2 && transcript[0].text === 'Hello.' && output === 'text'", ""},
		{"return tool_calls[0].arguments.path === 'a'", ""},
		{"return created_files.join() === 'out/made.md,z.md'", ""},
		{"return output === 'message tool_call'", "return transcript.map(e => e.type).join(' ')"},
		{"return output === 'Read'", "return tool_calls.map(c => c.name).join()"},
		{"return output === 'out/made.md z.md'", "return created_files.join(' ')"},
	} {
		spec := &eval.Grader{Type: "code", Transform: c.transform, Options: &CodeOptions{Function: c.body}}
		b, err := gradertest.Registry.Bind(spec, env)
		require.NoError(t, err, c.body)
		got, err := b.Grade(t.Context(), subject())
		require.NoError(t, err, c.body)
		require.True(t, got.Passed, "%s: %s", c.body, got.Feedback)
	}
	gradertest.NeedPython(t)
	spec := &eval.Grader{Type: "code", Options: &CodeOptions{Assertions: []string{"created_files == ['out/made.md', 'z.md']"}, Language: "python"}}
	b, err := gradertest.Registry.Bind(spec, env)
	require.NoError(t, err)
	got, err := b.Grade(t.Context(), subject())
	require.NoError(t, err)
	require.True(t, got.Passed, got.Feedback)

	// A transcript that lacks entries proves nothing.
	cut := subject()
	cut.Transcript = append(cut.Transcript, record.Entry{Type: record.EntryDropped, Text: "5 entries"})
	cut = grader.NewSubject(*cut)
	b, err = gradertest.Registry.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Function: "return tool_calls.length === 1"}}, env)
	require.NoError(t, err)
	_, err = b.Grade(t.Context(), cut)
	require.ErrorContains(t, err, "tool_calls: ")
}

// Agents are not to blame for a missing Node.js.
func TestFunctionErrors(t *testing.T) {
	t.Parallel()
	env := patientEnv(1)
	defer env.Close()
	s := grader.NewSubject(grader.Subject{Output: "text"})
	for _, c := range []struct{ body, transform, want string }{
		{"return require('fs') === 1", "", "ReferenceError: require is not defined: waza has no Node.js"},
		{"return true", "return require('fs')", "transform: ReferenceError: require is not defined: waza has no Node.js"},
	} {
		spec := &eval.Grader{Type: "code", Transform: c.transform, Options: &CodeOptions{Function: c.body}}
		b, err := gradertest.Registry.Bind(spec, env)
		require.NoError(t, err)
		_, err = b.Grade(t.Context(), s)
		require.ErrorContains(t, err, c.want)
	}
	for _, c := range []struct{ transform, feedback string }{
		{"return JSON.parse(output)", "transform: SyntaxError"},
		{"return undefined", "transform: returned undefined"},
		{"return null", "transform: returned null, which is no output"},
	} { // neither the grader nor its opposite passes
		spec := &eval.Grader{Type: "code", Transform: c.transform, Negate: true, Options: &CodeOptions{Function: "return true"}}
		b, err := gradertest.Registry.Bind(spec, env)
		require.NoError(t, err)
		got, err := b.Grade(t.Context(), s)
		require.NoError(t, err)
		require.False(t, got.Passed)
		require.Zero(t, got.Score)
		require.Contains(t, got.Feedback, c.feedback)
	}
	_, err := gradertest.Registry.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Function: "return ("}}, env)
	require.ErrorContains(t, err, "function: ")
	_, err = gradertest.Registry.Bind(&eval.Grader{Type: "code", Transform: ")", Options: &CodeOptions{Function: "return 1"}}, env)
	require.ErrorContains(t, err, "transform: ")
}
