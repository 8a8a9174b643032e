package journal

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"waza/eval/files"
)

// The name of a scratch directory starts with scratchPrefix, which no id of a run does. The file with
// its lock is beside it.
const (
	scratchPrefix = ".scratch-"
	lockSuffix    = ".lock"
)

// A Scratch is a directory for files that several trials read, beside the workspaces. It exists as
// long as its owner does: if the owner dies, [Store.Leftovers] returns it.
type Scratch struct {
	// Dir is the directory, empty at first.
	Dir  string
	lock *os.File
}

// NewScratch creates a scratch directory. The caller closes it.
func (s *Store) NewScratch() (*Scratch, error) {
	if err := os.MkdirAll(s.work(), 0o700); err != nil {
		return nil, StateError(err)
	}
	for {
		dir := filepath.Join(s.work(), scratchPrefix+strings.ToLower(rand.Text()[:10]))
		lock, err := lockNew(dir + lockSuffix)
		switch {
		case err != nil:
			return nil, StateError(err)
		case lock == nil:
			continue
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			_ = os.Remove(lock.Name())
			release(lock)
			return nil, StateError(err)
		}
		return &Scratch{Dir: dir, lock: lock}, nil
	}
}

// Close removes the directory. If that fails, the directory is a leftover.
func (s *Scratch) Close() error {
	err := os.RemoveAll(s.Dir)
	if err == nil {
		err = os.Remove(s.lock.Name())
	}
	release(s.lock)
	return err
}

// lockNew creates a file and locks it. It returns nil if another process took the file for a leftover
// in between.
func lockNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := files.Lock(f); err != nil {
		f.Close()
		if errors.Is(err, files.ErrLocked) {
			return nil, nil
		}
		return nil, err
	}
	mine, err := f.Stat()
	if there, terr := os.Lstat(path); err == nil && terr == nil && os.SameFile(mine, there) {
		return f, nil
	}
	release(f)
	return nil, err
}

// isScratchLock reports whether a name in the directory of workspaces is that of a scratch
// directory's lock.
func isScratchLock(name string) bool {
	return strings.HasPrefix(name, scratchPrefix) && strings.HasSuffix(name, lockSuffix)
}

// withDeadScratch calls do with a scratch directory whose owner has died, by the path of its lock. It
// removes the lock if the directory is gone afterwards.
func withDeadScratch(lock string, do func(dir string)) {
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return
	}
	if files.Lock(f) != nil {
		f.Close()
		return
	}
	defer release(f)
	dir := strings.TrimSuffix(lock, lockSuffix)
	if _, err := os.Lstat(dir); err == nil {
		do(dir)
	}
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		_ = os.Remove(lock)
	}
}

// takeScratch renames a scratch directory whose owner has died, by the path of its lock.
func takeScratch(lock string) (dir string, ok bool) {
	withDeadScratch(lock, func(scratch string) {
		dir = filepath.Join(filepath.Dir(scratch), takenPrefix+strings.TrimPrefix(filepath.Base(scratch), scratchPrefix))
		ok = os.Rename(scratch, dir) == nil
	})
	return dir, ok
}
