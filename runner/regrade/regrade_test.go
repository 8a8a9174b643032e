package regrade_test

import (
	"context"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"waza/runner/grader/person"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

func TestGrade(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.FinishedRun(t, runnertest.TwoTasks)
	before := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	own := len(runnertest.JournalLines(t, dir))

	g, res := runnertest.GradeAgain(t, r, id, runnertest.TwoTasks, regrade.GradeOptions{})
	require.Equal(t, 4, g.Graded)
	require.Zero(t, g.Changed)
	require.Equal(t, own, len(runnertest.JournalLines(t, dir)), "nothing has changed, so nothing is recorded")
	if diff := cmp.Diff(before, res); diff != "" {
		t.Errorf("it changed (-before +after):\n%s", diff)
	}

	var reported []int
	g, res = runnertest.GradeAgain(t, r, id, runnertest.Replace(t, runnertest.TwoTasks, "contains: [all good]",
		"contains: [mock response]"), regrade.GradeOptions{
		Progress: func(done, total int) {
			require.Equal(t, 4, total)
			reported = append(reported, done)
		},
	})
	require.Equal(t, []int{1, 2, 3, 4}, reported)
	want := "a 1 passed failed says_good: the output does not contain \"mock response\"\n" +
		"a 2 passed failed says_good: the output does not contain \"mock response\"\n" +
		"b 1 failed passed \n" +
		"b 2 passed failed says_good: the output does not contain \"mock response\"\n"
	require.Equal(t, want, runnertest.Changes(g))
	require.Equal(t, record.Failed, res.Task(t, "a").Verdict)
	require.Equal(t, 1, res.Summary.Trials.Passed)
	require.Equal(t, res.Summary, g.Summary)

	_, res = runnertest.GradeAgain(t, r, id, runnertest.TwoTasks, regrade.GradeOptions{})
	if diff := cmp.Diff(before, res, sameGraders); diff != "" {
		t.Errorf("grading twice does not restore the run (-before +after):\n%s", diff)
	}
}

// sameGraders ignores the duration of graders.
var sameGraders = cmpopts.IgnoreFields(record.Grade{}, "DurationMS")

// A regrading uses the present thresholds, metrics, weights, expectations and tasks.
func TestGradeToday(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: today
config: {executor: command, command: 'echo "$WAZA_TRIAL: $(cat)"', trials_per_task: 2}
tasks:
  - {id: a, prompt: one}
  - {id: b, prompt: two}
`
	r, id, _ := runnertest.FinishedRun(t, files)
	g, res := runnertest.GradeAgain(t, r, id, `
-- eval.yaml --
name: today
config: {executor: command, command: exit 9, trials_per_task: 7}
metrics: [{name: first, threshold: 0.9}]
tasks:
  - id: c
    prompt: new
  - id: a
    prompt: changed
    pass_threshold: 0.5
    expected: {output_contains: [one]}
    graders:
      - {name: first, type: text, weight: 3, config: {contains: ["1:"]}}
`, regrade.GradeOptions{})
	require.Equal(t, 2, g.Graded)
	require.Equal(t, 2, g.Kept)
	require.Equal(t, "a 2 passed failed first: the output does not contain \"1:\"\n", runnertest.Changes(g))
	require.Equal(t, []string{
		"not graded because the suite no longer has the task: b",
		"not graded because the run does not have the task: c",
		"graded, but the prompt has changed since the run: a",
	}, g.Warnings)
	require.Equal(t, record.Passed, res.Task(t, "a").Verdict)
	require.InDelta(t, 0.25, *res.Trial(t, "a", 2).Score, 1e-9)
	require.Equal(t, "_output_contains", res.Trial(t, "a", 1).Graders[1].Name)
	require.Equal(t, record.Passed, res.Task(t, "b").Verdict)
	require.Empty(t, res.Trial(t, "b", 1).Graders)
	require.Equal(t, []string{"first"}, res.Summary.Missed)
	require.Contains(t, res.Trial(t, "a", 1).Output, "1: one")
}

// Slow graders once made trials timeouts when a run was regraded, and timeouts count as failures
// of the agent.
func TestGradeTooSlow(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: slow
config: {executor: command, command: cat, timeout_seconds: 3}
graders: [{name: g, type: program, config: {command: sh, args: [-c, 'exit 0']}}]
tasks: [{id: a, prompt: x}]
`
	r, id, _ := runnertest.FinishedRun(t, files)
	g, _ := runnertest.GradeAgain(t, r, id, runnertest.Replace(t, files, "exit 0", "sleep 100"), regrade.GradeOptions{})
	require.Equal(t, "a 1 passed error the graders did not finish within 3s\n", runnertest.Changes(g))
	g, _ = runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.Equal(t, "a 1 error passed \n", runnertest.Changes(g))
}

// When a row was inserted into a dataset, all later rows were graded as their neighbors without
// a warning.
func TestGradeWarnsAboutChangedPrompts(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: rows
config: {executor: command, command: cat, trials_per_task: 2}
inputs: {prompt: "hello {{who}} {{trial}}"}
tasks_from: rows.csv
tasks: [{id: a, prompt: x}]
-- rows.csv --
who
ann
bob
`
	r, id, _ := runnertest.FinishedRun(t, files)
	g, _ := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.Empty(t, g.Warnings)
	g, _ = runnertest.GradeAgain(t, r, id, runnertest.Replace(t, files, "ann\n", "zoe\nann\n"), regrade.GradeOptions{})
	require.Equal(t, []string{
		"not graded because the run does not have the task: row-3",
		"graded, but the prompt has changed since the run: row-1, row-2",
	}, g.Warnings)
}

// Trials whose executor did not end normally stay unchanged. Trials that a grader could not
// score are scored later.
func TestGradeErrors(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: errors
config:
  mock:
    replies: [{match: broken, error: the provider is down}, {match: fine, output: fine}]
tasks:
  - {id: harness, prompt: broken}
  - id: grader
    prompt: fine
    graders: [{name: tool, type: program, config: {command: ./no-such-program}}]
`
	r, id, _ := runnertest.FinishedRun(t, files)
	before := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Equal(t, record.Errored, before.Task(t, "grader").Verdict)
	g, res := runnertest.GradeAgain(t, r, id,
		runnertest.Replace(t, files, "command: ./no-such-program", "command: 'true'"), regrade.GradeOptions{})
	require.Equal(t, 1, g.Graded)
	require.Equal(t, 1, g.Kept)
	require.Equal(t, record.Errored, res.Task(t, "harness").Verdict)
	require.Equal(t, record.Passed, res.Task(t, "grader").Verdict)
	require.Empty(t, res.Trial(t, "grader", 1).Error)
}

// Graders of files see the workspace as the executor left it, including permissions, links and
// absolute paths. Content that was not kept is an error.
func TestGradeFiles(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: files
config:
  executor: command
  command: |
    echo made > made.txt; ln -s made.txt link; ln -s /etc/passwd out; pwd > where; rm in.txt
    test "$WAZA_TASK_ID" != lossy || { mkdir -p node_modules/x; rm link out; }
tasks:
  - id: whole
    inputs: {prompt: x, files: [{path: in.txt, content: in}]}
    graders: [{name: g, type: file, config: {must_exist: [made.txt]}}]
  - id: lossy
    prompt: x
    graders: [{name: g, type: file, config: {must_exist: [made.txt]}}]
-- fixtures/want.txt --
made
`
	const grader = "{name: g, type: file, config: {must_exist: [made.txt]}}"
	for _, tc := range []struct{ name, grader, whole, lossy string }{
		{
			"file",
			"{name: g, type: file, config: {must_exist: [link, made.txt], must_not_exist: [in.txt], content_patterns: " +
				"[{path: link, must_match: [^made]}]}}",
			"passed", "failed",
		},
		{"escape", "{name: g, type: file, config: {must_exist: [out]}}", "failed", "failed"},
		{"diff", "{name: g, type: diff, config: {expected_files: [{path: made.txt, snapshot: want.txt}]}}", "passed", "passed"},
		{
			"program",
			`{name: g, type: program, config: {command: sh, args: [-c, 'test "$(cat where)" = "$PWD" && grep -q made ` +
				`link && touch mark && test ! -e in.txt'], trust_workspace: true}}`,
			"passed", "error",
		},
		{"in a directory that was not kept", "{name: g, type: file, config: {must_not_exist: [node_modules/x/y]}}", "passed", "error"},
		{"made by a grader", "{name: g, type: file, config: {must_exist: [mark]}}", "failed", "failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, id, dir := runnertest.FinishedRun(t, files)
			_, res := runnertest.GradeAgain(t, r, id, runnertest.Replace(t, files, grader, tc.grader), regrade.GradeOptions{})
			require.Equal(t, tc.whole, string(res.Task(t, "whole").Verdict), "%v", res.Task(t, "whole").Reasons)
			require.Equal(t, tc.lossy, string(res.Task(t, "lossy").Verdict), "%v", res.Task(t, "lossy").Reasons)
			if tc.lossy == "error" {
				require.Contains(t, res.Trial(t, "lossy", 1).Error,
					"the trial's workspace was not recorded completely: node_modules: directories with this name are not recorded")
			}
			require.NoDirExists(t, filepath.Join(dir, "..", "..", "work", id))
		})
	}
	t.Run("contents are gone", func(t *testing.T) {
		t.Parallel()
		r, id, dir := runnertest.FinishedRun(t, files)
		require.NoError(t, os.Truncate(filepath.Join(dir, "files.gz"), 3))
		_, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
		require.Equal(t, record.Errored, res.Task(t, "whole").Verdict)
		require.Contains(t, res.Trial(t, "whole", 1).Error, "cannot restore the workspace: made.txt: files.gz: content")
	})
}

// A rejected key ends the grading at once. Earlier judgements are kept, and the judge is not
// asked for them again.
func TestGradeRefused(t *testing.T) {
	t.Parallel()
	s := &runnertest.JudgeServer{}
	files := judgedSuite(t, s)
	r, id, dir := runnertest.FinishedRun(t, files)
	other := runnertest.Replace(t, files, "Is it fine?", "Is it finer?")
	s.Fail(http.StatusUnauthorized, 13)
	g, err := r.Amender().Grade(t.Context(), id, runnertest.Load(t, r, other), regrade.GradeOptions{})
	require.ErrorContains(t, err, "the grading was stopped: ")
	require.ErrorContains(t, err, "401 Unauthorized")
	require.Equal(t, 3, g.Graded)
	require.EqualValues(t, 14, s.Requests.Load())
	require.Equal(t, 10, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Summary.Trials.Passed)
	s.Fail(0, 0)
	g, _ = runnertest.GradeAgain(t, r, id, other, regrade.GradeOptions{})
	require.Equal(t, 10, g.Graded)
	require.EqualValues(t, 21, s.Requests.Load())

	// A budget ends the grading in an orderly way.
	dear := runnertest.Replace(t, files, "trials_per_task: 5", "trials_per_task: 5, max_tokens: 2000", "Is it fine?", "Is it dear?")
	g, err = r.Amender().Grade(t.Context(), id, runnertest.Load(t, r, dear), regrade.GradeOptions{})
	require.ErrorContains(t, err, "config.max_tokens of 2000")
	require.Positive(t, g.Graded)
	require.Less(t, g.Graded, 10)

	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		require.NotContains(t, string(data), runnertest.SecretKey, path)
		return err
	}))
}

// A cancelled grading keeps exactly its finished results.
func TestGradeCancelled(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.FinishedRun(t, runnertest.TwoTasks)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, err := r.Amender().Grade(ctx, id, runnertest.Load(t, r,
		runnertest.Replace(t, runnertest.TwoTasks, "contains: [all good]", "contains: [nothing]")), regrade.GradeOptions{
		Progress: func(done, _ int) {
			if done == 2 {
				cancel()
			}
		},
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, g.Graded)
	res := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Equal(t, 3, res.Summary.Trials.Failed, "two of them by the grading")
	require.NoDirExists(t, filepath.Join(dir, "..", "..", "work", id))
}

// One of two concurrent gradings of a run wins; the other returns an error.
func TestGradeTwice(t *testing.T) {
	t.Parallel()
	r, id, _ := runnertest.FinishedRun(t, runnertest.TwoTasks)
	suite := runnertest.Load(t, r, runnertest.TwoTasks)
	var busy *record.BusyError
	_, err := r.Amender().Grade(t.Context(), id, suite, regrade.GradeOptions{Progress: func(done, _ int) {
		if done == 1 {
			_, err := r.Amender().Grade(t.Context(), id, suite, regrade.GradeOptions{})
			require.ErrorAs(t, err, &busy)
		}
	}})
	require.NoError(t, err)
	require.False(t, busy.Running)

	live := runnertest.Start(t, r,
		"-- eval.yaml --\nname: slow\nconfig: {mock: {latency_ms: 600000}}\ntasks: [{id: a, prompt: x}]\n",
		record.Request{})
	_, err = r.Amender().Grade(t.Context(), live.ID(), suite, regrade.GradeOptions{})
	require.ErrorAs(t, err, &busy)
	require.True(t, busy.Running)
	_, err = r.Amender().Grade(t.Context(), "nope", suite, regrade.GradeOptions{})
	require.ErrorIs(t, err, record.ErrRunNotFound)
}

// Regrading a run keeps people's scores.
func TestGradeKeepsReviews(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: human
config: {mock: {replies: [{match: x, output: good}]}}
tasks:
  - id: a
    prompt: x
    graders:
      - {name: person, type: human, config: {instructions: look}}
      - {name: text, type: text, config: {contains: [good]}}
`
	r, id, _ := runnertest.FinishedRun(t, files)
	require.Equal(t, record.NeedsReview, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Task(t, "a").Verdict)
	g, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.Zero(t, g.Changed)
	require.Equal(t, record.NeedsReview, res.Task(t, "a").Verdict)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
		trial, err := a.Trial(0, 1)
		require.NoError(t, err)
		require.NoError(t, person.SetReview(&trial.Graders[0], 0.7, "nice", "me", trial.StartedAt))
		was := trial.Verdict
		trial.Verdict = record.Passed
		return a.Replace(0, was, trial)
	}))
	for _, o := range []regrade.GradeOptions{{}, {Rejudge: true}} {
		_, res = runnertest.GradeAgain(t, r, id, runnertest.Replace(t, files, "contains: [good]", "contains: [goo]"), o)
		require.Equal(t, record.Passed, res.Task(t, "a").Verdict)
		require.InDelta(t, 0.85, *res.Trial(t, "a", 1).Score, 1e-9)
	}
}

// Undoing an edit once lost people's scores and asked the judge again.
func TestGradeUndoesAnEdit(t *testing.T) {
	t.Parallel()
	s := &runnertest.JudgeServer{}
	files := runnertest.Replace(t, judgedSuite(t, s), "trials_per_task: 5", "trials_per_task: 1",
		"  - {name: says,", "  - {name: person, type: human}\n  - {name: says,")
	r, id, _ := runnertest.FinishedRun(t, files)
	for _, score := range []float64{0.3, 0.6} {
		_, err := r.Amender().Review(t.Context(), id, regrade.Review{TaskID: "a", Trial: 1, Score: score, Comment: "so so"})
		require.NoError(t, err)
	}
	want := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Trial(t, "a", 1)
	require.InDelta(t, (0.8+0.6+1)/3, *want.Score, 1e-9)

	s.Requests.Store(0)
	without := runnertest.Replace(t, files, "  - {name: person, type: human}\n", "", "- name: judge", "- name: says2", "type: prompt", "type: text",
		files[strings.Index(files, "config: {rubric"):strings.Index(files, "  - {name: person")], "config: {contains: [fine]}\n")
	for range 2 {
		_, res := runnertest.GradeAgain(t, r, id, without, regrade.GradeOptions{})
		require.InDelta(t, 1, *res.Trial(t, "a", 1).Score, 1e-9)
		_, res = runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
		require.Empty(t, cmp.Diff(want, res.Trial(t, "a", 1), sameGraders))
	}
	require.Zero(t, s.Requests.Load())
}

// The recorded trials of an interrupted run are graded.
func TestGradeInterrupted(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.FinishedRun(t, runnertest.TwoTasks)
	lines := runnertest.JournalLines(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), []byte(strings.Join(texts(lines[:12]), "")), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "result.json")))
	g, res := runnertest.GradeAgain(t, r, id,
		runnertest.Replace(t, runnertest.TwoTasks, "contains: [all good]", "contains: [nothing]"),
		regrade.GradeOptions{})
	require.Equal(t, record.StatusInterrupted, g.Status)
	require.Equal(t, record.StatusInterrupted, res.Status)
	require.Equal(t, g.Graded, g.Summary.Trials.Failed)
	require.Equal(t, 4, g.Graded+g.Kept)
}

func texts(lines [][]byte) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = string(l)
	}
	return out
}

// A suite with faults that only an interpreter finds grades nothing.
func TestGradeUngradable(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	r, id, dir := runnertest.FinishedRun(t, runnertest.TwoTasks)
	own := len(runnertest.JournalLines(t, dir))
	suite := runnertest.Load(t, r,
		runnertest.Replace(t, runnertest.TwoTasks, "{type: text, name: says_good, config: {contains: [all good]}}",
			"{type: code, name: says_good, config: {assertions: ['1 +']}}"))
	_, err := r.Amender().Grade(t.Context(), id, suite, regrade.GradeOptions{})
	var ungradable *regrade.UngradableError
	require.ErrorAs(t, err, &ungradable)
	require.Equal(t, own, len(runnertest.JournalLines(t, dir)))
}

// A recorded workspace still knows which files the agent started with, including those of its setup.
func TestGradeCreatedFiles(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
name: created
config: {mock: {replies: [{match: x, output: done, files: [{path: new.txt, content: new}]}]}}
tasks:
  - id: a
    inputs: {prompt: x, files: [{path: given.txt, content: given}], setup: [echo made >made.txt]}
    graders: [{type: file, config: {created: true, must_exist: [new.txt], must_not_exist: [given.txt]}}]
`
	r, id, _ := runnertest.FinishedRun(t, suite)
	require.Equal(t, record.Passed, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Task(t, "a").Verdict)
	_, res := runnertest.GradeAgain(t, r, id, runnertest.Replace(t, suite, "[given.txt]}}]", "[given.txt, made.txt]}}]"), regrade.GradeOptions{})
	require.Equal(t, record.Passed, res.Task(t, "a").Verdict)
	_, res = runnertest.GradeAgain(t, r, id, runnertest.Replace(t, suite, "must_exist: [new.txt]", "must_exist: [made.txt]"), regrade.GradeOptions{})
	require.Contains(t, res.Trial(t, "a", 1).Graders[0].Feedback, "the agent created no file made.txt")
}
