package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	w, err := NewStore(t.TempDir()).Create("a", []byte("{}"))
	require.NoError(t, err)
	run := w.Run()
	require.False(t, run.Requests().Has("cancel"))
	require.NoError(t, run.Requests().Send("cancel"))
	require.NoError(t, run.Requests().Send("cancel"), "by another, too")
	require.True(t, run.Requests().Has("cancel"))
	require.False(t, run.Requests().Has("stop"))
	require.NoError(t, run.Requests().Remove("cancel"))
	require.NoError(t, run.Requests().Remove("cancel"))
	require.False(t, run.Requests().Has("cancel"))

	require.NoError(t, run.Requests().Send("stop"))
	require.NoError(t, w.Close())
	w, err = run.Reopen(nil)
	require.NoError(t, err)
	defer w.Close()
	require.False(t, run.Requests().Has("stop"), "it was asked of a process that is gone")
	require.NoError(t, run.Remove())
	require.ErrorIs(t, run.Requests().Send("stop"), record.ErrRunNotFound)
}
