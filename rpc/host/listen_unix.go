//go:build unix

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ListenUnix listens on a socket at path that only this user can connect to. A
// socket that nobody listens on any more is replaced; one that is in use, or
// another kind of file, is not. Closing the listener removes the socket. log takes that
// it waits for another process.
func ListenUnix(path string, log *slog.Logger) (net.Listener, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	defer dir.Close()
	// The lock keeps two servers that start at once from each taking the
	// other's fresh socket for a stale one.
	if err := lockDirectory(dir, socketLockTime, log); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

const (
	// socketLockTime is how long ListenUnix waits for another process to release
	// the lock on the directory of a socket, which servers hold for milliseconds.
	socketLockTime = 5 * time.Second
	lockPause      = 20 * time.Millisecond
)

// lockDirectory locks a directory until it is closed. It waits at most as long as
// limit, and logs that it waits.
func lockDirectory(dir *os.File, limit time.Duration, log *slog.Logger) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	retry := time.NewTicker(lockPause)
	defer retry.Stop()
	for waiting := false; ; waiting = true {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if !waiting {
			log.Warn("waiting for the lock on the socket's directory, which another process holds", "directory", dir.Name(), "limit", limit)
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return fmt.Errorf("another process holds the lock on directory %s; it was not released within %v", dir.Name(), limit)
		}
	}
}

// removeStale removes a socket that nobody listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listen on %s: %w", path, err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("listen on %s: a file that is no socket stands there", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return fmt.Errorf("listen on %s: another server listens there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("listen on %s: a socket stands there, and it cannot be told whether it is in use: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listen on %s: remove the stale socket: %w", path, err)
	}
	return nil
}
