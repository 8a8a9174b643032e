package replay

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
	"waza/runner/record"
)

// recordLines writes events with consecutive numbers to a run's journal.
func recordLines(t *testing.T, log *journal.Writer, types ...record.EventType) {
	t.Helper()
	for _, typ := range types {
		e := &record.Event{Seq: log.Number(), Time: time.Unix(log.Number(), 0).UTC(), Type: typ}
		if typ == record.End {
			e.Status = record.StatusCancelled
		}
		line, _, err := new(Encoder).Line(e, nil)
		require.NoError(t, err)
		log.Append(line)
		require.NoError(t, log.Flush())
	}
}

// all returns the numbers and types of all events of a subscription.
func all(t *testing.T, s record.Subscription) string {
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

// A subscriber in another process that is between the old end and the resume misses nothing:
// after an amendment it polls again.
func TestFollowerBetweenSessions(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	log, err := store.Create("r", []byte(`{"runId":"r"}`))
	require.NoError(t, err)
	recordLines(t, log, record.RunStart, record.TrialGraded, record.RunGraded) // interrupted, then graded
	run, err := store.Open("r")
	require.NoError(t, err)
	s := (&RecordedRun{Run: run, Rec: &record.Run{RunID: "r"}}).Subscribe(1).(*recordedSubscription)
	first, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, first, 1)
	none, err := s.read(true) // it is alive, but has no event yet
	require.NoError(t, err)
	require.Empty(t, none)
	recordLines(t, log, record.RunResumed, record.RunComplete, record.End)
	require.Equal(t, "2log 3log 4run_resumed 5run_complete 6end", all(t, s))
	require.NoError(t, log.Close())
}

// An end is delivered at once. Later events belong to another run session, which the subscriber
// does not wait for.
func TestEndIsTheLast(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	log, err := store.Create("r", []byte(`{"runId":"r"}`))
	require.NoError(t, err)
	recordLines(t, log, record.RunStart, record.End)
	run, err := store.Open("r")
	require.NoError(t, err)
	r, err := run.Journal()
	require.NoError(t, err)
	defer r.Close()
	events, _, err := ReadEvents(r, nil, 1, 0, func(int64) (bool, error) {
		recordLines(t, log, record.RunResumed) // just recorded
		return false, nil
	})
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, record.End, events[1].Type)
	require.NoError(t, log.Close())
}
