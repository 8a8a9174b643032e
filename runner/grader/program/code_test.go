package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

// assertions builds a code grader for Python with its own environment.
func assertions(t testing.TB, sources ...string) (*grader.Bound, *grader.Env) {
	t.Helper()
	gradertest.NeedPython(t)
	env := patientEnv(2)
	t.Cleanup(env.Close)
	return pythonBound(t, env, sources...), env
}

func pythonBound(t testing.TB, env *grader.Env, sources ...string) *grader.Bound {
	t.Helper()
	b, err := gradertest.Registry.Bind(&eval.Grader{Name: "g", Type: "code", Options: &CodeOptions{Assertions: sources, Language: "python"}},
		env)
	require.NoError(t, err)
	return b
}

// richSubject returns a subject with a value in every name of the scope.
func richSubject(t *testing.T) *grader.Subject {
	return gradertest.Subject("The answer is 42.\nDone.", gradertest.Workspace(t,
		map[string]string{"a.txt": "alpha", "sub/b.bin": "\xff\xfe"}), gradertest.Using("explain"),
		func(s *grader.Subject) {
			s.Duration = 1500 * time.Millisecond
			s.Task = &eval.Task{Inputs: eval.Inputs{Context: map[string]any{"lang": "go", "n": 3, "deep": map[string]any{"x": []any{1, 2}}}}}
			s.Transcript = append(s.Transcript,
				record.Entry{Type: record.EntryMessage, Role: "assistant", Text: "looking"},
				record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{
					Name: "bash", Arguments: json.RawMessage(`{"command": "ls -l <dir>", "opts": {"deep": true}}`),
					Result: json.RawMessage(`"a.txt"`), Status: "ok"}},
				record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "odd", Arguments: json.RawMessage(`{not json`)}},
				record.Entry{Type: record.EntryError, Text: "rate limited"})
		})
}

func TestPythonTrue(t *testing.T) {
	t.Parallel()
	b, _ := assertions(t,
		"len(output) > 10",
		"'ANSWER' in output.upper()",
		"any(w in output for w in ['42', '43'])",
		"all((lambda w: w in output)(w) for w in ('The', 'Done'))",
		"[c.name for c in tool_calls] == ['bash', 'odd']",
		"tool_calls[0]['arguments']['command'].startswith('ls')",
		"tool_calls[0].arguments.opts.deep",
		"tool_calls[0]['tool_name'] == 'bash' and tool_calls[0].get('args')['command'] == 'ls -l <dir>'",
		"tool_calls[0].result == 'a.txt' and tool_calls[0].status == 'ok'",
		"tool_calls[1].arguments == '{not json'",
		"any('bash' in str(t) for t in tool_calls)",
		"[e['type'] for e in transcript] == ['skill', 'message', 'tool_call', 'tool_call', 'error']",
		"transcript[1].role == 'assistant' and transcript[1]['content'] == 'looking'",
		"len(errors) == 1 and 'rate' in errors[0]",
		"duration_ms == 1500",
		"context['lang'] == 'go' and context.n == 3 and context.deep.x == [1, 2]",
		"outcome['status'] == 'completed' and outcome.skills == ['explain']",
		"files['a.txt'] == 'alpha' and 'sub/b.bin' in files and files['sub/b.bin'] is None",
		"re.search(r'(\\d+)', output).group(1) == '42'",
		"json.loads('[1]') == [1] and math.sqrt(4) == 2",
		"sum(x for x in range(4)) == 6 and sorted([2, 1]) == [1, 2] and isinstance(output, str)",
		"(n := len(output)) > 3 and n < 100",
		"  'padded' == 'padded'  ",
		"len(output) > 3\nand duration_ms > 3",
		"print(output) is None",
	)
	gradertest.RequireVerdict(t, b, richSubject(t), gradertest.Passes())
}

func TestPythonFalse(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"len(output) > 100":                     "is False (len(output) is 23)",
		"'x' in output and 'zzz' in output":     "is False",
		"not output":                            "is False (output is 'The answer",
		"tool_calls[7]":                         "IndexError: list index out of range",
		"missing_name":                          "NameError: name 'missing_name' is not defined",
		"1/0":                                   "ZeroDivisionError: division by zero",
		"tool_calls[0].nothing":                 "AttributeError: nothing",
		"(w in output for w in ['42'])":         "is a generator, which is always true",
		"output.isupper":                        "is a function, which is always true",
		"0":                                     "is 0",
		"open('/etc/passwd')":                   "NameError: name 'open' is not defined",
		"__import__('os')":                      "NameError",
		"eval('1')":                             "NameError: name 'eval' is not defined",
		"exec('1')":                             "NameError",
		"compile('1', '', 'eval')":              "NameError",
		"input()":                               "NameError",
		"breakpoint()":                          "NameError",
		"exit(0)":                               "NameError",
		"globals()":                             "NameError",
		"re.sys":                                "AttributeError",
		"json.decoder":                          "AttributeError",
		"output +":                              "SyntaxError: invalid syntax",
		"import os":                             "SyntaxError",
		"'a' * 10**10":                          "MemoryError",
		"(f := lambda n: f(n + 1))(0)":          "RecursionError",
		"int('9' * 5 + 'x')":                    "ValueError",
		"str(b'\\xff', 'utf-8')":                "UnicodeDecodeError",
		"chr(0xd800) + output == ''":            "is False",
		"next(iter([]))":                        "StopIteration",
		"[c.__class__ for c in tool_calls][99]": "IndexError",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			b, _ := assertions(t, source)
			got := gradertest.RequireVerdict(t, b, richSubject(t), gradertest.Scores(0, want))
			require.LessOrEqual(t, len(got.Feedback), 2000)
		})
	}
}

func TestPythonShare(t *testing.T) {
	t.Parallel()
	b, _ := assertions(t, "True", "False", "1/0", "output == 'x'")
	got := gradertest.RequireVerdict(t, b, gradertest.Subject("x"), gradertest.Scores(0.5, "False: is False", "1/0: ZeroDivisionError"))
	require.Len(t, got.Details, 4)
}

// An assertion must not see what another one did to its values or to modules.
func TestPythonNothingLeaks(t *testing.T) {
	t.Parallel()
	b, env := assertions(t,
		"tool_calls.clear() is None",
		"len(tool_calls) == 2",
		"(kept := 1)",
		"'kept' not in dir()",
		"re.__dict__.update(search=None) is None",
		"re.search('a', 'a')",
		"context.update(lang='c') is None",
		"context['lang'] == 'go'",
	)
	s := richSubject(t)
	b2 := pythonBound(t, env, "kept")
	for range 2 {
		gradertest.RequireVerdict(t, b, s, gradertest.Passes())
		gradertest.RequireVerdict(t, b2, s, gradertest.Scores(0, "NameError"))
	}
}

func TestPythonTimeout(t *testing.T) {
	t.Parallel()
	b, env := assertions(t, "True", "any(iter(int, 1))", "output == 'x'", "10**10**10 > 1")
	// A busy machine can need long for the other assertions, too.
	for _, env.AssertionTimeout = range []time.Duration{300 * time.Millisecond, 3 * time.Second, time.Minute} {
		if got, err := b.Grade(context.Background(), gradertest.Subject("x")); err == nil && got.Score == 0.5 {
			break
		}
	}
	gradertest.RequireVerdict(t, b, gradertest.Subject("x"),
		gradertest.Scores(0.5, "any(iter(int, 1)): timed out after "+env.AssertionTimeout.String(), "10**10**10 > 1: timed out"))
}

func TestPythonCrash(t *testing.T) {
	t.Parallel()
	// An assertion can reach os this way without __import__.
	exit := "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__.__globals__['_exit'](3)"
	b, _ := assertions(t, "True", exit, "output == 'x'")
	gradertest.RequireVerdict(t, b, gradertest.Subject("x"),
		gradertest.Verdict{Score: 2. / 3, Feedback: []string{"it crashed the interpreter"}})
}

// Replies that an assertion forges must not be believed, and must not crash anything.
func TestPythonRubbishReply(t *testing.T) {
	t.Parallel()
	flood := "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__.__globals__['write']"
	for name, arg := range map[string]string{"flood": "b'x' * 10000000", "not JSON": `b'hello\n'`, "nothing in it": `b'{}\n'`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := []string{"True"}
			for fd := range 8 { // wherever the replies go
				sources = append(sources, fmt.Sprintf("%s(%d, %s) and False", flood, fd+3, arg))
			}
			b, env := assertions(t, sources...)
			env.AssertionTimeout = 2 * time.Second
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			got, err := b.Grade(ctx, gradertest.Subject("x"))
			if err == nil {
				require.False(t, got.Passed)
			}
			require.NoError(t, ctx.Err())
		})
	}
}

func TestPythonLargeTrial(t *testing.T) {
	t.Parallel()
	b, _ := assertions(t, "len(output) == 4000000", "len(tool_calls) == 5000")
	calls := make([]string, 5000)
	for i := range calls {
		calls[i] = `bash {"command": "` + strings.Repeat("x", 500) + `"}`
	}
	gradertest.RequireVerdict(t, b, gradertest.Subject(strings.Repeat("é", 4_000_000), gradertest.Calling(calls...)), gradertest.Passes())
}

func TestPythonDeepArguments(t *testing.T) {
	t.Parallel()
	b, _ := assertions(t, "len(tool_calls) == 1")
	nested := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	gradertest.RequireVerdict(t, b, gradertest.Subject("", gradertest.Calling("deep "+nested)), gradertest.Passes())
	nested = strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	gradertest.RequireVerdict(t, b, gradertest.Subject("", gradertest.Calling("deep "+nested)), gradertest.Errors("cannot read the trial"))
	gradertest.RequireVerdict(t, b, gradertest.Subject("", gradertest.Calling("shallow")), gradertest.Passes())
}

func TestPythonConcurrently(t *testing.T) {
	t.Parallel()
	gradertest.NeedPython(t)
	env := patientEnv(3)
	defer env.Close()
	b := pythonBound(t, env, "int(output) >= 0", "len(output) < 5")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				res, err := b.Grade(context.Background(), gradertest.Subject(fmt.Sprint(i*100+j)))
				if err != nil || !res.Passed {
					t.Error(res, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestPythonCancelled(t *testing.T) {
	t.Parallel()
	b, env := assertions(t, "True", "any(iter(int, 1))")
	stopped := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.AfterFunc(200*time.Millisecond, func() { cancel(stopped) })
	defer timer.Stop()
	env.AssertionTimeout = time.Hour
	_, err := b.Grade(ctx, gradertest.Subject("x"))
	require.ErrorIs(t, err, stopped)
}

// waza creates the workspace only for assertions that look at files.
func TestPythonNeedsNoWorkspace(t *testing.T) {
	t.Parallel()
	b, env := assertions(t, "output == 'x'")
	gradertest.RequireVerdict(t, b, gradertest.Subject("x"), gradertest.Passes())
	gradertest.RequireVerdict(t, pythonBound(t, env, "'files' not in output and \"the 'files'\" not in output"),
		gradertest.Subject("x"), gradertest.Passes())
	gradertest.RequireVerdict(t, pythonBound(t, env, "'a' in files"), gradertest.Subject("x"),
		gradertest.Errors("the workspace is not needed here"))
}

func TestMentioned(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]string{
		"len(output) > 0":                          {"output"},
		"'files' in output":                        {"output"},
		`"it's files" in output and files['a\'']`:  {"files", "output"},
		"f'{files}'":                               {"files"},
		`rf"{files}"`:                              {"files"},
		"`${files}`":                               {"files"},
		"\"\"\"a \" files\"\"\" in output":         {"files", "output"},
		"profiles and context_dir":                 nil,
		"any(c.name == 'x' for c in tool_calls)":   {"tool_calls"},
		"/it's/.test(output) && files['a']":        {"files", "output"},
		"files /* 'x */ && output":                 {"files", "output"},
		"errors or duration_ms # don't use files'": {"duration_ms", "errors", "files"},
	} {
		require.Equal(t, want, mentioned([]string{source}), source)
	}
}

func TestPythonMissing(t *testing.T) {
	t.Parallel()
	env := &grader.Env{Suite: &eval.Suite{}, Workers: 1, Python: "no-such-python"}
	defer env.Close()
	b := pythonBound(t, env, "True")
	_, err := b.Grade(context.Background(), gradertest.Subject("x"))
	require.ErrorContains(t, err, "no-such-python is not found: install Python 3.7 or later")
	require.True(t, executor.IsPermanent(err))

	spec := &eval.Grader{Name: "g", Type: "code", Options: &CodeOptions{Assertions: []string{"True"}, Language: "python"}}
	findings := Code.Preflight(context.Background(), []*eval.Grader{spec}, env)
	require.Len(t, findings, 1)
	require.Equal(t, decode.CodeUnavailable, findings[0].Code)
	require.Equal(t, decode.Warning, findings[0].Severity)
	require.Same(t, spec, findings[0].Grader)
}

func TestPythonBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gradertest.WriteFiles(t, dir, map[string]string{"python3": "#!/bin/sh\necho 'bad interpreter build' >&2\nexit 1\n"})
	env := &grader.Env{Suite: &eval.Suite{}, Workers: 1, Python: dir + "/python3"}
	defer env.Close()
	_, err := pythonBound(t, env, "True").Grade(context.Background(), gradertest.Subject("x"))
	require.ErrorContains(t, err, "does not work as a worker for Python")
	require.ErrorContains(t, err, "bad interpreter build")
}

func TestPythonPreflight(t *testing.T) {
	t.Parallel()
	gradertest.NeedPython(t)
	env := patientEnv(1)
	defer env.Close()
	options := func(sources ...string) *eval.Grader {
		return &eval.Grader{Type: "code", Options: &CodeOptions{Assertions: sources, Language: "python"}}
	}
	a, b := options("True", "len(output", "x = 1"), options("fine\nand dandy", "output ==\n  == 3")
	js := &eval.Grader{Type: "code", Options: &CodeOptions{Assertions: []string{"((("}, Language: "javascript"}}
	findings := Code.Preflight(context.Background(), []*eval.Grader{a, js, b}, env)
	require.Len(t, findings, 3)
	require.Same(t, a, findings[0].Grader)
	require.Equal(t, []any{"assertions", 1}, findings[0].Path)
	require.Equal(t, decode.CodeBadAssertion, findings[0].Code)
	require.Equal(t, decode.Error, findings[0].Severity)
	require.Contains(t, findings[0].Message, "(column 4)")
	require.Equal(t, []any{"assertions", 2}, findings[1].Path)
	require.Same(t, b, findings[2].Grader)
	require.Empty(t, Code.Preflight(context.Background(), []*eval.Grader{js}, env))
}

func TestCodeOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "code", []gradertest.OptionCase{
		{"well", `assertions: ["len(output) > 0"]`, "", nil},
		{"javascript", "language: javascript\nassertions: ['output.length > 0']", "", nil},
		{"nothing", `assertions: []`, "checks-nothing: give assertions", nil},
		{"empty", `assertions: [" "]`, "invalid-value: assertions[0] is empty", nil},
		{"language", "language: perl\nassertions: ['1']", "invalid-value: python, javascript", nil},
		{
			"javascript syntax", "language: javascript\nassertions: ['output.length >']",
			"bad-assertion: assertions[0]: Unexpected end of input (column 16)", nil,
		},
	})
}

func BenchmarkPythonAssertions(b *testing.B) {
	bound, env := assertions(b, "len(output) > 0", "'mock' in output.lower()")
	s := gradertest.Subject("Mock response for: explain this function")
	_, err := bound.Grade(context.Background(), s)
	require.NoError(b, err)
	defer env.Close()
	b.ReportAllocs()
	for b.Loop() {
		if res, err := bound.Grade(context.Background(), s); err != nil || !res.Passed {
			b.Fatal(res, err)
		}
	}
}
