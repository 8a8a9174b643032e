package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/runnertest"
)

// hashed is a suite that depends on everything that a suite can depend on.
const hashed = `
-- eval.yaml --
name: hashed
description: About nothing.
skill: explainer
config:
  executor: command
  command: 'sh agent.sh "$WAZA_SUITE_DIR/lib.sh"'
  env: {MODE: fast}
  model: gpt-x
  judge_model: judge-1
  base_url: http://127.0.0.1:1/v1
  timeout_seconds: 60
  skill_directories: [skills]
  instruction_files: [rules.md]
  mcp_servers: {files: {command: serve, args: [--all]}}
hooks:
  before_run: ['sh setup.sh']
  before_task: ['true']
  after_run: ['echo done']
inputs: {who: Ada}
graders:
  - {name: judge, type: prompt, config: {rubric: rubric.md}}
  - {name: program, type: program, weight: 2, config: {command: sh, args: [check.sh]}}
tasks: ["tasks/*.yaml"]
tasks_from: rows.csv
-- tasks/a.yaml --
id: a
description: The first.
tags: [smoke]
timeout_seconds: 30
inputs:
  prompt_file: ask.md
  follow_up_prompts: [and then]
  files: [in.txt, {path: more.txt, content: inline}]
  context: {level: 3}
  environment: {LANG: C}
expected: {output_contains: [yes]}
pass_threshold: 0.5
-- tasks/b.yaml --
id: b
prompt: just this
-- rows.csv --
id,prompt
row,count
-- tasks/ask.md --
Ask {{who}}.
-- fixtures/in.txt --
given
-- agent.sh --
cat
-- lib.sh --
lib
-- setup.sh --
setup
-- check.sh --
exit 0
-- rubric.md --
Be strict.
-- rules.md --
Be brief.
-- skills/explainer/SKILL.md --
---
name: explainer
---
Explain.
-- skills/explainer/scripts/run.sh --
run
`

// hashesOf plans a suite and returns the hashes of its tasks by id.
func hashesOf(t *testing.T, r *runner.Runner, suite *eval.Suite, req record.Request) map[string]*plan.Task {
	t.Helper()
	p, err := r.Planner().Plan(t.Context(), suite, req)
	require.NoError(t, err)
	defer p.Close()
	tasks := map[string]*plan.Task{}
	for _, task := range p.Tasks {
		tasks[task.ID] = task
	}
	return tasks
}

// The hash of the execution covers everything that affects an executor. The hash of the grading
// covers what affects only graders. Neither covers anything else. The tasks are those that an
// edit may change.
func TestHashed(t *testing.T) {
	t.Parallel()
	const all = "a b row"
	for _, c := range []struct {
		what               string
		execution, grading string // tasks with a changed hash
		edits              []string
	}{
		{"a comment", "", "", []string{"name: hashed", "name: hashed # by us"}},
		{"descriptions", "", "", []string{"About nothing.", "About much.", "The first.", "One of them."}},
		{"tags", "", "", []string{"[smoke]", "[slow]"}},
		{"a cluster", "", "", []string{"tags: [smoke]", "tags: [smoke]\ncluster: report.pdf"}},
		{"being golden", "", "", []string{"tags: [smoke]", "golden: true"}},
		{"timeouts", "", "", []string{"timeout_seconds: 60", "timeout_seconds: 61", "timeout_seconds: 30", "timeout_seconds: 31"}},
		{"the number of trials", "", "", []string{"tags: [smoke]", "trials: 3"}},
		{"thresholds", "", "", []string{"pass_threshold: 0.5", "pass_threshold: 0.6"}},
		{"the score threshold", "", "a", []string{"pass_threshold: 0.5", "pass_threshold: 0.5\nscore_threshold: 0.5"}},
		{"a negated grader", "", all, []string{"weight: 2", "weight: 2, negate: true"}},
		{"an optional grader", "", all, []string{"weight: 2", "weight: 2, optional: true"}},
		{"a grader that needs steps", "", all, []string{"weight: 2", "weight: 2, needs_steps: true"}},
		{"the order of keys", "", "", []string{"  env: {MODE: fast}\n  model: gpt-x\n", "  model: gpt-x\n  env: {MODE: fast}\n"}},
		{"a solution", "", "", []string{"prompt: just this", "prompt: just this\nsolution: lib.sh"}},
		{"what follows a run", "", "", []string{"echo done", "echo over"}},

		{"the program's arguments", all, "", []string{"sh agent.sh", "sh -e agent.sh"}},
		{"the program", all, "", []string{"-- agent.sh --\ncat", "-- agent.sh --\ntac"}},
		{"a file in the suite's directory", all, "", []string{"\nlib\n", "\nlib 2\n"}},
		{"its environment", all, "", []string{"MODE: fast", "MODE: slow"}},
		{"the model", all, all, []string{"gpt-x", "gpt-y"}}, // judges without a model use it
		{"instructions", all, "", []string{"Be brief", "Be long"}},
		{"an MCP server", all, "", []string{"--all", "--some"}},
		{
			"a mock of one", all, "",
			[]string{"skill: explainer", "skill: explainer\nmcp_mocks: [{name: m, tools: {t: {responses: [{return: 1}]}}}]"},
		},
		{
			"a task's own mock", "a", "",
			[]string{"tags: [smoke]", "tags: [smoke]\nmcp_mocks: [{name: m, tools: {t: {responses: [{return: 1}]}}}]"},
		},
		{"the limit of the agent", "a", "", []string{"tags: [smoke]", "tags: [smoke]\nagent_timeout_seconds: 9"}},
		{"a task's own server", "a", "", []string{"tags: [smoke]", "tags: [smoke]\nmcp_servers: {m: {command: x}}"}},
		{"a hook", all, "", []string{"['true']", "['false']"}},
		{"a hook's script", all, "", []string{"\nsetup\n", "\nset up\n"}},
		{"SKILL.md", all, "", []string{"Explain.", "Explain it."}},
		{"another file of the skill", all, "", []string{"\nrun\n", "\nrun more\n"}},
		{"the skill's name", all, "", []string{"skills/explainer/", "skills/explain/"}},
		{"inputs of the suite", all, "", []string{"who: Ada", "who: Bob"}},
		{"a prompt's file", "a", "", []string{"Ask {{who}}.", "Call {{who}}."}},
		{"a follow-up", "a", "", []string{"and then", "and now"}},
		{"a fixture", "a", "", []string{"given", "taken"}},
		{"a file in the task", "a", "", []string{"inline", "in line"}},
		{"the context", "a", "", []string{"level: 3", "level: 4"}},
		{"the setup", "a", "", []string{"environment: {LANG: C}", "environment: {LANG: C}\n  setup: [make]"}},
		{"the environment", "a", "", []string{"LANG: C", "LANG: D"}},
		{"a prompt", "b", "", []string{"just this", "just that"}},
		{"history", "b", "", []string{"prompt: just this", "prompt: just this\nhistory: [{role: user, text: Hi}]"}},
		{"a system prompt", "b", "", []string{"prompt: just this", "prompt: just this\nsystem_prompt: Be brief."}},
		{"a task's own model", "b", "", []string{"prompt: just this", "prompt: just this\nmodel: gpt-y"}},
		{"the suite's model as a task's own", "", "", []string{"prompt: just this", "prompt: just this\nmodel: gpt-x"}},
		{"a row", "row", "", []string{"row,count", "row,count on"}},

		{"literal texts", all, all, []string{"inputs: {who: Ada}", "literal: true\ninputs: {who: Ada}"}},
		{"a judge's rubric", "", all, []string{"Be strict.", "Be kind."}},
		{"the judge's model", "", all, []string{"judge-1", "judge-2"}},
		{"where the judge is", "", all, []string{"127.0.0.1:1/v1", "127.0.0.1:2/v1"}},
		{"a grader's script", "", all, []string{"exit 0", "exit 1"}},
		{"a grader's arguments", "", all, []string{"[check.sh]", "[-e, check.sh]"}},
		{"a weight", "", all, []string{"weight: 2", "weight: 3"}},
		{"a grader's turn", "", "a", []string{"expected: {output", "graders: [{name: judge, type: prompt, turn: 2, config: {rubric: rubric.md}}]\nexpected: {output"}},
		{"a grader's name", "", all, []string{"name: program", "name: prog"}},
		{"the expectation", "", "a", []string{"output_contains: [yes]", "output_contains: [no]"}},
		{"a transform", "", all, []string{"weight: 2", "weight: 2, transform: return output"}},
		{"a grader of a task", "", "b", []string{"prompt: just this", "prompt: just this\ngraders: [{type: text, config: {contains: [x]}}]"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r := runnertest.NewRunner(t)
			before := hashesOf(t, r, runnertest.Load(t, r, hashed), record.Request{})
			after := hashesOf(t, r, runnertest.Load(t, r, runnertest.Replace(t, hashed, c.edits...)), record.Request{})
			var execution, grading []string
			for _, id := range strings.Fields(all) {
				if before[id].Execution != after[id].Execution {
					execution = append(execution, id)
				}
				if before[id].Grading != after[id].Grading {
					grading = append(grading, id)
				}
				same := before[id].Execution == after[id].Execution && before[id].Grading == after[id].Grading
				require.Equal(t, same, before[id].Hash == after[id].Hash, id)
			}
			require.Equal(t, c.execution, strings.Join(execution, " "), "executions")
			require.Equal(t, c.grading, strings.Join(grading, " "), "gradings")
		})
	}
}

// The model of a task is a rule of another task only if that asks it as its judge.
func TestHashedModelOfTask(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	const suite = "\n-- eval.yaml --\nname: s\nconfig: {executor: mock}\ntasks:\n" +
		"  - {id: own, prompt: x, graders: [{type: human}]}\n" +
		"  - {id: plain, prompt: x, graders: [{type: human}], checkpoints: [{after_turn: 1, graders: [{type: text, config: {contains: [x]}}]}]}\n" +
		"  - {id: named, prompt: x, graders: [{type: prompt, config: {prompt: ok, model: judge}}]}\n" +
		"  - {id: judged, prompt: x, graders: [{type: prompt, config: {prompt: ok}}]}\n" +
		"  - {id: grouped, prompt: x, graders: [{type: group, config: {graders: [{type: prompt, config: {prompt: ok}}]}}]}\n" +
		"  - {id: stopped, prompt: x, graders: [{type: human}], checkpoints: [{after_turn: 1, graders: [{type: prompt, config: {prompt: ok}}]}]}\n"
	before := hashesOf(t, r, runnertest.Load(t, r, suite), record.Request{})
	after := hashesOf(t, r, runnertest.Load(t, r, runnertest.Replace(t, suite, "id: own", "id: own, model: gpt-own")), record.Request{})
	for id, changed := range map[string]bool{"own": true, "plain": false, "named": false, "judged": true, "grouped": true, "stopped": true} {
		require.Equal(t, changed, before[id].Hash != after[id].Hash, id)
	}
}

// The rule of a group is part of the grading.
func TestHashedRuleOfGroup(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	const suite = "\n-- eval.yaml --\nname: s\ntasks: [{id: a, prompt: x, graders: [{type: group, config: {threshold: 1, aggregate: mean, graders: [{type: human}]}}]}]\n"
	mean := hashesOf(t, r, runnertest.Load(t, r, suite), record.Request{})["a"]
	for _, edit := range []string{"", "aggregate: median, "} {
		got := hashesOf(t, r, runnertest.Load(t, r, runnertest.Replace(t, suite, "aggregate: mean, ", edit)), record.Request{})["a"]
		require.Equal(t, mean.Execution, got.Execution)
		require.Equal(t, edit == "", mean.Grading == got.Grading, edit)
	}
}

// A request is hashed like the equivalent suite.
func TestHashedRequest(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	suite := runnertest.Load(t, r, hashed)
	first := hashesOf(t, r, suite, record.Request{})["a"]
	same := func(req record.Request) bool { return hashesOf(t, r, suite, req)["a"].Execution == first.Execution }
	require.True(t, same(record.Request{Trials: 9, Workers: 3, Timeout: 1e9, FailFast: true, Verbose: true, Tasks: []string{"a"}}))
	require.False(t, same(record.Request{Model: "other"}))
	require.False(t, same(record.Request{Executor: "mock"}))
}

// A task whose workspace becomes the work folder of its image is done in a different way.
func TestHashedImageWorkdir(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	edits := []string{"  model: gpt-x\n", "  model: gpt-x\n  sandbox: {mode: container, image: x}\n"}
	without := hashesOf(t, r, runnertest.Load(t, r, runnertest.Replace(t, hashed, edits...)), record.Request{})
	edits = append(edits, "tags: [smoke]", "tags: [smoke]\nsandbox: {image_workdir: true}")
	with := hashesOf(t, r, runnertest.Load(t, r, runnertest.Replace(t, hashed, edits...)), record.Request{})
	require.NotEqual(t, without["a"].Execution, with["a"].Execution)
	require.Equal(t, without["b"].Execution, with["b"].Execution)
}

// The conversation depends on checkpoints, their files and what follows their failures.
func TestHashedCheckpoints(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	seen := map[string]bool{}
	for _, more := range []string{
		"", ", on_failure: stop", ", on_failure: finish", ", files: [{path: x, content: a}]", ", files: [{path: x, content: b}]",
		", files: [{path: y, content: a}]", ", files: [{path: y, source: lib.sh}]", ", setup: [a]", ", setup: [b]",
		", agent_timeout_seconds: 9",
	} {
		files := runnertest.Replace(t, hashed, "prompt: just this",
			"prompt: just this\ncheckpoints: [{after_turn: 1, graders: [{type: text, config: {contains: [x]}}]"+more+"}]")
		seen[hashesOf(t, r, runnertest.Load(t, r, files), record.Request{})["b"].Execution] = true
	}
	require.Len(t, seen, 10)
}

// The keys that decide a trigger test are part of its grading, and change no execution.
func TestHashedTriggers(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	tests := runnertest.Replace(t, hashed, "skill: explainer", `skill: explainer
trigger_tests:
  should_trigger_prompts: [{prompt: p, reason: why}]`)
	const id = "should_trigger#1"
	of := func(files string, req record.Request) [2]string {
		h := hashesOf(t, r, runnertest.Load(t, r, files), req)[id]
		require.NotEmpty(t, h.Grading)
		return [2]string{h.Execution, h.Grading}
	}
	first := of(tests, record.Request{})
	require.Equal(t, first, of(runnertest.Replace(t, tests, "reason: why", "reason: because"), record.Request{}))
	byFirst := runnertest.Replace(t, tests, "trigger_tests:", "trigger_tests:\n  first_tool: true")
	require.Equal(t, of(byFirst, record.Request{}), of(tests, record.Request{FirstTool: true}))
	for _, changed := range []string{
		byFirst,
		runnertest.Replace(t, tests, "prompt: p,", "prompt: p, skill: other,"),
		runnertest.Replace(t, tests, "prompt: p,", "prompt: p, acceptable_skills: [other],"),
		runnertest.Replace(t, tests, "prompt: p,", "prompt: p, forbidden_skills: [other],"),
	} {
		now := of(changed, record.Request{})
		require.Equal(t, first[0], now[0])
		require.NotEqual(t, first[1], now[1])
	}
}

// With several attempts, graders determine whether the agent tries again.
func TestHashedAttempts(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	several := runnertest.Replace(t, hashed, "model: gpt-x", "model: gpt-x\n  max_attempts: 3")
	before := hashesOf(t, r, runnertest.Load(t, r, several), record.Request{})["a"]
	after := hashesOf(t, r, runnertest.Load(t, r, runnertest.Replace(t, several, "weight: 2", "weight: 3")), record.Request{})["a"]
	require.NotEqual(t, before.Execution, after.Execution)
}

// Programs in the workspace may be executable, which an agent sees. Links in a skill are
// followed, even in cycles.
func TestHashedFiles(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	dir := filepath.Dir(runnertest.Load(t, r, hashed).File)
	hash := func() string {
		t.Helper()
		suite, _, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
		require.NoError(t, err)
		return hashesOf(t, r, suite, record.Request{})["a"].Execution
	}
	changes := func(what string, change func() error) {
		t.Helper()
		before := hash()
		require.NoError(t, change())
		require.NotEqual(t, before, hash(), what)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	skill := path("skills/explainer")
	changes("mode of a fixture", func() error { return os.Chmod(path("fixtures/in.txt"), 0o644) })
	changes("mode of a skill's file", func() error { return os.Chmod(filepath.Join(skill, "scripts/run.sh"), 0o644) })
	changes("a link to a file", func() error { return os.Symlink(path("check.sh"), filepath.Join(skill, "link")) })
	changes("what it leads to", func() error { return os.WriteFile(path("check.sh"), []byte("exit 2"), 0o644) })
	changes("a link to a directory", func() error { return os.Symlink(path("fixtures"), filepath.Join(skill, "more")) })
	changes("the present files", func() error { return os.WriteFile(path("fixtures/new"), []byte("new"), 0o644) })
	before := hash()
	require.NoError(t, os.Symlink("..", filepath.Join(skill, "circle")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(skill, "broken")))
	require.NoError(t, os.MkdirAll(filepath.Join(skill, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(skill, ".git/HEAD"), []byte("x"), 0o644))
	_ = hash() // hashing ends
	require.NoError(t, os.Remove(filepath.Join(skill, "circle")))
	require.Equal(t, before, hash())
}

// Suites are usually located beside or below the skill that they test. An edit of one task used
// to change the skill for all tasks.
func TestHashedWithinSkill(t *testing.T) {
	t.Parallel()
	const files = `
-- SKILL.md --
---
name: mine
---
Do it.
-- script.sh --
x
-- DIReval.yaml --
name: within
skill: mine
tasks: ["tasks/*.yaml"]
-- DIRtasks/a.yaml --
{id: a, prompt: x, files: [in.txt]}
-- DIRtasks/b.yaml --
{id: b, prompt: x}
-- DIRfixtures/in.txt --
given
`
	for _, dir := range []string{"", "evals/", "evals/mine/"} {
		r := runnertest.NewRunner(t)
		archive := txtar.Parse([]byte(strings.ReplaceAll(files, "DIR", dir)))
		plan := func(edits ...string) map[string]*plan.Task {
			at := t.TempDir()
			for _, f := range archive.Files {
				path := filepath.Join(at, f.Name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(edits...).Replace(string(f.Data))), 0o644))
			}
			suite, ds, err := eval.Load(filepath.Join(at, dir, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
			require.NoError(t, err)
			require.False(t, ds.HasErrors(), "%v", ds)
			require.Len(t, recordtest.ByID(t, suite.Tasks, "a").Skills, 1)
			return hashesOf(t, r, suite, record.Request{})
		}
		first := plan()
		same := func(id string, edits ...string) bool { return plan(edits...)[id].Hash == first[id].Hash }
		require.True(t, same("a"), "in another directory")
		require.True(t, same("a", "{id: b, prompt: x}", "{id: b, prompt: y}"), dir)
		require.False(t, same("b", "{id: b, prompt: x}", "{id: b, prompt: y}"), dir)
		require.True(t, same("b", "given", "taken"), dir)
		require.False(t, same("a", "given", "taken"), dir)
		require.True(t, same("a", "name: within", "name: beside"), dir)
		require.False(t, same("a", "Do it.", "Do that."), dir)
		require.False(t, same("a", "x\n", "y\n"), dir)
	}
}
