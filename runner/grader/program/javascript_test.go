package program

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

// javaScript builds a code grader for JavaScript with its own environment.
func javaScript(t testing.TB, sources ...string) (*grader.Bound, *grader.Env) {
	t.Helper()
	env := patientEnv(1)
	t.Cleanup(env.Close)
	return javaScriptBound(t, env, sources...), env
}

func javaScriptBound(t testing.TB, env *grader.Env, sources ...string) *grader.Bound {
	t.Helper()
	b, err := gradertest.Registry.Bind(&eval.Grader{Type: "code", Options: &CodeOptions{Assertions: sources, Language: "javascript"}}, env)
	require.NoError(t, err)
	return b
}

// requireJavaScript checks the complaint about each assertion; "" means that it is true.
func requireJavaScript(t *testing.T, s *grader.Subject, cases map[string]string) {
	t.Helper()
	env := patientEnv(2)
	defer env.Close()
	for source, want := range cases {
		b := javaScriptBound(t, env, source)
		if want == "" {
			gradertest.RequireVerdict(t, b, s, gradertest.Passes())
			continue
		}
		gradertest.RequireVerdict(t, b, s, gradertest.Scores(0, want))
	}
}

func TestJavaScript(t *testing.T) {
	t.Parallel()
	requireJavaScript(t, richSubject(t), map[string]string{
		"output.length > 10":                            "",
		"output.includes('42')":                         "",
		"tool_calls.some(c => c.name === 'bash')":       "",
		"tool_calls[0].tool_name === 'bash'":            "",
		"tool_calls[0].arguments.opts.deep":             "",
		"transcript[1].content === 'looking'":           "",
		"errors.length === 1 && duration_ms === 1500":   "",
		"context.deep.x[1] === 2":                       "",
		"outcome.status === 'completed'":                "",
		"files['a.txt'] === 'alpha'":                    "",
		"/answer is (\\d+)/.exec(output)[1] === '42'":   "",
		"const n = output.length; n > 3":                "",
		"'ab'.repeat(3) === 'ababab'":                   "",
		"output.length > 100":                           "is false",
		"undefined":                                     "is undefined",
		"missing.name":                                  "ReferenceError: missing is not defined",
		"null.x":                                        "TypeError",
		"throw new Error('no')":                         "Error: no",
		"throw {toString() { throw 1 }}":                "a value that cannot be converted to text",
		"output.includes":                               "is a function",
		"(function f() { return f() })()":               "too deeply",
		"leaked = 1":                                    "ReferenceError",
		"require('fs')":                                 "ReferenceError",
		"eval('1')":                                     "ReferenceError",
		"process":                                       "ReferenceError",
		"Symbol()":                                      "",
		"new Proxy({}, {get() { throw new Error(1) }})": "Error: 1",
	})
}

// Objects are true, and promises and iterators are objects. Assertions with such values once
// passed, whatever the promise settled to and whatever the iterator contained.
func TestAttackJavaScriptPromises(t *testing.T) {
	t.Parallel()
	requireJavaScript(t, gradertest.Subject("hello"), map[string]string{
		"(async () => output === 'hello')()":                                   "",
		"(async () => output === 'bye')()":                                     "is false",
		"(async () => { await null; return output.startsWith('h') })()":        "",
		"(async () => { await null; return output.startsWith('b') })()":        "is false",
		"(async () => { await null; throw new TypeError('no such thing') })()": "the promise was rejected: TypeError: no such thing",
		"Promise.reject('a reason')":                                           "the promise was rejected: a reason",
		"Promise.reject()":                                                     "the promise was rejected: undefined",
		"Promise.reject({toString() { throw 1 }})": "the promise was rejected: a value that " +
			"cannot be converted to text",
		"Promise.all([1, 2].map(async x => x)).then(all => all.length === 2)": "",
		"Promise.all([1, 2].map(async x => x)).then(all => all.length === 3)": "is false",
		"Promise.any([Promise.reject(1), true])":                              "",
		"Promise.resolve(Promise.resolve(0))":                                 "is 0",
		"Promise.resolve(() => true)":                                         "is a function, which is always true",
		"Promise.resolve()":                                                   "is undefined",
		"new Promise(() => {})":                                               "is a promise that never settles",
		"(async () => { await new Promise(() => {}); return true })()":        "is a promise that never settles",
		"({then(done) { done(output === 'hello') }})":                         "",
		"({then(done) { done(false) }})":                                      "is false",
		"({then(done, fail) { fail('refused') }})":                            "the promise was rejected: refused",
		"({then() { throw new Error('broken') }})":                            "the promise was rejected: Error: broken",
		"({get then() { throw new Error('hidden') }})":                        "Error: hidden",
		"({then: true})":                                                      "",
		"Promise.prototype.then = (f) => f(true); Promise.resolve = () => true; (async () => { await null; return false })()": "is false",
		"async () => false":                        "is a function, which is always true",
		"[].values()":                              "is an iterator, which is always true",
		"(function* () { yield false })()":         "is an iterator, which is always true",
		"[...['a'].values()].some(x => x === 'a')": "",
	})
}

// Python had the same problem with iterators other than generators.
func TestPythonIterators(t *testing.T) {
	t.Parallel()
	b, _ := assertions(t, "map(str.isupper, [output])", "zip()", "iter([])", "any(map(str.isupper, ['X']))")
	gradertest.RequireVerdict(t, b, gradertest.Subject("x"),
		gradertest.Scores(0.25, "map(str.isupper, [output]): is an iterator, which is always true", "zip(): is an iterator"))
}

func TestJavaScriptTimeout(t *testing.T) {
	t.Parallel()
	b, env := javaScript(t, "true", "while (true) {}", "(async () => { for (;;) await null })()", "output === 'x'")
	// A busy machine can need long for the other assertions, too.
	for _, env.AssertionTimeout = range []time.Duration{300 * time.Millisecond, 3 * time.Second, time.Minute} {
		if got, err := b.Grade(context.Background(), gradertest.Subject("x")); err == nil && got.Score == 0.5 {
			break
		}
	}
	gradertest.RequireVerdict(t, b, gradertest.Subject("x"),
		gradertest.Scores(0.5, "while (true) {}: timed out after "+env.AssertionTimeout.String(), "await null })(): timed out"))
}

// An agent's output must not exhaust the stack of a process.
func TestJavaScriptDeepInput(t *testing.T) {
	t.Parallel()
	b, env := javaScript(t, "JSON.parse(output)", "tool_calls.length === 1", `JSON.parse('{"a": ["[[\\"[["]}').a.length === 1`)
	deep := strings.Repeat("[", executor.MaxOutputBytes)
	gradertest.RequireVerdict(t, b, gradertest.Subject(deep, gradertest.Calling("x "+deep)),
		gradertest.Scores(2./3, "RangeError: JSON.parse: the text is nested too deeply"))
	nested := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	gradertest.RequireVerdict(t, b, gradertest.Subject("", gradertest.Calling("deep "+nested)),
		gradertest.Errors("cannot read the trial: tool_calls is nested too deeply"))
	for source, want := range map[string]string{
		strings.Repeat("(", 1_000_000): "assertions[0]: longer than 16 KiB", strings.Repeat("(", 5000): "(column ",
	} {
		_, err := gradertest.Registry.Bind(&eval.Grader{
			Type: "code", Options: &CodeOptions{Assertions: []string{source}, Language: "javascript"},
		},
			env)
		require.ErrorContains(t, err, want)
	}
}

func TestJavaScriptNothingLeaks(t *testing.T) {
	t.Parallel()
	b, _ := javaScript(t,
		"tool_calls.pop() !== undefined",
		"tool_calls.length === 2",
		"globalThis.kept = 1",
		"typeof kept === 'undefined'",
		"String.prototype.includes = () => true; output.includes('zzz')",
		"!output.includes('zzz')",
		"JSON.parse = () => ({}); Object.setPrototypeOf = null; true",
		"JSON.parse('[1]')[0] === 1 && tool_calls[0].tool_name === 'bash'",
	)
	s := richSubject(t)
	for range 2 {
		gradertest.RequireVerdict(t, b, s, gradertest.Passes())
	}
}

func TestJavaScriptCancelled(t *testing.T) {
	t.Parallel()
	b, _ := javaScript(t, "for (;;);")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Grade(ctx, gradertest.Subject(""))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func BenchmarkJavaScriptAssertion(b *testing.B) {
	for _, n := range []int{1, 5} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var sources []string
			for i := range n {
				sources = append(sources, fmt.Sprintf("output.length > %d", i))
			}
			bound, _ := javaScript(b, sources...)
			s := gradertest.Subject("Mock response")
			_, err := bound.Grade(context.Background(), s) // starts the worker
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if res, err := bound.Grade(context.Background(), s); err != nil || !res.Passed {
					b.Fatal(res, err)
				}
			}
		})
	}
}
