package triggers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// load returns what a trigger set means, one line per prompt, then its findings.
func load(t testing.TB, text string) (*eval.Suite, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "evals", "trigger-evals.json")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	s, found, err := eval.Load(file, eval.Options{})
	require.NoError(t, err)
	var lines []string
	if s != nil && s.Triggers != nil {
		for _, p := range s.Triggers.ShouldTrigger {
			lines = append(lines, strings.TrimSpace("+ "+p.Prompt+" "+p.Reason))
		}
		for _, p := range s.Triggers.ShouldNotTrigger {
			lines = append(lines, strings.TrimSpace("- "+p.Prompt+" "+p.Reason))
		}
	}
	if s != nil {
		for _, task := range s.Tasks {
			lines = append(lines, "blocked "+task.Inputs.Prompt)
		}
	}
	for _, d := range found {
		if !strings.Contains(d.Message, "no skill named") && !strings.Contains(d.Message, "nothing is checked") {
			lines = append(lines, fmt.Sprintf("%d %s %s", d.Line, d.Severity, d.Message))
		}
	}
	return s, strings.Join(lines, "\n")
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"array":        {`[{"query":"a","should_trigger":true},{"query":"b","should_trigger":false}]`, "+ a\n- b"},
		"cases":        {`{"skill":"x","cases":[{"prompt":"a","shouldTrigger":true}]}`, "+ a"},
		"queries":      {`{"skill_name":"x","queries":[{"query":"a","should_trigger":false,"reason":"r","id":"1"}]}`, "- a r"},
		"evals":        {`{"evals":[{"query":"a","should_trigger":true,"rationale":"r","tags":["t"],"area":"b","category":"c"}]}`, "+ a r"},
		"two lists":    {`{"should_trigger":["a",{"query":"b"}],"should_not_trigger":["c"]}`, "+ a\n+ b\n- c"},
		"own skill":    {`{"skill":"x","cases":[{"query":"a","should_trigger":"x","should_not_trigger":["y"]}]}`, "+ a"},
		"braces":       {`[{"query":"{{a}}","should_trigger":true}]`, "+ {{a}}"},
		"unknown keys": {`[{"query":"a","should_trigger":true,"mood":1},{"query":"b","should_trigger":true,"mood":2}]`, "+ a\n+ b\n1 warning key \"mood\" is unknown in trigger sets and has no effect"},
		"repeated": {
			"[{\"query\":\"a\",\"should_trigger\":true},\n{\"query\":\"a\",\"should_trigger\":false}]",
			"- a\n2 warning line 1 has the same query; the sign of the last one counts",
		},
		"routing": {
			`[{"query":"a","expected_skill":"x"},{"query":"b","expected_primary":"y","acceptable":["z"]}]`,
			"blocked a\nblocked b\n" +
				"1 warning expected_skill names the skill \"x\"; waza cannot decide yet which of several skills an agent chooses, so trials of this entry end in an error\n" +
				"1 warning expected_primary names the skill \"y\"; waza cannot decide yet which of several skills an agent chooses, so trials of this entry end in an error",
		},
		"bad threshold": {`{"pass_threshold":2,"cases":[{"query":"a","should_trigger":true}]}`, "+ a\n1 error pass_threshold must be above 0 and at most 1, got 2"},
		"bad sign":      {`[{"query":"a","should_trigger":1}]`, "1 error the suite has no task to run\n1 error should_trigger must be true, false or the name of a skill, got 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, got := load(t, c.text)
			require.Equal(t, c.want, got)
			require.Equal(t, "triggers", s.Format)
			require.Equal(t, 3, s.Config.TrialsPerTask)
		})
	}
}

func FuzzTranslate(f *testing.F) {
	for _, seed := range []string{
		`[{"query":"a","should_trigger":true}]`, `{"should_trigger":["a"],"should_not_trigger":[{}]}`,
		`{"cases":[{"query":"a","expected_skill":"x"}],"pass_threshold":"a"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { load(t, text) })
}
