package baselines

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	l := In(filepath.Join(t.TempDir(), "state"))
	ask := func(l *Ledger, baseline, question string) int {
		t.Helper()
		place, err := l.Ask(baseline, "", question)
		require.NoError(t, err)
		return place
	}
	require.Equal(t, 1, ask(l, "a", "b"))
	require.Equal(t, 2, ask(l, "a", "c"))
	require.Equal(t, 1, ask(l, "a", "b"), "the same question keeps its place")
	require.Equal(t, 1, ask(l, "b", "c"), "another baseline")
	require.Equal(t, 3, ask(&Ledger{l.dir}, "a", "d"), "another process")

	// A full disk cut a line.
	path := filepath.Join(l.dir, digest("a"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text[:len(text)-3], 0o600))
	require.Equal(t, 2, ask(l, "a", "c"))
	require.Equal(t, 4, ask(l, "a", "d"), "the rest of a line counts as a question")
	require.Equal(t, 4, ask(l, "a", "d"))

	require.NoError(t, os.WriteFile(path, make([]byte, maxBytes+1), 0o600))
	place, err := l.Ask("a", "", "e")
	require.ErrorContains(t, err, "it counts no more questions")
	require.Greater(t, place, 30_000)

	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err = l.Ask("a", "", "e")
	require.ErrorContains(t, err, "not a regular file")
}

// Two runs that are exchanged are one question, and the run with more questions remains the baseline.
func TestAskExchanged(t *testing.T) {
	t.Parallel()
	l := In(t.TempDir())
	for i, ask := range [][3]string{{"a", "b", "a b"}, {"b", "a", "a b"}, {"a", "c", "a c"}, {"d", "a", "a d"}, {"a", "d", "a d"}, {"d", "e", "d e"}} {
		place, err := l.Ask(ask[0], ask[1], ask[2])
		require.NoError(t, err)
		require.Equal(t, []int{1, 1, 2, 3, 3, 1}[i], place, "%v", ask)
	}
}

// Questions of several processes at once have different places.
func TestAskAtOnce(t *testing.T) {
	t.Parallel()
	l := In(t.TempDir())
	var asking sync.WaitGroup
	places := make([]int, 20)
	for i := range places {
		asking.Go(func() { places[i], _ = l.Ask("a", "", fmt.Sprint(i)) })
	}
	asking.Wait()
	want := make([]int, len(places))
	for i := range want {
		want[i] = i + 1
	}
	require.ElementsMatch(t, want, places)
}

func TestWeight(t *testing.T) {
	t.Parallel()
	sum := 0.0
	for n := 1; n < 1_000_000; n++ {
		require.Positive(t, Weight(n))
		sum += Weight(n)
	}
	require.InDelta(t, 1, sum, 1e-6)
	require.LessOrEqual(t, sum, 1.0)
	require.Equal(t, 0.8, Weight(0))
	require.InDelta(t, 0.2/72, Weight(9), 1e-15)
}
