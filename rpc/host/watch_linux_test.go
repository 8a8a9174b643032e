package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe that nobody reads any more is noticed, and so is the end of a process. What
// is stopped before calls nothing.
func TestWatch(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 1)
	call := func() { gone <- struct{}{} }
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	WatchOutput(w, func() { t.Error("the reader is there") })()
	stop := WatchOutput(w, call)
	require.NoError(t, r.Close())
	<-gone
	stop()

	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	WatchProcess(cmd.Process.Pid, func() { t.Error("the process is there") })()
	stop = WatchProcess(cmd.Process.Pid, call)
	require.NoError(t, cmd.Process.Kill())
	<-gone
	stop()
	_ = cmd.Wait() // it was killed

	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	WatchOutput(file, func() { t.Error("a file is always there") })()
}
