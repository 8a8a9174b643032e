package regrade_test

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
	"waza/runner/internal/secrets"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// An amendment changes every result of a run, and none of its events.
func TestAmend(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	before, events := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)), runnertest.Follow(t, runnertest.Reopened(t, r, id), 1)
	require.Equal(t, record.Failed, before.Task(t, "b").Verdict)

	runnertest.Flip(t, r, id, 1, 1)
	h := runnertest.Reopened(t, r, id)
	after := runnertest.ResultOf(t, h)
	require.Equal(t, record.StatusCompleted, after.Status)
	require.Equal(t, record.Passed, after.Trial(t, "b", 1).Verdict)
	require.Equal(t, record.Passed, after.Task(t, "b").Verdict)
	require.Empty(t, after.Task(t, "b").Reasons)
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
	require.Equal(t, record.Passed, results[1].Verdict)

	if diff := cmp.Diff(events, runnertest.Follow(t, h, 1)); diff != "" {
		t.Errorf("the run's events changed (-before +after):\n%s", diff)
	}
	last := events[len(events)-1]
	require.Equal(t, record.End, last.Type)
	require.Empty(t, runnertest.Follow(t, h, last.Seq+1))

	runnertest.Flip(t, r, id, 1, 1)
	if diff := cmp.Diff(before, runnertest.ResultOf(t, runnertest.Reopened(t, r, id))); diff != "" {
		t.Errorf("there and back (-before +after):\n%s", diff)
	}
	for i, line := range runnertest.JournalLines(t, dir) {
		var e record.Event
		require.NoError(t, json.Unmarshal(line, &e))
		require.EqualValues(t, i+1, e.Seq)
	}
}

// Criteria that an amendment sets apply to later amendments.
func TestAmendCriteria(t *testing.T) {
	t.Parallel()
	r, id, _ := runnertest.RecordedRun(t)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
		c := a.Criteria()
		require.Equal(t, []float64{1, 1}, c.Thresholds)
		a.SetCriteria(record.Criteria{Thresholds: []float64{1, 0.5}, Metrics: []record.MetricRef{{Name: "says_good", Weight: 1, Threshold: 0.9}}})
		return nil
	}))
	check := func(mean float64) {
		res := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
		require.Equal(t, record.Passed, res.Task(t, "b").Verdict)
		require.InDelta(t, 0.5, *res.Task(t, "b").PassThreshold, 0)
		require.InDelta(t, mean, *res.Summary.Metrics[0].Value, 1e-9)
	}
	check(0.75)
	runnertest.Flip(t, r, id, 1, 1)
	runnertest.Flip(t, r, id, 1, 2)
	check(0.75)
}

// Wherever an amendment is cut short, the run is in the state before or after it, and the next
// amendment completes it.
func TestAmendCutShort(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	before := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	own := len(runnertest.JournalLines(t, dir))
	oldResult, err := os.ReadFile(filepath.Join(dir, "result.json"))
	require.NoError(t, err)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
		return errors.Join(runnertest.FlipIn(a, 1, 1), runnertest.FlipIn(a, 0, 2), runnertest.FlipIn(a, 0, 1))
	}))
	after := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	lines := runnertest.JournalLines(t, dir)
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
				key, err := os.ReadFile(filepath.Join(dir, "..", "..", "record.key"))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(state, "record.key"), key, 0o600))
				if withResult {
					require.NoError(t, os.WriteFile(filepath.Join(copied, "result.json"), oldResult, 0o600))
				}
				r, err := runner.New(runner.Options{StateDir: state})
				require.NoError(t, err)
				if diff := cmp.Diff(want, runnertest.ResultOf(t, runnertest.Reopened(t, r, id))); diff != "" {
					t.Errorf("cut after line %d, torn %t, result %t (-want +got):\n%s", cut, torn, withResult, diff)
				}
				// An amendment without changes makes the remaining changes effective; doing so
				// twice has the same result.
				flips := 0
				require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
					for _, at := range [][2]int{{1, 1}, {0, 2}, {0, 1}} {
						res, err := a.Trial(at[0], at[1])
						require.NoError(t, err)
						if res.Verdict == before.Tasks[at[0]].Trials[at[1]-1].Verdict {
							flips++
							require.NoError(t, runnertest.FlipIn(a, at[0], at[1]))
						}
					}
					return nil
				}))
				require.Equal(t, max(0, own+3-cut), flips, "recorded changes are not lost")
				if diff := cmp.Diff(after, runnertest.ResultOf(t, runnertest.Reopened(t, r, id))); diff != "" {
					t.Errorf("amended after line %d, torn %t (-want +got):\n%s", cut, torn, diff)
				}
			}
		}
	}
}

// A failed amendment keeps the changes that it made before, if any.
func TestAmendFails(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	own := len(runnertest.JournalLines(t, dir))
	broken := errors.New("broken")
	require.ErrorIs(t, r.Amender().Amend(t.Context(), id, func(context.Context, *regrade.Amendment) error { return broken }), broken)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(context.Context, *regrade.Amendment) error { return nil }))
	require.Equal(t, own, len(runnertest.JournalLines(t, dir)))
	require.ErrorIs(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
		none, err := a.Trial(0, 9)
		require.NoError(t, err)
		require.Nil(t, none)
		none, err = a.Trial(7, 1)
		require.NoError(t, err)
		require.Nil(t, none)
		return errors.Join(runnertest.FlipIn(a, 1, 1), broken)
	}), broken)
	require.Equal(t, 2, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Summary.Passed)
	require.ErrorIs(t, r.Amender().Amend(t.Context(), "nope", nil), record.ErrRunNotFound)
}

// A run that is active, or that somebody else amends, cannot be amended.
func TestAmendBusy(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	other, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := runnertest.Start(t, r,
		"-- eval.yaml --\nname: slow\nconfig: {mock: {latency_ms: 600000}}\ntasks: [{id: a, prompt: x}]\n",
		record.Request{})
	nothing := func(context.Context, *regrade.Amendment) error { return nil }
	var busy *record.BusyError
	for _, r := range []*runner.Runner{r, other} {
		require.ErrorAs(t, r.Amender().Amend(t.Context(), live.ID(), nothing), &busy)
		require.Equal(t, "run "+live.ID()+" is still running", busy.Error())
	}
	live.Cancel()
	runnertest.Follow(t, live, 1)
	require.NoError(t, r.Amender().Amend(t.Context(), live.ID(), func(context.Context, *regrade.Amendment) error {
		for _, r := range []*runner.Runner{r, other} {
			require.ErrorAs(t, r.Amender().Amend(t.Context(), live.ID(), nothing), &busy)
			require.Contains(t, busy.Error(), "is already being graded or reviewed")
		}
		p, err := runnertest.Reopened(t, other, live.ID()).Progress()
		require.NoError(t, err)
		require.Equal(t, record.StatusCancelled, p.Status)
		return nil
	}))
	require.NoError(t, r.Close(t.Context()))
	require.ErrorIs(t, r.Amender().Amend(t.Context(), live.ID(), nothing), runner.ErrClosed)
}

// Closing the runner ends an amendment and waits for it.
func TestAmendClose(t *testing.T) {
	t.Parallel()
	r, id, _ := runnertest.RecordedRun(t)
	started, over := make(chan struct{}), make(chan error)
	go func() {
		over <- r.Amender().Amend(t.Context(), id, func(ctx context.Context, a *regrade.Amendment) error {
			close(started)
			<-ctx.Done()
			return errors.Join(runnertest.FlipIn(a, 1, 1), context.Cause(ctx))
		})
	}()
	<-started
	closed := make(chan error)
	go func() { closed <- r.Close(t.Context()) }()
	require.ErrorIs(t, <-over, runner.ErrClosed)
	require.NoError(t, <-closed)
	require.Equal(t, 2, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Summary.Passed)
}

// An interrupted run stays interrupted, even during an amendment. Tasks that had not ended have
// no result.
func TestAmendInterrupted(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	lines := runnertest.JournalLines(t, dir)
	kept := bytes.Join(lines[:12], nil) // task a and one trial of b have ended
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), append(kept, lines[12][:9]...), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "result.json")))
	before := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Len(t, before.Task(t, "b").Trials, 1)
	events := runnertest.Follow(t, runnertest.Reopened(t, r, id), 1)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
		require.NoError(t, runnertest.FlipIn(a, 0, 1))
		require.NoError(t, runnertest.FlipIn(a, 1, 1))
		p, err := runnertest.Reopened(t, r, id).Progress()
		require.NoError(t, err)
		require.Equal(t, record.StatusInterrupted, p.Status)
		return nil
	}))
	h := runnertest.Reopened(t, r, id)
	res := runnertest.ResultOf(t, h)
	require.Equal(t, record.StatusInterrupted, res.Status)
	require.Equal(t, record.Failed, res.Task(t, "a").Verdict)
	require.Equal(t, record.Passed, res.Trial(t, "b", 1).Verdict)
	require.Empty(t, res.Task(t, "b").Verdict, "it has not ended")
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, p.Status)
	require.Equal(t, 4, p.Trials.Total)
	require.Equal(t, 2, p.Trials.Passed)
	require.Equal(t, 1, p.Trials.Failed)
	if diff := cmp.Diff(events, runnertest.Follow(t, h, 1)); diff != "" {
		t.Errorf("the run's events changed (-before +after):\n%s", diff)
	}
}

// If the journal could not record the end of a run, the run's result keeps it.
func TestAmendEndThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	lines := runnertest.JournalLines(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), bytes.Join(lines[:len(lines)-1], nil), 0o600))
	runnertest.Flip(t, r, id, 1, 1)
	h := runnertest.Reopened(t, r, id)
	require.Equal(t, record.StatusCompleted, runnertest.ResultOf(t, h).Status)
	require.Equal(t, 2, runnertest.ResultOf(t, h).Summary.Passed)
	events := runnertest.Follow(t, h, 1)
	require.Equal(t, record.End, events[len(events)-1].Type)
	require.EqualValues(t, len(lines), events[len(events)-1].Seq)
}

// An amendment removes secrets from what it records.
func TestAmendRedacts(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
		secrets := new(secrets.Redactor)
		secrets.Add("swordfish")
		a.Redact(secrets)
		res, err := a.Trial(1, 1)
		require.NoError(t, err)
		res.Graders[0].Feedback = "it says swordfish"
		return a.Replace(1, res.Verdict, res)
	}))
	require.NotContains(t, string(bytes.Join(runnertest.JournalLines(t, dir), nil)), "swordfish")
	require.Equal(t, "it says [redacted]", runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Trial(t, "b", 1).Graders[0].Feedback)
}
