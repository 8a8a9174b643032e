package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However often a run changes, only one id waits until the run may be read again.
func TestChangesPace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := &Changes{wake: make(chan struct{}, 1), changed: map[string]bool{}, recent: map[string]returned{
		"a": {next: now.Add(changePause)}, "b": {next: now.Add(changePause / 2)}, "old": {next: now.Add(-2 * forgetAfter), over: true},
	}}
	for range 1000 {
		for _, id := range []string{"a", "b", "c"} {
			c.mark(id)
		}
	}
	require.Len(t, c.changed, 3)
	for _, want := range []struct {
		after time.Duration
		ids   []string
		wait  time.Duration
	}{
		{0, []string{"c"}, changePause / 2}, {changePause / 2, []string{"b"}, changePause / 2},
		{changePause, []string{"a"}, 0}, {changePause, nil, 0},
	} {
		ids, wait := c.take(now.Add(want.after))
		require.Equal(t, want.ids, ids)
		require.Equal(t, want.wait, wait)
	}
	require.NotContains(t, c.recent, "old")
}
