package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
	"waza/runner/record"
)

// longRun records a run of two tasks, whose trials take several parts of the journal and are not
// recorded in their order.
func longRun(t *testing.T, store *journal.Store) *RecordedRun {
	t.Helper()
	const trials = 1500
	rec := &record.Run{RunID: "r", Tasks: []record.TaskRef{{ID: "a", First: 1, Trials: trials}, {ID: "b", First: 1, Trials: trials}}}
	b, err := json.Marshal(rec)
	require.NoError(t, err)
	log, err := store.Create("r", b)
	require.NoError(t, err)
	for i := range 2 * trials {
		task, num := i/trials, i%trials^7+1
		if num > trials {
			num = i%trials + 1
		}
		res := &record.Trial{
			TaskID: rec.Tasks[task].ID, TrialNum: num, Verdict: record.Passed, Output: strings.Repeat("x", 300),
			Transcript: []record.Entry{{Type: record.EntryMessage, Text: "hello"}}, Graders: []record.Grade{{Name: "g"}},
		}
		e := &record.Event{
			Seq: log.Number(), Time: time.Unix(log.Number(), 0).UTC(), Type: record.TrialComplete, TaskID: res.TaskID,
			TrialNum: num, Verdict: res.Verdict, Trial: res,
		}
		line, _, err := new(Encoder).Line(e, nil)
		require.NoError(t, err)
		log.Append(line)
	}
	require.NoError(t, log.Flush())
	require.NoError(t, log.Close())
	h, err := Open(store, "r")
	require.NoError(t, err)
	return h
}

// The trials of a long run are visited in the order of its record. Several goroutines decode them.
func TestVisitLongRun(t *testing.T) {
	t.Parallel()
	h := longRun(t, journal.NewStore(t.TempDir()))
	st, err := h.State()
	require.NoError(t, err)
	var want []string
	for _, task := range h.Rec.Tasks {
		for i := range task.Trials {
			want = append(want, fmt.Sprint(task.ID, i+1))
		}
	}
	var seen []string
	see := func(task int, t *record.Trial) error {
		seen = append(seen, fmt.Sprint(h.Rec.Tasks[task].ID, t.TrialNum))
		return nil
	}
	for name, visit := range map[string]func() error{
		"trials": func() error {
			return VisitTrials(h.Run, st, func(task int, trial *record.Trial) error {
				require.Len(t, trial.Transcript, 1)
				return see(task, trial)
			})
		},
		"outcomes": func() error {
			return VisitOutcomes(h.Run, st, func(task int, trial *record.Trial, more int64) error {
				require.Len(t, trial.Output, 300)
				require.Zero(t, more)
				require.Empty(t, trial.Transcript)
				return see(task, trial)
			})
		},
		"lean": func() error {
			return VisitLean(h.Run, st, func(task int, lean *LeanTrial) error {
				require.Len(t, lean.Graders, 1)
				return see(task, &lean.Trial)
			})
		},
		"numbers": func() error {
			return VisitNumbers(h.Run, st, func(task int, lean *LeanTrial) error { return see(task, &lean.Trial) })
		},
	} {
		seen = nil
		require.NoError(t, visit(), name)
		require.Equal(t, want, seen, name)
	}
	var chosen []string
	require.NoError(t, h.Chosen(func(task, num int) bool { return task == 1 && num%700 == 3 }, func(task int, trial *record.Trial) error {
		chosen = append(chosen, fmt.Sprint(h.Rec.Tasks[task].ID, trial.TrialNum))
		return nil
	}))
	require.Equal(t, []string{"b3", "b703", "b1403"}, chosen)
	var result bytes.Buffer
	require.NoError(t, WriteResult(&result, h.Run, h.Rec, st, ResultOptions{}))
	var tasks struct {
		Tasks []struct{ Trials []record.Trial }
	}
	require.NoError(t, json.Unmarshal(result.Bytes(), &tasks))
	require.Len(t, tasks.Tasks, 2)
	seen = nil
	for i := range tasks.Tasks {
		for j := range tasks.Tasks[i].Trials {
			require.NoError(t, see(i, &tasks.Tasks[i].Trials[j]))
		}
	}
	require.Equal(t, want, seen)
}

// An error of the visitor ends a visit, and so does a trial that another program has changed; the
// trials before it are visited. Workers do not outlive the visit, which the detector of leaks of this
// package checks.
func TestVisitEnds(t *testing.T) {
	t.Parallel()
	h := longRun(t, journal.NewStore(t.TempDir()))
	st, err := h.State()
	require.NoError(t, err)
	enough := errors.New("enough")
	for _, most := range []int{1, 700, 2999} {
		n := 0
		require.Equal(t, enough, VisitTrials(h.Run, st, func(int, *record.Trial) error {
			if n++; n == most {
				return enough
			}
			return nil
		}))
		require.Equal(t, most, n)
	}
	const changed = 2000
	f, err := os.OpenFile(h.Run.JournalPath(), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("?"), st.Tasks[1].Trials[changed-1500].Off+50)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	n := 0
	err = VisitTrials(h.Run, st, func(int, *record.Trial) error {
		n++
		return nil
	})
	require.ErrorIs(t, err, errChangedSince)
	require.ErrorContains(t, err, "task b: ")
	require.Equal(t, changed, n)
	require.NoError(t, os.Truncate(h.Run.JournalPath(), st.Tasks[1].Trials[100].Off))
	require.Error(t, VisitLean(h.Run, st, func(int, *LeanTrial) error { return nil }))
}

// The numbers of a trial are those of the whole trial, whatever record they come from.
func TestLiftNumbers(t *testing.T) {
	t.Parallel()
	score := 0.5
	judged := []record.Grade{{Name: "a", Type: "prompt", Details: map[string]any{"usage": map[string]any{"inputTokens": 3.}}}}
	plain := []record.Grade{{Name: "a", Type: "text", Feedback: `it says "usage": nothing`}}
	for name, res := range map[string]*record.Trial{
		"plain":      {Graders: plain},
		"spent":      {Spent: &record.Ledger{Agent: &record.Usage{InputTokens: 5}}, Usage: &record.Usage{InputTokens: 4}, Graders: judged},
		"older":      {Usage: &record.Usage{InputTokens: 4}, Graders: judged, Attempts: []record.Attempt{{Usage: &record.Usage{InputTokens: 2}}}},
		"old judges": {Graders: plain, Attempts: []record.Attempt{{Graders: judged}}},
		"reused":     {Cached: &record.CachedFrom{RunID: "r"}, Speed: &record.Speed{TokensPerSecond: 7}},
	} {
		res.TaskID, res.TrialNum, res.Verdict, res.Score, res.DurationMS = "t", 3, record.Failed, &score, 7
		raw, err := json.Marshal(res)
		require.NoError(t, err)
		var got LeanTrial
		require.NoError(t, got.LiftNumbers(raw), name)
		require.Equal(t, []any{res.TrialNum, res.Verdict, res.Score, res.DurationMS, res.Speed, res.Cached, res.Ledger()},
			[]any{got.TrialNum, got.Verdict, got.Score, got.DurationMS, got.Speed, got.Cached, got.Ledger()}, name)
	}
	require.Error(t, new(LeanTrial).LiftNumbers([]byte(`{"score":"x"}`)))
}
