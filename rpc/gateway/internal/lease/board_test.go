package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBoard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		state := map[string]int{"a": 1, "b": 2}
		slow := errors.New("too slow")
		b := Board[string, string]{
			Mu:  &mu,
			All: func() []string { return []string{"b", "a"} },
			State: func(k string) (string, bool) {
				n, ok := state[k]
				return fmt.Sprint(k, n), ok
			},
			Most: 3, Slow: slow,
		}
		change := func(k string) {
			mu.Lock()
			defer mu.Unlock()
			state[k]++
			b.Changed(k)
		}
		change("a") // nobody watches
		ctx, cancel := context.WithCancelCause(t.Context())
		seen, ended := make(chan string), make(chan error, 1)
		go func() { ended <- b.Watch(ctx, func(s string) { seen <- s }) }()
		require.Equal(t, "b2", <-seen)
		require.Equal(t, "a2", <-seen)
		synctest.Wait()
		change("a")
		synctest.Wait() // the watcher blocks
		change("b")
		change("a")
		change("b")
		require.Equal(t, "a3", <-seen)
		require.Equal(t, "b4", <-seen, "it misses the state in between")
		require.Equal(t, "a4", <-seen)
		synctest.Wait()
		mu.Lock()
		delete(state, "a")
		b.Changed("a")
		b.Changed("b")
		mu.Unlock()
		require.Equal(t, "b4", <-seen, "a has no state")
		synctest.Wait()
		cancel(errors.New("seen enough"))
		require.EqualError(t, <-ended, "seen enough")
		require.Empty(t, b.watchers)

		go func() { ended <- b.Watch(t.Context(), func(s string) { seen <- s }) }()
		synctest.Wait()
		for _, k := range []string{"c", "d", "e", "f", "g"} {
			change(k)
		}
		require.Equal(t, "b4", <-seen)
		require.ErrorIs(t, <-ended, slow)
		require.Empty(t, b.watchers)
	})
}

// gate is a mutex that a test with a fake clock can wait for.
type gate chan struct{}

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

func TestTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mu := make(gate, 1)
		var timer Timer
		fired := 0
		set := func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			timer.Set(mu, d, func() { fired++ })
		}
		check := func(running bool, calls int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, running, timer.Running())
			require.Equal(t, calls, fired)
		}
		set(time.Second)
		set(2 * time.Second)
		time.Sleep(1500 * time.Millisecond)
		check(true, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		check(false, 1)

		// It does not fire when it is stopped while its function waits for the mutex.
		set(time.Second)
		mu.Lock()
		time.Sleep(2 * time.Second)
		timer.Stop()
		mu.Unlock()
		synctest.Wait()
		check(false, 1)
	})
}

// room counts its releases.
type room int

func (r *room) Release() { *r++ }

func TestKeyring(t *testing.T) {
	t.Parallel()
	k := Keyring{Most: 2}
	start := func(key string) (context.Context, bool) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return ctx, k.Start(key, cancel)
	}
	var one, two room
	first, ok := start("1")
	require.True(t, ok)
	_, ok = start("1")
	require.False(t, ok, "it has a call")
	k.Cancel("1")
	require.ErrorIs(t, context.Cause(first), ErrEnded)
	k.End("1")
	require.Nil(t, k.Place("1"), "nothing remains")
	k.Cancel("1")
	k.Release("1")
	k.End("1")

	_, ok = start("1")
	require.True(t, ok)
	k.Hold("1", &one)
	k.End("1")
	require.Same(t, &one, k.Place("1"))
	second, ok := start("1")
	require.True(t, ok)
	k.Release("1")
	require.ErrorIs(t, context.Cause(second), ErrEnded)
	require.Zero(t, one, "the call still uses it")
	_, ok = start("1")
	require.False(t, ok, "it is released")
	k.End("1")
	require.EqualValues(t, 1, one)

	for _, key := range []string{"1", "2"} {
		_, ok = start(key)
		require.True(t, ok)
		k.Hold(key, &two)
		k.End(key)
	}
	_, ok = start("3")
	require.False(t, ok, "too many")
	k.Release("1")
	require.EqualValues(t, 1, two)
	k.Close()
	require.EqualValues(t, 2, two)
	k.Close()
}
