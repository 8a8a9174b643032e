package program

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/reach"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	in := gradertest.Workspace(t, map[string]string{"made.txt": "made\n", "grade.sh": "exit 9"})
	trial := gradertest.Subject("the output", in, gradertest.Calling(`bash {"command": "ls"}`))
	sh := func(script string) string { return "command: sh\nargs: ['-c', '" + script + "']" }
	gradertest.RunCases(t, "program", []gradertest.Case{
		{"exit 0", sh(`exit 0`), nil, trial, gradertest.Passes()},
		{"exit 3", sh(`echo so and so; exit 3`), nil, trial, gradertest.Scores(0, "exit code 3: so and so")},
		{"stderr first", sh(`echo out; echo err >&2; exit 1`), nil, trial, gradertest.Scores(0, "exit code 1: err")},
		{"silent", sh(`exit 1`), nil, trial, gradertest.Scores(0, "it printed nothing")},
		{"output on stdin", sh(`test "$(cat)" = "the output"`), nil, trial, gradertest.Passes()},
		{"does not have to read it", sh(`true`), nil, gradertest.Subject(strings.Repeat("x", 1<<20), in), gradertest.Passes()},
		{
			"with the workspace",
			sh(`cat $WAZA_WORKSPACE_DIR/made.txt && test "$PWD" != "$WAZA_WORKSPACE_DIR" && test -z "$(ls)"`), nil,
			trial, gradertest.Passes(),
		},
		{
			"in the workspace",
			sh(`cat made.txt && test "$PWD" = "$WAZA_WORKSPACE_DIR"`) + "\ntrust_workspace: true", nil, trial,
			gradertest.Passes(),
		},
		{
			"relative to the workspace", sh(`cat made.txt`), nil, trial,
			gradertest.Scores(0, "made.txt exists in the workspace, but the grader starts in a directory of its own",
				"$WAZA_WORKSPACE_DIR/made.txt", "trust_workspace: true"),
		},
		{
			"absent from its own directory", sh(`test ! -e made.txt`), nil, trial,
			gradertest.Verdict{
				Score: 1, Passed: true,
				Feedback: []string{"made.txt exists in the workspace, but the grader starts in a directory of its own"},
			},
		},
		{
			"files",
			sh(`test "$(cat $WAZA_OUTPUT_FILE)" = "the output" && grep -q "\"name\":\"bash\"" $WAZA_TRANSCRIPT_FILE`),
			nil, trial, gradertest.Passes(),
		},
		{
			"files are outside the workspace", sh(`case $WAZA_OUTPUT_FILE in "$WAZA_WORKSPACE_DIR"*) exit 1;; esac`),
			nil, trial, gradertest.Passes(),
		},
		{"score", sh(`echo hi; echo "{\"score\": 0.25, \"passed\": false, \"feedback\": \"meh\"}"`), nil, trial, gradertest.Scores(0.25, "meh")},
		{"score that passes", sh(`echo "{\"score\": 0.5, \"passed\": true}"; exit 1`), nil, trial, gradertest.Verdict{Score: 0.5, Passed: true}},
		{"score that the exit code passes", sh(`echo "{\"score\": 0.5}"`), nil, trial, gradertest.Verdict{Score: 0.5, Passed: true}},
		{"failed only", sh(`echo "{\"passed\": false, \"message\": \"no\"}"`), nil, trial, gradertest.Scores(0, "no")},
		{"score out of range", sh(`echo "{\"score\": 7}"`), nil, trial, gradertest.Errors("expected a number from 0 to 1")},
		{
			"score is not a number", sh(`echo "{\"score\": NaN, \"passed\": false}"`), nil, trial,
			gradertest.Errors("print a JSON object with score, a number from 0 to 1"),
		},
		{"score is text", sh(`echo "{\"score\": \"0.1\"}"`), nil, trial, gradertest.Errors(`score: "0.1", expected a number from 0 to 1`)},
		{"score is null", sh(`echo "{\"score\": null, \"passed\": true}"`), nil, trial, gradertest.Errors("score: null, expected")},
		{"score is too large", sh(`echo "{\"score\": 1e999}"`), nil, trial, gradertest.Errors("score: 1e999, expected")},
		{"score is cut off", sh(`printf "{\"score\": 0."`), nil, trial, gradertest.Errors("print a JSON object with score")},
		{"score is given twice", sh(`echo "{\"score\": 0, \"score\": 1}"`), nil, trial, gradertest.Errors("score: it is given twice")},
		{"passed is text", sh(`echo "{\"passed\": \"false\"}"`), nil, trial, gradertest.Errors(`verdict: "false", expected true or false`)},
		{"passed is a number", sh(`echo "{\"passed\": 0}"`), nil, trial, gradertest.Errors("verdict: 0, expected true or false")},
		{"a dictionary of Python", sh(`echo "{\"score\": 0.1, \"passed\": False}"`), nil, trial, gradertest.Errors("invalid verdict {")},
		{"on several lines", sh(`printf "{\n  \"score\": 0.25,\n  \"passed\": false\n}\n"`), nil, trial, gradertest.Scores(0.25)},
		{"after other lines", sh(`printf "{\"log\": 1}\nok\n{\n  \"passed\": false\n}\n"`), nil, trial, gradertest.Scores(0)},
		{
			"NaN on several lines", sh(`printf "{\n  \"score\": NaN,\n  \"passed\": false\n}\n"`), nil, trial,
			gradertest.Errors("invalid verdict {"),
		},
		{
			"NaN after other lines", sh(`printf "ok\n{\n  \"score\": NaN,\n  \"passed\": false\n}\n"`), nil, trial,
			gradertest.Errors("invalid verdict {"),
		},
		{"no verdict", sh(`echo "{\"score\": null, \"error\": \"the file cannot be read\"}"`), nil, trial, gradertest.Errors("the file cannot be read")},
		{"an error beside a verdict", sh(`echo "{\"score\": 1, \"passed\": true, \"error\": \"none\"}"`), nil, trial, gradertest.Passes()},
		{"an object of JavaScript", sh(`echo "{ score: 0.1, passed: false }"`), nil, trial, gradertest.Errors("invalid verdict {")},
		{
			"too long",
			sh(`printf "{\"passed\": false, \"details\": \""; head -c 70000 /dev/zero | tr "\\0" x; echo "\", \"score\": 0}"`),
			nil, trial, gradertest.Errors("the verdict of sh is longer than 64 KiB; print fewer details"),
		},
		{"another object", sh(`echo "{\"tests\": {\"passed\": 3}}"`), nil, trial, gradertest.Passes()},
		{"no JSON", sh(`echo "{done}"`), nil, trial, gradertest.Passes()},
		{"score is not the last line", sh(`echo "{\"score\": 0}"; echo done`), nil, trial, gradertest.Passes()},
		{"last line after a flood", sh(`yes | head -c 300000; echo "{\"score\": 0, \"passed\": false}"`), nil, trial, gradertest.Scores(0)},
		{
			"of the suite", "command: ./graders/g.sh\nargs: [a b]",
			map[string]string{"graders/g.sh": "#!/bin/sh\ntest \"$1\" = 'a b'"}, trial, gradertest.Passes(),
		},
		{"script of the suite", "command: sh\nargs: [grade.sh]", map[string]string{"grade.sh": "exit 0"}, trial, gradertest.Passes()},
		{"on PATH", "command: \"true\"", nil, trial, gradertest.Passes()},
		{"missing", "command: no-such-program", nil, trial, gradertest.Errors("no such program: no-such-program")},
		{"missing with a slash", "command: ./none.sh", nil, trial, gradertest.Errors("no such program: ./none.sh")},
		{"ended by a signal", sh(`kill -9 $$`), nil, trial, gradertest.Errors("SIGKILL")},
		{"template variables", "command: test\nargs: ['{{x}}', '=', filled]", nil,
			gradertest.Subject("", in, func(s *grader.Subject) {
				s.Expand = func(text string) string { return strings.ReplaceAll(text, "{{x}}", "filled") }
			}), gradertest.Passes()},
	})
}

func TestScriptOfTheOlderGeneration(t *testing.T) {
	t.Parallel()
	gradertest.NeedPython(t)
	script := `import json, sys
trial = json.load(sys.stdin)
print(json.dumps({"score": 0.5 if trial["output"] == "x" and trial["tool_calls"][0]["name"] == "bash" else 0, "passed": True, "message": "m"}))
`
	b, _ := gradertest.Bind(t, "script", "script: graders/q.py", map[string]string{"graders/q.py": script})
	got, err := b.Grade(context.Background(), gradertest.Subject("x", gradertest.Workspace(t, nil), gradertest.Calling("bash")))
	require.NoError(t, err)
	require.Equal(t, 0.5, got.Score)
	require.True(t, got.Passed)
	require.Equal(t, "m", got.Feedback)
}

// An agent whose work made the grader's program hang or crash once did not count, while one
// whose work did the same to an assertion failed.
func TestProgramThatDoesNotFinish(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Workspace(t, nil))
	sh := func(script string) string { return "command: sh\nargs: ['-c', '" + script + "']" }
	gradertest.RunCases(t, "program", []gradertest.Case{
		{
			"overrun", "timeout: 0.2\n" + sh(`exec sleep 60`), nil, trial,
			gradertest.Scores(0, "sh ran longer than its timeout of 200ms: it printed nothing"),
		},
		{"crash", sh(`kill -SEGV $$`), nil, trial, gradertest.Scores(0, "sh crashed, ended by signal SIGSEGV")},
		{
			"crash after a verdict", sh(`echo "{\"score\": 1}"; kill -ABRT $$`), nil, trial,
			gradertest.Scores(0, "sh crashed, ended by signal SIGABRT"),
		},
		{"killed", sh(`kill -TERM $$`), nil, trial, gradertest.Errors("sh was ended by signal SIGTERM")},
		{"not executable at all", "command: /dev/null", nil, trial, gradertest.Errors("/dev/null")},
	})
	// The feedback ends with the program's output if the machine was fast enough.
	feedback := ""
	for _, seconds := range []string{"0.2", "2", "20"} {
		b, _ := gradertest.Bind(t, "program", "timeout: "+seconds+"\n"+sh(`echo so far; exec sleep 60`), nil)
		got, err := b.Grade(t.Context(), trial)
		require.NoError(t, err)
		if feedback = got.Feedback; strings.HasSuffix(feedback, "s: so far") {
			break
		}
	}
	require.Regexp(t, `^sh ran longer than its timeout of \S+: so far$`, feedback)
	// The trial's deadline does not limit the program: the verdict is timeout.
	b, _ := gradertest.Bind(t, "program", "timeout: 60\n"+sh(`exec sleep 60`), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Grade(ctx, trial)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A program that starts a sleeping child is killed together with the child, and its files are
// removed.
func TestProgramLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := gradertest.Subject("", func(s *grader.Subject) {
		s.Dir = func() (string, error) { return dir, nil }
		s.Env = append(os.Environ(), "TMPDIR="+dir)
	})
	b, _ := gradertest.Bind(t, "program",
		`{command: sh, args: ['-c', 'cd $WAZA_WORKSPACE_DIR; sleep 300 & echo $! > pid; echo $WAZA_OUTPUT_FILE > file; wait']}`,
		nil)
	stopped := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(context.Background())
	graded := make(chan error, 1)
	go func() {
		_, err := b.Grade(ctx, s)
		graded <- err
	}()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "file"))
		return err == nil && strings.HasSuffix(string(text), "\n")
	}, gradertest.Patience, 5*time.Millisecond)
	cancel(stopped)
	require.ErrorIs(t, <-graded, stopped)
	file, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.NoFileExists(t, strings.TrimSpace(string(file)))
	require.NoDirExists(t, filepath.Dir(strings.TrimSpace(string(file))))
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { // gone, or dead and not yet reaped
		command, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cmdline")
		return len(command) == 0
	}, gradertest.Patience, 5*time.Millisecond)
}

func TestProgramPreflight(t *testing.T) {
	t.Parallel()
	env := &grader.Env{Suite: &eval.Suite{Places: reach.Places{Dir: t.TempDir()}}, Workers: 1}
	gradertest.WriteFiles(t, env.Suite.Dir, map[string]string{"plain.sh": "exit 0"})
	require.NoError(t, os.Chmod(filepath.Join(env.Suite.Dir, "plain.sh"), 0o600))
	spec := func(o ProgramOptions) *eval.Grader { return &eval.Grader{Type: "program", Options: &o} }
	findings := Program.Preflight(context.Background(), []*eval.Grader{
		spec(ProgramOptions{Command: "sh"}),
		spec(ProgramOptions{Command: "no-such-program"}),
		spec(ProgramOptions{Command: "./plain.sh"}),
		spec(ProgramOptions{Command: "/no/such/program"}),
		spec(ProgramOptions{Script: "gone.py"}),
	}, env)
	require.Len(t, findings, 4)
	require.Contains(t, findings[0].Message, "no such program: no-such-program (tried")
	require.Contains(t, findings[1].Message, "chmod +x")
	require.Contains(t, findings[2].Message, "no such program: /no/such/program")
	require.Contains(t, findings[3].Message, "script: no such file: gone.py")
	for _, f := range findings {
		require.Equal(t, decode.CodeUnavailable, f.Code)
	}
}

// waza once assumed that the agent writes every missing script, even if the script's directory
// belongs to the suite, its name is nearly that of another script, or its path is absolute.
func TestProgramScriptMissing(t *testing.T) {
	t.Parallel()
	env := &grader.Env{Suite: &eval.Suite{Places: reach.Places{Dir: t.TempDir()}}, Workers: 1}
	gradertest.WriteFiles(t, env.Suite.Dir, map[string]string{"graders/check.sh": "", "verify.sh": ""})
	for script, want := range map[string]bool{
		"/no/such/check.sh": true, "graders/chekc.sh": true, "graders/new.sh": true, "verfy.sh": true,
		"graders/check.sh": false, "verify.sh": false,
		"solution.sh": false, "src/solution.sh": false, "graders/{{task_id}}.sh": false,
	} {
		spec := &eval.Grader{Type: "program", Options: &ProgramOptions{Command: "sh", Args: []string{script, "more"}}}
		findings := Program.Preflight(context.Background(), []*eval.Grader{spec}, env)
		if !want {
			require.Empty(t, findings, script)
			continue
		}
		require.Len(t, findings, 1, script)
		require.Equal(t, decode.CodeMissingFile, findings[0].Code)
		require.Equal(t, []any{"args", 0}, findings[0].Path)
		require.Contains(t, findings[0].Message, "args[0]: no such file: "+script)
	}
}

func TestProgramOptionsChecked(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "program", []gradertest.OptionCase{
		{"well", "command: sh", "", nil},
		{"nothing", "args: [x]", "checks-nothing: give command", nil},
		{"timeout", "command: sh\ntimeout: 0", "invalid-value: more than 0", nil},
		{"missing script", "script: none.py", "missing-file: none.py", nil},
		{"both", "command: sh\nscript: a.py", "no-effect: script has no effect", map[string]string{"a.py": ""}},
	})
}

func FuzzOverrideScore(f *testing.F) {
	for _, text := range []string{
		"", "{}", `{"score": 1}`, `{"score": "1"}`, "x\n{\"passed\": true}\n\n", `{"score": -1}`,
		`{"score": 1e999}`, "[1]", `{"score": null}`, `{"score": NaN}`, "{\n\"passed\": false\n}",
		"ok\n{\n\"score\": NaN\n}", "{\"a\":\n{\"score\": 1}\n}",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, stdout string, ok bool) {
		given := grader.Score{Feedback: "exit code 1"}
		if ok {
			given = grader.Score{Score: 1, Passed: true}
		}
		got, err := overrideScore(given, printedVerdict(stdout))
		switch {
		case err != nil:
		case math.IsNaN(got.Score) || got.Score < 0 || got.Score > 1:
			t.Fatalf("score %v", got.Score)
		case !got.Passed && got.Feedback == "":
			t.Fatal("failed without feedback")
		case !strings.Contains(stdout, "{") && (got.Score != given.Score || got.Passed != given.Passed):
			t.Fatalf("%q overrode the exit code", stdout)
		}
	})
}

// With expect, conditions on the exit code and the output decide.
func TestProgramExpectation(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Workspace(t, map[string]string{"app/main.txt": "made"}),
		func(s *grader.Subject) {
			s.Expand = func(text string) string { return strings.ReplaceAll(text, "{{who}}", "Ada") }
		})
	sh := func(script, rest string) string {
		return "{command: sh, trust_workspace: true, args: [-c, '" + script + "'], " + rest + "}"
	}
	gradertest.RunCases(t, "program", []gradertest.Case{
		{
			"all hold", sh(`echo hello Ada; echo oops >&2; exit 3`,
				`expect: {exit_code: 3, stdout_contains: [hello, "{{who}}"], stderr_contains: [oops], stdout_matches: [^hello], stdout_not_matches: [bye]}`),
			nil, trial, gradertest.Passes(),
		},
		{
			"none holds", sh(`echo Hello bye`,
				`expect: {exit_code: 3, stdout_contains: [hello], stderr_contains: [oops], stdout_matches: [^bye], stdout_not_matches: [b.e]}`), nil, trial,
			gradertest.Scores(0, "exit code 0, expected 3: Hello bye", `the standard output does not contain "hello": "Hello bye"`,
				`the standard error does not contain "oops": (nothing)`, "does not match /^bye/", `matches /b.e/, which is forbidden: "bye"`),
		},
		{"half", sh(`exit 1`, "expect: {stdout_not_matches: [x]}"), nil, trial, gradertest.Scores(0.5, "exit code 1, expected 0")},
		{"no verdict of its own", sh(`echo "{\"score\": 0}"`, "expect: {exit_code: 0}"), nil, trial, gradertest.Passes()},
		{"javascript", sh(`echo ABC`, "expect: {syntax: javascript, stdout_matches: ['(?i)a(?=b)']}"), nil, trial, gradertest.Passes()},
		{"a crash", sh(`kill -SEGV $$`, "expect: {exit_code: 0}"), nil, trial, gradertest.Scores(0, "sh crashed")},
		{
			"the start is cut", sh(`yes | head -c 5000000; echo end`, "expect: {stdout_contains: [start]}"), nil, trial,
			gradertest.Errors("only the end is known"),
		},
		{"the end is kept", sh(`yes | head -c 5000000; echo end`, "expect: {stdout_contains: [end]}"), nil, trial, gradertest.Passes()},
		{"a folder", sh(`cat main.txt`, "sub_path: app, expect: {stdout_contains: [made]}"), nil, trial, gradertest.Passes()},
		{"no folder", sh(`true`, "sub_path: lib"), nil, trial, gradertest.Scores(0, "the workspace has no folder lib")},
		{"a file", sh(`true`, "sub_path: app/main.txt"), nil, trial, gradertest.Scores(0, "the workspace has no folder app/main.txt")},
		{"variables", sh(`test "$COLOUR" = red`, "env: {COLOUR: red}"), nil, trial, gradertest.Passes()},
	})
	escaping := gradertest.Subject("", gradertest.Workspace(t, nil), func(s *grader.Subject) {
		dir, err := s.Dir()
		require.NoError(t, err)
		require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "out")))
	})
	gradertest.RunCases(t, "program", []gradertest.Case{
		{"a link out of the workspace", sh(`true`, "sub_path: out"), nil, escaping, gradertest.Scores(0, "the workspace has no folder out")},
	})
	gradertest.RunOptions(t, "program", []gradertest.OptionCase{
		{"no trust", "{command: sh, sub_path: app}", "no-effect: sub_path needs trust_workspace", nil},
		{"out", "{command: sh, trust_workspace: true, sub_path: ../x}", "escaping-path: leads out of the workspace", nil},
		{"empty", `{command: sh, expect: {stdout_contains: [""]}}`, "invalid-value: expect.stdout_contains[0] is empty", nil},
		{"bad pattern", "{command: sh, expect: {stdout_matches: ['(']}}", "bad-regex: expect.stdout_matches[0]", nil},
	})
}

// A strict program gives its verdict with passed, before or after text, or prints nothing.
func TestProgramStrict(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Workspace(t, nil))
	prints := func(text, rest string) string {
		return "command: sh\nstrict: true\nargs: [-c, 'printf \"%b\" \"$0\"; " + rest + "', '" + text + "']"
	}
	gradertest.RunCases(t, "program", []gradertest.Case{
		{"nothing", prints("", ""), nil, trial, gradertest.Passes()},
		{"fails with nothing", prints("", "exit 1"), nil, trial, gradertest.Scores(0, "exit code 1")},
		{"fails with text", prints("wrong", "exit 1"), nil, trial, gradertest.Scores(0, "exit code 1: wrong")},
		{"text", prints("all is wrong", ""), nil, trial, gradertest.Errors("got all is wrong")},
		{"only a score", prints(`{"score": 0}`, ""), nil, trial, gradertest.Errors("sh printed no verdict")},
		{"only evidence", prints(`{"evidence": "bad"}`, ""), nil, trial, gradertest.Errors("sh printed no verdict")},
		{"not a verdict", prints(`{"passed": "no"}`, ""), nil, trial, gradertest.Errors(`verdict: "no", expected true or false`)},
		{"text after it", prints(`{"passed": false, "score": 0.5, "evidence": "e"}\ndone`, ""), nil, trial, gradertest.Scores(0.5, "e")},
		{"text before it", prints(`{log}\n{\n"passed": false}`, ""), nil, trial, gradertest.Scores(0, "according to the program")},
		{"the last", prints(`{"passed": true}\n{"passed": false}\n{"log": 1}`, ""), nil, trial, gradertest.Scores(0, "according to the program")},
	})
	gradertest.RunOptions(t, "program", []gradertest.OptionCase{
		{"strict and expect", "{command: sh, strict: true, expect: {exit_code: 0}}", "no-effect: strict has no effect", nil},
		{"workspace", "{command: sh, workspace: a=b}", "invalid-value: workspace must be the name of an environment variable", nil},
	})
}

// A program finds the absolute path of the workspace in a variable of its choice, also from a folder.
func TestProgramWorkspaceVariable(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Workspace(t, map[string]string{"app/a.txt": "a"}))
	const script = `cd / && test "$WHERE" = "$WAZA_WORKSPACE_DIR" && test -f "$WHERE/app/a.txt"`
	gradertest.RunCases(t, "program", []gradertest.Case{{
		"absolute", "{command: sh, trust_workspace: true, workspace: WHERE, sub_path: app, args: [-c, '" + script + "']}", nil, trial, gradertest.Passes(),
	}})
}

// A program can read the trial in the form of Vally.
func TestProgramReadsTrajectory(t *testing.T) {
	t.Parallel()
	gradertest.NeedPython(t)
	script := `import json, os
trial = json.load(open(os.environ["TRIAL"]))
t = trial["trajectory"]
assert t["workDir"] == os.environ["WAZA_WORKSPACE_DIR"]
print(json.dumps({"passed": True, "evidence": " ".join([t["output"], str(t["metrics"]["toolCallCount"]), t["events"][0]["data"]["toolName"]])}))
`
	b, _ := gradertest.Bind(t, "program", "command: python3\nargs: [q.py]\ntrajectory: TRIAL", map[string]string{"q.py": script})
	got, err := b.Grade(t.Context(), gradertest.Subject("x", gradertest.Workspace(t, nil), gradertest.Calling("bash")))
	require.NoError(t, err)
	require.Equal(t, "x 1 bash", got.Feedback)
}
