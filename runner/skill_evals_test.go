package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A case with points passes from pass_threshold on. A check gives all of its points or none.
func TestSkillEvalPoints(t *testing.T) {
	t.Parallel()
	suite := `-- eval.yaml --
{"pass_threshold": 12, "maximum_per_case": 16, "evals": [{"id": "c", "prompt": "p", "checks": [
 {"id": "ten", "points": 10, "groups": [["a.b", "c"], ["d"]], "forbidden": ["x"]},
 {"id": "four", "points": 4, "groups": [["e"]]}, {"id": "two", "points": 2, "groups": [["f"]]}]}]}
`
	for _, c := range []struct {
		answer string
		want   record.Verdict
		score  float64
	}{
		{"c\nd\ne\nf", record.Passed, 1},
		{"f a.b d", record.Passed, 0.75},
		{"a.b d", record.Failed, 0.625},
		{"a\nb d f", record.Failed, 0.125},
		{"c e f", record.Failed, 0.375}, // half of ten gives nothing
		{"c d e f x", record.Failed, 0.375},
		{"", record.Failed, 0},
	} {
		res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent"},
			func(context.Context, *executor.Trial) (string, error) { return c.answer, nil })
		trial := res.Tasks[0].Trials[0]
		require.Equal(t, c.want, trial.Verdict, c.answer)
		require.InDelta(t, c.score, *trial.Score, 1e-12, c.answer)
	}
}

// Patterns of checks with points ignore the letter case, a check can forbid patterns alone, and an answer with more
// words than max_output_words fails, whatever its points.
func TestSkillEvalWords(t *testing.T) {
	t.Parallel()
	suite := `-- eval.yaml --
{"pass_threshold": 2, "maximum_per_case": 3, "max_output_words": 4, "evals": [{"id": "c", "prompt": "p", "checks": [
 {"id": "cause", "points": 2, "groups": [["Lost[ -]update"]]}, {"id": "no fix", "points": 1, "forbidden": ["to fix", "(?i)you should"]}]}]}
`
	for _, c := range []struct {
		answer string
		want   record.Verdict
		score  float64
	}{
		{"A LOST update", record.Passed, 1},
		{"lost-update: You should", record.Passed, 2.0 / 3},
		{"a lock", record.Failed, 1.0 / 3},
		{"a lost update, I think", record.Failed, 1},
	} {
		res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent"},
			func(ctx context.Context, trial *executor.Trial) (string, error) {
				return c.answer, trial.Converse(ctx, func(context.Context, int, string) (executor.Outcome, error) {
					return executor.Outcome{Output: c.answer}, nil
				})
			})
		trial := res.Tasks[0].Trials[0]
		require.Equal(t, c.want, trial.Verdict, c.answer)
		require.InDelta(t, c.score, *trial.Score, 1e-12, c.answer)
	}
}

// exampleOf returns the path of a file of the shared examples, and reads it as JSON into v.
func exampleOf(t *testing.T, name string, v any) string {
	t.Helper()
	path, err := filepath.Abs(filepath.FromSlash("../../shared/suites/formats/" + name))
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	require.NoError(t, json.Unmarshal(data, v))
	return path
}

// statementsOf counts the statements of a case as its definition does: the texts of its lists without
// repetitions, or expected_output.
func statementsOf(t *testing.T, raw map[string]json.RawMessage) int {
	t.Helper()
	var texts []string
	for _, key := range []string{"expectations", "assertions"} {
		var list []any
		if raw[key] != nil {
			require.NoError(t, json.Unmarshal(raw[key], &list))
		}
		for _, item := range list {
			text, ok := item.(string)
			if !ok {
				text = item.(map[string]any)["text"].(string)
			}
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return max(1, len(texts))
}

// Each case of the examples passes if the judge finds all statements, and fails with the share of the
// others if it misses one. A case without one of its files is an error.
func TestSkillEvalExamples(t *testing.T) {
	for name, missing := range map[string][]string{
		"skill-assertions": nil, "skill-both-lists": nil, "skill-expectations": nil, "skill-expected-output": nil,
		"skill-files": {"1", "2", "3"}, "skill-text-objects": {"2"}, "triggers": nil,
	} {
		var file struct {
			Evals []map[string]json.RawMessage
		}
		path := exampleOf(t, name+"/evals/evals.json", &file)
		statements, most := map[string]int{}, 0
		for _, c := range file.Evals {
			var prompt string
			require.NoError(t, json.Unmarshal(c["prompt"], &prompt))
			statements[prompt] = statementsOf(t, c)
			most = max(most, statements[prompt])
		}
		judge := runnertest.NewModel(t, func(asked runnertest.Asked) runnertest.Answer {
			_, said, _ := strings.Cut(asked.Prompt, "found of ")
			all, found := 0, ""
			if _, err := fmt.Sscanf(said, "%d: %s", &all, &found); err != nil {
				return runnertest.Answer{Status: 400}
			}
			var marks []map[string]any
			for n := 1; n <= all; n++ {
				marks = append(marks, map[string]any{"number": n, "passed": strings.Contains(found, fmt.Sprintf("[%d]", n)), "evidence": "e"})
			}
			return runnertest.Answer{Tool: "submit_marks", Arguments: map[string]any{"marks": marks}}
		})
		t.Setenv("OPENAI_BASE_URL", judge.URL)
		t.Setenv("OPENAI_API_KEY", "x")
		res := runnertest.RunFile(t, path, eval.Options{JudgeModel: "gpt-5"}, record.Request{Executor: "agent", Trials: most + 1},
			func(_ context.Context, trial *executor.Trial) (string, error) {
				prompt, _, _ := strings.Cut(trial.Prompt, "\n\nInput files:")
				found := ""
				for n := 1; n <= statements[prompt]; n++ {
					if n != trial.Num-1 {
						found += fmt.Sprintf("[%d]", n)
					}
				}
				return fmt.Sprintf("found of %d: %s.", statements[prompt], found), nil
			})
		for _, c := range file.Evals {
			var prompt string
			require.NoError(t, json.Unmarshal(c["prompt"], &prompt))
			id, all := string(c["id"]), statements[prompt]
			for num := 1; num <= most+1; num++ {
				trial := res.Trial(t, id, num)
				want, score := record.Passed, 1.0
				if num > 1 && num <= all+1 {
					want, score = record.Failed, float64(all-1)/float64(all)
				}
				if slices.Contains(missing, id) {
					require.Equal(t, record.Errored, trial.Verdict, "%s, case %s", name, id)
					continue
				}
				require.Equal(t, want, trial.Verdict, "%s, case %s, trial %d: %s", name, id, num, trial.Error)
				require.InDelta(t, score, *trial.Score, 1e-9, "%s, case %s, trial %d", name, id, num)
			}
		}
	}
}

// A query of the example of trigger sets that should trigger passes if at least half of its trials do,
// and another one if fewer do.
func TestTriggerSetExample(t *testing.T) {
	t.Parallel()
	var queries []struct {
		Query  string
		Should bool `json:"should_trigger"`
	}
	path := exampleOf(t, "triggers/evals/trigger_eval.json", &queries)
	const trials = 4
	rate := map[string]int{} // trials in which the query triggers
	for i, q := range queries {
		rate[q.Query] = i % (trials + 1)
	}
	skill := filepath.Join(t.TempDir(), "plan-grill") // the example lacks its skill
	require.NoError(t, os.CopyFS(skill, os.DirFS(filepath.Dir(filepath.Dir(path)))))
	require.NoError(t, os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte("---\nname: plan-grill\ndescription: d\n---\n"), 0o600))
	res := runnertest.RunFile(t, filepath.Join(skill, "evals", "trigger_eval.json"), eval.Options{}, record.Request{Executor: "agent", Trials: trials},
		func(_ context.Context, trial *executor.Trial) (string, error) {
			if trial.Num <= rate[trial.Prompt] {
				trial.Transcript.Skill("plan-grill")
			}
			return "done", nil
		})
	require.Len(t, res.Tasks, len(queries))
	for _, task := range res.Tasks {
		i := slices.IndexFunc(queries, func(q struct {
			Query  string
			Should bool `json:"should_trigger"`
		}) bool {
			return q.Query == task.Trigger.Prompt
		})
		triggered := float64(rate[queries[i].Query])/trials >= 0.5
		want := record.Failed
		if triggered == queries[i].Should {
			want = record.Passed
		}
		require.Equal(t, want, task.Verdict, queries[i].Query)
	}
}
