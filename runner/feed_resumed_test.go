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
	"waza/runner/record"
	"waza/runner/replay"
)

// journalEvents writes events with consecutive numbers to a run's journal.
func journalEvents(t *testing.T, log *journal.Writer, types ...record.EventType) {
	t.Helper()
	for _, typ := range types {
		e := &record.Event{Seq: log.Number(), Time: time.Unix(log.Number(), 0).UTC(), Type: typ}
		if typ == record.End {
			e.Status = record.StatusCancelled
		}
		line, _, err := new(replay.Encoder).Line(e, nil)
		require.NoError(t, err)
		log.Append(line)
		require.NoError(t, log.Flush())
	}
}

// eventsOf returns the numbers and types of all events of a subscription.
func eventsOf(t *testing.T, s record.Subscription) string {
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

// A subscriber of a resumed run receives every number once and only the last end, whatever ended
// or amended the run before, in this process and in any other.
func TestSupersededEvents(t *testing.T) {
	t.Parallel()
	const before = "1run_start 2log 3log 4log 5log 6log 7log 8run_resumed 9log 10log 11run_resumed"
	store := journal.NewStore(t.TempDir())
	log, err := store.Create("r", []byte(`{"runId":"r"}`))
	require.NoError(t, err)
	journalEvents(t, log, record.RunStart, record.RunComplete, record.End, record.TrialGraded, record.TaskGraded, record.RunGraded, record.TrialGraded,
		record.RunResumed, record.RunComplete, record.End, record.RunResumed)
	rec := &record.Run{RunID: "r"}
	f := newFeed(log, replay.NewFold(replay.NewState(rec), nil), nil, func(error) {})
	f.emit(&record.Event{Type: record.RunComplete})
	f.emit(&record.Event{Type: record.End})
	f.close()
	const whole = before + " 12run_complete 13end"
	require.Equal(t, whole, eventsOf(t, &liveSubscription{feed: f, next: 1}))
	require.Equal(t, "10log 11run_resumed 12run_complete 13end", eventsOf(t, &liveSubscription{feed: f, next: 10}))
	require.NoError(t, log.Close())

	run, err := store.Open("r")
	require.NoError(t, err)
	other, err := replay.OpenFiles(run)
	require.NoError(t, err)
	require.Equal(t, whole, eventsOf(t, other.Subscribe(0)))
	for from := 1; from <= 13; from++ {
		_, want, _ := strings.Cut(" "+whole, fmt.Sprintf(" %d", from))
		require.Equal(t, fmt.Sprint(from)+want, eventsOf(t, other.Subscribe(int64(from))))
	}
}
