package plan_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// taskLines returns one line per task of a run: its id, the id in the suite, its role and the
// answer of its first trial.
func taskLines(t *testing.T, res runnertest.Result) []string {
	t.Helper()
	var lines []string
	for _, task := range res.Tasks {
		line := task.ID
		if task.Cell != nil {
			line += fmt.Sprintf(" = %s in %q (model %q, %v)", task.TaskRef.Task, task.Cell.Name, task.Cell.Model, task.Cell.Params)
		}
		if task.Role != "" {
			line += fmt.Sprintf(" %s of %q", task.Role, task.Of)
		}
		lines = append(lines, line+": "+task.Trial(t, 1).Output)
	}
	return lines
}

const twoByTwo = `
-- eval.yaml --
name: grid
config:
  models: [one, two]
  matrix: {style: [formal, plain]}
  mock: {replies: [{output: "{{task_id}} by {{model}}, {{style}} {{params.style}}"}]}
tasks: [{id: a, prompt: "be {{style}}"}, {id: b, prompt: x}]
`

func TestMatrix(t *testing.T) {
	t.Parallel()
	res, events := runnertest.Run(t, twoByTwo, record.Request{})
	runnertest.OneVerdictEach(t, res, events, false)
	require.Equal(t, []string{
		`a[one,style=formal] = a in "one,style=formal" (model "one", map[style:formal]): a by one, formal formal`,
		`a[one,style=plain] = a in "one,style=plain" (model "one", map[style:plain]): a by one, plain plain`,
		`a[two,style=formal] = a in "two,style=formal" (model "two", map[style:formal]): a by two, formal formal`,
		`a[two,style=plain] = a in "two,style=plain" (model "two", map[style:plain]): a by two, plain plain`,
		`b[one,style=formal] = b in "one,style=formal" (model "one", map[style:formal]): b by one, formal formal`,
		`b[one,style=plain] = b in "one,style=plain" (model "one", map[style:plain]): b by one, plain plain`,
		`b[two,style=formal] = b in "two,style=formal" (model "two", map[style:formal]): b by two, formal formal`,
		`b[two,style=plain] = b in "two,style=plain" (model "two", map[style:plain]): b by two, plain plain`,
	}, taskLines(t, res))
	require.Equal(t, "be formal", res.Trial(t, "a[one,style=formal]", 1).Prompt)
	require.Equal(t, 8, res.Summary.Total)
	all := runnertest.Hashes(res)
	for i := 1; i < len(all); i++ {
		require.NotEqual(t, all[i-1], all[i], "the executed task differs, and so does its hash")
	}
	require.Equal(t, []any{"one", "two"}, res.Config["models"])
	require.Empty(t, res.Config["model"])
}

const ownModels = `
-- eval.yaml --
name: own
config:
  cells: [{name: with, model: one}, {name: without}, {name: more, model: one}]
  mock: {replies: [{output: "{{task_id}} by {{model}}"}]}
tasks: [{id: a, prompt: x}, {id: b, prompt: x, model: own}, {id: c, prompt: x, model: one, cells: [with]}]
`

// A task with a model of its own is done in each cell with this model, which the models of a request replace.
// A cell without a model leaves it to the executor.
func TestOwnModels(t *testing.T) {
	t.Parallel()
	answers := func(req record.Request) (lines []string) {
		res, events := runnertest.Run(t, ownModels, req)
		runnertest.OneVerdictEach(t, res, events, false)
		for i := range res.Tasks {
			task := &res.Tasks[i]
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s %s", task.ID, task.Trial(t, 1).Output, task.Model)))
		}
		return lines
	}
	require.Equal(t, []string{
		"a[with]: a by one", "a[without]: a by", "a[more]: a by one", "b[with]: b by own own", "b[without]: b by own own",
		"b[more]: b by own own", "c[with]: c by one",
	}, answers(record.Request{}))
	require.Equal(t, []string{
		"a[with]: a by asked", "a[without]: a by asked", "a[more]: a by asked", "b[with]: b by asked", "b[without]: b by asked",
		"b[more]: b by asked", "c[with]: c by asked",
	}, answers(record.Request{Model: "asked"}))
}

// A matrix of one model is no matrix: ids and hashes equal those of a run without it, so that
// trials can be reused.
func TestMatrixOfOne(t *testing.T) {
	t.Parallel()
	suite := "\n-- eval.yaml --\nname: x\nconfig: {%s}\ntasks: [{id: a, prompt: x}]\n"
	plain, _ := runnertest.Run(t, fmt.Sprintf(suite, "model: m"), record.Request{})
	list, _ := runnertest.Run(t, fmt.Sprintf(suite, "models: [m]"), record.Request{})
	asked, _ := runnertest.Run(t, fmt.Sprintf(suite, "models: [n, o], model: p"), record.Request{Model: "m"})
	twice, _ := runnertest.Run(t, fmt.Sprintf(suite, ""), record.Request{Models: []string{"m", "m"}})
	several, _ := runnertest.Run(t, fmt.Sprintf(suite, ""), record.Request{Models: []string{"m", "n"}})
	for _, res := range []runnertest.Result{list, asked, twice} {
		require.Equal(t, runnertest.Hashes(plain), runnertest.Hashes(res))
		require.Equal(t, "a", recordtest.IDs(res.Tasks)[0])
		require.Nil(t, res.Task(t, "a").Cell)
		require.Empty(t, res.Task(t, "a").TaskRef.Task)
		require.Equal(t, "m", res.Config["model"])
	}
	require.Equal(t, []string{"a[m]", "a[n]"}, recordtest.IDs(several.Tasks)[:2])
	require.Equal(t, plain.Task(t, "a").Execution, several.Task(t, "a[m]").Execution)
}

func TestMatrixFilters(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	suite := runnertest.Load(t, r, twoByTwo)
	planned := func(req record.Request) []string {
		plan, err := r.Planner().Plan(t.Context(), suite, req)
		require.NoError(t, err)
		defer plan.Close()
		var ids []string
		for _, task := range plan.Tasks {
			ids = append(ids, task.ID)
		}
		return ids
	}
	b := []string{"b[one,style=formal]", "b[one,style=plain]", "b[two,style=formal]", "b[two,style=plain]"}
	require.Equal(t, b, planned(record.Request{Tasks: []string{"b"}}))
	require.Equal(t, b, planned(record.Request{Task: "b"}))
	require.Equal(t, b[2:3], planned(record.Request{Tasks: []string{"b[two,style=formal]"}}))
	require.Equal(t, b[2:3], planned(record.Request{Task: "b[two,style=formal]"}))
	require.Equal(t, []string{"a[two,style=plain]", "b[two,style=plain]"}, planned(record.Request{Tasks: []string{"*two,style=plain*"}}))
	require.Equal(t, append([]string{"a[one,style=plain]"}, b...), planned(record.Request{Tasks: []string{"b", "a[one,style=plain]"}}))
	require.Equal(t, []string{"a[style=formal]", "a[style=plain]"}, planned(record.Request{Task: "a", Model: "one"}))

	for _, req := range []record.Request{{Tasks: []string{"b[three]"}}, {Task: "b[three]"}, {Tasks: []string{"b[two]"}}} {
		_, err := r.Planner().Plan(t.Context(), suite, req)
		var nothing *record.SelectionError
		require.ErrorAs(t, err, &nothing)
		require.Equal(t, "task", nothing.What)
	}
	_, err := r.Planner().Plan(t.Context(), suite, record.Request{Trials: plan.MaxTrials / 7})
	var limit *record.LimitError
	require.ErrorAs(t, err, &limit)
}

// Programs receive the parameters in their environment: agents, graders and hooks.
func TestMatrixOfCommands(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: programs
config:
  executor: command
  command: 'echo "$WAZA_MODEL $WAZA_PARAM_TOP_P $WAZA_PARAM_FAST $WAZA_TASK_ID"'
  models: [one]
  matrix: {top-p: [0.5, 1], fast: [true]}
hooks: {before_task: [{command: 'test -n "$WAZA_PARAM_TOP_P"', error_on_fail: true}]}
graders: [{type: program, config: {command: 'sh', args: [-c, 'test "$WAZA_PARAM_FAST" = true']}}]
tasks: [{id: a, prompt: x}]
`, record.Request{})
	require.Equal(t, []string{
		`a[top-p=0.5,fast=true] = a in "top-p=0.5,fast=true" (model "one", map[fast:true top-p:0.5]): one 0.5 true a`,
		`a[top-p=1,fast=true] = a in "top-p=1,fast=true" (model "one", map[fast:true top-p:1]): one 1 true a`,
	}, taskLines(t, res))
	require.Equal(t, 2, res.Summary.Passed)
}

// Several executors execute the tasks of one run. Each is opened for its cells.
func TestMatrixOfExecutors(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: executors
baseline: true
config:
  matrix: {executor: [mock, command]}
  command: cat
graders: [{type: text, config: {contains: [hi]}}]
tasks: [{id: a, prompt: hi, skill_directories: [skills]}]
`+runnertest.Skill, record.Request{})
	require.Equal(t, []string{
		`a[mock] = a in "mock" (model "", map[executor:mock]): Mock response for: hi`,
		`a[command]#baseline = a in "command" (model "", map[executor:command]) baseline of "a[command]": hi`,
		`a[command] = a in "command" (model "", map[executor:command]): hi`,
	}, taskLines(t, res))
	require.Equal(t, 1, res.Summary.Baseline.Pairs)
	require.Equal(t, "a[command]", recordtest.IDs(res.Summary.Baseline.Tasks)[0])
}

// openings counts open executors by model.
type openings struct {
	mu     sync.Mutex // guards the fields below
	opened []string
	closed int
}

func (o *openings) kind() executor.Kind {
	return executor.Kind{
		Kind: eval.Kind{Name: "agent"},
		Capabilities: func(s executor.Settings) executor.Capabilities {
			return executor.Capabilities{Skills: s.Model != "blind"}
		},
		Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.opened = append(o.opened, s.Model)
			if s.Model == "bad" {
				return nil, fmt.Errorf("no model is called bad")
			}
			return &opened{o, s.Model}, nil
		},
	}
}

type opened struct {
	all   *openings
	model string
}

func (o *opened) Execute(_ context.Context, t *executor.Trial) (executor.Outcome, error) {
	if t.Model != o.model {
		return executor.Outcome{}, fmt.Errorf("asked for %s, but opened for %s", t.Model, o.model)
	}
	return executor.Outcome{Output: t.Model, Usage: &record.Usage{InputTokens: 10, CostUSD: 0.5}}, nil
}

func (o *opened) Close() error {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.all.closed++
	return nil
}

const ofAgent = `
-- eval.yaml --
name: models
config: {executor: agent, trials_per_task: 2}
graders: [{type: text, config: {contains_cs: [good]}}]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`

func TestMatrixOpensOneExecutorPerCell(t *testing.T) {
	t.Parallel()
	o := &openings{}
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(o.kind())})
	require.NoError(t, err)
	live := runnertest.Start(t, r, ofAgent, record.Request{Models: []string{"good", "poor"}, Workers: 4})
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, []string{"good", "poor"}, o.opened)
	require.Equal(t, 2, o.closed)
	require.Equal(t, 2, res.Summary.Passed)
	require.Equal(t, 2, res.Summary.Failed)

	// Only executors with trials to execute are opened.
	one := runnertest.Start(t, r, ofAgent, record.Request{Models: []string{"good", "bad"}, Tasks: []string{"a[good]"}})
	<-one.Done()
	require.Equal(t, []string{"good", "poor", "good"}, o.opened)

	// An executor that cannot be opened ends the run. Open executors are closed.
	bad := runnertest.Start(t, r, ofAgent, record.Request{Models: []string{"good", "bad", "poor"}})
	<-bad.Done()
	require.Equal(t, record.StatusFailed, runnertest.ResultOf(t, bad).Status)
	require.Contains(t, runnertest.ResultOf(t, bad).Error, "no model is called bad")
	require.Equal(t, []string{"good", "poor", "good", "good", "bad"}, o.opened)
	require.Equal(t, 4, o.closed)
}

// A resumed run opens no executor for a cell whose tasks are all decided.
func TestMatrixResumedOpensWhatIsLeft(t *testing.T) {
	t.Parallel()
	o, state := &openings{}, t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state, Executors: executor.NewRegistry(o.kind())})
	require.NoError(t, err)
	suite := runnertest.Replace(t, ofAgent, "trials_per_task: 2",
		"trials_per_task: 9, stopping: true, models: [poor, good]", ", {id: b, prompt: x}", "")
	live := runnertest.Start(t, r, suite, record.Request{})
	<-live.Done()
	whole := runnertest.ResultOf(t, live)
	require.Equal(t, 9, whole.Summary.TrialsSaved)
	runnertest.CutRun(t, filepath.Join(state, "runs", live.ID()), runnertest.Before(`"taskNum":2,"totalTasks":2,"trialNum":5`))
	got, _ := runnertest.Resumed(t, r, live.ID())
	runnertest.EqualResults(t, whole, got)
	require.Equal(t, []string{"poor", "good", "good"}, o.opened)
	require.Equal(t, 3, o.closed)
}

// Trigger tests run in each cell whose executor reports skills.
func TestMatrixTriggers(t *testing.T) {
	t.Parallel()
	o := &openings{}
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(o.kind())})
	require.NoError(t, err)
	suite := ofAgent + "-- trigger_tests.yaml --\nshould_not_trigger_prompts: [never]\n"
	live := runnertest.Start(t, r, suite, record.Request{Models: []string{"good", "blind"}, Tasks: []string{"should_*"}})
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Len(t, res.Tasks, 1)
	require.Equal(t, "should_not_trigger#1[good]", recordtest.IDs(res.Tasks)[0])
	require.InDelta(t, 1, *res.Summary.Triggers.Accuracy, 1e-9)
}

// A recorded run of a matrix is graded according to its own cells.
func TestMatrixGradedAgain(t *testing.T) {
	t.Parallel()
	suite := runnertest.Replace(t, twoByTwo, "tasks:", "graders: [{type: text, config: {contains: [two]}}]\ntasks:")
	r, id, _ := runnertest.FinishedRun(t, suite)
	before := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	g, res := runnertest.GradeAgain(t, r, id, suite, regrade.GradeOptions{})
	require.Equal(t, 8, g.Graded)
	require.Zero(t, g.Changed)
	require.Empty(t, g.Warnings)
	require.Equal(t, before.Summary, res.Summary)

	g, res = runnertest.GradeAgain(t, r, id, runnertest.Replace(t, suite, "contains: [two]", "contains: [one]"), regrade.GradeOptions{})
	require.Equal(t, 8, g.Changed)
	require.Equal(t, 4, res.Summary.Passed)
	require.Equal(t, "a[one,style=formal] 1 failed passed ", strings.Split(runnertest.Changes(g), "\n")[0])

	// A cell that was removed from the matrix keeps its trials. A new cell is reported.
	g, _ = runnertest.GradeAgain(t, r, id,
		runnertest.Replace(t, suite, "style: [formal, plain]", "style: [formal, odd]"), regrade.GradeOptions{})
	require.Equal(t, 4, g.Graded)
	require.Equal(t, 4, g.Kept)
	require.Len(t, g.Warnings, 2)
	require.Contains(t, g.Warnings[0], "a[one,style=plain]")
	require.Contains(t, g.Warnings[1], "a[one,style=odd]")
}

// A run without a matrix is graded without one, even if the suite has one now.
func TestGradedWithoutItsMatrix(t *testing.T) {
	t.Parallel()
	plain := runnertest.Replace(t, twoByTwo, "  models: [one, two]\n  matrix: {style: [formal, plain]}\n", "")
	r, id, _ := runnertest.FinishedRun(t, plain)
	g, res := runnertest.GradeAgain(t, r, id, twoByTwo, regrade.GradeOptions{})
	require.Equal(t, 2, g.Graded)
	require.Equal(t, "a", recordtest.IDs(res.Tasks)[0])
}

const someCells = `
-- eval.yaml --
name: cells
config:
  cells:
    - {model: one, executor: mock, style: formal}
    - {model: two, executor: command, command: cat}
    - {model: one, executor: mock, style: plain}
  mock: {replies: [{output: "{{model}}, {{style}}"}]}
tasks: [{id: a, prompt: hello}]
`

// A run has the listed cells only. Models of the request replace those of all cells.
func TestCells(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, someCells, record.Request{})
	require.Equal(t, []string{
		`a[one,mock,style=formal] = a in "one,mock,style=formal" (model "one", map[executor:mock style:formal]): one, formal`,
		`a[two,command,command=cat] = a in "two,command,command=cat" (model "two", map[command:cat executor:command]): hello`,
		`a[one,mock,style=plain] = a in "one,mock,style=plain" (model "one", map[executor:mock style:plain]): one, plain`,
	}, taskLines(t, res))
	res, _ = runnertest.Run(t, someCells, record.Request{Models: []string{"three"}})
	require.Len(t, res.Tasks, 3)
	require.Equal(t, "three, formal", res.Tasks[0].Trial(t, 1).Output)
}

const namedCells = `
-- eval.yaml --
name: named
config:
  executor: mock
  cells:
    - {name: control, style: plain}
    - {name: treatment, style: plain}
  mock: {replies: [{output: "{{style}} {{task_name}}"}]}
tasks:
  - {id: both, prompt: hello}
  - {id: own, name: without, prompt: hello, cells: [control]}
  - {id: own, name: with, prompt: hello, cells: [treatment]}
`

// Cells with names are apart, also if they have the same parameters. A task can differ between them, and a
// cell does only its own tasks.
func TestNamedCells(t *testing.T) {
	t.Parallel()
	lines := func(req record.Request) (lines []string) {
		res, _ := runnertest.Run(t, namedCells, req)
		for _, task := range res.Tasks {
			lines = append(lines, fmt.Sprintf("%s in %s: %s", task.ID, task.Cell.Name, task.Trial(t, 1).Output))
		}
		return lines
	}
	require.Equal(t, []string{
		"both[control] in control: plain both", "both[treatment] in treatment: plain both",
		"own[control] in control: plain without", "own[treatment] in treatment: plain with",
	}, lines(record.Request{}))
	require.Equal(t, []string{
		"own[one,control] in one,control: plain without", "own[two,control] in two,control: plain without",
		"own[one,treatment] in one,treatment: plain with", "own[two,treatment] in two,treatment: plain with",
	}, lines(record.Request{Models: []string{"one", "two"}, Task: "own"}))
	require.Equal(t, []string{"own[treatment] in treatment: plain with"}, lines(record.Request{Task: "own[treatment]"}))
	require.Equal(t, []string{"both[treatment] in treatment: plain both", "own[treatment] in treatment: plain with"},
		lines(record.Request{Tasks: []string{"*treatment?"}}))

	r := runnertest.NewRunner(t)
	hashes := hashesOf(t, r, runnertest.Load(t, r, namedCells), record.Request{})
	require.NotEqual(t, hashes["both[control]"].Execution, hashes["both[treatment]"].Execution)

	r, id, _ := runnertest.FinishedRun(t, namedCells)
	_, res := runnertest.GradeAgain(t, r, id, runnertest.Replace(t, namedCells, "cells: [treatment]",
		"cells: [treatment], graders: [{type: text, config: {contains: [something else]}}]"), regrade.GradeOptions{})
	require.Equal(t, record.Passed, res.Tasks[2].Verdict)
	require.Equal(t, record.Failed, res.Tasks[3].Verdict)
}

const cellOptions = `
-- eval.yaml --
name: options
config:
  executor: mock
  cells:
    - {name: first, options: {mock: {replies: [{output: one}]}}}
    - {name: second, options: {mock: {replies: [{output: two}]}}}
    - {model: m, options: {mock: {replies: [{output: three}]}}}
    - {model: m, options: {mock: {replies: [{output: four}]}}}
    - {model: m, options: {mock: {replies: [{output: four}]}}}
tasks: [{id: a, prompt: hello}]
`

// Cells can have options of their executor, which are not in their names. Cells with different options are different.
func TestCellOptions(t *testing.T) {
	t.Parallel()
	lines := func(req record.Request) (lines []string) {
		res, _ := runnertest.Run(t, cellOptions, req)
		for _, task := range res.Tasks {
			lines = append(lines, fmt.Sprintf("%s %v: %s", task.ID, task.Cell.Params, task.Trial(t, 1).Output))
		}
		return lines
	}
	require.Equal(t, []string{"a[first] map[]: one", "a[second] map[]: two", "a[m] map[]: three", "a[m~2] map[]: four"}, lines(record.Request{}))
	require.Equal(t, []string{"a[first] map[]: one", "a[second] map[]: two", "a[x] map[]: three", "a[x~2] map[]: four"}, lines(record.Request{Model: "x"}))
}
