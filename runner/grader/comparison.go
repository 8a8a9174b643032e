package grader

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Comparison is the result of comparing files with their planned content.
type Comparison struct {
	// Changed are the differences. A large number of them is cut.
	Changed []Change
	// Compiled reports whether there are compiled modules of Python that somebody else than a
	// grader can have written.
	Compiled bool
	state    [sha256.Size]byte // of all files, changed or not
}

// Same reports whether no file changed between two comparisons, even for a moment.
func (c Comparison) Same(d Comparison) bool { return c.state == d.state }

// A Change is a difference between a file and its planned content.
type Change struct {
	Path  string
	Added bool     // the plan has no such file
	id    identity // of the present file; zero for none
}

// maxChanges is the maximum number of changes that a comparison returns. It bounds the work if an
// agent writes many files.
const maxChanges = 20

// identity identifies the content of a file without reading it.
type identity struct {
	dev, ino       uint64
	size           int64
	wrote, changed int64 // times of the last write and of the last change, in nanoseconds; changed is 0 if unknown
	mode           fs.FileMode
}

func identityOf(info fs.FileInfo) identity {
	id := identity{size: info.Size(), wrote: info.ModTime().UnixNano(), mode: info.Mode()}
	id.dev, id.ino, id.changed = systemIdentity(info)
	return id
}

// currentIdentity identifies the file at a path. It returns zero for none.
func currentIdentity(path string) identity {
	info, err := os.Lstat(path)
	if err != nil {
		return identity{}
	}
	return identityOf(info)
}

// clockSteps is more than the steps of the clock that file systems use.
const clockSteps = 2 * time.Second

// recent reports whether a change right after now can leave the identity as it is.
func (id identity) recent(now time.Time) bool {
	return id.changed == 0 || now.UnixNano()-id.changed < int64(clockSteps)
}

// comparer compares files with their planned content.
type comparer struct {
	found  Comparison
	state  hash.Hash
	buffer []byte // of note
}

func newComparer() *comparer { return &comparer{state: sha256.New()} }

// note adds a present file to the state.
func (c *comparer) note(path string, id identity) {
	c.buffer = append(append(c.buffer[:0], path...), 0)
	for _, n := range []int64{int64(id.dev), int64(id.ino), id.size, id.wrote, id.changed, int64(id.mode)} {
		c.buffer = binary.BigEndian.AppendUint64(c.buffer, uint64(n))
	}
	c.state.Write(c.buffer)
}

// add adds a change, unless the file is known as changed because an option names it.
func (c *comparer) add(change Change) {
	if !slices.ContainsFunc(c.found.Changed, func(known Change) bool { return known.Path == change.Path }) {
		c.found.Changed = append(c.found.Changed, change)
	}
}

func (c *comparer) full() bool { return len(c.found.Changed) >= maxChanges }

func (c *comparer) result() Comparison {
	c.state.Sum(c.found.state[:0])
	return c.found
}

// tree compares a tree with the present files.
func (c *comparer) tree(t *tree) {
	if t.dirs[t.place.Dir] == nil {
		if id := currentIdentity(t.place.Dir); id != (identity{}) {
			c.note(t.place.Dir, id)
			c.add(Change{t.place.Dir, true, id})
		}
		return
	}
	c.note(t.place.Dir, currentIdentity(t.place.Dir))
	for _, dir := range t.order {
		if c.full() {
			return
		}
		c.dir(t, dir)
	}
}

// dir compares the entries of a directory of a tree with the present ones.
func (c *comparer) dir(t *tree, dir string) {
	planned := t.dirs[dir]
	compiled := filepath.Base(dir) == compiledDir
	change := func(ch Change) {
		if compiled || ch.Added && filepath.Base(ch.Path) == compiledDir {
			c.found.Compiled = true
		} else {
			c.add(ch)
		}
	}
	names, err := namesIn(dir, len(planned)+maxAround)
	if err != nil {
		if id := currentIdentity(dir); id != (identity{}) || dir == t.place.Dir {
			change(Change{Path: dir, id: id}) // the directory that contains any other reports its absence
		}
		return
	}
	seen := 0
	for _, name := range names {
		path := filepath.Join(dir, name)
		f, known := planned[name]
		if known {
			seen++
		}
		info, err := os.Lstat(path)
		switch {
		case c.full():
			return
		case t.ignores(dir, name):
			c.found.Compiled = c.found.Compiled || name == compiledDir
			continue
		case err != nil: // it is gone since
			change(Change{Path: path, Added: !known})
			continue
		case !known && t.ofWaza(path):
			continue
		}
		id := identityOf(info)
		differs := !known || info.Mode().Type() != f.Type
		switch {
		case differs, f.Type == fs.ModeDir:
		case f.Type == fs.ModeSymlink:
			differs = f.linkDiffers(path)
		default:
			differs = f.differsFrom(path, id)
		}
		c.note(path, id)
		if differs {
			change(Change{path, !known, id})
		}
	}
	if seen == len(planned) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(planned)) {
		if path := filepath.Join(dir, name); currentIdentity(path) == (identity{}) && !c.full() {
			change(Change{Path: path})
		}
	}
}
