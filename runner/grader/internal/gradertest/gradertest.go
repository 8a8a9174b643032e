// Package gradertest helps to test graders: with suites of one grader, finished trials and
// expected verdicts. Call [Main] from TestMain, then [RunCases] or [RunOptions].
package gradertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
	"waza/runner/grader/assertion"
	"waza/runner/mcptools"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Registry holds the graders that tests find by type. [Main] sets it.
var Registry *grader.Registry

// Main runs the tests of a package. Tests find the given graders by type. The test binary also
// serves as the interpreters of assertions and as MCP servers.
func Main(m *testing.M, graders *grader.Registry) {
	assertion.Main()
	mcptools.Main()
	sandbox.Main()
	Registry = graders
	// The engine of JavaScript patterns has one clock, which ends by itself after the last search.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// Patience is the time limit of an assertion that should end by itself. It is long because
// machines are busy.
const Patience = 3 * time.Minute

// Load loads a suite with one grader of the given type, beside the given files. config is YAML
// at the left margin.
func Load(t *testing.T, typ, config string, files map[string]string) (*eval.Suite, decode.Diagnostics) {
	t.Helper()
	dir := t.TempDir()
	WriteFiles(t, dir, files)
	suite := fmt.Sprintf("name: s\ngraders:\n  - name: g\n    type: %s\n    config:\n%s\ntasks:\n  - id: t\n    prompt: do it\n",
		typ, indent(config, "      "))
	path := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte(suite), 0o600))
	s, diagnostics, err := eval.Load(path, eval.Options{Vocabulary: &eval.Vocabulary{
		Executors: []eval.Kind{{Name: "mock"}}, Graders: Registry.Kinds(),
	}})
	require.NoError(t, err)
	return s, diagnostics
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}

// Bind loads a suite with one grader, which must have no findings, and builds the grader.
func Bind(t *testing.T, typ, config string, files map[string]string) (*grader.Bound, *grader.Env) {
	t.Helper()
	suite, diagnostics := Load(t, typ, config, files)
	require.Empty(t, diagnostics.Errors())
	env := &grader.Env{Suite: suite, Workers: 2}
	env.AssertionTimeout = Patience
	t.Cleanup(env.Close)
	b, err := Registry.Bind(suite.Graders[0], env)
	require.NoError(t, err)
	return b, env
}

// WriteFiles writes files below dir, by slash-separated path, and makes their directories.
func WriteFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
	}
}

// Subject returns a finished trial, altered by change.
func Subject(output string, change ...func(*grader.Subject)) *grader.Subject {
	s := grader.Subject{
		Suite: &eval.Suite{}, Task: &eval.Task{ID: "t"}, Prompt: "do it", Output: output,
		Dir: func() (string, error) { return "", fmt.Errorf("the workspace is not needed here") },
	}
	for _, f := range change {
		f(&s)
	}
	return grader.NewSubject(s)
}

// Workspace gives the trial a workspace with the given files.
func Workspace(t *testing.T, files map[string]string) func(*grader.Subject) {
	t.Helper()
	dir := t.TempDir()
	WriteFiles(t, dir, files)
	return func(s *grader.Subject) { s.Dir = func() (string, error) { return dir, nil } }
}

// Calling adds tool calls, each "name" or "name {json arguments}".
func Calling(calls ...string) func(*grader.Subject) {
	return func(s *grader.Subject) {
		for _, c := range calls {
			name, args, _ := strings.Cut(c, " ")
			call := &record.ToolCall{Name: name}
			if args != "" {
				call.Arguments = json.RawMessage(args)
			}
			s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryToolCall, Tool: call})
		}
	}
}

// Using adds skills, and marks the executor as one that reports skills.
func Using(skills ...string) func(*grader.Subject) {
	return func(s *grader.Subject) {
		s.Capabilities.Skills = true
		for _, name := range skills {
			s.Transcript = append(s.Transcript, record.Entry{Type: record.EntrySkill, Text: name})
		}
	}
}

// A Verdict is what a test expects of a grader.
type Verdict struct {
	Score    float64
	Passed   bool
	Feedback []string // parts of it
	err      string   // part of it
}

// Passes returns the verdict of a grader whose checks are all met.
func Passes() Verdict { return Verdict{Score: 1, Passed: true} }

// Scores returns the verdict of a grader that does not pass, with parts of its feedback.
func Scores(score float64, feedback ...string) Verdict {
	return Verdict{Score: score, Feedback: feedback}
}

// Errors returns the verdict of a grader that cannot do its work. text is a part of the error.
func Errors(text string) Verdict { return Verdict{err: text} }

// RequireVerdict grades a trial and checks the verdict. It returns the grade.
func RequireVerdict(t *testing.T, b *grader.Bound, s *grader.Subject, want Verdict) record.Grade {
	t.Helper()
	got, err := b.Grade(context.Background(), s)
	if want.err != "" {
		require.ErrorContains(t, err, want.err)
		require.Contains(t, got.Error, want.err)
		require.False(t, got.Passed)
		return got
	}
	require.NoError(t, err)
	require.InDelta(t, want.Score, got.Score, 1e-9, "feedback: %s", got.Feedback)
	require.Equal(t, want.Passed, got.Passed, "feedback: %s", got.Feedback)
	for _, part := range want.Feedback {
		require.Contains(t, got.Feedback, part)
	}
	switch {
	case !want.Passed:
		require.NotEmpty(t, got.Feedback)
	case len(want.Feedback) == 0:
		require.Empty(t, got.Feedback)
	}
	_, err = json.Marshal(got)
	require.NoError(t, err)
	return got
}

// A Case is a grader's config, a trial and the expected verdict.
type Case = struct {
	Name    string
	Config  string
	Files   map[string]string // beside the suite
	Subject *grader.Subject
	Want    Verdict
}

// RunCases grades the trial of each case with a grader of the given type, in parallel.
func RunCases(t *testing.T, typ string, cases []Case) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			b, _ := Bind(t, typ, tc.Config, tc.Files)
			RequireVerdict(t, b, tc.Subject, tc.Want)
		})
	}
}

// An OptionCase is a config and its only finding: "code: part of the message".
type OptionCase = struct {
	Name   string
	Config string
	Want   string
	Files  map[string]string
}

// RunOptions checks what eval.Load reports on the config of each case, for a grader of the given type.
func RunOptions(t *testing.T, typ string, cases []OptionCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			_, diagnostics := Load(t, typ, tc.Config, tc.Files)
			if tc.Want == "" {
				require.Empty(t, diagnostics)
				return
			}
			require.NotEmpty(t, diagnostics)
			code, text, _ := strings.Cut(tc.Want, ": ")
			found := false
			for _, d := range diagnostics {
				found = found || string(d.Code) == code && strings.Contains(d.Message, text)
			}
			require.True(t, found, "%v", diagnostics)
		})
	}
}

// Spellings holds pairs of the same word in upper and lower case, with differences beyond ASCII.
var Spellings = [][2]string{
	{"ΣΊΣΥΦΟΣ", "σίσυφος"}, {"STRASSE", "straße"}, {"STRAẞE", "strasse"}, {"ΜΆΪΟΣ", "μάϊος"}, {"ﬁnal", "FINAL"}, {"ԱՄԵՆ", "ամեն"},
}
