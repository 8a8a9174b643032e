package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/pause"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, pause.For(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, pause.For(t.Context(), 0))
		require.NoError(t, pause.For(t.Context(), -time.Second))
		require.Equal(t, time.Hour, time.Since(start))
	})
}

func TestForEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(time.Minute, func() { cancel(enough) })
		require.ErrorIs(t, pause.For(ctx, time.Hour), enough)
		require.Equal(t, time.Minute, time.Since(start))
		require.ErrorIs(t, pause.For(ctx, 0), enough, "the context has ended already")
		require.ErrorIs(t, pause.About(ctx, time.Hour), enough)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			start := time.Now()
			require.NoError(t, pause.About(t.Context(), time.Minute))
			took := time.Since(start)
			require.GreaterOrEqual(t, took, 30*time.Second)
			require.LessOrEqual(t, took, time.Minute)
			seen[took] = true
		}
		require.Greater(t, len(seen), 1)
		for _, d := range []time.Duration{-time.Hour, -1, 0, 1} {
			start := time.Now()
			require.NoError(t, pause.About(t.Context(), d))
			require.LessOrEqual(t, time.Since(start), max(0, d))
		}
	})
}

func TestUnless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(stop) })
		require.NoError(t, pause.Unless(t.Context(), stop, time.Second))
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, pause.AboutUnless(t.Context(), stop, time.Hour))
		require.Equal(t, time.Minute, time.Since(start))
	})
}
