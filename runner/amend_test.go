package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/provider"
)

// recordedRun is a run of twoTasks that is over: a passed twice, b failed its
// first trial and passed its second.
func recordedRun(t *testing.T) (r *runner.Runner, id, dir string) {
	t.Helper()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := start(t, r, twoTasks, runner.Request{})
	<-live.Done()
	return r, live.ID(), filepath.Join(state, "runs", live.ID())
}

// flip gives a trial the other verdict.
func flip(t *testing.T, r *runner.Runner, id string, task, num int) {
	t.Helper()
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *runner.Amendment) error {
		return flipIn(a, task, num)
	}))
}

func flipIn(a *runner.Amendment, task, num int) error {
	res, err := a.Trial(task, num)
	if err != nil {
		return err
	}
	was, score := res.Verdict, 1.0
	if res.Verdict = runner.Passed; was == runner.Passed {
		res.Verdict, score = runner.Failed, 0
	}
	res.Score = &score
	res.Graders[0].Passed, res.Graders[0].Score = was != runner.Passed, score
	return a.Replace(task, was, res)
}

func reopened(t *testing.T, r *runner.Runner, id string) runner.Handle {
	t.Helper()
	h, err := r.Catalog().Run(id)
	require.NoError(t, err)
	return h
}

// An amendment changes all that is told of a run, and none of its events.
func TestAmend(t *testing.T) {
	t.Parallel()
	r, id, dir := recordedRun(t)
	before, events := resultOf(t, reopened(t, r, id)), follow(t, reopened(t, r, id), 1)
	require.Equal(t, runner.Failed, before.Tasks[1].Verdict)

	flip(t, r, id, 1, 1)
	h := reopened(t, r, id)
	after := resultOf(t, h)
	require.Equal(t, runner.StatusCompleted, after.Status)
	require.Equal(t, runner.Passed, after.Tasks[1].Trials[0].Verdict)
	require.Equal(t, runner.Passed, after.Tasks[1].Verdict)
	require.Empty(t, after.Tasks[1].Reasons)
	require.Equal(t, 2, after.Summary.Passed)
	require.Equal(t, 4, after.Summary.Trials.Passed)
	require.Equal(t, before.Summary.DurationMS, after.Summary.DurationMS)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, 4, p.Trials.Passed)
	require.NotNil(t, p.AmendedAt)
	list, err := r.Catalog().List(0)
	require.NoError(t, err)
	require.Equal(t, 2, list[0].Tasks.Passed)
	results, err := h.Results()
	require.NoError(t, err)
	require.Equal(t, runner.Passed, results[1].Verdict)

	if diff := cmp.Diff(events, follow(t, h, 1)); diff != "" {
		t.Errorf("the run's events are others (-before +after):\n%s", diff)
	}
	last := events[len(events)-1]
	require.Equal(t, runner.End, last.Type)
	require.Empty(t, follow(t, h, last.Seq+1))

	flip(t, r, id, 1, 1)
	if diff := cmp.Diff(before, resultOf(t, reopened(t, r, id))); diff != "" {
		t.Errorf("there and back (-before +after):\n%s", diff)
	}
	for i, line := range journalLines(t, dir) {
		var e runner.Event
		require.NoError(t, json.Unmarshal(line, &e))
		require.EqualValues(t, i+1, e.Seq)
	}
}

func journalLines(t *testing.T, dir string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(b, []byte("\n")))
	lines := bytes.SplitAfter(b, []byte("\n"))
	return lines[:len(lines)-1] // the last is what follows the last newline
}

// Criteria that an amendment sets hold for later ones.
func TestAmendCriteria(t *testing.T) {
	t.Parallel()
	r, id, _ := recordedRun(t)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *runner.Amendment) error {
		c := a.Criteria()
		require.Equal(t, []float64{1, 1}, c.Thresholds)
		a.SetCriteria(runner.Criteria{Thresholds: []float64{1, 0.5}, Metrics: []runner.MetricRef{{Name: "says_good", Weight: 1, Threshold: 0.9}}})
		return nil
	}))
	check := func(mean float64) {
		res := resultOf(t, reopened(t, r, id))
		require.Equal(t, runner.Passed, res.Tasks[1].Verdict)
		require.InDelta(t, 0.5, *res.Tasks[1].PassThreshold, 0)
		require.InDelta(t, mean, *res.Summary.Metrics[0].Value, 1e-9)
	}
	check(0.75)
	flip(t, r, id, 1, 1)
	flip(t, r, id, 1, 2)
	check(0.75)
}

// Wherever an amendment is cut short, the run is as before or as after it, and
// the next amendment takes up what there was.
func TestAmendCutShort(t *testing.T) {
	t.Parallel()
	r, id, dir := recordedRun(t)
	before := resultOf(t, reopened(t, r, id))
	own := len(journalLines(t, dir))
	oldResult, err := os.ReadFile(filepath.Join(dir, "result.json"))
	require.NoError(t, err)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *runner.Amendment) error {
		return errors.Join(flipIn(a, 1, 1), flipIn(a, 0, 2), flipIn(a, 0, 1))
	}))
	after := resultOf(t, reopened(t, r, id))
	lines := journalLines(t, dir)
	require.Equal(t, own+3+2+1, len(lines))

	for cut := own; cut <= len(lines); cut++ {
		for _, torn := range []bool{false, true} {
			for _, withResult := range []bool{false, true} {
				state := t.TempDir()
				copied := filepath.Join(state, "runs", id)
				require.NoError(t, os.MkdirAll(copied, 0o700))
				journal := bytes.Join(lines[:cut], nil)
				if torn && cut < len(lines) {
					journal = append(journal, lines[cut][:len(lines[cut])/2]...)
				}
				asked, err := os.ReadFile(filepath.Join(dir, "run.json"))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(copied, "run.json"), asked, 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(copied, "journal.jsonl"), journal, 0o600))
				want := before
				if cut == len(lines) {
					want = after
				}
				if withResult {
					require.NoError(t, os.WriteFile(filepath.Join(copied, "result.json"), oldResult, 0o600))
					want = before // the old result stands until there is a new one
				}
				r, err := runner.New(runner.Options{StateDir: state})
				require.NoError(t, err)
				if diff := cmp.Diff(want, resultOf(t, reopened(t, r, id))); diff != "" {
					t.Errorf("cut after line %d, torn %t, result %t (-want +got):\n%s", cut, torn, withResult, diff)
				}
				// An amendment that changes nothing takes up what was left; what was done
				// once more is the same.
				flips := 0
				require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *runner.Amendment) error {
					for _, at := range [][2]int{{1, 1}, {0, 2}, {0, 1}} {
						res, err := a.Trial(at[0], at[1])
						require.NoError(t, err)
						if res.Verdict == before.Tasks[at[0]].Trials[at[1]-1].Verdict {
							flips++
							require.NoError(t, flipIn(a, at[0], at[1]))
						}
					}
					return nil
				}))
				require.Equal(t, max(0, own+3-cut), flips, "what was recorded is not lost")
				if diff := cmp.Diff(after, resultOf(t, reopened(t, r, id))); diff != "" {
					t.Errorf("amended after line %d, torn %t (-want +got):\n%s", cut, torn, diff)
				}
			}
		}
	}
}

// What failed changes nothing if nothing was replaced, else that much.
func TestAmendFails(t *testing.T) {
	t.Parallel()
	r, id, dir := recordedRun(t)
	own := len(journalLines(t, dir))
	broken := errors.New("broken")
	require.ErrorIs(t, r.Amender().Amend(t.Context(), id, func(context.Context, *runner.Amendment) error { return broken }), broken)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(context.Context, *runner.Amendment) error { return nil }))
	require.Equal(t, own, len(journalLines(t, dir)))
	require.ErrorIs(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *runner.Amendment) error {
		none, err := a.Trial(0, 9)
		require.NoError(t, err)
		require.Nil(t, none)
		none, err = a.Trial(7, 1)
		require.NoError(t, err)
		require.Nil(t, none)
		return errors.Join(flipIn(a, 1, 1), broken)
	}), broken)
	require.Equal(t, 2, resultOf(t, reopened(t, r, id)).Summary.Passed)
	require.ErrorIs(t, r.Amender().Amend(t.Context(), "nope", nil), runner.ErrRunNotFound)
}

// A run that goes on, or that somebody else amends, is not amended.
func TestAmendBusy(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	other, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := start(t, r, "-- eval.yaml --\nname: slow\nconfig: {mock: {latency_ms: 600000}}\ntasks: [{id: a, prompt: x}]\n", runner.Request{})
	nothing := func(context.Context, *runner.Amendment) error { return nil }
	var busy *runner.BusyError
	for _, r := range []*runner.Runner{r, other} {
		require.ErrorAs(t, r.Amender().Amend(t.Context(), live.ID(), nothing), &busy)
		require.Equal(t, "run "+live.ID()+" still goes on", busy.Error())
	}
	live.Cancel()
	follow(t, live, 1)
	require.NoError(t, r.Amender().Amend(t.Context(), live.ID(), func(context.Context, *runner.Amendment) error {
		for _, r := range []*runner.Runner{r, other} {
			require.ErrorAs(t, r.Amender().Amend(t.Context(), live.ID(), nothing), &busy)
			require.Contains(t, busy.Error(), "is being graded or reviewed already")
		}
		p, err := reopened(t, other, live.ID()).Progress()
		require.NoError(t, err)
		require.Equal(t, runner.StatusCancelled, p.Status)
		return nil
	}))
	require.NoError(t, r.Close(t.Context()))
	require.ErrorIs(t, r.Amender().Amend(t.Context(), live.ID(), nothing), runner.ErrClosed)
}

// Closing the runner ends an amendment and waits for it.
func TestAmendClose(t *testing.T) {
	t.Parallel()
	r, id, _ := recordedRun(t)
	begun, over := make(chan struct{}), make(chan error)
	go func() {
		over <- r.Amender().Amend(t.Context(), id, func(ctx context.Context, a *runner.Amendment) error {
			close(begun)
			<-ctx.Done()
			return errors.Join(flipIn(a, 1, 1), context.Cause(ctx))
		})
	}()
	<-begun
	closed := make(chan error)
	go func() { closed <- r.Close(t.Context()) }()
	require.ErrorIs(t, <-over, runner.ErrClosed)
	require.NoError(t, <-closed)
	require.Equal(t, 2, resultOf(t, reopened(t, r, id)).Summary.Passed)
}

// A run that was interrupted stays so, also while it is amended; tasks that had
// not ended have no result.
func TestAmendInterrupted(t *testing.T) {
	t.Parallel()
	r, id, dir := recordedRun(t)
	lines := journalLines(t, dir)
	kept := bytes.Join(lines[:12], nil) // a has ended, a trial of b, too
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), append(kept, lines[12][:9]...), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "result.json")))
	before := resultOf(t, reopened(t, r, id))
	require.Len(t, before.Tasks[1].Trials, 1)
	events := follow(t, reopened(t, r, id), 1)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *runner.Amendment) error {
		require.NoError(t, flipIn(a, 0, 1))
		require.NoError(t, flipIn(a, 1, 1))
		p, err := reopened(t, r, id).Progress()
		require.NoError(t, err)
		require.Equal(t, runner.StatusInterrupted, p.Status)
		return nil
	}))
	h := reopened(t, r, id)
	res := resultOf(t, h)
	require.Equal(t, runner.StatusInterrupted, res.Status)
	require.Equal(t, runner.Failed, res.Tasks[0].Verdict)
	require.Equal(t, runner.Passed, res.Tasks[1].Trials[0].Verdict)
	require.Empty(t, res.Tasks[1].Verdict, "it has not ended")
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, p.Status)
	require.Equal(t, 4, p.Trials.Total)
	require.Equal(t, 2, p.Trials.Passed)
	require.Equal(t, 1, p.Trials.Failed)
	if diff := cmp.Diff(events, follow(t, h, 1)); diff != "" {
		t.Errorf("the run's events are others (-before +after):\n%s", diff)
	}
}

// The result of a run whose journal could not take the end keeps it.
func TestAmendEndThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	r, id, dir := recordedRun(t)
	lines := journalLines(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), bytes.Join(lines[:len(lines)-1], nil), 0o600))
	flip(t, r, id, 1, 1)
	h := reopened(t, r, id)
	require.Equal(t, runner.StatusCompleted, resultOf(t, h).Status)
	require.Equal(t, 2, resultOf(t, h).Summary.Passed)
	events := follow(t, h, 1)
	require.Equal(t, runner.End, events[len(events)-1].Type)
	require.EqualValues(t, len(lines), events[len(events)-1].Seq)
}

// Secrets are taken out of what an amendment records.
func TestAmendRedacts(t *testing.T) {
	t.Parallel()
	r, id, dir := recordedRun(t)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *runner.Amendment) error {
		secrets := new(provider.Redactor)
		secrets.Add("swordfish")
		a.Redact(secrets)
		res, err := a.Trial(1, 1)
		require.NoError(t, err)
		res.Graders[0].Feedback = "it says swordfish"
		return a.Replace(1, res.Verdict, res)
	}))
	require.NotContains(t, string(bytes.Join(journalLines(t, dir), nil)), "swordfish")
	require.Equal(t, "it says [redacted]", resultOf(t, reopened(t, r, id)).Tasks[1].Trials[0].Graders[0].Feedback)
}
