package watch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Changes are reported when no more follow, and after a second at most.
func TestDebounce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &debounce{quiet: 100 * time.Millisecond, most: time.Second}
		defer d.stop()
		require.Nil(t, d.due())
		start := time.Now()
		since := func() time.Duration {
			<-d.due()
			d.done()
			defer func() { start = time.Now() }()
			return time.Since(start)
		}
		d.touch()
		require.Equal(t, 100*time.Millisecond, since())

		for range 3 {
			d.touch()
			time.Sleep(60 * time.Millisecond)
		}
		require.Equal(t, 220*time.Millisecond, since(), "100 ms after the last of three")

		for time.Since(start) < 990*time.Millisecond {
			d.touch()
			time.Sleep(10 * time.Millisecond)
		}
		d.touch()
		require.Equal(t, time.Second, since(), "it is never quiet")
	})
}

// When the machine watches too many files, the error has a hint.
func TestWatchErrors(t *testing.T) {
	t.Parallel()
	require.NoError(t, watchError(nil))
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EMFILE} {
		var e *Error
		require.ErrorAs(t, watchError(fmt.Errorf("add: %w", os.NewSyscallError("inotify", errno))), &e)
		require.Contains(t, e.Error(), "cannot watch files: ")
		require.Contains(t, e.Hint, "sysctl")
	}
	var e *Error
	require.ErrorAs(t, watchError(errors.New("odd")), &e)
	require.Empty(t, e.Hint)
}
