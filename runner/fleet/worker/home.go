package worker

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waza/eval/files"
	"waza/runner/internal/bundle"
	"waza/runner/workspace"
)

// home contains the directories of a worker:
//
//	DIR/files/          files of suites, by their hashes; workers of the machine share them
//	DIR/work/NAME/      workspaces of one worker
//	DIR/work/NAME/lock  locked as long as the worker lives
//
// The next worker removes the files of a killed one.
type home struct {
	files, work string
	lock        *os.File
	log         *slog.Logger
}

func openHome(dir string, log *slog.Logger) (*home, error) {
	h := &home{files: filepath.Join(dir, "files"), log: log}
	all := filepath.Join(dir, "work")
	if err := errors.Join(os.MkdirAll(h.files, 0o700), os.MkdirAll(all, 0o700)); err != nil {
		return nil, err
	}
	h.sweep(all)
	h.trim()
	for h.lock == nil {
		if err := h.make(all); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// make makes the directory of the worker. It sets no lock if another worker took the directory for that of
// a killed one before its file was locked, and removes it.
func (h *home) make(all string) error {
	var err error
	if h.work, err = os.MkdirTemp(all, "worker-"); err != nil {
		return err
	}
	path := filepath.Join(h.work, "lock")
	lock, err := lockFile(path)
	if errors.Is(err, files.ErrLocked) {
		return nil
	}
	if err != nil {
		_ = os.RemoveAll(h.work)
		return err
	}
	mine, err := lock.Stat()
	if there, terr := os.Lstat(path); err == nil && terr == nil && os.SameFile(mine, there) {
		h.lock = lock
		return nil
	}
	lock.Close()
	return err
}

// lockFile creates a file and locks it for as long as it is open.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := files.Lock(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes the workspaces of workers that have ended. A directory without a lock belongs to a worker
// that is just starting or ending.
func (h *home) sweep(all string) {
	entries, err := os.ReadDir(all)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(all, e.Name())
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), "worker-") {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil && !old(info) {
			continue
		}
		lock, err := lockFile(filepath.Join(dir, "lock"))
		if err != nil {
			continue // its worker lives
		}
		if err := workspace.RemoveAll(dir); err != nil {
			h.log.Warn("workspaces of a killed worker not removed", "dir", dir, "error", err)
		}
		lock.Close()
	}
}

// trim removes the least recently used files of suites if there are too many.
func (h *home) trim() {
	if err := bundle.Trim(h.files, 0); err != nil {
		h.log.Warn("old files of suites not removed", "dir", h.files, "error", err)
	}
}

// remove removes a directory of the worker's workspaces; "" means none.
func (h *home) remove(dir string) {
	if dir == "" {
		return
	}
	if err := workspace.RemoveAll(dir); err != nil {
		h.log.Warn("workspaces not removed", "dir", dir, "error", err)
	}
}

func (h *home) close() {
	h.remove(h.work)
	h.lock.Close()
	h.sweep(filepath.Dir(h.work))
}

func randomText(n int) string { return strings.ToLower(rand.Text()[:n]) }

// old reports whether a directory is so old that its worker would have locked it.
func old(info os.FileInfo) bool { return time.Since(info.ModTime()) > time.Minute }
