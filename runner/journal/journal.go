// Package journal is the durable record of runs: one directory per run below
// the state directory, holding run.json (what was asked), journal.jsonl (one
// numbered event per line, with a checksum), result.json (written last) and, where
// there are any, contents that lines refer to ([Blobs]). Workspaces stand apart, so
// that those of dead runs are found without a look at each. It knows lines, their
// numbers and files, not what they mean. Call [NewStore], then [Store.Create] to
// record a run, [Store.Open] to read one, [Run.Amend] to add lines to it and
// [Run.Reopen] to go on with it.
package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"waza/runner/record"
)

// The files of a run's directory, and the directory of all workspaces.
const (
	runFile     = "run.json"
	journalFile = "journal.jsonl"
	resultFile  = "result.json"
	amendFile   = "amend.lock"
	workDir     = "work"
)

// ErrNotFound says that there is no such run.
var ErrNotFound = record.ErrRunNotFound

// ErrVanished says that the record of a run was deleted while it was written.
var ErrVanished = errors.New("the record vanished while it was written")

// The errors of [Run.Amend] and [Run.Reopen].
var (
	ErrRecorded = errors.New("a process still records the run")
	ErrAmended  = errors.New("the run is being amended already")
)

// Store is a state directory. It is safe for concurrent use, also by several
// processes.
type Store struct {
	dir string
	// Sync says what a power failure may cost. It is set before the store is used.
	Sync  Sync
	fsync func(*os.File) error // see disk
	// sees reports whether a run exists for who uses the store; nil means that all do.
	sees func(id string) bool

	written *written // by this process
}

type written struct{ lines, bytes atomic.Int64 }

// NewStore uses the given state directory, which is made when the first run is.
func NewStore(dir string) *Store { return &Store{dir: dir, written: &written{}} }

// View returns a store as somebody sees it to whom only some runs are known. It lists
// these, and answers for all others as if they did not exist. What belongs to no run is
// neither deleted nor replaced through it. sees must be safe for concurrent use.
func View(s *Store, sees func(id string) bool) *Store {
	v := *s
	v.sees = sees
	return &v
}

// hides reports whether a run does not exist for who uses the store.
func hides(s *Store, id string) bool { return s.sees != nil && !s.sees(id) }

// DefaultDir is $WAZA_STATE, else waza below $XDG_STATE_HOME, else
// ~/.local/state/waza.
func DefaultDir() (string, error) {
	if dir := os.Getenv("WAZA_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "waza"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the state directory: %w; set WAZA_STATE", err)
	}
	return filepath.Join(home, ".local", "state", "waza"), nil
}

// Dir is the state directory.
func (s *Store) Dir() string { return s.dir }

// RunsDir is the directory that holds one directory per run, named by its id. It is
// made when the first run is.
func (s *Store) RunsDir() string { return s.runs() }

func (s *Store) runs() string { return filepath.Join(s.dir, "runs") }
func (s *Store) work() string { return filepath.Join(s.dir, workDir) }

// Written is how many lines and bytes of journals were written through the store.
func (s *Store) Written() (lines, bytes int64) { return s.written.lines.Load(), s.written.bytes.Load() }

func (s *Store) disk() disk { return disk{s.Sync, s.fsync} }

func (s *Store) run(id string) *Run {
	const sep = string(filepath.Separator)
	return &Run{dir: s.runs() + sep + id, work: s.work() + sep + id, disk: s.disk(), store: s}
}

// Leftovers takes the workspaces of runs whose process did not live to remove them,
// and returns the directories where they are now. Nobody uses these, also when such
// a run is gone on with. The caller removes them; what it leaves comes again.
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
		case ValidID(e.Name()):
			if dir, ok := s.run(e.Name()).takeWork(); ok {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// takenPrefix begins the names of directories of workspaces that are about to be
// removed.
const takenPrefix = ".taken-"

// takeWork renames the directory of the run's workspaces, unless a process needs
// them. While it looks nobody can begin to.
func (r *Run) takeWork() (dir string, ok bool) {
	if r.Alive() || r.amended() {
		return "", false
	}
	l, err := r.lockAmend()
	switch {
	case err == nil:
		defer release(l)
	case !errors.Is(err, ErrNotFound): // without its record a run is gone for good
		return "", false
	}
	if r.Alive() {
		return "", false
	}
	dir = filepath.Join(filepath.Dir(r.work), takenPrefix+filepath.Base(r.work)+"-"+strings.ToLower(rand.Text()[:10]))
	return dir, os.Rename(r.work, dir) == nil
}

// aheadBy is how far the date of a run may be ahead of the clock: clocks are set, and
// those of machines that share a state directory differ.
const aheadBy = 5 * time.Minute

// idTime is how the ids of runs begin.
const idTime = "20060102-150405"

// IsAhead reports whether a run is dated in the future: the clock was wrong when it
// was made, or is wrong now, and nobody knows how old the run is.
func IsAhead(id string, now time.Time) bool {
	limit := now.Add(aheadBy).UTC().Format(idTime)
	if id < limit || len(id) < len(idTime) {
		return false
	}
	_, err := time.Parse(idTime, id[:len(idTime)])
	return err == nil
}

// List returns the ids of all runs, newest first: ids begin with their time. Those
// that are dated in the future come last.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(s.runs())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && ValidID(e.Name()) && !hides(s, e.Name()) {
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

// Create makes the directory of a run, writes run.json and takes the lock that
// says the run is alive. The id must be new.
func (s *Store) Create(id string, run []byte) (*Writer, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("run id %q: not usable as a directory name", id)
	}
	if err := os.MkdirAll(s.runs(), 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	r := s.run(id)
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	w, err := r.create(run)
	if err != nil {
		_ = r.Remove()
		return nil, err
	}
	if err := errors.Join(r.disk.syncDir(s.runs()), r.disk.syncDir(s.dir)); err != nil {
		return nil, errors.Join(err, w.Close(), r.Remove())
	}
	return w, nil
}

// Open gives access to a recorded run, or [ErrNotFound].
func (s *Store) Open(id string) (*Run, error) {
	if !ValidID(id) || hides(s, id) {
		return nil, ErrNotFound
	}
	if r := s.run(id); r.Recorded() {
		return r, nil
	}
	return nil, ErrNotFound
}

// At gives access to a run that [Store.List] told of, without a look whether it is
// there still.
func (s *Store) At(id string) *Run { return s.run(id) }

// ValidID reports whether a run may have the id: it is a plain file name, so that it
// names nothing outside the directory of runs.
func ValidID(id string) bool {
	return id != "" && len(id) <= 128 && id[0] != '.' && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// Run is a recorded run. Its methods read files and hold nothing open.
type Run struct {
	dir, work string
	disk      disk // of its writers
	store     *Store
}

// Dir is the run's directory.
func (r *Run) Dir() string { return r.dir }

// Alive reports whether a process still records the run. One that only amends it
// does not count.
func (r *Run) Alive() bool { return lockedAt(r.JournalPath()) }

// amended reports whether a process amends the run.
func (r *Run) amended() bool { return lockedAt(filepath.Join(r.dir, amendFile)) }

func lockedAt(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return locked(f)
}

// JournalPath is the file of the run's lines.
func (r *Run) JournalPath() string { return filepath.Join(r.dir, journalFile) }

// Journal opens the run's lines from the first. The caller closes it.
func (r *Run) Journal() (*Reader, error) { return r.JournalFrom(Mark{}) }

// JournalFrom opens the run's lines from the mark on, which must be one of this
// run. A journal that is missing has none. The error is [ErrNotFound] when the run is
// gone. The caller closes the reader.
func (r *Run) JournalFrom(m Mark) (*Reader, error) {
	f, err := os.Open(r.JournalPath())
	if err = r.gone(err); errors.Is(err, os.ErrNotExist) {
		return newReader(strings.NewReader(""), io.NopCloser(nil), m), nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(m.offset, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return newReader(f, f, m), nil
}

// Lines opens the file of the run's lines; nil when it is missing. The error is
// [ErrNotFound] when the run is gone. The caller closes the file.
func (r *Run) Lines() (*os.File, error) {
	f, err := os.Open(r.JournalPath())
	if err = r.gone(err); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// touch gives the run's directory another time, by which those who watch the directory
// of all runs notice that this one changed. They see nothing of what is in it.
func (r *Run) touch() {
	now := time.Now()
	_ = os.Chtimes(r.dir, now, now) // it is gone, perhaps
}

// Remove deletes the run and all it recorded.
func (r *Run) Remove() error { return os.RemoveAll(r.dir) }

// writeAtomically replaces path by a file with what write writes, so that a
// crash leaves the old file or the new one and never a part.
func (d disk) writeAtomically(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := d.sync(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}
