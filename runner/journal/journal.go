// Package journal is the durable record of runs. Each run has a directory below the state
// directory. It contains run.json (the request), journal.jsonl (one numbered event per line,
// with a checksum and a digest that only waza can compute) and result.json (written last). It may
// also contain file contents that lines refer to ([Blobs]). Workspaces are separate, so that those
// of dead runs are found without reading each run. The package handles lines, their numbers and
// files, not their meaning. Call [NewStore], then [Store.Create] to record a run, [Store.Open] to
// read one, [Run.Amend] to append lines to it and [Run.Reopen] to continue it.
package journal

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"waza/eval/files"
	"waza/runner/record"
)

// The files in a run's directory, and the directory of all workspaces.
const (
	runFile     = "run.json"
	journalFile = "journal.jsonl"
	resultFile  = "result.json"
	amendFile   = "amend.lock"
	workDir     = files.WorkDir
	runsDir     = "runs"
)

// ErrVanished reports that the record of a run was deleted while it was written.
var ErrVanished = errors.New("the record was deleted while it was written")

// The errors of [Run.Amend] and [Run.Reopen].
var (
	ErrRecorded = errors.New("the run is still being recorded by a process")
	ErrAmended  = errors.New("the run is already being amended")
)

// A Store is a state directory, and owns the places of runs in it: its methods find, create and
// remove runs. The index, the key and the caches in the directory have types of their own. It is
// safe for concurrent use, also by several processes.
type Store struct {
	dir string
	// Sync determines what a power failure can destroy. It is set before the store is used.
	Sync  Sync
	fsync func(*os.File) error // see disk
	// sees reports whether a run is visible to the user of the store; nil means that all are.
	sees func(id string) bool

	keys    *keyring
	checks  *contentChecks
	written *written // by this process
}

type written struct{ lines, bytes atomic.Int64 }

// NewStore returns the store of a state directory. The first run creates the directory.
func NewStore(dir string) *Store {
	return &Store{dir: dir, keys: &keyring{dir: dir}, checks: &contentChecks{}, written: &written{}}
}

// View returns a store restricted to the runs that sees accepts. It lists only these runs, and
// treats all others as if they did not exist. It neither deletes nor replaces files that belong
// to no run. sees must be safe for concurrent use.
func (s *Store) View(sees func(id string) bool) *Store {
	v := *s
	v.sees = sees
	return &v
}

// hides reports whether a run is invisible to the user of the store.
func (s *Store) hides(id string) bool { return s.sees != nil && !s.sees(id) }

// DefaultDir returns the state directory of this process, see [files.StateDir].
func DefaultDir() (string, error) { return files.StateDir() }

// StateError returns an error about the state directory, with the remedy; nil for nil.
func StateError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrNotExist), errors.Is(err,
		syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return fmt.Errorf("state directory: %w; set WAZA_STATE to a directory that you can write", err)
	}
	return fmt.Errorf("state directory: %w", err)
}

// Dir returns the state directory.
func (s *Store) Dir() string { return s.dir }

// RunsDir returns the directory that contains one directory per run, named by its id. The first
// run creates it.
func (s *Store) RunsDir() string { return filepath.Join(s.dir, runsDir) }

// ExportsDir returns the directory below the state directory for files that clients export from
// a run. This package does not create it. It is removed with the run.
func (s *Store) ExportsDir(id string) string { return filepath.Join(s.dir, files.ExportsDir, id) }

func (s *Store) work() string { return filepath.Join(s.dir, workDir) }

// Written returns the number of lines and bytes of journals that were written through the store.
func (s *Store) Written() (lines, bytes int64) { return s.written.lines.Load(), s.written.bytes.Load() }

func (s *Store) disk() disk { return disk{s.Sync, s.fsync} }

// At returns a run that [Store.List] listed, without checking whether it still exists.
func (s *Store) At(id string) *Run {
	const sep = string(filepath.Separator)
	return &Run{dir: s.RunsDir() + sep + id, work: s.work() + sep + id, disk: s.disk(), store: s}
}

// Leftovers moves the workspaces of runs whose process died before removing them, and scratch
// directories of dead processes, and returns their new directories. Nothing uses these, even when
// such a run is resumed. The caller removes them; Leftovers returns the remaining ones again.
func (s *Store) Leftovers() []string {
	entries, err := os.ReadDir(s.work())
	if err != nil {
		return nil
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(s.work(), e.Name())
		switch {
		case strings.HasPrefix(e.Name(), takenPrefix):
			dirs = append(dirs, dir)
		case isScratchLock(e.Name()):
			if dir, ok := takeScratch(dir); ok {
				dirs = append(dirs, dir)
			}
		case ValidID(e.Name()):
			if dir, ok := s.At(e.Name()).takeWork(); ok {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// takenPrefix is the name prefix of directories of workspaces that are about to be removed.
const takenPrefix = ".taken-"

// takeWork renames the directory of the run's workspaces, unless a process needs them. While it
// checks, no process can start to use them.
func (r *Run) takeWork() (dir string, ok bool) {
	if r.Alive() || r.amended() {
		return "", false
	}
	l, err := r.lockAmend()
	switch {
	case err == nil:
		defer release(l)
	case !errors.Is(err, record.ErrRunNotFound): // without its record a run is permanently gone
		return "", false
	}
	if r.Alive() {
		return "", false
	}
	dir = filepath.Join(filepath.Dir(r.work), takenPrefix+filepath.Base(r.work)+"-"+strings.ToLower(rand.Text()[:10]))
	return dir, os.Rename(r.work, dir) == nil
}

// aheadBy is how far the date of a run may be ahead of the clock. Clocks are adjusted, and the
// clocks of machines that share a state directory differ.
const aheadBy = 5 * time.Minute

// idTime is the time layout at the start of run ids.
const idTime = "20060102-150405"

// IsAhead reports whether a run is dated in the future. The clock was wrong when the run was
// created, or is wrong now, so the age of the run is unknown.
func IsAhead(id string, now time.Time) bool {
	limit := now.Add(aheadBy).UTC().Format(idTime)
	if id < limit || len(id) < len(idTime) {
		return false
	}
	_, err := time.Parse(idTime, id[:len(idTime)])
	return err == nil
}

// List returns the ids of all runs, newest first: ids start with their time. Runs dated in the
// future come last.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(s.RunsDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && ValidID(e.Name()) && !s.hides(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	var ahead []string
	now := time.Now()
	ids = slices.DeleteFunc(ids, func(id string) bool {
		is := IsAhead(id, now)
		if is {
			ahead = append(ahead, id)
		}
		return is
	})
	return append(ids, ahead...), nil
}

// Create creates the directory of a run, writes run.json and acquires the lock that marks the
// run as alive. The id must be new.
func (s *Store) Create(id string, run []byte) (*Writer, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("run id %q: not usable as a directory name", id)
	}
	if err := os.MkdirAll(s.RunsDir(), 0o700); err != nil {
		return nil, StateError(err)
	}
	if _, err := s.keys.ensure(s.disk()); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	r := s.At(id)
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	w, err := r.create(run)
	if err != nil {
		_ = r.Remove()
		return nil, err
	}
	if err := errors.Join(r.disk.syncDir(s.RunsDir()), r.disk.syncDir(s.dir)); err != nil {
		return nil, errors.Join(err, w.Close(), r.Remove())
	}
	return w, nil
}

// Open returns a recorded run, or [record.ErrRunNotFound].
func (s *Store) Open(id string) (*Run, error) {
	if !ValidID(id) || s.hides(id) {
		return nil, notFound(id)
	}
	if r := s.At(id); r.Recorded() {
		return r, nil
	}
	return nil, notFound(id)
}

func notFound(id string) error { return fmt.Errorf("%w: %s", record.ErrRunNotFound, id) }

// ValidID reports whether id is a valid run id: a plain file name that refers to nothing outside
// the directory of runs.
func ValidID(id string) bool {
	return id != "" && len(id) <= 128 && id[0] != '.' && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// A Run is the directory of a recorded run: its journal, its two sealed files, its contents and its
// locks. All methods work on the files of this one directory, so they are one type. They keep nothing
// open; what stays open is a [Writer], [Reader], [Result] or [BlobReader].
type Run struct {
	dir, work string
	disk      disk // used by its writers
	store     *Store
}

// Dir returns the run's directory.
func (r *Run) Dir() string { return r.dir }

// Alive reports whether a process still records the run. A process that only amends the run does
// not count.
func (r *Run) Alive() bool { return lockedAt(r.JournalPath()) }

// amended reports whether a process amends the run.
func (r *Run) amended() bool { return lockedAt(filepath.Join(r.dir, amendFile)) }

func lockedAt(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return files.Locked(f)
}

// JournalPath returns the path of the file of the run's lines.
func (r *Run) JournalPath() string { return filepath.Join(r.dir, journalFile) }

// Journal opens the run's lines from the first. The caller closes the reader.
func (r *Run) Journal() (*Reader, error) { return r.JournalFrom(Mark{}) }

// JournalFrom opens the run's lines from a mark of the same run on. A missing journal has no
// lines. The error is [record.ErrRunNotFound] when the run does not exist. The caller closes the reader.
func (r *Run) JournalFrom(m Mark) (*Reader, error) {
	f, err := os.Open(r.JournalPath())
	if err = r.gone(err); errors.Is(err, os.ErrNotExist) {
		return newReader(strings.NewReader(""), io.NopCloser(nil), m, r.verifier()), nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(m.offset, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return newReader(f, f, m, r.verifier()), nil
}

// Lines opens the file of the run's lines; nil when it is missing. The error is [record.ErrRunNotFound]
// when the run does not exist. The caller closes the file.
func (r *Run) Lines() (*os.File, error) {
	f, err := os.Open(r.JournalPath())
	if err = r.gone(err); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// Mentions reports whether the file of the run's lines contains a text. It verifies nothing, which
// takes a fraction of the time of reading the lines.
func (r *Run) Mentions(text string) (bool, error) {
	f, err := r.Lines()
	if f == nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, 0, chunkSize)
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case bytes.Contains(b, []byte(text)):
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
		b = append(b[:0], b[max(0, len(b)-len(text)+1):]...) // the text may start here
	}
}

// touch changes the modification time of the run's directory. Watchers of the directory of all
// runs then notice that this run changed; they do not see its files.
func (r *Run) touch() {
	now := time.Now()
	_ = os.Chtimes(r.dir, now, now) // the run may have been removed
}

// Remove deletes the run and everything it recorded.
func (r *Run) Remove() error { return os.RemoveAll(r.dir) }

// writeAtomically replaces the file at path by the output of write. A crash leaves the old file
// or the new one and never a part, and so does a power failure, as far as the disk is synced.
func (d disk) writeAtomically(path string, write func(io.Writer) error) error {
	if err := files.WriteWhole(path, write, d.sync); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}
