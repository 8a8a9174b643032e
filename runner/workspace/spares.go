package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Spares keeps the directories of closed workspaces that are as they were created: empty, with the
// same mode and without attributes. Later workspaces take them instead of new ones, because file
// systems rename a directory many times faster than they create and remove one: a journal waits
// for the disk, and ext4 looks for a number that was not in use lately.
//
// The directories remain next to the workspaces, where the owner of all of them removes them. The
// zero value is ready. It is safe for concurrent use.
type Spares struct {
	mu    sync.Mutex // guards the fields below
	count int        // of names until now
	paths []string
}

// keep renames the directory of a workspace and keeps it. It returns false if the directory
// changed since it was created; then it may have been renamed or not. root is the directory that
// was created at path.
func (s *Spares) keep(path string, root *os.Root) (spare string, ok bool) {
	if s == nil || !pristine(root) {
		return path, false
	}
	s.mu.Lock()
	s.count++
	spare = filepath.Join(filepath.Dir(path), fmt.Sprintf(".spare-%d", s.count))
	s.mu.Unlock()
	if os.Rename(path, spare) != nil {
		return path, false
	}
	if !is(spare, root) {
		return spare, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths = append(s.paths, spare)
	return spare, true
}

// take renames a kept directory to path and opens it. It returns nil without one.
func (s *Spares) take(path string) *os.Root {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	n := len(s.paths)
	if n == 0 {
		s.mu.Unlock()
		return nil
	}
	spare := s.paths[n-1]
	s.paths = s.paths[:n-1]
	s.mu.Unlock()
	if os.Rename(spare, path) != nil {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now)
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil
	}
	if !is(path, root) || !pristine(root) { // somebody has used or replaced it
		root.Close()
		_ = RemoveAll(path)
		return nil
	}
	return root
}

// is reports whether a path is that of a directory, and not of a link to it.
func is(path string, dir *os.Root) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	opened, err := dir.Stat(".")
	return err == nil && os.SameFile(there, opened)
}
