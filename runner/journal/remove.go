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

	"waza/eval/files"
	"waza/runner/record"
)

// trashDir is the directory for runs that are about to be deleted. A rename removes a run from
// the list at once and completely, however long the deletion takes.
const trashDir = "trash"

func (s *Store) trash() string { return filepath.Join(s.dir, trashDir) }

// Discard moves a run, its workspaces and its exports out of the store and returns their directory
// in the trash. The caller deletes it. The error is [record.ErrRunNotFound], or [ErrRecorded] or
// [ErrAmended] when a process has the run.
func (s *Store) Discard(id string) (trash string, err error) {
	if !ValidID(id) || s.hides(id) {
		return "", notFound(id)
	}
	r := s.At(id)
	if _, err := os.Lstat(r.dir); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", notFound(id)
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
	// If this fails, the workspaces become leftovers.
	if err := os.Rename(r.work, filepath.Join(trash, "work")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return trash, err
	}
	if err := os.Rename(s.ExportsDir(id), filepath.Join(trash, files.ExportsDir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return trash, err
	}
	return trash, nil
}

// claim keeps all other writers from the run until free is called. The error is [ErrRecorded] or
// [ErrAmended] when another writer has the run. The file of the lock of amendments remains.
func (r *Run) claim() (free func(), err error) {
	amend, err := r.lockAmend()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(r.JournalPath())
	if errors.Is(err, os.ErrNotExist) { // an incomplete record
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
	GarbageWorkspaces = "workspaces" // of a run whose process has died
	GarbageScratch    = "scratch"    // the files of a [Scratch] whose owner has died
	GarbageTrash      = "trash"      // a run that was not removed completely
	GarbageFile       = "file"       // a file that was being written when its process died
	GarbageRun        = "unrecorded" // a run whose process died before it was recorded
)

// Garbage is a file or directory that nothing needs.
type Garbage struct {
	Kind string
	Run  string // id of its run; empty for none
	Path string
}

// unfinishedAge is the minimum age of garbage where no lock shows whether a process is still
// writing it.
const unfinishedAge = time.Hour

// Collect calls remove for each piece of garbage, while no process can start to need it. Collect
// continues after a failed removal; remove has to record its own errors. Collect is safe beside
// processes that record runs.
func (s *Store) Collect(now time.Time, remove func(Garbage)) error {
	if all := remove; s.sees != nil {
		remove = func(g Garbage) {
			if g.Run != "" && s.sees(g.Run) {
				all(g)
			}
		}
	}
	c := &collector{s, now.Add(-unfinishedAge), remove}
	for _, name := range names(s.work()) {
		switch id, taken := strings.CutPrefix(name, takenPrefix); {
		case taken: // by a process that died before removing them
			kind, run := GarbageWorkspaces, id[:max(0, strings.LastIndexByte(id, '-'))]
			if run == "" {
				kind = GarbageScratch
			}
			remove(Garbage{kind, run, filepath.Join(s.work(), name)})
		case isScratchLock(name):
			withDeadScratch(filepath.Join(s.work(), name), func(dir string) { remove(Garbage{GarbageScratch, "", dir}) })
		case ValidID(name):
			c.workspaces(name)
		}
	}
	for _, name := range names(s.trash()) {
		remove(Garbage{GarbageTrash, "", filepath.Join(s.trash(), name)})
	}
	for _, dir := range []string{s.dir, s.Index().dir} {
		for _, name := range names(dir) {
			if path := filepath.Join(dir, name); isUnfinished(name) && c.isOld(path) {
				remove(Garbage{GarbageFile, "", path})
			}
		}
	}
	ids, err := s.List()
	if err != nil {
		return err
	}
	for _, id := range ids {
		c.run(id)
	}
	return nil
}

// A collector finds the garbage of a store's runs.
type collector struct {
	store  *Store
	old    time.Time // files that were last changed before that can be garbage without a lock
	remove func(Garbage)
}

func (c *collector) isOld(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.ModTime().Before(c.old)
}

// workspaces finds the workspaces of a run whose process has died, unless another process is
// resuming the run.
func (c *collector) workspaces(id string) {
	r := c.store.At(id)
	free, err := r.claim()
	switch {
	case err == nil:
		defer free()
	case !errors.Is(err, record.ErrRunNotFound): // otherwise the run no longer exists
		return
	}
	c.remove(Garbage{GarbageWorkspaces, id, r.work})
}

// run finds the garbage among the files of one run.
func (c *collector) run(id string) {
	r := c.store.At(id)
	if !r.Recorded() {
		if c.isOld(r.dir) && !r.Alive() {
			c.remove(Garbage{GarbageRun, id, r.dir})
		}
		return
	}
	if len(unfinished(r.dir)) == 0 {
		return
	}
	free, err := r.claim()
	if err != nil {
		return // the process that has the run finishes its files
	}
	defer free()
	for _, name := range unfinished(r.dir) { // files that were just finished are no longer listed
		c.remove(Garbage{GarbageFile, id, filepath.Join(r.dir, name)})
	}
}

// unfinished lists the files in a run's directory that are being written or were never finished.
func unfinished(dir string) []string {
	return slices.DeleteFunc(names(dir), func(name string) bool { return !isUnfinished(name) && !strings.HasSuffix(name, requestSuffix) })
}

// isUnfinished reports whether the name is that of a file that is renamed when it is complete.
func isUnfinished(name string) bool { return name[0] == '.' && strings.Contains(name, "-") }

// names lists a directory; empty when it cannot be read.
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

// WorkDir returns the directory of the run's workspaces, which may not exist.
func (r *Run) WorkDir() string { return r.work }
