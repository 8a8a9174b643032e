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

// ListenUnix listens on a socket at path that only this user can connect to. It replaces a
// socket that no process listens on. It fails if the socket is in use, or if path is a different
// kind of file. Closing the listener removes the socket. ListenUnix logs to log when it waits
// for another process. Callers add the path to its errors.
func ListenUnix(path string, log *slog.Logger) (net.Listener, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// The lock prevents two servers that start at the same time from mistaking the other's fresh
	// socket for a stale one.
	if err := lockDirectory(dir, socketLockTime, log); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

const (
	// socketLockTime is how long ListenUnix waits for another process to release the lock on the
	// directory of a socket. Servers hold it for milliseconds.
	socketLockTime = 5 * time.Second
	lockPause      = 20 * time.Millisecond
)

// lockDirectory locks a directory until it is closed. It waits at most limit, and logs that it
// waits.
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
			return fmt.Errorf("another process holds the lock on directory %s and did not release it within %v", dir.Name(), limit)
		}
	}
}

// removeStale removes a socket that no process listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("the file exists and is not a socket")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return errors.New("another server is listening on it")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot find out whether the existing socket is in use: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the stale socket: %w", err)
	}
	return nil
}
