package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

const twoStatements = "statements:\n- The file is valid\n- {text: A secret is shown, label: secret, absent: true}\nreference: A valid file."

func TestStatements(t *testing.T) {
	t.Parallel()
	marks := func(list ...string) string { return `{"marks":[` + strings.Join(list, ",") + `]}` }
	const (
		first      = `{"number":1,"passed":true,"evidence":"line 1 of x.json"}`
		second     = `{"number":2,"passed":true,"evidence":"no secret in the output"}`
		fails      = `{"number":1,"passed":false,"evidence":"line 3 is cut off"}`
		noEvidence = `{"number":1,"passed":true,"evidence":" "}`
		unmarked   = `{"number":1,"evidence":"x"}`
		third      = `{"number":3,"passed":true,"evidence":"x"}`
	)
	for _, tc := range []struct {
		name, config, answer string
		want                 gradertest.Verdict
		twice                bool // the judge is asked once more
	}{
		{"all pass", twoStatements, marks(first, second), gradertest.Passes(), false},
		{"any order", twoStatements, marks(second, first), gradertest.Passes(), false},
		{"one fails", twoStatements, marks(fails, second), gradertest.Scores(0.5, `"The file is valid": line 3 is cut off`), false},
		{"no evidence fails", twoStatements, marks(noEvidence, second), gradertest.Scores(0.5, "the judge cited no evidence, so the statement fails"), false},
		{
			"a threshold replaces all", twoStatements + "\nthreshold: 0.5", marks(fails, second),
			gradertest.Verdict{Score: 0.5, Passed: true}, false,
		},
		{"not marked", twoStatements, marks(first), gradertest.Errors("statement 2 is not marked"), true},
		{"marked twice", twoStatements, marks(first, first, second), gradertest.Errors("statement 1 is marked twice"), true},
		{"no verdict", twoStatements, marks(unmarked, second), gradertest.Errors("passed is missing for statement 1"), true},
		{"no such statement", twoStatements, marks(first, second, third), gradertest.Errors("there is no statement 3"), true},
		{"no marks", twoStatements, `{"score":1,"passed":true}`, gradertest.Errors("marks is missing"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			judge := says(tc.answer)
			gradertest.RequireVerdict(t, judged(t, judge, tc.config, nil), gradertest.Subject("done"), tc.want)
			if tc.twice {
				require.Equal(t, 2, judge.n)
			}
		})
	}
}

// The judge sees the rules, the statements, the reference and the files that the agent left, without
// the skill that it was given. Marks are recorded one by one.
func TestStatementsBrief(t *testing.T) {
	t.Parallel()
	judge := says(`{"marks":[{"number":1,"passed":false,"evidence":"e1"},{"number":2,"passed":true,"evidence":"e2"}]}`)
	b := judged(t, judge, twoStatements, nil)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"out/report.md": "the report", "blob": "\x00", ".agents/skills/helper/SKILL.md": "the skill", ".git/config": "git",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := gradertest.Subject("done", func(s *grader.Subject) {
		s.Dir = func() (string, error) { return dir, nil }
		task := *s.Task
		task.Skills = []string{"/skills/helper"}
		s.Task = &task
	})
	res, err := b.Grade(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []mark{
		{Text: "The file is valid", Evidence: "e1"},
		{Text: "A secret is shown", Label: "secret", Absent: true, Passed: true, Evidence: "e2"},
	}, res.Details.(judgement).Opinions[0].Statements)
	shown := judge.texts[0]
	for _, want := range []string{"In doubt, fail it.", "\n1. The file is valid\n2. A secret is shown (this must NOT be so", "A valid file.", "out/report.md", "the report", "blob"} {
		require.Contains(t, shown, want)
	}
	for _, not := range []string{"SKILL.md", "the skill", ".git"} {
		require.NotContains(t, shown, not)
	}
}
