package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

func newTestFeed(t *testing.T, onFailure func(error)) (*feed, *journal.Writer) {
	t.Helper()
	log, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	rec := &record.Run{RunID: "r", Tasks: []record.TaskRef{{ID: "a", Trials: 1, First: 1}}}
	return newFeed(log, replay.NewFold(replay.NewState(rec), nil), nil, onFailure), log
}

// Events that the journal cannot record are not announced. Only the end is, with the next
// number, so that no subscriber waits forever.
func TestFeedJournalFails(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	f, log := newTestFeed(t, func(err error) { failed <- err })
	f.emit(&record.Event{Type: record.RunStart})
	require.NoError(t, f.sync())
	require.NoError(t, log.Close()) // every write fails from here on
	f.emit(&record.Event{Type: record.TaskStart})
	require.Error(t, <-failed)
	require.Error(t, f.sync())
	for range 2 * maxPending { // none of these calls blocks either
		f.emit(&record.Event{Type: record.Log})
	}
	f.emit(&record.Event{Type: record.End, Status: record.StatusCompleted})
	f.close()
	sub := &liveSubscription{feed: f, next: 1}
	var got []string
	for {
		events, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for _, e := range events {
			got = append(got, fmt.Sprint(e.Seq, " ", e.Type))
		}
	}
	require.Equal(t, []string{"1 run_start", "2 end"}, got)
	// The state and the result used to show the run as running forever.
	p := f.fold.Progress()
	require.Equal(t, record.StatusFailed, p.Status)
	require.NotNil(t, p.EndedAt)
	select {
	case err := <-failed:
		t.Fatalf("failed twice: %v", err)
	default:
	}
}

// The tail limits memory for subscribers, whether they read or not.
func TestFeedTailIsBounded(t *testing.T) {
	t.Parallel()
	f, log := newTestFeed(t, nil)
	text := strings.Repeat("x", 100<<10)
	for range 4 * tailBytes / len(text) {
		f.emit(&record.Event{Type: record.Log, Message: text})
	}
	require.NoError(t, f.sync())
	f.mu.Lock()
	size := f.tail.bytes
	f.mu.Unlock()
	require.Less(t, size, 3*tailBytes)
	f.close()
	require.NoError(t, log.Close())
	sub := &liveSubscription{feed: f, next: 3} // no longer in the tail
	events, err := sub.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, events[0].Seq)
}

// Next returns when its context ends, whatever the feed does.
func TestFeedNextEndsWithContext(t *testing.T) {
	t.Parallel()
	f, log := newTestFeed(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("because")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, err := (&liveSubscription{feed: f, next: 1}).Next(ctx)
			require.ErrorIs(t, err, cause)
		})
	}
	cancel(cause)
	wg.Wait()
	f.close()
	require.NoError(t, log.Close())
}

// Damage of a journal during its run loses only the damaged events: no subscriber waits forever.
func TestFeedOfDamagedJournal(t *testing.T) {
	t.Parallel()
	f, log := newTestFeed(t, nil)
	const total = 3 * tailEvents
	for i := range total {
		f.emit(&record.Event{Type: record.Log, Message: fmt.Sprint(i + 1)})
	}
	require.NoError(t, f.sync())
	path := log.Run().JournalPath()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(b[len(b)/10 : len(b)/9])
	require.NoError(t, os.WriteFile(path, b[:len(b)/8], 0o600)) // and the rest is lost
	sub := &liveSubscription{feed: f, next: 1}
	lost := 0
	for seq := int64(1); seq <= total; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			require.Equal(t, seq, e.Seq)
			if e.Message != fmt.Sprint(seq) {
				require.Contains(t, e.Message, "lost")
				lost++
			}
			seq++
		}
	}
	require.Positive(t, lost)
	require.Less(t, lost, total)
	f.close()
	require.NoError(t, log.Close())
}

// The queue was limited only to 4,096 events: trials with 4 MB of output took gigabytes of
// memory, and all waiting events were lost with the process.
func TestAttackFeedBoundsBytes(t *testing.T) {
	t.Parallel()
	f, log := newTestFeed(t, nil)
	const size = 4 << 20
	emit := func() {
		res := &record.Trial{TaskID: "a", TrialNum: 1, Verdict: record.Passed, Output: strings.Repeat("x", size)}
		f.emit(&record.Event{Type: record.TrialComplete, TaskID: "a", TaskNum: 1, TrialNum: 1, Verdict: record.Passed, Trial: res})
	}
	waited := make(chan struct{})
	f.fold.View(func(*replay.State) { // nothing is recorded in the meantime
		for range maxPendingBytes/size - 1 {
			emit()
		}
		f.mu.Lock()
		require.True(t, f.fullLocked(size))
		require.False(t, f.fullLocked(size/2))
		f.mu.Unlock()
		go func() {
			defer close(waited)
			emit()
		}()
		select {
		case <-waited:
			t.Error("there was no room for it")
		default:
		}
	})
	<-waited
	require.NoError(t, f.sync())
	f.mu.Lock()
	require.Zero(t, f.queued)
	require.Nil(t, f.writing)
	f.mu.Unlock()
	f.close()
	require.NoError(t, log.Close())
}
