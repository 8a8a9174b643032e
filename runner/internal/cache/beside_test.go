package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/grader/output"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/runnertest"
)

// besideTask is a task in a separate directory, with all its files beside it.
const besideTask = `
-- eval.yaml --
name: s
config: {executor: command, command: [sh, -c, 'cat in.txt; cat deep.txt >made.txt; ls $WAZA_SKILLS >&2']}
tasks: ['cases/*/task.yaml']
-- cases/one/task.yaml --
id: one
prompt: hi
context_dir: data
skill_directories: [skill]
inputs: {files: [in.txt, deep.txt]}
graders:
  - {name: program, type: program, config: {command: ./check.sh}}
  - {name: args, type: program, config: {command: sh, args: [check.sh]}}
  - {name: script, type: script, config: {script: check.sh}}
  - {name: schema, type: json_schema, config: {schema_file: schema.json}}
  - {name: snapshot, type: diff, config: {expected_files: [{path: made.txt, snapshot: want.txt}]}}
  - {name: context, type: diff, config: {context_dir: wanted, expected_files: [{path: made.txt, snapshot: deep.txt}]}}
  - {name: skill, type: trigger, config: {skill_path: skill, threshold: 0.1, mode: negative}}
-- cases/one/in.txt --
{"from": "beside"}
-- cases/one/data/deep.txt --
deep
-- cases/one/want.txt --
deep
-- cases/one/wanted/deep.txt --
deep
-- cases/one/check.sh --
#!/bin/sh
grep -q beside
-- cases/one/schema.json --
{"required": ["from"]}
-- cases/one/skill/SKILL.md --
---
name: beside
---
Unrelated words.
`

// A path in a task file was resolved only in the suite's directory and the repository's root, so
// a task could not keep its files beside it.
func TestTaskKeepsItsFilesBesideIt(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, besideTask, record.Request{})
	trial := res.Trial(t, "one", 1)
	require.Equal(t, record.Passed, trial.Verdict, "%+v", trial)
	require.Len(t, trial.Graders, 7)
}

// The suite's directory is searched first, as when it was the only one.
func TestSuiteComesBeforeTheTask(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD": "", "evals/eval.yaml": "name: s\ntasks: ['tasks/*.yaml']\n",
		"evals/tasks/a.yaml": "prompt: hi\ncontext_dir: data\nskill_directories: [skills]\ninputs: {files: " +
			"[in.txt]}\ngraders: [{type: json_schema, config: {schema_file: only.json}}]\n",
		"only.json": "{}", "evals/tasks/only.json": "{}", "evals/tasks/mine.txt": "",
		"evals/in.txt": "", "in.txt": "", "evals/data/in.txt": "", "evals/skills/x/SKILL.md": "x",
		"evals/tasks/in.txt": "", "evals/tasks/data/in.txt": "", "evals/tasks/skills/x/SKILL.md": "x", "evals/tasks/only.txt": "", "only.txt": "",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	suite, ds, err := eval.Load(filepath.Join(dir, "evals"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	task := recordtest.ByID(t, suite.Tasks, "a")
	require.Equal(t, filepath.Join(dir, "evals/data/in.txt"), task.Inputs.Files[0].Source)
	require.Equal(t, []string{filepath.Join(dir, "evals/skills/x")}, task.Skills)

	options := task.Graders[0].Options.(*output.JSONSchemaOptions)
	for name, want := range map[string]string{"in.txt": "evals/in.txt", "only.txt": "only.txt", "mine.txt": "evals/tasks/mine.txt"} {
		abs, _, ok := options.Resolve(suite, name)
		require.True(t, ok, name)
		require.Equal(t, filepath.Join(dir, want), abs)
	}
	_, _, ok := suite.Resolve("mine.txt", "")
	require.False(t, ok, "a file of the suite is not looked for beside tasks")
}
