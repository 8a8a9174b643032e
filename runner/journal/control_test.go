package journal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	w, err := NewStore(t.TempDir()).Create("a", []byte("{}"))
	require.NoError(t, err)
	run := w.Run()
	require.False(t, run.Asked("cancel"))
	require.NoError(t, run.Ask("cancel"))
	require.NoError(t, run.Ask("cancel"), "by another, too")
	require.True(t, run.Asked("cancel"))
	require.False(t, run.Asked("stop"))
	require.NoError(t, run.Answer("cancel"))
	require.NoError(t, run.Answer("cancel"))
	require.False(t, run.Asked("cancel"))

	require.NoError(t, run.Ask("stop"))
	require.NoError(t, w.Close())
	w, err = run.Reopen()
	require.NoError(t, err)
	defer w.Close()
	require.False(t, run.Asked("stop"), "it was asked of a process that is gone")
	require.NoError(t, run.Remove())
	require.ErrorIs(t, run.Ask("stop"), ErrNotFound)
}
