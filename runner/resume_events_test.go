package runner

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

// recordLines writes events to a run's journal, numbered as they come.
func recordLines(t *testing.T, log *journal.Writer, types ...EventType) {
	t.Helper()
	for _, typ := range types {
		e := &Event{Seq: log.Number(), Time: time.Unix(log.Number(), 0).UTC(), Type: typ}
		if typ == End {
			e.Status = StatusCancelled
		}
		line, _, err := newEncoder().line(e, nil)
		require.NoError(t, err)
		log.Append(line)
		require.NoError(t, log.Flush())
	}
}

// all gives the numbers and types of all events that a subscription delivers.
func all(t *testing.T, s Subscription) string {
	t.Helper()
	var got []string
	for {
		events, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return strings.Join(got, " ")
		}
		require.NoError(t, err)
		for _, e := range events {
			got = append(got, fmt.Sprint(e.Seq, e.Type))
		}
	}
}

// Who stands between the old end and the new beginning, in another process, misses
// nothing: where it looks when there is an amendment only, it looks again.
func TestFollowerBetweenSessions(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	log, err := store.Create("r", []byte(`{"runId":"r"}`))
	require.NoError(t, err)
	recordLines(t, log, RunStart, TrialGraded, RunGraded) // interrupted, then graded
	run, err := store.Open("r")
	require.NoError(t, err)
	s := (&recorded{run: run, rec: &Record{RunID: "r"}}).Subscribe(1).(*recordedSubscription)
	first, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, first, 1)
	none, err := s.read(true) // it is alive, and tells nothing yet
	require.NoError(t, err)
	require.Empty(t, none)
	recordLines(t, log, RunResumed, RunComplete, End)
	require.Equal(t, "2log 3log 4run_resumed 5run_complete 6end", all(t, s))
	require.NoError(t, log.Close())
}

// An end is told at once: what comes after it is of another session, for which
// nobody waited.
func TestEndIsTheLast(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	log, err := store.Create("r", []byte(`{"runId":"r"}`))
	require.NoError(t, err)
	recordLines(t, log, RunStart, End)
	run, err := store.Open("r")
	require.NoError(t, err)
	r, err := run.Journal()
	require.NoError(t, err)
	defer r.Close()
	events, _, err := readEvents(r, nil, 1, 0, func(int64) (bool, error) {
		recordLines(t, log, RunResumed) // just now
		return false, nil
	})
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, End, events[1].Type)
	require.NoError(t, log.Close())
}
