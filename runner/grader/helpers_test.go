package grader

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
	"waza/runner/grader/assertion"
	"waza/runner/record"
)

func TestMain(m *testing.M) {
	assertion.Main()
	goleak.VerifyTestMain(m)
}

// patience is the time of an assertion that ought to end by itself. Machines are busy.
const patience = 3 * time.Minute

// patientEnv is an environment for a suite that says nothing.
func patientEnv(workers int) *Env {
	env := NewEnv(&eval.Suite{}, workers)
	env.AssertionTimeout = patience
	return env
}

// loadGrader loads a suite whose only grader is of the given type and config,
// which is YAML at the left margin, beside the given files.
func loadGrader(t *testing.T, typ, config string, files map[string]string) (*eval.Suite, decode.Diagnostics) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, files)
	suite := fmt.Sprintf("name: s\ngraders:\n  - name: g\n    type: %s\n    config:\n%s\ntasks:\n  - id: t\n    prompt: do it\n",
		typ, indent(config, "      "))
	path := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte(suite), 0o600))
	s, diagnostics, err := eval.Load(path, eval.Options{Vocabulary: &eval.Vocabulary{
		Executors: []eval.Kind{{Name: "mock"}}, Graders: Builtin.Kinds(),
	}})
	require.NoError(t, err)
	return s, diagnostics
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}

// bind loads a suite with one grader, which must be well, and builds it.
func bind(t *testing.T, typ, config string, files map[string]string) (*Bound, *Env) {
	t.Helper()
	suite, diagnostics := loadGrader(t, typ, config, files)
	require.Empty(t, diagnostics.Errors())
	env := NewEnv(suite, 2)
	env.AssertionTimeout = patience
	t.Cleanup(env.Close)
	b, err := Builtin.Bind(suite.Graders[0], env)
	require.NoError(t, err)
	return b, env
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
	}
}

// subject is a finished trial; change alters it before it is used.
func subject(output string, change ...func(*Subject)) *Subject {
	s := Subject{
		Suite: &eval.Suite{}, Task: &eval.Task{ID: "t"}, Num: 1, Prompt: "do it", Output: output,
		Dir: func() (string, error) { return "", fmt.Errorf("the workspace is not needed here") },
	}
	for _, f := range change {
		f(&s)
	}
	return NewSubject(s)
}

// workspace gives the trial a workspace that holds files.
func workspace(t *testing.T, files map[string]string) func(*Subject) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, files)
	return func(s *Subject) { s.Dir = func() (string, error) { return dir, nil } }
}

// calling records tool calls, each "name" or "name {json arguments}".
func calling(calls ...string) func(*Subject) {
	return func(s *Subject) {
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

// using records skills, and that the executor reports them.
func using(skills ...string) func(*Subject) {
	return func(s *Subject) {
		s.Capabilities.Skills = true
		for _, name := range skills {
			s.Transcript = append(s.Transcript, record.Entry{Type: record.EntrySkill, Text: name})
		}
	}
}

// verdict is what a test expects of a grader.
type verdict struct {
	score    float64
	passed   bool
	feedback []string // parts of it
	err      string   // part of it
}

func passes() verdict { return verdict{score: 1, passed: true} }
func scores(score float64, feedback ...string) verdict {
	return verdict{score: score, feedback: feedback}
}
func errs(text string) verdict { return verdict{err: text} }

func requireVerdict(t *testing.T, b *Bound, s *Subject, want verdict) record.Grade {
	t.Helper()
	got, err := b.Grade(context.Background(), s)
	if want.err != "" {
		require.ErrorContains(t, err, want.err)
		require.Contains(t, got.Error, want.err)
		require.False(t, got.Passed)
		return got
	}
	require.NoError(t, err)
	require.InDelta(t, want.score, got.Score, 1e-9, "feedback: %s", got.Feedback)
	require.Equal(t, want.passed, got.Passed, "feedback: %s", got.Feedback)
	for _, part := range want.feedback {
		require.Contains(t, got.Feedback, part)
	}
	if want.passed {
		require.Empty(t, got.Feedback)
	} else {
		require.NotEmpty(t, got.Feedback)
	}
	_, err = json.Marshal(got)
	require.NoError(t, err)
	return got
}

// graderCase is a grader's config, a trial, and what becomes of it.
type graderCase struct {
	name    string
	config  string
	files   map[string]string // beside the suite
	subject *Subject
	want    verdict
}

func runCases(t *testing.T, typ string, cases []graderCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, _ := bind(t, typ, tc.config, tc.files)
			requireVerdict(t, b, tc.subject, tc.want)
		})
	}
}

// optionCase is a config and the only finding about it: "code: part of the message".
type optionCase struct {
	name   string
	config string
	want   string
	files  map[string]string
}

func runOptions(t *testing.T, typ string, cases []optionCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, diagnostics := loadGrader(t, typ, tc.config, tc.files)
			if tc.want == "" {
				require.Empty(t, diagnostics)
				return
			}
			require.NotEmpty(t, diagnostics)
			code, text, _ := strings.Cut(tc.want, ": ")
			found := false
			for _, d := range diagnostics {
				found = found || string(d.Code) == code && strings.Contains(d.Message, text)
			}
			require.True(t, found, "%v", diagnostics)
		})
	}
}
