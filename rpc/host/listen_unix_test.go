//go:build unix

package host

import (
	"bytes"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A daemon waited forever, without a message, for the lock on the directory of its socket. Any
// process that can read the directory can hold that lock.
func TestAttackLockedSocketDirectory(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	other, err := os.Open(path)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX))
	dir, err := os.Open(path)
	require.NoError(t, err)
	defer dir.Close()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	require.EqualError(t, lockDirectory(dir, time.Millisecond, logger),
		"another process holds the lock on directory "+path+" and did not release it within 1ms")
	require.Contains(t, log.String(), "waiting for the lock")
	require.NoError(t, other.Close())
	require.NoError(t, lockDirectory(dir, time.Hour, logger))
}
