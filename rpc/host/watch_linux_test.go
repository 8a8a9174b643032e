package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// WatchOutput notices that nobody reads a pipe any more, and WatchProcess that a process has
// ended. A stopped watch calls nothing.
func TestWatch(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 1)
	call := func() { gone <- struct{}{} }
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	WatchOutput(w, func() { t.Error("the pipe has a reader") })()
	stop := WatchOutput(w, call)
	require.NoError(t, r.Close())
	<-gone
	stop()

	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	WatchProcess(cmd.Process.Pid, func() { t.Error("the process runs") })()
	stop = WatchProcess(cmd.Process.Pid, call)
	require.NoError(t, cmd.Process.Kill())
	<-gone
	stop()
	_ = cmd.Wait() // killed on purpose

	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	WatchOutput(file, func() { t.Error("a file is always there") })()
}
