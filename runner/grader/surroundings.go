package grader

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/runner/executor"
)

// Surrounded is implemented by options of graders that start programs. Programs find files that
// no option names: modules beside a script, data in a directory, other programs.
type Surrounded interface {
	// Around returns the places of such files. named are the files that the options name.
	Around(suite *eval.Suite, named []string) []Place
}

// A Place is a directory with files that a grader's programs can read.
type Place struct {
	Dir string // absolute; it need not exist
	// Flat leaves out its subdirectories.
	Flat bool
	// Packages includes the content of directories named node_modules.
	Packages bool
}

// covers reports whether p includes all files of q.
func (p Place) covers(q Place) bool {
	if p.Flat {
		return p.Dir == q.Dir && q.Flat
	}
	if !reach.Within(p.Dir, q.Dir) || q.Packages && !p.Packages {
		return false
	}
	return p.Packages || !slices.Contains(strings.Split(strings.TrimPrefix(q.Dir, p.Dir), string(filepath.Separator)), packagesDir)
}

const (
	packagesDir = "node_modules"
	compiledDir = "__pycache__"
)

// toolDirs are directories of installed packages. waza reads no content there, only what
// identifies each file.
var toolDirs = []string{packagesDir, ".venv", "venv", "site-packages"}

// ignored are names of entries that tools write by themselves. They decide no verdict, because
// graders do not use compiled modules of others, see [Comparison.Compiled].
var ignored = []string{".git", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store", compiledDir}

// Limits of the files around graders. waza looks at maxAround entries of a place. It notices
// changes of files beyond the other limits, but has no copy of them.
const (
	maxAround      = 50_000
	maxBesideFiles = 4000
	maxBesideFile  = 8 << 20
	maxBesideBytes = 64 << 20
	// maxAbove is the maximum number of entries of a directory above a grader's files.
	maxAbove = 10_000
)

// budget counts the copies of files that no option names.
type budget struct {
	files int
	bytes int64
}

func (b *budget) add(f PlannedFile) {
	b.files++
	b.bytes += int64(len(f.Data))
}

func (b *budget) left() int64 {
	if b.files >= maxBesideFiles {
		return -1
	}
	return min(maxBesideFile, maxBesideBytes-b.bytes)
}

// copiesLocked counts the copies in the trees, except in that of a place.
func (p *Planned) copiesLocked(except Place) *budget {
	b := &budget{}
	for place, t := range p.trees {
		if place == except {
			continue
		}
		for dir, entries := range t.dirs {
			for name, f := range entries {
				if _, named := p.files[filepath.Join(dir, name)]; f.Data != nil && !named {
					b.add(f)
				}
			}
		}
	}
	return b
}

// A tree is what a place contained when Planned read it.
type tree struct {
	place Place
	dirs  map[string]map[string]PlannedFile // entries of each directory that was read, by name
	order []string                          // the directories, each after the one that contains it
	// except are directories that waza itself writes to, and files with its output.
	except []string
	// unread is a directory that waza did not read because the place has too many entries.
	unread string
}

// Except leaves a directory that waza writes to out of the files around graders.
func (p *Planned) Except(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dir != "" && !slices.Contains(p.except, dir) {
		p.except = append(slices.Clip(p.except), dir)
	}
}

// ofWaza reports whether a directory is one that waza writes to, or the state directory around
// one.
func (t *tree) ofWaza(dir string) bool {
	return slices.ContainsFunc(t.except, func(own string) bool {
		return dir == own || reach.Within(dir, own) && files.IsRegular(filepath.Join(dir, files.StateMarker))
	})
}

// treesLocked returns the trees of places, and of directories that links in them lead to. It
// reads each once.
func (p *Planned) treesLocked(suite *eval.Suite, places []Place) []*tree {
	var trees []*tree
	for ; len(places) > 0; places = places[1:] {
		place := places[0]
		if slices.ContainsFunc(places[1:], func(other Place) bool { return other.covers(place) }) ||
			slices.ContainsFunc(trees, func(t *tree) bool { return t.place.covers(place) }) {
			continue
		}
		t := p.trees[place]
		if t == nil {
			t = p.listLocked(place)
			if p.trees == nil {
				p.trees = map[Place]*tree{}
			}
			p.trees[place] = t
		}
		trees = append(trees, t)
		for _, dir := range t.linkedDirs() {
			if reach.Within(suite.Root(), dir) {
				places = append(slices.Clip(places), Place{Dir: dir, Packages: place.Packages})
			}
		}
	}
	return trees
}

// listLocked reads a place: first the directories that are nearest to it, last those of tools.
func (p *Planned) listLocked(place Place) *tree {
	t := &tree{
		place: place, dirs: map[string]map[string]PlannedFile{},
		except: append([]string{filepath.Clean(os.TempDir())}, p.except...),
	}
	left, copies := cmp.Or(p.around, maxAround), p.copiesLocked(place)
	for queue, later := []string{place.Dir}, []string(nil); len(queue)+len(later) > 0; {
		if len(queue) == 0 {
			queue, later = later, nil
		}
		dir := queue[0]
		queue = queue[1:]
		names, err := namesIn(dir, left)
		if errors.Is(err, files.ErrTooLarge) {
			t.unread = dir
			break
		}
		if err != nil {
			continue // it does not exist or cannot be read
		}
		left -= len(names)
		t.dirs[dir], t.order = map[string]PlannedFile{}, append(t.order, dir)
		ofTool := t.ofTool(dir)
		for _, name := range names {
			path := filepath.Join(dir, name)
			info, err := os.Lstat(path)
			switch {
			case err != nil || t.ignores(dir, name):
			case isOutput(info):
				t.except = append(t.except, path)
			case !info.IsDir():
				t.dirs[dir][name] = p.entryLocked(path, info, ofTool, copies)
			case !t.ofWaza(path):
				t.dirs[dir][name] = plannedAs(info)
				switch {
				case place.Flat || name == packagesDir && !place.Packages:
				case slices.Contains(toolDirs, name):
					later = append(later, path)
				default:
					queue = append(queue, path)
				}
			}
		}
	}
	return t
}

// isOutput reports whether a file receives what this process prints, as in waza run >log.
func isOutput(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && slices.ContainsFunc([]*os.File{os.Stdout, os.Stderr}, func(f *os.File) bool {
		output, err := f.Stat()
		return err == nil && os.SameFile(info, output)
	})
}

// ofTool reports whether a directory of the place belongs to installed packages.
func (t *tree) ofTool(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir[len(filepath.Dir(t.place.Dir)):], string(filepath.Separator)), func(name string) bool {
		return slices.Contains(toolDirs, name)
	})
}

// ignores reports whether an entry of a directory is left out. Compiled modules of installed
// packages are not: Python is slow without them.
func (t *tree) ignores(dir, name string) bool {
	return slices.Contains(ignored, name) && (name != compiledDir || !t.ofTool(dir))
}

// entryLocked reads an entry of a directory that is no directory, and adds it to copies if it has
// one.
func (p *Planned) entryLocked(path string, info fs.FileInfo, ofTool bool, copies *budget) PlannedFile {
	if f, known := p.files[path]; known && f.err == nil && info.Mode().IsRegular() {
		return f
	}
	f := plannedAs(info)
	if info.Mode().Type() == fs.ModeSymlink {
		f = PlannedFile{Type: fs.ModeSymlink}
		target, err := os.Stat(path)
		if f.Link, _ = os.Readlink(path); err != nil || !target.Mode().IsRegular() {
			return f // without a link's text, it differs from every link
		}
		link := f.Link
		f = plannedAs(target)
		f.Type, f.Link = fs.ModeSymlink, link
		info = target
	}
	if limit := copies.left(); !ofTool && info.Mode().IsRegular() && info.Size() <= limit {
		if read := readPlanned(path, limit); read.Data != nil {
			read.Type, read.Link = f.Type, f.Link
			copies.add(read)
			return read
		}
	}
	return f
}

// namesIn returns the names in a directory, sorted. The error is [files.ErrTooLarge] if it has
// more than limit.
func namesIn(dir string, limit int) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(limit + 1)
	switch {
	case len(names) > limit:
		return nil, files.ErrTooLarge
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// linkedDirs returns the directories that links in the tree lead to.
func (t *tree) linkedDirs() []string {
	var dirs []string
	for _, dir := range t.order {
		for name, f := range t.dirs[dir] {
			if f.Type != fs.ModeSymlink || f.id != (identity{}) {
				continue
			}
			if path := filepath.Join(dir, name); files.IsDir(path) {
				if real, err := filepath.EvalSymlinks(path); err == nil {
					dirs = append(dirs, real)
				}
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// contents adds the planned content of the tree to all, see [Planned.Contents].
func (t *tree) contents(all map[string]PlannedFile) error {
	for _, dir := range t.order {
		if filepath.Base(dir) == compiledDir {
			continue
		}
		all[dir] = PlannedFile{Type: fs.ModeDir}
		for name, f := range t.dirs[dir] {
			path := filepath.Join(dir, name)
			switch {
			case name == compiledDir || f.Type&^(fs.ModeDir|fs.ModeSymlink) != 0: // no pipes and sockets
			case f.Type == fs.ModeDir:
				if t.dirs[path] == nil {
					all[path] = PlannedFile{} // unread
				}
			case f.Type == fs.ModeSymlink && !f.linkDiffers(path):
				all[path] = PlannedFile{Type: f.Type, Link: f.Link}
			case f.Data != nil:
				f.Type, f.Link = 0, ""
				all[path] = f
			case f.Type == fs.ModeSymlink && f.id == (identity{}): // of a directory, or of nothing
				all[path] = PlannedFile{Type: f.Type, Link: f.Link}
			default:
				if _, differs := f.differs(path); differs {
					return executor.Permanent(&ChangedError{path, "waza has no copy of its planned content"})
				}
				all[path] = PlannedFile{Executable: f.Executable}
			}
		}
	}
	return nil
}

// linkDiffers reports whether a symbolic link, or the file that it leads to, changed.
func (f *PlannedFile) linkDiffers(path string) bool {
	if to, err := os.Readlink(path); err != nil || to != f.Link {
		return true
	}
	if f.id == (identity{}) { // it led to no file
		return files.IsRegular(path)
	}
	_, differs := f.differs(path)
	return differs
}

// put sets the planned content of a path in a directory of the tree.
func (t *tree) put(path string, f PlannedFile) {
	if entries := t.dirs[filepath.Dir(path)]; entries != nil {
		entries[filepath.Base(path)] = f
	}
}

// nameLocked notes which entries the directories around files and places have, up to the suite's
// root.
func (p *Planned) nameLocked(suite *eval.Suite, paths []string, places []Place) {
	root := suite.Root()
	paths = slices.Clip(paths)
	for _, place := range places {
		paths = append(paths, place.Dir)
	}
	for _, path := range paths {
		for dir := filepath.Dir(path); reach.Within(root, dir); dir = filepath.Dir(dir) {
			if _, known := p.above[dir]; known {
				break
			}
			if p.above == nil {
				p.above = map[string][]string{}
			}
			names, err := namesIn(dir, maxAbove)
			if err == nil && names == nil {
				names = []string{}
			}
			p.above[dir] = names
		}
	}
}

// Above returns the names that a directory of the suite had, at or above graders' files.
func (p *Planned) Above(dir string) ([]string, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	names, known := p.above[dir]
	if known && names == nil {
		return nil, fmt.Errorf("%s cannot be read or has more than %d entries", dir, maxAbove)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == compiledDir }), nil
}

// Unread returns a directory around a grader's programs that waza does not check, because the
// place has too many files; "" if waza checks all.
func (p *Planned) Unread(options any, task *eval.Task) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, t := range p.used[userOf(options, task)].trees {
		if t.unread != "" {
			return t.unread
		}
	}
	return ""
}

// Adopt calls write, which writes files for graders, and plans the files around graders as it
// leaves them. A file that changed before stays a changed one, unless write replaces it.
func (p *Planned) Adopt(write func()) {
	earlier := p.compareTrees()
	write()
	if len(earlier) == 0 {
		return
	}
	later := p.compareTrees()
	p.mu.Lock()
	defer p.mu.Unlock()
	for place, before := range earlier {
		if later[place].Same(before) || len(before.Changed) >= maxChanges { // there can be more
			continue
		}
		old, now := *p.trees[place], p.listLocked(place)
		for _, c := range before.Changed {
			if id := currentIdentity(c.Path); id != (identity{}) && !id.mode.IsDir() && id != c.id {
				continue
			}
			now.restore(c.Path, &old)
		}
		*p.trees[place] = *now
	}
}

// restore replaces what the tree has at a path, and below it, with what an older one has.
func (t *tree) restore(path string, old *tree) {
	t.order = slices.DeleteFunc(t.order, func(dir string) bool { return reach.Within(path, dir) })
	maps.DeleteFunc(t.dirs, func(dir string, _ map[string]PlannedFile) bool { return reach.Within(path, dir) })
	for _, dir := range old.order {
		if reach.Within(path, dir) {
			t.order, t.dirs[dir] = append(t.order, dir), old.dirs[dir]
		}
	}
	if f, known := old.dirs[filepath.Dir(path)][filepath.Base(path)]; known {
		t.put(path, f)
	} else {
		delete(t.dirs[filepath.Dir(path)], filepath.Base(path))
	}
}

// compareTrees compares all trees with the present files.
func (p *Planned) compareTrees() map[Place]Comparison {
	p.mu.RLock()
	defer p.mu.RUnlock()
	checks := map[Place]Comparison{}
	for place, t := range p.trees {
		c := newComparer()
		c.tree(t)
		checks[place] = c.result()
	}
	return checks
}
