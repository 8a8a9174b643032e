package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/proc"
	"waza/runner/record"
)

// TestTranscriptIsBounded checks that a transcript is bounded, reports what it dropped, and
// takes nothing after its end.
func TestTranscriptIsBounded(t *testing.T) {
	t.Parallel()
	tr := executor.NewTranscript()
	big := strings.Repeat("x", executor.MaxTranscriptBytes/4)
	for range 6 {
		tr.Message("assistant", big)
	}
	tr.Skill("still fits")
	entries := tr.Close()
	require.Len(t, entries, 5)
	require.Contains(t, entries[4].Text, "3 entries beyond the limit")
	tr.Message("assistant", "late")
	require.Len(t, tr.Close(), 5)

	tr = executor.NewTranscript()
	for range executor.MaxTranscriptEntries + 2 {
		tr.Skill("s")
	}
	require.Len(t, tr.Close(), executor.MaxTranscriptEntries+1)
}

func TestTranscriptConcurrently(t *testing.T) {
	t.Parallel()
	tr := executor.NewTranscript()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				tr.ToolCall(record.ToolCall{Name: "bash"})
			}
		})
	}
	wg.Wait()
	require.Len(t, tr.Close(), 800)
}

func TestPermanent(t *testing.T) {
	t.Parallel()
	err := errors.New("missing")
	require.NoError(t, executor.Permanent(nil))
	require.False(t, executor.IsPermanent(err))
	require.True(t, executor.IsPermanent(fmt.Errorf("grader: %w", executor.Permanent(err))))
	require.ErrorIs(t, executor.Permanent(err), err)
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := executor.NewRegistry(
		executor.Kind{Kind: eval.Kind{Name: "one", Aliases: []string{"uno"}}},
		executor.Kind{Kind: eval.Kind{Name: "two"}},
	)
	k, ok := r.Lookup("UNO")
	require.True(t, ok)
	require.Equal(t, "one", k.Name)
	_, ok = r.Lookup("three")
	require.False(t, ok)
	require.Equal(t, []string{"one", "two"}, r.Names())
}

// An agent can report absurd costs. Their sum once became infinite, which cannot be recorded,
// and the run failed.
func TestUsageStaysFinite(t *testing.T) {
	t.Parallel()
	u := record.Usage{InputTokens: math.MaxInt64, OutputTokens: 2, CostUSD: math.MaxFloat64}
	sum := u.Add(u)
	require.Equal(t, record.Usage{InputTokens: math.MaxInt64, OutputTokens: 4, CostUSD: math.MaxFloat64}, sum)
	require.EqualValues(t, math.MaxInt64, sum.Total())
}

// Once, only texts, arguments and results counted towards the limit of a transcript, so that
// long tool names could exhaust memory.
func TestTranscriptCountsNames(t *testing.T) {
	t.Parallel()
	tr := executor.NewTranscript()
	long := strings.Repeat("n", executor.MaxTranscriptBytes/3)
	tr.ToolCall(record.ToolCall{Name: long})
	tr.ToolCall(record.ToolCall{ID: long})
	tr.ToolCall(record.ToolCall{Status: long, Kind: "k"})
	tr.ToolCall(record.ToolCall{Name: long})
	entries := tr.Close()
	require.Len(t, entries, 4)
	require.Equal(t, record.EntryDropped, entries[3].Type)
}

// TestTranscriptTrack checks that a running call keeps its position in the transcript and shows
// its latest state.
func TestTranscriptTrack(t *testing.T) {
	t.Parallel()
	tr := executor.NewTranscript()
	update := tr.Track(record.ToolCall{Name: "bash", Status: "pending"})
	tr.Message("assistant", "meanwhile")
	update(record.ToolCall{Name: "bash", Status: "completed"})
	big := record.ToolCall{Name: "bash", Title: strings.Repeat("x", executor.MaxTranscriptBytes+1)}
	update(big)
	tr.Track(big)(record.ToolCall{Name: "not taken"})
	entries := tr.Close()
	update(record.ToolCall{Name: "late"})
	require.Len(t, entries, 3)
	require.Equal(t, "completed", entries[0].Tool.Status)
	require.Equal(t, "meanwhile", entries[1].Text)
	require.Contains(t, entries[2].Text, "2 entries beyond the limit")
}

// TestSeenCallsAreNotSelfReported checks that each call that waza answered unmarks one report with
// the same tool and equal arguments, whichever comes first.
func TestSeenCallsAreNotSelfReported(t *testing.T) {
	t.Parallel()
	tr := executor.NewTranscript()
	report := func(name, arguments string) {
		tr.ToolCall(record.ToolCall{Name: name, Arguments: []byte(arguments), SelfReported: true})
	}
	tr.Seen("capital", []byte(`{"of": "France", "n": 1}`))
	report("mcp__atlas__capital", `{"n":1.0,"of":"France"}`)
	report("mcp__atlas__capital", `{"n":1,"of":"France"}`) // once more than it was called
	report("undercapital", `{}`)
	report("capital", `{}`)
	require.False(t, tr.Entries()[0].Tool.SelfReported)
	before := tr.Entries()
	tr.Seen("capital", nil)
	tr.Seen("capital", []byte(`{"of": "Spain"}`))
	marks := func(entries []record.Entry) (marks []bool) {
		for _, e := range entries {
			marks = append(marks, e.Tool.SelfReported)
		}
		return marks
	}
	require.Equal(t, []bool{false, true, true, false}, marks(tr.Close()))
	require.Equal(t, []bool{false, true, true, true}, marks(before), "what others hold does not change")
}

// The end of a decided agent is no error, however the agent itself ends. Faults of waza remain errors, and so do errors at a limit.
func TestTakeEnd(t *testing.T) {
	t.Parallel()
	exit, limit := errors.New("exit status 1"), &executor.EndError{Reason: "limit"}
	decided := &executor.EndError{Reason: "decided", Decided: true}
	for name, c := range map[string]struct {
		end   *executor.EndError
		err   error
		taken bool
	}{
		"decided":               {decided, decided, true},
		"decided, then an exit": {decided, exit, true},
		"decided, then lost":    {decided, fmt.Errorf("x: %w", &proc.LostError{}), false},
		"decided, run stops":    {decided, &executor.StopError{Err: exit}, false},
		"limit":                 {limit, limit, true},
		"limit, then an exit":   {limit, exit, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limited, cancel := context.WithCancelCause(t.Context())
			cancel(c.end)
			trial := &executor.Trial{Transcript: executor.NewTranscript()}
			ended, err := trial.TakeEnd(t.Context(), limited, c.err)
			if c.taken {
				require.NoError(t, err)
				require.Same(t, c.end, ended)
				return
			}
			require.ErrorIs(t, err, c.err)
			require.Nil(t, ended)
		})
	}
}
