package runner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Each reader receives every run once and in order, whether it waits or comes late. It also
// receives runs that started before its context ended.
func TestStarts(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	late, eager := r.Starts(), r.Starts()
	got := make(chan string)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		defer close(got)
		for {
			run, err := eager.Next(ctx)
			if err != nil {
				return
			}
			got <- run.ID()
		}
	}()
	var ids []string
	for range 3 {
		run := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
		require.Equal(t, run.ID(), <-got)
		<-run.Done()
		ids = append(ids, run.ID())
	}
	over := errors.New("over")
	cancel(over)
	_, more := <-got
	require.False(t, more)
	for _, id := range ids {
		run, err := late.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, id, run.ID())
		events := runnertest.Follow(t, run, run.First())
		require.Equal(t, record.RunStart, events[0].Type)
		require.Equal(t, record.End, events[len(events)-1].Type)
	}
	_, err := late.Next(ctx)
	require.ErrorIs(t, err, over)
	_, err = r.Starts().Next(ctx)
	require.ErrorIs(t, err, over, "earlier runs are not delivered")
}

// The ids of runs that start within the same millisecond sort in the order of their starts.
func TestIDsSortByStart(t *testing.T) {
	t.Parallel()
	last, _ := runner.NewRunID()
	for range 100 {
		id, at := runner.NewRunID()
		require.Less(t, last, id)
		require.Equal(t, at.Format(record.IDTime), id[:len(record.IDTime)])
		last = id
	}
}
