package grader

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"waza/eval"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/runner/executor"
)

// Limits of the copies of planned files. waza notices a change of a larger file and cannot grade
// with its planned content.
const (
	maxPlannedFile  = 64 << 20
	maxPlannedBytes = 256 << 20
)

// Planned holds the content that the files of a run's graders had before the first trial
// started. An agent can change files of the suite, so graders read files only through Planned,
// and each trial is graded with the same content. Programs also find files that no option names,
// so Planned holds the files around them, see [Surrounded]. It is safe for concurrent use. The
// zero value holds nothing. It is one type because one mutex guards the copied content, and each
// method reads or completes that content.
type Planned struct {
	mu     sync.RWMutex // guards the fields below
	files  map[string]PlannedFile
	used   map[user]usedFiles
	trees  map[Place]*tree
	above  map[string][]string // names in the directories at and above graders' files; nil for too many
	except []string            // directories that waza itself writes to
	held   int64               // number of copied bytes of files that options name
	around int                 // replaces maxAround in tests
}

// user is a grader of a task, known by its options.
type user struct {
	options any
	task    *eval.Task
}

// usedFiles are the files of a grader: those that it names, sorted, and the trees around them.
type usedFiles struct {
	paths []string
	trees []*tree
}

// PlannedFile is what a path was when Planned read it: a file with its content, a directory or a
// symbolic link. Data is nil if there is no copy of the content.
type PlannedFile struct {
	Data       []byte
	Executable bool
	Type       fs.FileMode // the type bits
	Link       string      // target of a symbolic link
	sum        string      // empty if waza did not read the content
	id         identity    // of the file that the path leads to
	recent     bool        // a change right after the reading can have left the same identity
	err        error       // why the file could not be read
}

// A ChangedError reports that a file of a grader changed during the run and that its planned
// content is not available.
type ChangedError struct {
	File   string // absolute path
	Reason string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("grader file %s changed during the run, and %s; start the run again", e.File, e.Reason)
}

// Hold reads the files that a grader of a task names, unless it has read them before. sums maps
// the paths of all of them below the suite's root to the hashes of their contents when the run
// was planned; nil means that they can have any content. The error is a [*ChangedError]. Files
// that cannot be read are no error before a grader needs them.
func (p *Planned) Hold(spec *eval.Grader, suite *eval.Suite, task *eval.Task, sums map[string]string) error {
	r, ok := spec.Options.(eval.Referrer)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := user{spec.Options, task}
	if _, known := p.used[key]; known {
		return nil
	}
	paths := slices.Clone(r.Refers(suite, task))
	slices.Sort(paths)
	paths = slices.Compact(paths)
	for _, path := range paths {
		f, known := p.files[path]
		if !known {
			f = p.readLocked(path)
		}
		if sums != nil && f.err == nil && f.sum != sums[path] && reach.Within(suite.Root(), path) {
			return executor.Permanent(&ChangedError{path, "waza has no copy of its planned content"})
		}
		if p.files == nil {
			p.files = map[string]PlannedFile{}
		}
		p.files[path] = f
	}
	used := usedFiles{paths: paths}
	if around, ok := spec.Options.(Surrounded); ok {
		places := around.Around(suite, paths)
		used.trees = p.treesLocked(suite, places)
		p.nameLocked(suite, paths, places)
	}
	if p.used == nil {
		p.used = map[user]usedFiles{}
	}
	p.used[key] = used
	return nil
}

// readLocked reads a file that an option names, and keeps its content if it is small enough.
func (p *Planned) readLocked(path string) PlannedFile {
	f := readPlanned(path, min(maxPlannedFile, maxPlannedBytes-p.held))
	p.held += int64(len(f.Data))
	if f.err == nil && f.Data == nil {
		f.sum, f.err = files.Digest(path)
	}
	return f
}

// readPlanned reads a file. If it has more than limit bytes, the result has no content and no
// hash.
func readPlanned(path string, limit int64) PlannedFile {
	f, err := files.Open(path)
	if err != nil {
		return PlannedFile{err: err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return PlannedFile{err: err}
	}
	planned := plannedAs(info)
	data, err := files.ReadAll(f, limit)
	if errors.Is(err, files.ErrTooLarge) {
		return planned
	}
	if err != nil {
		return PlannedFile{err: err}
	}
	if data == nil {
		data = []byte{}
	}
	planned.Data, planned.sum = data, digestOf(data)
	return planned
}

// plannedAs returns a file without its content.
func plannedAs(info fs.FileInfo) PlannedFile {
	id := identityOf(info)
	return PlannedFile{Executable: info.Mode()&0o111 != 0, Type: info.Mode().Type(), id: id, recent: id.recent(time.Now())}
}

// differs reports whether a path leads to other content than the planned one. id identifies the
// present file.
func (f *PlannedFile) differs(path string) (id identity, differs bool) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, true
	}
	id = identityOf(info)
	return id, f.differsFrom(path, id)
}

// differsFrom is like differs for the present file, which id identifies.
func (f *PlannedFile) differsFrom(path string, id identity) bool {
	switch {
	case id == f.id && (!f.recent || f.sum == ""):
		return false
	case f.sum == "" || !id.mode.IsRegular() || id.size != f.id.size || (id.mode&0o111 != 0) != f.Executable:
		return true
	}
	sum, err := files.Digest(path)
	return err != nil || sum != f.sum
}

// Replace sets the planned content of a file that waza itself replaced.
func (p *Planned) Replace(path string, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := readPlanned(path, int64(len(data)))
	if f.sum != digestOf(data) { // somebody changed it since
		f = PlannedFile{Data: append([]byte{}, data...), sum: digestOf(data)}
	}
	if _, known := p.files[path]; known {
		p.files[path] = f
	}
	for _, t := range p.trees {
		t.put(path, f)
	}
}

// Read returns the planned content of a file of the suite. It reads a file that no plan names
// with read. The caller must not change the content.
func (p *Planned) Read(path string, limit int64, read func(path string, limit int64) ([]byte, error)) ([]byte, error) {
	f, known := p.file(path)
	switch {
	case known && f.Data != nil && int64(len(f.Data)) > limit:
		return nil, files.ErrTooLarge
	case known && f.Data != nil:
		return f.Data, nil
	}
	data, err := read(path, limit)
	if err == nil && known && f.sum != "" && f.sum != digestOf(data) {
		return nil, executor.Permanent(&ChangedError{path, "it is too large for a copy"})
	}
	return data, err
}

func (p *Planned) file(path string) (f PlannedFile, known bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	f, known = p.files[path]
	return f, known
}

// First returns the first of the paths that is a planned file; "" if no path is. Graders look
// for a file in several places, and an agent could put a file into an earlier one.
func (p *Planned) First(paths []string) string {
	for _, path := range paths {
		if f, known := p.file(path); known && f.err == nil {
			return path
		}
	}
	return ""
}

// Compare compares the files of a grader, and those around its programs, with their planned
// content.
func (p *Planned) Compare(options any, task *eval.Task) Comparison {
	p.mu.RLock()
	defer p.mu.RUnlock()
	used := p.used[userOf(options, task)]
	c := newComparer()
	for _, path := range used.paths {
		f := p.files[path]
		if f.err != nil {
			continue
		}
		id, differs := f.differs(path)
		c.note(path, id)
		if differs {
			c.add(Change{Path: path})
		}
	}
	for _, t := range used.trees {
		c.tree(t)
	}
	return c.result()
}

// userOf returns the key of a grader. Options that no file belongs to have none.
func userOf(options any, task *eval.Task) user {
	if _, ok := options.(eval.Referrer); !ok {
		return user{}
	}
	return user{options, task}
}

// Contents returns the planned content of a grader's files and of those around its programs, by
// path. An entry without content, which is neither a directory nor a link, did not change: read
// it at its path. The error is a [*ChangedError] if a file changed that waza has no copy of. The
// caller must not change the contents.
func (p *Planned) Contents(options any, task *eval.Task) (map[string]PlannedFile, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := map[string]PlannedFile{}
	used := p.used[userOf(options, task)]
	for _, t := range used.trees {
		if err := t.contents(all); err != nil {
			return nil, err
		}
	}
	for _, path := range used.paths {
		switch f := p.files[path]; {
		case f.err != nil:
		case f.Data == nil:
			return nil, executor.Permanent(&ChangedError{path, "it is too large for a copy"})
		default:
			all[path] = f
		}
	}
	return all, nil
}

// Executable reports whether path is a planned file that could be started.
func (p *Planned) Executable(path string) bool {
	f, _ := p.file(path)
	return f.Executable
}

// Resolve finds a file like [eval.Suite.Resolve], but only among files that existed before the
// first trial started. It is a [waza/eval/reach.Resolver]. A suite whose hooks run before its
// tasks can also name files that its hooks write.
func (e *Env) Resolve(rel, beside string) (abs string, tried []string, ok bool) {
	abs, tried, ok = e.Suite.Resolve(rel, beside)
	if !e.Planned.holds() {
		return abs, tried, ok
	}
	// The search ends at the first file that exists now. An agent can have deleted it, or have
	// written one in an earlier place.
	if first := e.Planned.First(e.Suite.Candidates(rel, beside)); first != "" {
		return first, tried, true
	}
	if ok && len(e.Suite.Hooks.BeforeRun)+len(e.Suite.Hooks.BeforeTask) == 0 {
		return "", tried, false
	}
	return abs, tried, ok
}

func (p *Planned) holds() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.used != nil
}

// ReadFile returns the planned content of a file of the suite.
func (e *Env) ReadFile(path string) ([]byte, error) {
	return e.Planned.Read(path, MaxFileBytes, e.Suite.ReadFile)
}

func digestOf(data []byte) string {
	sum, _ := files.DigestOf(bytes.NewReader(data)) // memory has no read errors
	return sum
}

// changedNote reports how waza graded although files changed.
func changedNote(suite *eval.Suite, changed []Change) string {
	var lines []string
	for _, c := range changed {
		format := "grader file %s changed during the run; waza graded with its planned content"
		if c.Added {
			format = "%s was added beside the grader's files during the run; waza graded without it"
		}
		lines = append(lines, fmt.Sprintf(format, shownPath(suite, c.Path)))
	}
	return strings.Join(lines, "\n")
}

// shownPath returns a path relative to the suite's directory if it is below it.
func shownPath(suite *eval.Suite, path string) string {
	if rel, err := filepath.Rel(suite.Dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}
