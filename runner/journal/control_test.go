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
	require.False(t, run.HasRequest("cancel"))
	require.NoError(t, run.SendRequest("cancel"))
	require.NoError(t, run.SendRequest("cancel"), "by another, too")
	require.True(t, run.HasRequest("cancel"))
	require.False(t, run.HasRequest("stop"))
	require.NoError(t, run.RemoveRequest("cancel"))
	require.NoError(t, run.RemoveRequest("cancel"))
	require.False(t, run.HasRequest("cancel"))

	require.NoError(t, run.SendRequest("stop"))
	require.NoError(t, w.Close())
	w, err = run.Reopen()
	require.NoError(t, err)
	defer w.Close()
	require.False(t, run.HasRequest("stop"), "it was asked of a process that is gone")
	require.NoError(t, run.Remove())
	require.ErrorIs(t, run.SendRequest("stop"), ErrNotFound)
}
