package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// obeys is an agent that carries out the orders of its prompts, separated by semicolons: "write NAME
// TEXT", "call TOOL JSON" or
// "call TOOL JSON -> RESULT", "skill NAME", "message TEXT", "error TEXT", and "say TEXT" for its answer.
func obeys(ctx context.Context, trial *executor.Trial) (answer string, err error) {
	err = trial.Converse(ctx, func(_ context.Context, _ int, prompt string) (executor.Outcome, error) {
		answer = ""
		trial.Transcript.Message("user", prompt)
		for order := range strings.SplitSeq(prompt, "; ") {
			verb, rest, _ := strings.Cut(order, " ")
			name, text, _ := strings.Cut(rest, " ")
			switch verb {
			case "write":
				dir, err := trial.Dir()
				if err != nil {
					return executor.Outcome{}, err
				}
				file := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return executor.Outcome{}, err
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					return executor.Outcome{}, err
				}
			case "call":
				arguments, result, _ := strings.Cut(text, " -> ")
				call := record.ToolCall{Name: name, Arguments: json.RawMessage(arguments)}
				if result != "" {
					call.Result = json.RawMessage(result)
				}
				trial.Transcript.ToolCall(call)
			case "skill":
				trial.Transcript.Skill(name)
			case "message":
				trial.Transcript.Message("assistant", rest)
			case "error":
				trial.Transcript.Add(record.Entry{Type: record.EntryError, Text: rest})
			case "say":
				answer = rest
			}
		}
		if answer != "" {
			trial.Transcript.Message("assistant", answer)
		}
		return executor.Outcome{Output: answer}, nil
	})
	return answer, err
}

// verdictsOf returns the verdicts of all tasks.
func verdictsOf(res runnertest.Result) map[string]string {
	got := map[string]string{}
	for _, task := range res.Tasks {
		got[task.ID] = string(task.Verdict)
	}
	return got
}

// Each grader of Vally passes and fails by its rule.
func TestVallyGraders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ grader, passes, fails string }{
		{`type: output-matches, config: {pattern: "a.c"}`, "say xabcx", "say ABC"},
		{`type: output-matches, config: {pattern: "(?i)a(?!b)"}`, "say AC", "say AB"},
		{`type: output-matches, config: {pattern: "a", negate: true}`, "say b", "say a"},
		{`type: output-not-matches, config: {pattern: "(?i)fatal"}`, "say fine", "say Fatal"},
		{`type: output-not-matches, config: {pattern: "a", negate: true}`, "say a", "say b"},
		{`type: output-contains, config: {substring: "a.c"}`, "say A.C", "say abc"},
		{`type: output-contains, config: {value: "a", case_sensitive: true}`, "say a", "say A"},
		{`type: output-contains, config: {value: "a", negate: true}`, "say b", "say A"},
		{`type: output-not-contains, config: {substring: "a"}`, "say b", "say A"},
		{`type: skill-invocation, config: {required: [a, b]}`, "skill b; skill x; skill a", "skill a"},
		{`type: skill-invocation, config: {disallowed: [a]}`, "skill b", "skill b; skill a"},
		{`type: skill-invocation, config: {required: [a], disallowed: [b]}`, "skill a", "skill a; skill b"},
		{`type: file-matches, config: {path: "**/*.md", pattern: "^b"}`, "write x.md a; write d/y.md b", "write x.md a"},
		{`type: file-matches, config: {path: "x.md", pattern: "a"}`, "write x.md a", "say a"},
		{`type: file-matches, config: {path: "x.md", pattern: "a", negate: true}`, "write x.md b", "write x.md a"},
		{`type: file-not-matches, config: {path: "x.md", pattern: "a"}`, "say a", "write x.md a"},
		{`type: file-not-matches, config: {path: "*.md", pattern: "a"}`, "write x.md b", "write x.md b; write y.md a"},
		{`type: file-contains, config: {path: "x.md", substring: "a.c"}`, "write x.md A.C", "write x.md abc"},
		{`type: file-not-contains, config: {path: "x.md", value: "a"}`, "write x.md b", "write x.md A"},
		{`type: file-exists, config: {path: "*.md"}`, "write x.md a", "write x.txt a"},
		{`type: file-not-exists, config: {path: "*.md"}`, "write x.txt a", "write x.md a"},
		{`type: completed`, "say done", "skill a"},
		{`type: completed`, "say done", "say done; error broken"},
		{`type: exit-success`, "say done; error broken", "skill a"},
		{`type: error-count, config: {max: 1}`, "error a", "error a; error b"},
		{`type: tool-call-count, config: {max: 1}`, "call bash {}", "call bash {}; call view {}"},
		{`type: tool-call-count, config: {min: 1}`, "call bash {}", "say a"},
		{`type: tool-call-count, config: {tools: ["^a$", "^b"], max: 1}`, "call a {}; call c {}; call aa {}", "call a {}; call bc {}"},
		{`type: tool-call-count, config: {tools: "(?i)^a$", min: 2}`, "call a {}; call A {}", "call a {}; call b {}"},
		{`type: tool-calls, config: {required: [{name: a, result: "^No (new|old)"}]}`, `call a {} -> "No new plan"`, `call a {} -> "A new plan"; call b {} -> "No new plan"`},
		{`type: tool-calls, config: {required: [{result: '"n":1'}]}`, `call a {} -> {"n":1}`, `call a {"n":1}`},
		{`type: tool-calls, config: {disallowed: [{result: denied}]}`, `call a {}`, `call a {} -> "denied"`},
		{`type: wall-time, config: {max: 1h}`, "say a", ""},
		{`type: tool-calls, config: {required: [bash]}`, `call bash {}`, `call view {}`},
		{
			`type: tool-calls, config: {required: [{name: "^(bash|pwsh)$", command: "go (build|test)"}]}`,
			`call bash {"command": "cd x && go test"}`, `call bash {"command": "GO TEST"}`,
		},
		{`type: tool-calls, config: {required: [{path: "[.]md$"}]}`, `call view {"path": "a.md"}`, `call view {"path": "a.mdx"}`},
		{
			`type: tool-calls, config: {required: [{name: view, args: {a: "^1", b: "2"}}]}`,
			`call view {"a": "12", "b": "12"}`, `call view {"a": "12"}; call view {"b": "2"}`,
		},
		{`type: tool-calls, config: {required: [{pattern: '"a":"?1'}]}`, `call view {"a":1}`, `call view {"a":2}`},
		{`type: tool-calls, config: {disallowed: [{name: bash, command: "rm"}]}`, `call bash {"command": "ls"}`, `call bash {"command": "rm x"}`},
		{`type: tool-calls, config: {required: [view, edit], ordered: true}`, "call view {}; call x {}; call edit {}", "call edit {}; call view {}"},
		{`type: tool-calls, config: {required: [view, edit]}`, "call edit {}; call view {}", "call edit {}"},
		{`type: run-command, config: {command: "grep -q a x.md && echo Found", stdout_matches: "(?i)found"}`, "write x.md a", "write x.md b"},
		{`type: run-command, config: {command: cat, args: [x.md], stdout_contains: a, stdout_not_matches: [b]}`, "write x.md a", "write x.md ab"},
		{`type: run-command, config: {command: cat, args: [x.md], expected_exit_code: 1, stderr_contains: x.md}`, "say a", "write x.md a"},
		{`type: run-command, config: {command: "test -f x.md", sub_path: d}`, "write d/x.md a", "write x.md a"},
		{`type: program, config: {program: sh, args: [-c, 'test -f "$EVALUATE_WORKSPACE/$A"'], env: {A: x.md}}`, "write x.md a", "say a"},
		{`type: program, config: {program: sh, sub_path: d, args: [-c, 'cd / && test -f "$EVALUATE_WORKSPACE/d/x.md"']}`, "write d/x.md a", "write d/y.md a"},
		{`type: program, config: {program: cat, args: [x.md]}`, `write x.md {"passed": true}`, `write x.md {"passed": false}`},
	} {
		t.Run(c.grader, func(t *testing.T) {
			t.Parallel()
			suite := "-- eval.yaml --\nconfig: {executor: x}\nstimuli:\n"
			want := map[string]string{}
			for id, prompt := range map[string]string{"passed": c.passes, "failed": c.fails} {
				if prompt != "" {
					suite += fmt.Sprintf("  - {name: %s, prompt: %q, graders: [{%s}]}\n", id, prompt, c.grader)
					want[id] = id
				}
			}
			res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1}, obeys)
			require.Equal(t, want, verdictsOf(res))
		})
	}
}

// The verdict of a trial follows from the weights by types and the least score, or from all graders.
func TestVallyScoring(t *testing.T) {
	t.Parallel()
	const graders = "graders: [{type: output-contains, config: {value: a}}, {type: output-contains, config: {value: b}}, " +
		"{type: skill-invocation, config: {required: [s]}}, {type: completed}]"
	for _, c := range []struct {
		scoring, prompt string
		score           float64
		verdict         string
	}{
		{"", "skill s; say ab", 1, "passed"},
		{"", "skill s; say a", 0.75, "failed"},
		{"{threshold: 0.75}", "skill s; say a", 0.75, "passed"},
		{"{threshold: 0.76}", "skill s; say a", 0.75, "failed"},
		// (1 + 0 + 3 + 1) / (1 + 1 + 3 + 1)
		{"{threshold: 0.8, weights: {skill-invocation: 3}}", "skill s; say a", 5.0 / 6, "passed"},
		// (1 + 1 + 0 + 1) / 6
		{"{threshold: 0.8, weights: {skill-invocation: 3}}", "say ab", 0.5, "failed"},
		// Weights that sum to 1: (0.3 + 0 + 0.2 + 0.2) / 1.
		{"{threshold: 0.7, weights: {output-contains: 0.3, skill-invocation: 0.2, completed: 0.2}}", "skill s; say a", 0.7, "passed"},
		// Other skills do not lower the score.
		{"{threshold: 1}", "skill x; skill s; skill y; say ab", 1, "passed"},
		{"{threshold: 1, weights: {skill-invocation: 0}}", "say ab", 1, "passed"},
		{"{weights: {skill-invocation: 0}}", "say ab", 0.75, "failed"},
		// The weight of the last grader is its own: (1 + 0 + 3 + 4) / (1 + 1 + 3 + 4).
		{"{threshold: 0.85, weights: {skill-invocation: 3, completed: 1}} # own", "skill s; say a", 8.0 / 9, "passed"},
	} {
		t.Run(c.scoring+c.prompt, func(t *testing.T) {
			t.Parallel()
			suite := "-- eval.yaml --\n"
			if c.scoring != "" {
				suite += "scoring: " + c.scoring + "\n"
			}
			graders := graders
			if strings.HasSuffix(c.scoring, "# own") {
				graders = strings.Replace(graders, "type: completed", "type: completed, weight: 4", 1)
			}
			suite += fmt.Sprintf("stimuli: [{name: t, prompt: %q, %s}]\n", c.prompt, graders)
			res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1}, obeys)
			trial := res.Trial(t, "t", 1)
			require.Equal(t, c.verdict, string(trial.Verdict))
			require.InDelta(t, c.score, *trial.Score, 1e-9)
		})
	}
}

// Turns are sent in one session, a grader of a turn sees only that turn, and constraints fail a trial
// whatever its score.
func TestVallyTurns(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
scoring: {threshold: 0.5}
stimuli:
  - {name: first, turns: [say a, say b], graders: [{type: output-contains, turn: 0, config: {value: a}}]}
  - {name: not the first, turns: [say a, say b], graders: [{type: output-contains, turn: 0, config: {value: b}}]}
  - {name: second, turns: ["call x {}", "say b"], graders: [{type: tool-call-count, turn: 1, config: {max: 0}}]}
  - {name: not the second, turns: ["say b", "call x {}"], graders: [{type: tool-call-count, turn: 1, config: {max: 0}}]}
  - {name: all, turns: ["call x {}", "call x {}; say b"], graders: [{type: tool-call-count, config: {max: 1}}]}
  - {name: last answer, turns: [say a, say b], graders: [{type: output-contains, config: {value: b}}]}
  - {name: within, prompt: "message a; say b", constraints: {max_turns: 2}, graders: [{type: completed}]}
  - {name: beyond, prompt: "message a; message c; say b", constraints: {max_turns: 2}, graders: [{type: completed}]}
  - {name: beyond in turns, turns: ["message a; say c", "say b"], constraints: {max_turns: 2}, graders: [{type: completed}]}
  - {name: expected skill, prompt: "skill s; say b", constraints: {expect_skills: [s]}, graders: [{type: completed}]}
  - {name: unused skill, prompt: "say b", constraints: {expect_skills: [s]}, graders: [{type: completed}]}
  - {name: blocked, prompt: "say b", graders: [{type: completed}, {type: unheard-of}]}
`
	res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1}, obeys)
	require.Equal(t, map[string]string{
		"first": "passed", "not the first": "failed", "second": "passed", "not the second": "failed", "all": "failed",
		"last answer": "passed", "within": "passed", "beyond": "failed", "beyond in turns": "failed",
		"expected skill": "passed", "unused skill": "failed", "blocked": "error",
	}, verdictsOf(res))
}

// The agent finds the files and the results of the commands of its environment.
func TestVallyEnvironment(t *testing.T) {
	t.Parallel()
	const suite = `
-- .vally.yaml --
environments: {tools: {files: [{src: shared/tool.txt, dest: tools/tool.txt}], commands: ["cat tools/tool.txt > log"]}}
-- shared/tool.txt --
hammer
-- eval.yaml --
environment: tools
stimuli:
  - name: a
    prompt: look
    environment: {files: [{src: app, dest: .}], commands: ["cat log main.txt > all"]}
    graders: [{type: output-matches, config: {pattern: "^hammer\nmain\n$"}}]
  - {name: broken, prompt: look, environment: {commands: ["exit 3"]}, graders: [{type: completed}]}
  - {name: missing, prompt: look, environment: {files: [{src: none, dest: none}]}, graders: [{type: completed}]}
-- app/main.txt --
main
`
	res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1},
		func(_ context.Context, trial *executor.Trial) (string, error) {
			dir, err := trial.Dir()
			if err != nil {
				return "", err
			}
			data, err := os.ReadFile(filepath.Join(dir, "all"))
			return string(data), err
		})
	require.Equal(t, map[string]string{"a": "passed", "broken": "error", "missing": "error"}, verdictsOf(res))
	require.Contains(t, res.Trial(t, "missing", 1).Error, "none does not exist")
}

// Only graders find the files of the grading environment, which replace what the agent left there.
func TestVallyGradingEnvironment(t *testing.T) {
	t.Parallel()
	const suite = `
-- grade.sh --
test -f answer && echo '{"passed": true}' || echo '{"passed": false}'
-- extra.sh --
exit 0
-- eval.yaml --
agent_environment: {files: [{src: grade.sh, dest: seen}]}
grading_environment: {files: [{src: grade.sh, dest: evidence/grade.sh}]}
stimuli:
  - {name: passes, prompt: answer, graders: [&g {type: program, config: {program: sh, args: [evidence/grade.sh]}}]}
  - {name: fails, prompt: nothing, graders: [*g]}
  - {name: forged, prompt: forge, graders: [*g]}
  - name: own
    turns: [answer, answer]
    constraints: {max_agent_duration: 10m, max_duration: 1h}
    grading_environment: {files: [extra.sh]}
    graders: [*g, {type: run-command, config: {command: sh, args: [extra.sh]}}]
  - {name: unknown, prompt: answer, grading_environment: {commands: [x]}, graders: [*g]}
`
	res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1},
		func(ctx context.Context, trial *executor.Trial) (string, error) {
			dir, err := trial.Dir()
			if err != nil {
				return "", err
			}
			return "", trial.Converse(ctx, func(_ context.Context, _ int, prompt string) (executor.Outcome, error) {
				for _, hidden := range []string{"evidence/grade.sh", "extra.sh"} {
					if _, err := os.Stat(filepath.Join(dir, hidden)); err == nil {
						return executor.Outcome{}, fmt.Errorf("the agent sees %s", hidden)
					}
				}
				file, text := filepath.Join(dir, "answer"), "42"
				switch prompt {
				case "nothing":
					return executor.Outcome{}, nil
				case "forge":
					file, text = filepath.Join(dir, "evidence", "grade.sh"), `echo '{"passed": true}'`
				}
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return executor.Outcome{}, err
				}
				return executor.Outcome{}, os.WriteFile(file, []byte(text), 0o600)
			})
		})
	require.Equal(t, map[string]string{
		"passes": "passed", "fails": "failed", "forged": "failed", "own": "passed", "unknown": "error",
	}, verdictsOf(res))
}

// judged answers as the judge of a suite: 1 if the answer has the word good, else 0.25.
func judged(t *testing.T) *runnertest.Model {
	return runnertest.NewModel(t, func(asked runnertest.Asked) runnertest.Answer {
		score := 0.25
		if strings.Contains(asked.Prompt, "good answer") {
			score = 1
		}
		return runnertest.Answer{Tool: "submit_verdict", Arguments: map[string]any{"score": score, "passed": true, "reason": "so"}}
	})
}

// The suite of microsoft/hve-core with two turns: the weight of the judge is 0.7, of the times 0.15, and
// of the texts 0.15. A trial passes from 0.7 on.
func TestVallyTurnsOfOthers(t *testing.T) {
	path := filepath.FromSlash("../../shared/suites/formats/vally-turns/eval.yaml")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	judge := judged(t)
	t.Setenv("OPENAI_BASE_URL", judge.URL)
	t.Setenv("OPENAI_API_KEY", "x")
	res := runnertest.RunFile(t, path, eval.Options{JudgeModel: "gpt-5", Executor: "agent"}, record.Request{Executor: "agent", Trials: 1},
		func(ctx context.Context, trial *executor.Trial) (answer string, err error) {
			err = trial.Converse(ctx, func(_ context.Context, num int, prompt string) (executor.Outcome, error) {
				trial.Transcript.Message("user", prompt)
				answer = "a bad answer"
				if strings.Contains(prompt, "assess our repository") { // the only stimulus with a text
					answer = "a good answer"
				} else if strings.Contains(prompt, "SLSA") && num == 2 {
					answer = "a good answer"
				}
				trial.Transcript.Message("assistant", answer)
				return executor.Outcome{Output: answer}, nil
			})
			return answer, err
		})
	require.Len(t, res.Tasks, 10)
	for _, task := range res.Tasks {
		want, score := "failed", (0.7*0.25+0.15)/0.85
		switch task.ID {
		case "build-provenance-gap":
			want, score = "passed", 1
		case "startup-disclaimer-and-standards-attribution": // lacks the text CAUTION
			want, score = "passed", 0.85
		}
		trial := res.Trial(t, task.ID, 1)
		require.Equal(t, want, string(trial.Verdict), "%s: %s", task.ID, trial.Error)
		require.InDelta(t, score, *trial.Score, 1e-9, task.ID)
	}
}

// The suites of Azure/azure-functions-skills need skills that are not beside them: each trial of such a
// stimulus is an error that names the skill, and no suite is refused.
func TestVallySuitesWithoutFiles(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.FromSlash("../../shared/suites/formats/vally-mcp/evals/*/eval.yaml"))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no shared suites beside the checkout")
	}
	for _, path := range found {
		res := runnertest.RunFile(t, path, eval.Options{Executor: "agent"}, record.Request{Executor: "agent", Trials: 1}, obeys)
		require.NotEmpty(t, res.Tasks)
		for _, task := range res.Tasks {
			trial := res.Trial(t, task.ID, 1)
			require.Equal(t, "error", string(trial.Verdict), task.ID)
			require.Contains(t, trial.Error, "does not exist", task.ID)
		}
	}
}
