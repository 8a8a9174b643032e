package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/runnertest"
)

// The hash identifies a trial by its content. It is the same in another directory and process.
// It differs for each trial, and when anything relevant changes.
func TestHashes(t *testing.T) {
	t.Parallel()
	hashes := func(files string, req record.Request) []string {
		res, _ := runnertest.Run(t, files, req)
		var out []string
		for _, task := range res.Tasks {
			for _, trial := range task.Trials {
				out = append(out, trial.Hash)
			}
		}
		return out
	}
	first := hashes(runnertest.TwoTasks, record.Request{})
	require.Equal(t, first, hashes(runnertest.TwoTasks, record.Request{Workers: 3}))
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(first))), 4)
	require.NotEqual(t, first[0], hashes(runnertest.TwoTasks, record.Request{Model: "other"})[0])
	changed := hashes(strings.Replace(runnertest.TwoTasks, "be bad", "be bad!", 1), record.Request{})
	require.Equal(t, first[:2], changed[:2])
	require.NotEqual(t, first[2], changed[2])
	require.Equal(t, first[3:], hashes(runnertest.TwoTasks, record.Request{Tasks: []string{"b"}, Trial: 2}))
}

// The hash also covers content outside of the YAML: an agent's script, a grader's, a schema, a
// snapshot.
func TestHashesOfFiles(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: files
config: {executor: command, command: [sh, agent.sh], max_attempts: 1, instruction_files: [rules.md, brought.md]}
tasks:
  - id: a
    prompt: x
    graders:
      - {type: program, config: {command: sh, args: [check.sh]}}
      - {type: json_schema, config: {schema_file: schema.json}}
      - {type: diff, config: {expected_files: [{path: out.txt, snapshot: out.txt}]}}
-- agent.sh --
echo '{"k":1}' | tee out.txt
-- check.sh --
exit 0
-- schema.json --
{"type":"object"}
-- rules.md --
Be brief.
-- fixtures/brought.md --
Be kind.
-- fixtures/out.txt --
{"k":1}
`
	r := runnertest.NewRunner(t)
	name := func(files string) string {
		p, err := r.Planner().Plan(t.Context(), runnertest.Load(t, r, files), record.Request{})
		require.NoError(t, err)
		defer p.Close()
		return recordtest.ByID(t, p.Tasks, "a").Hash
	}
	first := name(files)
	require.Equal(t, first, name(files))
	for _, change := range []string{"tee out.txt", "exit 0", "brief", "kind", `"object"`, "{\"k\":1}\n"} {
		i := strings.LastIndex(files, change)
		require.NotEqual(t, first, name(files[:i]+" "+files[i:]), change)
	}
}

func TestSelection(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: selection
tasks:
  - {id: red-1, name: First, prompt: x, tags: [warm, even]}
  - {id: red-2, prompt: x, tags: [warm]}
  - {id: blue-1, prompt: x, tags: [cold]}
`
	r := runnertest.NewRunner(t)
	suite := runnertest.Load(t, r, files)
	ids := func(req record.Request) string {
		return runnertest.PlannedIDs(r.Planner().Plan(t.Context(), suite, req))
	}
	for _, c := range []struct {
		req  record.Request
		want string
	}{
		{record.Request{}, "red-1 red-2 blue-1"},
		{record.Request{Tasks: []string{"red-*"}}, "red-1 red-2"},
		{record.Request{Tasks: []string{"First", "blue-1"}}, "red-1 blue-1"},
		{record.Request{Tags: []string{"{cold,even}"}}, "red-1 blue-1"},
		{record.Request{Tasks: []string{"red-*"}, Tags: []string{"even"}}, "red-1"},
		{record.Request{Task: "red-1"}, "red-1"},
		{record.Request{Task: "First"}, `no task of the suite matches task "First"; the suite has red-1, red-2, blue-1`},
		{record.Request{Tasks: []string{"green"}}, `no task of the suite matches task "green"; the suite has red-1, red-2, blue-1`},
		{record.Request{Tags: []string{"hot"}}, `no task of the suite matches tag "hot"; the suite has cold, even, warm`},
		{record.Request{Tasks: []string{"blue-1"}, Tags: []string{"warm"}}, `no task of the suite matches both task and tag "blue-1", "warm"`},
		{record.Request{Trial: 2}, `no task of the suite matches trial "2"; the suite has trials 1 to 1`},
		{
			record.Request{Trials: 1 << 62},
			"4611686018427387904 trials of each of 3 tasks exceed the limit of 333333: a run has at most 1000000 trials",
		},
		{record.Request{Workers: 10_001}, "10001 workers exceed the limit of 10000"},
		{
			record.Request{Executor: "mok"},
			`unknown executor "mok"; known executors: mock, command, acp, copilot-sdk, claude-cli, codex, openai, ` +
				`anthropic, http, remote, browser, router (did you mean "mock"?)`,
		},
	} {
		require.Equal(t, c.want, ids(c.req))
	}
}

// A task can have a number of trials of its own. That of the request has priority.
func TestTrialsOfTask(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	suite := runnertest.Load(t, r, `
-- eval.yaml --
name: own
config: {executor: mock, trials_per_task: 2}
tasks:
  - {id: a, prompt: x, trials: 3}
  - {id: b, prompt: x}
`)
	for _, c := range []struct {
		req  record.Request
		a, b int
	}{
		{record.Request{}, 3, 2}, {record.Request{Trials: 4}, 4, 4}, {record.Request{Tasks: []string{"a"}, Trial: 3}, 1, 0},
	} {
		p, err := r.Planner().Plan(t.Context(), suite, c.req)
		require.NoError(t, err)
		defer p.Close()
		require.Equal(t, c.a, recordtest.ByID(t, p.Tasks, "a").Trials)
		if c.b > 0 {
			require.Equal(t, c.b, recordtest.ByID(t, p.Tasks, "b").Trials)
		}
	}
	_, err := r.Planner().Plan(t.Context(), suite, record.Request{Tasks: []string{"b"}, Trial: 3})
	require.ErrorContains(t, err, "trials 1 to 2")
}
