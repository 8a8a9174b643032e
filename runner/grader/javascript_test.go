package grader

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
)

func TestJavaScript(t *testing.T) {
	t.Parallel()
	s := richSubject(t)
	for source, want := range map[string]string{
		"output.length > 10":                           "",
		"output.includes('42')":                        "",
		"tool_calls.some(c => c.name === 'bash')":      "",
		"tool_calls[0].tool_name === 'bash'":           "",
		"tool_calls[0].arguments.opts.deep":            "",
		"transcript[1].content === 'looking'":          "",
		"errors.length === 1 && duration_ms === 1500":  "",
		"context.deep.x[1] === 2":                      "",
		"outcome.status === 'completed'":               "",
		"files['a.txt'] === 'alpha'":                   "",
		"/answer is (\\d+)/.exec(output)[1] === '42'":  "",
		"const n = output.length; n > 3":               "",
		"'ab'.repeat(3) === 'ababab'":                  "",
		"output.length > 100":                          "is false",
		"undefined":                                    "is undefined",
		"missing.name":                                 "ReferenceError: missing is not defined",
		"null.x":                                       "TypeError",
		"throw new Error('no')":                        "Error: no",
		"output.includes":                              "is a function",
		"(function f() { return f() })()":              "too deeply",
		"while (true) {}":                              "timed out after 300ms",
		"'x'.repeat(1e9)":                              "RangeError",
		"'x'.padStart(1e9)":                            "RangeError",
		"new Array(4e9).fill(0)":                       "RangeError",
		"new ArrayBuffer(1e12)":                        "ReferenceError",
		"leaked = 1":                                   "ReferenceError",
		"require('fs')":                                "ReferenceError",
		"eval('1')":                                    "ReferenceError",
		"let a = []; for (;;) a.push('x'.repeat(1e6))": "",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			env := patientEnv(1)
			if strings.HasPrefix(source, "while") || strings.HasPrefix(source, "let a") {
				env.AssertionTimeout = 300 * time.Millisecond
			}
			b, err := Builtin.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Assertions: []string{source}, Language: "javascript"}}, env)
			require.NoError(t, err)
			switch {
			case strings.HasPrefix(source, "let a"): // by time or by memory
				requireVerdict(t, b, s, scores(0))
			case want == "":
				requireVerdict(t, b, s, passes())
			default:
				requireVerdict(t, b, s, scores(0, want))
			}
		})
	}
}

// What an agent wrote must not exhaust the stack of this process.
func TestJavaScriptDeepInput(t *testing.T) {
	t.Parallel()
	env := patientEnv(1)
	b, err := Builtin.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Language: "javascript", Assertions: []string{
		"JSON.parse(output)", "tool_calls.length === 1", `JSON.parse('{"a": ["[[\\"[["]}').a.length === 1`,
	}}}, env)
	require.NoError(t, err)
	deep := strings.Repeat("[", executor.MaxOutputBytes)
	requireVerdict(t, b, subject(deep, calling("x "+deep)), scores(2./3, "RangeError: JSON.parse: the text is nested too deeply"))
	_, err = compileJavaScript(strings.Repeat("(", 1_000_000))
	require.ErrorContains(t, err, "longer than 16 KiB")
	_, err = compileJavaScript(strings.Repeat("(", maxJSSource))
	require.ErrorContains(t, err, "line 1, column")
}

func TestJavaScriptNothingLeaks(t *testing.T) {
	t.Parallel()
	env := patientEnv(1)
	b, err := Builtin.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Language: "javascript", Assertions: []string{
		"tool_calls.pop() !== undefined",
		"tool_calls.length === 2",
		"globalThis.kept = 1",
		"typeof kept === 'undefined'",
		"String.prototype.includes = () => true; output.includes('zzz')",
		"!output.includes('zzz')",
	}}}, env)
	require.NoError(t, err)
	requireVerdict(t, b, richSubject(t), passes())
}

func TestJavaScriptCancelled(t *testing.T) {
	t.Parallel()
	env := patientEnv(1)
	b, err := Builtin.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Language: "javascript", Assertions: []string{"for (;;);"}}}, env)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = b.Grade(ctx, subject(""))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func BenchmarkJavaScriptAssertion(b *testing.B) {
	env := NewEnv(&eval.Suite{}, 1)
	bound, err := Builtin.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Language: "javascript", Assertions: []string{"output.length > 0"}}}, env)
	require.NoError(b, err)
	s := subject("Mock response")
	for b.Loop() {
		if res, err := bound.Grade(context.Background(), s); err != nil || !res.Passed {
			b.Fatal(res, err)
		}
	}
}
