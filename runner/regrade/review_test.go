package regrade_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// poems is a suite in which a person must score each trial that the code grader passes.
const poems = `
-- eval.yaml --
name: poems
config:
  trials_per_task: 3
  mock:
    replies:
      - {match: broken, error: the provider is down}
      - {match: limerick, output: I do not know.}
      - {match: '', output: An old silent pond.}
  retry_errors: 0
metrics:
  - {name: beauty, weight: 1, threshold: 0.5}
tasks:
  - id: haiku
    prompt: Write a haiku.
    graders:
      - {name: says_pond, type: text, config: {contains: [pond]}}
      - {name: beauty, type: human, config: {instructions: "Trial {{trial}}", threshold: 0.7}}
      - {name: second, type: human_calibration, config: {calibrate_grader: says_pond}}
  - id: limerick
    prompt: Write a limerick.
    graders:
      - {name: says_pond, type: text, config: {contains: [pond]}}
      - {name: beauty, type: human}
  - id: broken
    prompt: Write something broken.
    graders: [{name: beauty, type: human}]
  - id: code
    prompt: Write a haiku.
    graders: [{name: says_pond, type: text, config: {contains: [pond]}}]
`

func poemRun(t *testing.T) (r *runner.Runner, id, state string) {
	t.Helper()
	state = t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := runnertest.Start(t, r, poems, record.Request{})
	<-live.Done()
	return r, live.ID(), state
}

func TestReview(t *testing.T) {
	t.Parallel()
	r, id, _ := poemRun(t)
	before := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Equal(t, record.NeedsReview, before.Task(t, "haiku").Verdict)
	require.Equal(t, 1.0, *before.Trial(t, "haiku", 1).Score)
	require.Equal(t, 1, before.Summary.NeedsReview)
	require.Equal(t, 3, before.Summary.Trials.NeedsReview)
	require.Nil(t, before.Summary.Metrics[0].Value)
	require.Empty(t, before.Trial(t, "haiku", 1).Attempts, "the trial does not run again")
	newest, err := r.Amender().NewestPending("")
	require.NoError(t, err)
	require.Equal(t, id, newest)

	list, err := r.Amender().Pending(id)
	require.NoError(t, err)
	require.Len(t, list, 6, "a failed trial does not wait")
	require.Equal(t, "Trial 2", list[2].Instructions)
	all, err := r.Amender().Questions(id)
	require.NoError(t, err)
	require.Len(t, all, 9, "an ungraded trial asks nothing")

	review := func(trial int, score float64, pending int, want record.Verdict, mean float64) {
		t.Helper()
		done, err := r.Amender().Review(t.Context(), id,
			regrade.Review{TaskID: "haiku", Trial: trial, Grader: "beauty", Score: score, Comment: "c", Reviewer: "Ada"})
		require.NoError(t, err)
		if diff := cmp.Diff(&regrade.Reviewed{
			RunID: id, TaskID: "haiku", Trial: trial, Grader: "beauty", Verdict: want, Score: &mean,
			Pending: pending,
		},
			done); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	review(1, 1, 5, record.Passed, 1)
	review(2, 0.5, 4, record.Failed, 0.75)
	res := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Equal(t, record.Failed, res.Task(t, "haiku").Verdict, "the third score does not matter")
	review(2, 0.75, 4, record.Passed, 0.875)
	review(3, 0.75, 3, record.Passed, 0.875)
	for trial, score := range map[int]float64{1: 0, 2: 1, 3: 0.5} {
		done, err := r.Amender().Review(t.Context(), id, regrade.Review{TaskID: "haiku", Trial: trial, Grader: "second", Score: score})
		require.NoError(t, err)
		require.Equal(t, record.Passed, done.Verdict, "a calibration changes nothing")
	}
	res = runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Equal(t, record.Passed, res.Task(t, "haiku").Verdict)
	require.Equal(t, 2, res.Summary.Passed)
	require.InDelta(t, (1+0.75+0.75)/3, *res.Summary.Metrics[0].Value, 1e-9)
	require.Len(t, res.Summary.Calibrations, 1)
	c := res.Summary.Calibrations[0]
	require.Equal(t, "says_pond", c.Grader)
	require.Equal(t, 3, c.N)
	require.InDelta(t, 0.5, c.MeanAbsoluteDifference, 1e-9)
	require.InDelta(t, 2.0/3, c.Agreed, 1e-9)
	details := res.Trial(t, "haiku", 1).Graders[2].Review()
	require.Equal(t, 1.0, details.Comparison.Difference)
	newest, err = r.Amender().NewestPending("")
	require.NoError(t, err)
	require.Empty(t, newest)

	done, err := r.Amender().Review(t.Context(), id, regrade.Review{TaskID: "limerick", Trial: 1, Score: 1})
	require.NoError(t, err)
	require.Equal(t, record.Failed, done.Verdict, "the code grader failed it")
	require.Equal(t, 0.5, *done.Score)
	trial, err := r.Amender().Trial(id, "limerick", 1)
	require.NoError(t, err)
	require.Equal(t, 1.0, trial.Graders[1].Score)
	for _, missing := range []string{"limerick", "nothing"} {
		trial, err = r.Amender().Trial(id, missing, 9)
		require.NoError(t, err)
		require.Nil(t, trial)
	}
}

func TestInvalidReviews(t *testing.T) {
	t.Parallel()
	r, id, dir := poemRun(t)
	dir = filepath.Join(dir, "runs", id)
	lines := len(runnertest.JournalLines(t, dir))
	for want, v := range map[string]regrade.Review{
		`has no task "haikku" (did you mean "haiku"?)`:              {TaskID: "haikku", Trial: 1, Grader: "beauty"},
		`has no trial 4; it has 1 to 3`:                             {TaskID: "haiku", Trial: 4, Grader: "beauty"},
		`has no trial 0; it has 1 to 3`:                             {TaskID: "haiku", Grader: "beauty"},
		`several graders ask a person about trial 1`:                {TaskID: "haiku", Trial: 1},
		`"says_pond" has type text, which does not ask a person`:    {TaskID: "haiku", Trial: 1, Grader: "says_pond"},
		`no grader "x" asks a person about trial 2 of task "haiku"`: {TaskID: "haiku", Trial: 2, Grader: "x"},
		`was not graded, so there is nothing to review: error`:      {TaskID: "broken", Trial: 1, Grader: "beauty"},
		`no grader asks a person about trial 1 of task "code"`:      {TaskID: "code", Trial: 1},
		`from 0 to 1`: {TaskID: "haiku", Trial: 1, Grader: "beauty", Score: math.NaN()},
	} {
		_, err := r.Amender().Review(t.Context(), id, v)
		var fault *regrade.ReviewError
		require.ErrorAs(t, err, &fault)
		require.ErrorContains(t, err, want)
	}
	_, err := r.Amender().Review(t.Context(), "nope", regrade.Review{})
	require.ErrorIs(t, err, record.ErrRunNotFound)
	for _, ask := range []func(string) ([]regrade.Question, error){r.Amender().Questions, r.Amender().Pending} {
		_, err = ask("nope")
		require.ErrorIs(t, err, record.ErrRunNotFound)
	}
	_, err = r.Amender().Trial("nope", "haiku", 1)
	require.ErrorIs(t, err, record.ErrRunNotFound)
	require.Len(t, runnertest.JournalLines(t, dir), lines, "nothing was recorded")
}

// Reviewers of several processes can work concurrently, and no score is lost.
func TestReviewersAtOnce(t *testing.T) {
	t.Parallel()
	_, id, state := poemRun(t)
	var wg sync.WaitGroup
	for _, grader := range []string{"beauty", "second"} {
		for trial := 1; trial <= 3; trial++ {
			r, err := runner.New(runner.Options{StateDir: state})
			require.NoError(t, err)
			wg.Go(func() {
				v := regrade.Review{TaskID: "haiku", Trial: trial, Grader: grader, Score: 0.75, Reviewer: fmt.Sprint(trial)}
				_, err := r.Amender().Review(t.Context(), id, v)
				// On a slow machine others can take longer than the reviewer waits.
				for busy := new(record.BusyError); errors.As(err, &busy); {
					_, err = r.Amender().Review(t.Context(), id, v)
				}
				assert.NoError(t, err)
			})
		}
	}
	wg.Wait()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	res := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Equal(t, record.Passed, res.Task(t, "haiku").Verdict)
	require.Equal(t, 3, res.Summary.Calibrations[0].N)
	for i, trial := range res.Task(t, "haiku").Trials {
		for _, g := range trial.Graders[1:] {
			require.Equal(t, fmt.Sprint(i+1), g.Review().Reviewer)
		}
	}
}

// A review waits for a process that holds the record, and then returns an error that names it.
func TestReviewWhileBusy(t *testing.T) {
	t.Parallel()
	r, id, state := poemRun(t)
	other, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	v := regrade.Review{TaskID: "haiku", Trial: 1, Grader: "beauty", Score: 1}
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(context.Context, *regrade.Amendment) error {
		var busy *record.BusyError
		_, err := other.Amender().Review(t.Context(), id, v)
		require.ErrorAs(t, err, &busy)
		require.False(t, busy.Running)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = other.Amender().Review(ctx, id, v)
		require.ErrorIs(t, err, context.Canceled)
		return nil
	}))
	_, err = other.Amender().Review(t.Context(), id, v)
	require.NoError(t, err)

	live := runnertest.Start(t, r,
		"-- eval.yaml --\nname: slow\nconfig: {mock: {latency_ms: 600000}}\ntasks: [{id: a, prompt: x, graders: [{type: human}]}]\n",
		record.Request{})
	var busy *record.BusyError
	for _, r := range []*runner.Runner{r, other} {
		_, err := r.Amender().Review(t.Context(), live.ID(), regrade.Review{TaskID: "a", Trial: 1, Score: 1})
		require.ErrorAs(t, err, &busy)
		require.True(t, busy.Running)
		list, err := r.Amender().Pending(live.ID())
		require.NoError(t, err)
		require.Empty(t, list)
	}
}

// The ended trials of a run whose process died can be reviewed.
func TestReviewOfAnInterruptedRun(t *testing.T) {
	t.Parallel()
	r, id, state := poemRun(t)
	dir := filepath.Join(state, "runs", id)
	lines := runnertest.JournalLines(t, dir)
	kept := 0
	for i, line := range lines { // up to the second trial of the first task
		if bytes.Contains(line, []byte(`"type":"trial_complete"`)) && bytes.Contains(line, []byte(`"trialNum":2`)) {
			kept = i + 1
			break
		}
	}
	require.NotZero(t, kept)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), append(bytes.Join(lines[:kept], nil), lines[kept][:5]...), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "result.json")))
	newest, err := r.Amender().NewestPending("")
	require.NoError(t, err)
	require.Equal(t, id, newest)
	v := regrade.Review{TaskID: "haiku", Trial: 3, Grader: "beauty", Score: 1}
	_, err = r.Amender().Review(t.Context(), id, v)
	require.ErrorContains(t, err, "trial 3 of task \"haiku\" had not ended")
	v.Trial = 2
	done, err := r.Amender().Review(t.Context(), id, v)
	require.NoError(t, err)
	require.Equal(t, record.Passed, done.Verdict)
	require.Equal(t, 3, done.Pending)
	h := runnertest.Reopened(t, r, id)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, p.Status)
	require.Equal(t, 1, p.Trials.Passed)
	require.Equal(t, 1, p.Trials.NeedsReview)
}

// If a reviewer's process is killed, the run is in the state before or after the review, and the
// next review finds everything that was recorded.
func TestReviewCutShort(t *testing.T) {
	t.Parallel()
	r, id, state := poemRun(t)
	dir := filepath.Join(state, "runs", id)
	own := len(runnertest.JournalLines(t, dir))
	old, err := os.ReadFile(filepath.Join(dir, "result.json"))
	require.NoError(t, err)
	_, err = r.Amender().Review(t.Context(), id, regrade.Review{TaskID: "haiku", Trial: 1, Grader: "beauty", Score: 1, Comment: "first"})
	require.NoError(t, err)
	lines := runnertest.JournalLines(t, dir)
	for cut := own; cut <= len(lines); cut++ {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), bytes.Join(lines[:cut], nil), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "result.json"), old, 0o600))
		_, err = r.Amender().Review(t.Context(), id, regrade.Review{TaskID: "haiku", Trial: 2, Grader: "beauty", Score: 0, Comment: "second"})
		require.NoError(t, err)
		res := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
		want := record.Passed
		if cut == own {
			want = record.NeedsReview // it was cut off before anything was recorded
		}
		require.Equal(t, want, res.Trial(t, "haiku", 1).Verdict, "cut after %d of %d", cut, len(lines))
		require.Equal(t, record.Failed, res.Trial(t, "haiku", 2).Verdict)
	}
}

// The files that a trial left in its workspace can be read.
func TestFileOfATrial(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: files
config:
  mock: {replies: [{output: done, files: [{path: a/b.txt, content: deep}, {path: empty, content: ""}]}]}
tasks: [{id: x, prompt: x, graders: [{type: human}, {type: file, config: {must_exist: [a/b.txt]}}]}]
`, record.Request{})
	<-live.Done()
	trial, err := r.Amender().Trial(live.ID(), "x", 1)
	require.NoError(t, err)
	for path, want := range map[string]string{"a/b.txt": "deep", "empty": ""} {
		b, err := r.Amender().File(live.ID(), trial, path)
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	for path, want := range map[string]string{"a": "a: not a file", "c": "c: the trial left no such file", "../a": "no such file"} {
		_, err := r.Amender().File(live.ID(), trial, path)
		require.ErrorContains(t, err, want)
	}
	_, err = r.Amender().File("nope", trial, "empty")
	require.ErrorIs(t, err, record.ErrRunNotFound)
	_, err = r.Amender().File(live.ID(), &record.Trial{}, "empty")
	require.ErrorContains(t, err, "no such file")
}
