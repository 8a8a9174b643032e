package link

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"waza/eval/files"
	peers "waza/rpc/internal/peer"
	"waza/runner/journal"
)

const (
	lockName   = "serve.lock"
	socketName = "serve.sock"
	// maxSocketPath is the maximum length of a socket's path on all systems.
	maxSocketPath = 100
)

// RunningError is returned when another process serves the state directory.
type RunningError struct {
	StateDir string
	PID      int // 0 means unknown
}

func (e *RunningError) Error() string {
	pid := ""
	if e.PID > 0 {
		pid = " (process " + strconv.Itoa(e.PID) + ")"
	}
	return fmt.Sprintf("another waza server%s is running with the state directory %s: stop it, or set WAZA_STATE to another directory",
		pid, e.StateDir)
}

// SocketPath returns the path of the socket for the server of a state directory: a file in it
// or, if that path is too long for a socket, in a directory of this user below the system's
// temporary directory.
func SocketPath(stateDir string) string {
	if path := filepath.Join(stateDir, socketName); len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(stateDir))
	return filepath.Join(os.TempDir(), "waza-"+strconv.Itoa(os.Getuid()), hex.EncodeToString(sum[:8])+".sock")
}

// Listen makes this process the server of a state directory until [Server.Close] is called or
// the process ends in any way. The error is a [*RunningError] when a server already exists.
func Listen(stateDir string) (*Server, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, journal.StateError(err)
	}
	lock, err := takeLock(stateDir)
	if err != nil {
		return nil, err
	}
	l, err := listen(SocketPath(stateDir))
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Server{lock: lock, listener: l, connections: map[*peer]struct{}{}}, nil
}

// takeLock locks the state directory for a server, and writes the process id into the file.
func takeLock(stateDir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(stateDir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, journal.StateError(err)
	}
	err = files.Lock(f)
	if errors.Is(err, files.ErrLocked) {
		defer f.Close()
		text := make([]byte, 20)
		n, _ := f.ReadAt(text, 0)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:n])))
		return nil, &RunningError{StateDir: stateDir, PID: pid}
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

// listen opens the socket. The caller holds the lock, so an existing socket is left over from a
// killed server.
func listen(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := own(dir); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return peers.Guard(l, false, slog.New(slog.DiscardHandler)), nil
}

// own checks that a directory belongs to this user, because other users could put a socket
// there.
func own(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Getuid() {
		return fmt.Errorf("directory %s belongs to another user", dir)
	}
	return nil
}
