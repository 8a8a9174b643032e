package runner_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
)

// A live run and a reader of its journal sum up the same events to the same summary, however far
// the run is. They differ only in the order in which they see the trials.
func TestOneFoldForLiveAndRecordedRuns(t *testing.T) {
	t.Parallel()
	_, whole, id := wholeRun(t)
	r, err := runner.New(runner.Options{StateDir: whole.put(t, id)})
	require.NoError(t, err)
	h, err := r.Catalog().Run(id)
	require.NoError(t, err)
	files, st, err := replay.StateOf(h)
	require.NoError(t, err)
	rec := h.Record()
	sums := tally.NewRun(rec)
	live := replay.NewFold(replay.NewState(rec), sums)
	var lines [][]byte
	var offs []int64
	j, err := files.Journal()
	require.NoError(t, err)
	defer j.Close()
	trials, err := replay.OpenTrials(files)
	require.NoError(t, err)
	defer trials.Close()
	for {
		line, _, off, err := j.NextUndamaged()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		lines, offs = append(lines, slices.Clone(line)), append(offs, off)

		var l replay.Lifter
		e, at, err := l.Lift(lines[len(lines)-1])
		require.NoError(t, err)
		if at.Size > 0 {
			at.Off += off
			e.Trial = new(record.Trial)
			require.NoError(t, trials.Decode(at, e.Trial))
		}
		live.Apply([]*record.Event{e}, []replay.Place{at})
		var now *record.Summary
		live.View(func(st *replay.State) { now = sums.Summary(st, rec.Metrics) })
		require.Empty(t, cmp.Diff(now, summaryOf(t, h, files, lines, offs), cmpopts.EquateApprox(0, 1e-12)), "after %d events", len(lines))
	}
	require.Greater(t, len(lines), 2*30, "trials of five tasks and their baselines")
	var last *record.Summary
	live.View(func(st *replay.State) { last = sums.Summary(st, rec.Metrics) })
	last.DurationMS = st.Progress.Summary.DurationMS
	require.Empty(t, cmp.Diff(st.Progress.Summary, last, cmpopts.EquateApprox(0, 1e-12)))
}

// summaryOf computes a summary from the first lines of a journal.
func summaryOf(t *testing.T, h record.Handle, files *journal.Run, lines [][]byte, offs []int64) *record.Summary {
	t.Helper()
	st, sums := replay.NewState(h.Record()), tally.NewRun(h.Record())
	var l replay.Lifter
	for i, line := range lines {
		e, at, err := l.Lift(line)
		require.NoError(t, err)
		at.Off += offs[i]
		st.Apply(e, at)
	}
	require.NoError(t, replay.VisitLean(files, st, func(task int, res *replay.LeanTrial) error {
		sums.AddTrial(task, &res.Trial)
		return nil
	}))
	return sums.Summary(st, h.Record().Metrics)
}
