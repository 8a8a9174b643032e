package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// trashDir is where runs go before they are deleted: a rename takes a run out of
// the list at once and as a whole, however long the deleting takes.
const trashDir = "trash"

func (s *Store) trash() string { return filepath.Join(s.dir, trashDir) }

// Discard takes a run and its workspaces out of the store and returns the
// directory, in the trash, that holds them; the caller deletes it. The error is
// [ErrNotFound], or [ErrRecorded] or [ErrAmended] when a process has the run.
func (s *Store) Discard(id string) (trash string, err error) {
	if !ValidID(id) || hides(s, id) {
		return "", ErrNotFound
	}
	r := s.run(id)
	if _, err := os.Lstat(r.dir); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", ErrNotFound
		}
		return "", err
	}
	release, err := r.claim()
	if err != nil {
		return "", err
	}
	defer release()
	trash = filepath.Join(s.trash(), id+"-"+strings.ToLower(rand.Text()[:8]))
	if err := os.MkdirAll(trash, 0o700); err != nil {
		return "", fmt.Errorf("trash: %w", err)
	}
	if err := os.Rename(r.dir, filepath.Join(trash, "run")); err != nil {
		_ = os.Remove(trash)
		return "", err
	}
	// What is left of it, should this not come about, is a leftover.
	if err := os.Rename(r.work, filepath.Join(trash, "work")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return trash, err
	}
	return trash, nil
}

// claim keeps everybody else from writing to the run until release is called. The
// error is [ErrRecorded] or [ErrAmended] when somebody does. It leaves the lock of
// amendments behind.
func (r *Run) claim() (free func(), err error) {
	amend, err := r.lockAmend()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(r.JournalPath())
	if errors.Is(err, os.ErrNotExist) { // a record that is not whole
		return func() { release(amend) }, nil
	}
	if err == nil && lockPatiently(f, moment) != nil {
		f.Close()
		err = ErrRecorded
	}
	if err != nil {
		release(amend)
		return nil, err
	}
	return func() {
		release(f)
		release(amend)
	}, nil
}

// Kinds of [Garbage].
const (
	GarbageWorkspaces = "workspaces" // of a run whose process is gone
	GarbageTrash      = "trash"      // a run that was removed, but not to the end
	GarbageFile       = "file"       // that was being written when its process ended
	GarbageRun        = "unrecorded" // a run whose process ended before it was recorded
)

// Garbage is what nobody needs.
type Garbage struct {
	Kind string
	Run  string // id of the run it is of; empty for none
	Path string
}

// unfinishedAge is how old a file or directory is at least that counts as
// garbage where no lock tells whether somebody is about to finish it.
const unfinishedAge = time.Hour

// Collect calls remove for each piece of garbage, while nobody else can come to
// need it. What remove returns does not keep it from going on; that is for remove
// to remember. It is safe beside processes that record runs.
func (s *Store) Collect(now time.Time, remove func(Garbage)) error {
	if all := remove; s.sees != nil {
		remove = func(g Garbage) {
			if g.Run != "" && s.sees(g.Run) {
				all(g)
			}
		}
	}
	for _, name := range names(s.work()) {
		switch id, taken := strings.CutPrefix(name, takenPrefix); {
		case taken: // by somebody who did not live to remove them
			remove(Garbage{GarbageWorkspaces, id[:max(0, strings.LastIndexByte(id, '-'))], filepath.Join(s.work(), name)})
		case ValidID(name):
			s.collectWork(name, remove)
		}
	}
	for _, name := range names(s.trash()) {
		remove(Garbage{GarbageTrash, "", filepath.Join(s.trash(), name)})
	}
	for _, dir := range []string{s.dir, s.index()} {
		for _, name := range names(dir) {
			if path := filepath.Join(dir, name); isUnfinished(name) && olderThan(path, now.Add(-unfinishedAge)) {
				remove(Garbage{GarbageFile, "", path})
			}
		}
	}
	ids, err := s.List()
	if err != nil {
		return err
	}
	for _, id := range ids {
		s.run(id).collect(id, now, remove)
	}
	return nil
}

// collectWork finds the workspaces of a run whose process is gone, unless another
// takes the run up just now.
func (s *Store) collectWork(id string, remove func(Garbage)) {
	r := s.run(id)
	free, err := r.claim()
	switch {
	case err == nil:
		defer free()
	case !errors.Is(err, ErrNotFound): // else there is no such run any more
		return
	}
	remove(Garbage{GarbageWorkspaces, id, r.work})
}

// collect finds the garbage among the files of one run.
func (r *Run) collect(id string, now time.Time, remove func(Garbage)) {
	if !r.Recorded() {
		if olderThan(r.dir, now.Add(-unfinishedAge)) && !r.Alive() {
			remove(Garbage{GarbageRun, id, r.dir})
		}
		return
	}
	if len(r.unfinished()) == 0 {
		return
	}
	free, err := r.claim()
	if err != nil {
		return // whoever has the run finishes what it writes
	}
	defer free()
	for _, name := range r.unfinished() { // what was finished just now is no more
		remove(Garbage{GarbageFile, id, filepath.Join(r.dir, name)})
	}
}

// unfinished lists the run's files that somebody is about to finish, or never will.
func (r *Run) unfinished() []string {
	return slices.DeleteFunc(names(r.dir), func(name string) bool { return !isUnfinished(name) && !strings.HasSuffix(name, requestSuffix) })
}

// isUnfinished reports whether a file of the name is one that is to be renamed
// when it is whole.
func isUnfinished(name string) bool { return name[0] == '.' && strings.Contains(name, "-") }

func olderThan(path string, then time.Time) bool {
	info, err := os.Lstat(path)
	return err == nil && info.ModTime().Before(then)
}

// names lists a directory; nothing when it cannot be read.
func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.Name()
	}
	return list
}

// Busy reports whether a process records or amends the run.
func (r *Run) Busy() bool { return r.Alive() || r.amended() }

// WorkDir is where workspaces of the run are, if there are any.
func (r *Run) WorkDir() string { return r.work }

// IndexDir is where the index of contents is, once there is one.
func (s *Store) IndexDir() string { return s.index() }
