package compare_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/replay"
	"waza/runner/runnertest"
)

const comparedTrials = 10

// comparedSuite has 40 tasks; half of the scores are between 0 and 1.
func comparedSuite() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- eval.yaml --\nname: compared\nconfig: {executor: agent, trials_per_task: %d}\n", comparedTrials)
	b.WriteString("graders:\n  - {name: good, type: text, config: {contains: [good]}}\n  - {name: please, type: " +
		"text, config: {contains: [please]}}\ntasks:\n")
	for i := range 40 {
		fmt.Fprintf(&b, "  - {id: t%02d, prompt: x}\n", i)
	}
	return b.String()
}

// baseRate returns how often the agent does a task well.
func baseRate(task string) float64 {
	var n int
	fmt.Sscanf(task, "t%d", &n)
	return []float64{1, 0.95, 0.5, 0.8, 0, 0.9, 1, 0.3}[n%8]
}

// seeded returns an agent whose random results depend only on seed, task and trial.
func seeded(seed uint64, rate func(task string) float64) runnertest.Agent {
	return func(_ context.Context, t *executor.Trial) (string, error) {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d", t.Task.ID, t.Num)
		rng := rand.New(rand.NewPCG(seed, h.Sum64()))
		switch good := rng.Float64() < rate(t.Task.ID); {
		case good:
			return "good, please", nil
		case rng.IntN(2) == 0:
			return "please", nil
		}
		return "bad", nil
	}
}

func ofClass(c *compare.RunComparison, class record.Class) []string {
	var ids []string
	for _, t := range c.Tasks {
		if t.Class == class {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// Three of 40 tasks are made worse. Compare finds these and no other, and each figure equals a
// calculation with whole numbers.
func TestCompareFindsSeededRegressions(t *testing.T) {
	t.Parallel()
	worse := []string{"t06", "t17", "t33"} // done well always, and 19 times of 20
	dir := t.TempDir()
	a := runnertest.RecordRun(t, dir, comparedSuite(), seeded(1, baseRate))
	run := func(seed uint64) record.Handle {
		return runnertest.RecordRun(t, dir, comparedSuite(), seeded(seed, func(task string) float64 {
			if slices.Contains(worse, task) {
				return 0.05
			}
			return baseRate(task)
		}))
	}
	for _, seed := range []uint64{5, 9} {
		b := run(seed)
		c := runnertest.Compare(t, compare.Options{}, a, b)
		require.Len(t, c.Comparisons, 1)
		got := &c.Comparisons[0]
		require.Equal(t, worse, ofClass(got, record.Regressed))
		require.Empty(t, ofClass(got, record.Improved))
		require.Equal(t, 40, got.Compared)
		require.Equal(t, 37, got.NoDifference+got.Undecided, "ten trials are too few to show that nothing changed")
		require.Negative(t, got.PassRate.Difference)
		require.Equal(t, got.P <= 0.05, got.Outcome == record.OutcomeWorse, "three of 40 may be lost in the noise of the others")
		checkIndependently(t, got, runnertest.ResultOf(t, a), runnertest.ResultOf(t, b))

		if seed == 5 {
			require.Equal(t, got, &runnertest.Compare(t, compare.Options{}, a, b).Comparisons[0], "the same each time")
			continue
		}
		back := runnertest.Compare(t, compare.Options{}, b, a).Comparisons[0]
		require.Equal(t, worse, ofClass(&back, record.Improved), "the other way round")
		require.InDelta(t, got.P, back.P, 1e-3)
		require.InDelta(t, -got.PassRate.Difference, back.PassRate.Difference, 1e-12)
	}

	// The tasks have a level of 5 % by themselves. The tests of all tasks together do not weaken them.
	found := runnertest.Compare(t, compare.Options{}, a, run(8)).Comparisons[0]
	t17 := found.Tasks[17]
	require.Equal(t, record.Regressed, t17.Class, "8 of 10 trials passed, and now 1 of 10")
	require.InDelta(t, 0.0266, t17.P, 1e-4)
	require.Equal(t, worse, ofClass(&found, record.Regressed))
}

// countingHandle is a recorded run that counts its readings.
type countingHandle struct {
	*replay.RecordedRun
	readings *atomic.Int32
}

func (h countingHandle) State() (*replay.State, error) {
	h.readings.Add(1)
	return h.RecordedRun.State()
}

// A comparison reads each run once: with a million trials, each reading takes seconds.
func TestCompareReadsRunsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recorded := func(seed uint64) countingHandle {
		h := runnertest.RecordRun(t, dir, comparedSuite(), seeded(seed, baseRate))
		return countingHandle{h.(*replay.RecordedRun), new(atomic.Int32)}
	}
	a, b := recorded(1), recorded(2)
	again := countingHandle{b.RecordedRun, a.readings} // found by the same id
	c := runnertest.Compare(t, compare.Options{}, a, b, again, a)
	require.Len(t, c.Comparisons, 3)
	require.EqualValues(t, 1, a.readings.Load())
	require.EqualValues(t, 1, b.readings.Load())
	first, second := c.Comparisons[0], c.Comparisons[1]
	require.Equal(t, first, second)
	require.Equal(t, 40, c.Comparisons[2].NoDifference, "a run does not differ from itself")
	require.Equal(t, c.Runs[1], c.Runs[2])
}

// One trial per task decides nothing about single tasks, but can decide about all together.
func TestCompareSingleTrials(t *testing.T) {
	t.Parallel()
	suite := strings.Replace(comparedSuite(), "trials_per_task: 10", "trials_per_task: 1", 1)
	dir := t.TempDir()
	a := runnertest.RecordRun(t, dir, suite, seeded(1, func(string) float64 { return 1 }))
	b := runnertest.RecordRun(t, dir, suite, seeded(1, func(task string) float64 { return map[bool]float64{true: 0, false: 1}[task < "t12"] }))
	got := runnertest.Compare(t, compare.Options{}, a, b).Comparisons[0]
	require.Zero(t, got.Regressed)
	require.Equal(t, 12, got.Undecided)
	require.Equal(t, 28, got.NoDifference)
	require.Equal(t, record.OutcomeWorse, got.Outcome)
	require.Contains(t, got.Notes,
		compare.ComparisonNote{
			Text: "no task has enough trials to show even the largest difference: 7 trials of each task would; only all tasks together are tested",
		})
	for _, task := range got.Tasks {
		require.Nil(t, task.Needed)
	}
	same := runnertest.Compare(t, compare.Options{}, a, a).Comparisons[0]
	require.Equal(t, 40, same.NoDifference)
	require.Equal(t, record.OutcomeUndecided, same.Outcome, "40 tasks rule out one of ten that breaks, or ten points by chance, but not both")
	require.Equal(t, record.OutcomeSame, same.TheseTasks.Outcome, "at a difference of ten points, 40 of 40 pass in 1.5 % of runs")
	require.InDelta(t, 1-math.Pow(0.025, 1.0/40), same.PassRate.Interval.High, 1e-6)
	few, _, _ := strings.Cut(suite, "  - {id: t30")
	c := runnertest.RecordRun(t, dir, few, seeded(1, func(string) float64 { return 1 }))
	same = runnertest.Compare(t, compare.Options{}, c, c).Comparisons[0]
	require.Equal(t, record.OutcomeUndecided, same.Outcome, "30 trials are too few to rule out a difference of ten points")
}

const errorsSuite = `
-- eval.yaml --
name: errors
config: {executor: agent, trials_per_task: 6}
graders: [{name: good, type: text, config: {contains: [good]}}]
tasks: [{id: fine, prompt: x}, {id: partly, prompt: x}, {id: never, prompt: x}]
`

// Errors are not failures: a task without other trials is not compared.
func TestCompareLeavesErrorsOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := runnertest.RecordRun(t, dir, errorsSuite, func(context.Context, *executor.Trial) (string, error) { return "good", nil })
	b := runnertest.RecordRun(t, dir, errorsSuite, func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Task.ID == "never" || t.Task.ID == "partly" && t.Num > 2 {
			return "", executor.Permanent(fmt.Errorf("no network"))
		}
		return "good", nil
	})
	got := runnertest.Compare(t, compare.Options{}, a, b).Comparisons[0]
	require.Equal(t, 2, got.Compared)
	require.Zero(t, got.Regressed)
	require.Equal(t, 2, got.NoDifference, "two of two passed, which is no proof that nothing changed")
	require.Equal(t, 4, recordtest.ByID(t, got.Tasks, "partly").Run.Errors)
	require.Len(t, got.Uncounted, 1)
	require.Equal(t, "never", got.Uncounted[0].ID)
	require.True(t, got.Partial())
	require.Contains(t, got.Notes, compare.ComparisonNote{Run: b.ID(), Text: "has trials that do not count: 10 in error"})
	require.Equal(t, 1.0, *got.Tokens.Ratio)
}

// The comparison reports other differences of the runs: here the graders of one task and the
// prompt of another. It lists tasks that only one run has.
func TestCompareReportsDifferences(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
name: a
config: {executor: agent, trials_per_task: 2}
tasks:
  - {id: same, prompt: x, graders: [{name: g, type: text, config: {contains: [good]}}]}
  - {id: graders, prompt: x, graders: [{name: g, type: text, config: {contains: [good]}}]}
  - {id: prompt, prompt: x, graders: [{name: g, type: text, config: {contains: [good]}}]}
  - {id: model, prompt: x, model: m, graders: [{name: g, type: text, config: {contains: [good]}}]}
  - {id: old, prompt: x, graders: [{name: g, type: text, config: {contains: [good]}}]}
`
	other := strings.NewReplacer("model: m,", "model: n,", "name: a\n", "name: b\n", "id: prompt, prompt: x", "id: prompt, prompt: y", "id: old", "id: new",
		"{id: graders, prompt: x, graders: [{name: g, type: text, config: {contains: [good]}}]}",
		"{id: graders, prompt: x, graders: [{name: g, type: text, config: {contains: [goo]}}]}").Replace(suite)
	good := func(context.Context, *executor.Trial) (string, error) { return "good", nil }
	dir := t.TempDir()
	a, b := runnertest.RecordRun(t, dir, suite, good), runnertest.RecordRun(t, dir, other, good)
	got := runnertest.Compare(t, compare.Options{}, a, b).Comparisons[0]
	require.Equal(t, []string{"old"}, got.OnlyReference)
	require.Equal(t, []string{"new"}, got.OnlyRun)
	changed := map[string]string{}
	for _, task := range got.Tasks {
		changed[task.ID] = task.Changed
	}
	require.Equal(t, map[string]string{"same": "", "graders": compare.ChangedGraders, "prompt": compare.ChangedExecution, "model": compare.ChangedModel}, changed)
	require.Equal(t, []compare.Difference{
		{What: "suite", Reference: "a", Run: "b"},
		{What: "suite file", Reference: a.Record().Suite.Path, Run: b.Record().Suite.Path},
		{What: "model", Reference: "m", Run: "n"},
	}, got.Differences)

	none := runnertest.RecordRun(t, dir, strings.Replace(suite, "id: same", "id: x1", 1), good)
	_, err := compare.Compare(t.Context(), []compare.Source{compare.FromRun(none), compare.FromRun(a)},
		compare.Options{Tasks: []string{"same"}})
	require.ErrorIs(t, err, compare.ErrNothingCompared)
	var selection *record.SelectionError
	_, err = compare.Compare(t.Context(), []compare.Source{compare.FromRun(a), compare.FromRun(b)},
		compare.Options{Tasks: []string{"nothing*"}})
	require.ErrorAs(t, err, &selection)
}

// A result in a file is compared like the run it was written from.
func TestCompareFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := runnertest.RecordRun(t, dir, comparedSuite(), seeded(1, baseRate))
	b := runnertest.RecordRun(t, dir, comparedSuite(), seeded(2, func(string) float64 { return 0.2 }))
	file := filepath.Join(t.TempDir(), "base.jsonl")
	var lines bytes.Buffer
	require.NoError(t, a.WriteResult(&lines))
	require.NoError(t, os.WriteFile(file, lines.Bytes(), 0o644))
	source, err := compare.FromFile(file, "")
	require.NoError(t, err)
	few := compare.Options{Tasks: []string{"t0*"}}
	fromFile, err := compare.Compare(t.Context(), []compare.Source{source, compare.FromRun(b)}, few)
	require.NoError(t, err)
	recorded := runnertest.Compare(t, few, a, b)
	require.Equal(t, 10, recorded.Comparisons[0].Compared)
	if diff := cmp.Diff(recorded.Comparisons, fromFile.Comparisons); diff != "" {
		t.Error(diff)
	}
	require.Equal(t, file, fromFile.Runs[0].File)
	require.Equal(t, recorded.Runs[0].Trials, fromFile.Runs[0].Trials)

	// Results of several suites in one file.
	other := strings.Replace(lines.String(), `"name":"compared"`, `"name":"other"`, 1)
	require.NoError(t, os.WriteFile(file, []byte(lines.String()+`{"path":"x","error":"was refused"}`+"\n"+other), 0o644))
	var bad *compare.ResultFileError
	_, err = compare.FromFile(file, "")
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []string{"compared", "other"}, bad.Suites)
	_, err = compare.FromFile(file, "other")
	require.NoError(t, err)
	_, err = compare.FromFile(file, "third")
	require.ErrorContains(t, err, `contains no result of the suite "third"`)
}

// A note states that tasks could stop early, because their plain rates would be biased.
func TestCompareNotesStopping(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
name: stopped
config: {executor: agent, trials_per_task: 60, stopping: {confidence: 0.95}}
graders: [{name: good, type: text, config: {contains: [good]}}]
tasks: [{id: a, prompt: x}]
`
	r := runnertest.AgentRunner(t, t.TempDir(), func(context.Context, *executor.Trial) (string, error) { return "bad", nil })
	live := runnertest.Start(t, r, suite, record.Request{Workers: 1}) // several could start all trials before the decision
	<-live.Done()
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	require.Positive(t, runnertest.ResultOf(t, h).Summary.TrialsSaved)
	var notes []string
	for _, n := range runnertest.Compare(t, compare.Options{}, h, h).Comparisons[0].Notes {
		notes = append(notes, n.Text)
	}
	require.Contains(t, strings.Join(notes, "\n"), "trials could stop early")
}

// The cells of a matrix are compared with the first cell; tasks are matched by their ids in the
// suite.
func TestCompareCells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const suite = `
-- eval.yaml --
name: cells
config: {executor: agent, trials_per_task: 8}
graders: [{name: good, type: text, config: {contains: [good]}}]
tasks: [{id: "a[x]", prompt: x}, {id: "b[x]", prompt: x}, {id: "a[y]", prompt: x}, {id: "b[y]", prompt: x}]
`
	h := runnertest.RecordRun(t, dir, suite, func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Task.ID == "a[y]" {
			return "bad", nil
		}
		return "good", nil
	})
	require.Nil(t, compare.FromCells(h))
	for i := range h.Record().Tasks {
		ref := &h.Record().Tasks[i]
		ref.Task, ref.Cell = ref.ID[:1], &record.Cell{Name: ref.ID[2:3], Model: "model-" + ref.ID[2:3]}
	}
	cells := compare.FromCells(h)
	require.Len(t, cells, 2)
	c, err := compare.Compare(t.Context(), cells, compare.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{h.ID() + "[x]", h.ID() + "[y]"}, []string{c.Runs[0].Name, c.Runs[1].Name})
	require.Equal(t, 16, c.Runs[1].Trials.Total)
	require.Equal(t, []string{"a"}, ofClass(&c.Comparisons[0], record.Regressed))
	require.Equal(t, []string{"b"}, ofClass(&c.Comparisons[0], record.NoDifference))
	require.Contains(t, c.Comparisons[0].Differences, compare.Difference{What: "model", Reference: "model-x", Run: "model-y"})

	// A cell without a model does not have that of the run, and a task in it can have its own.
	h.Record().Config.Model = "model-x"
	for i := range h.Record().Tasks {
		if ref := &h.Record().Tasks[i]; ref.Cell.Name == "y" {
			ref.Cell.Model = ""
		}
	}
	require.Equal(t, []string{"model-x", ""}, modelsOf(t, h))
	h.Record().Tasks[3].Model = "own"
	require.Equal(t, []string{"model-x", "own"}, modelsOf(t, h))
}

// modelsOf returns the models of the compared cells of a run.
func modelsOf(t *testing.T, h record.Handle) (models []string) {
	t.Helper()
	c, err := compare.Compare(t.Context(), compare.FromCells(h), compare.Options{})
	require.NoError(t, err)
	for _, r := range c.Runs {
		models = append(models, r.Model)
	}
	return models
}

func TestCompareBadFiles(t *testing.T) {
	t.Parallel()
	const task = `{"runId":"r","suite":{"name":"s"},"tasks":[{"id":"a","trials":[%s]}]}`
	for text, want := range map[string]string{
		"":                           "contains no result",
		"[]":                         "result 1: the document has an unexpected value: [",
		`{"runId":"r"}`:              "result 1: not the result of a run: it has no runId or no tasks",
		`{"runId":"r","tasks":[`:     "result 1: unexpected end of file",
		`{"runId":"r","tasks":3}`:    "result 1: tasks has an unexpected value: 3",
		`{"runId":7,"tasks":[]}`:     "result 1: runId has an unexpected value: number",
		`{"path":"p","error":"bad"}`: "contains no result because the suite was not run: bad",
		`{"runId":"r","tasks":[],"status":"<b>"}`: `result 1: unknown status "<b>"`,
		fmt.Sprintf(task, `{"verdict":7}`):        "result 1: trials.verdict has an unexpected value: number",
		`nonsense`: "result 1: not JSON: invalid character 'o' in " +
			"literal null (expecting 'u')",
		`{"runId":"r","tasks":[{"id":""}]}`:                           `result 1: task 1 must have a unique id, got ""`,
		fmt.Sprintf(task, `{"verdict":"good"}`):                       `result 1: task a: trial 1: unknown verdict "good"`,
		fmt.Sprintf(task, `{"verdict":"passed","score":2}`):           `result 1: task a: trial 1: the score must be between 0 and 1, got 2`,
		fmt.Sprintf(task, `{"verdict":"passed","durationMs":-1}`):     `result 1: task a: trial 1: the duration must not be negative, got -1 ms`,
		fmt.Sprintf(task, `{"verdict":"passed"},{"verdict":"failed"`): `result 1: not JSON: invalid character ']' after object key:value pair`,
	} {
		path := filepath.Join(t.TempDir(), "result.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := compare.FromFile(path, "")
		require.EqualError(t, err, path+": "+want, "%s", text)
	}
	_, err := compare.FromFile(filepath.Join(t.TempDir(), "nowhere"), "")
	require.ErrorContains(t, err, "no such file")
}

// For any file that is accepted, a comparison with itself shows no change.
func FuzzResultFile(f *testing.F) {
	f.Add([]byte(`{"runId":"r","status":"completed","suite":{"name":"s"},"tasks":[{"id":"a","name":"A",` +
		`"totalTrials":3,"verdict":"failed","trials":[{"trialNum":1,"verdict":"passed","score":1,"durationMs":5,` +
		`"usage":{"inputTokens":1}},{"trialNum":2,"verdict":"failed","score":0.3},{"trialNum":2,"verdict":"error"}]}]}`))
	f.Add([]byte(`{"tasks":[],"runId":"x"}{"path":"a","error":"b"}`))
	f.Add([]byte(`{"runId":"r","tasks":[{"id":"a","trials":[{"verdict":"timeout","usage":{"costUsd":1e308},` +
		`"attempts":[{"usage":{"inputTokens":-9223372036854775808}}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "r.json")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		s, err := compare.FromFile(path, "")
		if err != nil {
			return
		}
		c, err := compare.Compare(t.Context(), []compare.Source{s, s}, compare.Options{})
		if err != nil {
			require.ErrorIs(t, err, compare.ErrNothingCompared)
			return
		}
		got := c.Comparisons[0]
		require.Equal(t, got.Compared, got.Unchanged+got.NoDifference)
		require.NotEqual(t, record.OutcomeWorse, got.Outcome)
	})
}

// A verdict with p 0.022 once appeared above the note that nothing could be decided about a task
// with one trial. No note stated that three trials cannot show any outcome.
func TestCompareNotesTooFewTrials(t *testing.T) {
	t.Parallel()
	const note = "enough trials to show even the largest difference"
	dir := t.TempDir()
	suite := func(trials int) string {
		return strings.Replace(errorsSuite, "trials_per_task: 6", fmt.Sprintf("trials_per_task: %d", trials), 1)
	}
	good := func(context.Context, *executor.Trial) (string, error) { return "good", nil }
	bad := func(context.Context, *executor.Trial) (string, error) { return "bad", nil }
	notes := func(a, b record.Handle, tasks ...string) string {
		c := runnertest.Compare(t, compare.Options{Tasks: tasks}, a, b).Comparisons[0]
		var all []string
		for _, n := range c.Notes {
			all = append(all, n.Text)
		}
		return strings.Join(all, "\n")
	}
	one, many := runnertest.RecordRun(t, dir, suite(1), bad), runnertest.RecordRun(t, dir, suite(44), good)
	c := runnertest.Compare(t, compare.Options{Tasks: []string{"fine"}}, one, many).Comparisons[0]
	require.Less(t, c.P, 0.05)
	require.Equal(t, []string{"fine"}, ofClass(&c, record.Improved))
	require.NotContains(t, notes(one, many, "fine"), note)

	three := runnertest.RecordRun(t, dir, suite(3), good)
	require.Contains(t, notes(three, three), "no task has "+note)
	six := runnertest.RecordRun(t, dir, suite(6), good)
	require.NotContains(t, notes(six, six), note, "6/6 against 0/6 would be shown")
}

// With five trials in each run, the p-values of a permutation test are at least 2/252. That is
// too large if ten tasks are tested.
func TestCompareNotesThatScoresCannotDecide(t *testing.T) {
	t.Parallel()
	suite := func(tasks int) string {
		var b strings.Builder
		b.WriteString("-- eval.yaml --\nname: scored\nconfig: {executor: agent, trials_per_task: 5}\ngraders: [{name: " +
			"good, type: text, config: {contains: [a, b, c]}}]\ntasks:\n")
		for i := range tasks {
			fmt.Fprintf(&b, "  - {id: t%d, prompt: x}\n", i)
		}
		return b.String()
	}
	says := func(_ context.Context, t *executor.Trial) (string, error) {
		return []string{"a", "a b", "b c"}[t.Num%3], nil
	}
	for tasks, want := range map[int]bool{3: false, 10: true} {
		h := runnertest.RecordRun(t, t.TempDir(), suite(tasks), says)
		c := runnertest.Compare(t, compare.Options{}, h, h).Comparisons[0]
		found := slices.ContainsFunc(c.Notes, func(n compare.ComparisonNote) bool {
			return strings.HasPrefix(n.Text,
				"scores alone cannot show a change of a single task: with so few trials their p-values are at least 0.0079")
		})
		require.Equal(t, want, found, "%d tasks: %v", tasks, c.Notes)
	}
}

// "Unchanged" once meant that counts agreed, even for 5/5 against 1/1. Now it means that a
// difference beyond the margin is ruled out.
func TestCompareUnchangedIsShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := func(context.Context, *executor.Trial) (string, error) { return "good", nil }
	suite := func(trials int) string {
		return strings.Replace(errorsSuite, "trials_per_task: 6", fmt.Sprintf("trials_per_task: %d", trials), 1)
	}
	few, many := runnertest.RecordRun(t, dir, suite(34), good), runnertest.RecordRun(t, dir, suite(36), good)
	class := func(h record.Handle, margin float64) record.Class {
		return recordtest.ByID(t, runnertest.Compare(t, compare.Options{Margin: margin}, h, h).Comparisons[0].Tasks, "fine").Class
	}
	require.Equal(t, record.NoDifference, class(few, 0.1))
	require.Equal(t, record.Unchanged, class(many, 0.1))
	require.Equal(t, record.NoDifference, class(many, 0.05))
	one := runnertest.RecordRun(t, dir, suite(1), good)
	got := runnertest.Compare(t, compare.Options{}, many, one).Comparisons[0]
	require.Equal(t, 3, got.NoDifference)
}
