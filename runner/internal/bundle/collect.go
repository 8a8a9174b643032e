package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"waza/eval/files"
	"waza/eval/reach"
)

// skipped are directories that are not packed, because they are large and can be downloaded or
// generated.
var skipped = []string{".git", "node_modules", ".venv", "__pycache__"}

// isKeyFile reports whether a file usually contains keys. Such files are packed only if a task
// names them.
func isKeyFile(name string) bool { return name == ".env" || strings.HasPrefix(name, ".env.") }

const (
	// maxLinks is the maximum number of symbolic links on the path to a file.
	maxLinks = 40
	// maxWalked is the maximum number of files and directories that are counted for the error
	// message.
	maxWalked = 1_000_000
)

// source is an entry of the manifest and the file it comes from.
type source struct {
	entry
	file   string // absolute, without links below its root
	digest string // digest of the content in the plan, or empty
	gone   bool   // the file disappeared after it was found
}

// collector collects the files to pack. It must not be used concurrently.
type collector struct {
	ctx    context.Context
	limits Limits
	places *places
	found  map[string]*source // by portable path
	trees  map[string]bool    // visited directories
	usage  usage
	walked int
	// without are directories that are not packed.
	without []string
	// inside are the directories that are packed as a whole, without links. Links in them lead to
	// nothing else, unless the suite names the link: a link that somebody added to a suite must
	// not send files from elsewhere in the repository to other machines.
	inside []string
	named  map[string]bool
}

// allow adds directories that are packed as a whole, and paths that the suite names.
func (c *collector) allow(dirs []string, named ...string) {
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(c.inside, real) {
			c.inside = append(c.inside, real)
		}
	}
	for _, file := range named {
		c.named[filepath.Clean(file)] = true
	}
}

// leadsOut reports whether a link in a packed directory leads to something that is not packed.
func (c *collector) leadsOut(p string) bool {
	real, err := filepath.EvalSymlinks(p)
	return err != nil || !c.named[p] && !slices.ContainsFunc(c.inside, func(dir string) bool { return reach.Within(dir, real) })
}

// tree adds a directory with its content, except the files in except.
func (c *collector) tree(dir string, except map[string]bool) error {
	dir, err := c.file(dir, "")
	if err != nil || dir == "" || !files.IsDir(dir) || c.trees[dir] {
		return err
	}
	c.trees[dir] = true
	top := dir + string(filepath.Separator) // follows a link, because a root can be one
	return filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		switch {
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case p == top && err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist): // has just disappeared
			return nil
		case err != nil:
			return err
		}
		if c.walked++; c.walked > maxWalked {
			return c.tooMuch()
		}
		switch {
		case d.IsDir() && (slices.Contains(skipped, d.Name()) || slices.Contains(c.without, p)):
			return fs.SkipDir
		case except[p], isKeyFile(d.Name()), d.Name() == ".git": // a worktree has a file named .git
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			return c.linked(p)
		case d.IsDir(), d.Type().IsRegular():
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			return c.put(p, info, "", folder(dir, p))
		}
		return nil // a pipe or a socket
	})
}

// folder returns the entry of dir that contains a file, for use in messages.
func folder(dir, p string) string {
	rel, err := filepath.Rel(dir, p)
	if err != nil {
		return filepath.Dir(p)
	}
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return filepath.Join(dir, first)
}

// linked adds a link and its target, unless the link leads out.
func (c *collector) linked(p string) error {
	if c.leadsOut(p) {
		return nil
	}
	to, err := c.link(p)
	if err != nil || to == "" {
		return err
	}
	if rel, err := filepath.Rel(to, p); err == nil && filepath.IsLocal(rel) {
		return nil
	}
	if slices.Contains(skipped, filepath.Base(to)) || isKeyFile(filepath.Base(to)) {
		return nil
	}
	if files.IsDir(to) {
		return c.tree(to, nil)
	}
	_, err = c.file(to, "")
	return err
}

// file adds a file or directory with its parent directories and the links on its path, and
// returns its path without links. It omits a file that does not exist, or is outside its root,
// and returns "". The trial then finds the same part of the path as here.
func (c *collector) file(name, digest string) (real string, err error) {
	for range maxLinks {
		next, done, err := c.steps(name, digest)
		if err != nil || done {
			return next, err
		}
		name = next
	}
	return "", nil
}

// steps adds the directories on the path of a file, and then the file. At a link it adds the
// link, and returns the path of the file through the link, with done false.
func (c *collector) steps(name, digest string) (next string, done bool, err error) {
	root, rel, ok := c.places.find(name)
	if !ok {
		return "", true, nil
	}
	at, names := c.places.roots[root], strings.Split(rel, "/")
	if rel == "." {
		names = nil
	}
	for i := range len(names) + 1 {
		stat := os.Lstat
		if i > 0 {
			at = filepath.Join(at, names[i-1])
		} else { // the root itself can be a link
			stat = os.Stat
		}
		info, err := stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return "", true, nil
		case err != nil:
			return "", true, err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := c.link(at)
			if err != nil || to == "" {
				return "", true, err
			}
			return filepath.Join(append([]string{to}, names[i:]...)...), false, nil
		case !info.IsDir() && !info.Mode().IsRegular():
			return "", true, nil
		}
		if err := c.put(at, info, digest, filepath.Dir(at)); err != nil {
			return "", true, err
		}
	}
	return at, true, nil
}

// link adds a link, and returns its target. It omits a link whose target is outside its root or
// does not exist, and returns "".
func (c *collector) link(p string) (to string, err error) {
	root, _, ok := c.places.find(p)
	if !ok {
		return "", nil
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(p))
	if err != nil {
		return "", nil
	}
	to, err = os.Readlink(p)
	if err != nil {
		return "", nil
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(above, to)
	}
	realTo, err := filepath.EvalSymlinks(p) // resolves all further links
	if err != nil {
		return "", nil
	}
	realRoot, err := filepath.EvalSymlinks(c.places.roots[root])
	if err != nil {
		return "", nil
	}
	for _, target := range []string{to, realTo} {
		rel, err := filepath.Rel(realRoot, target)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		link, err := filepath.Rel(above, target)
		if err != nil {
			continue
		}
		name, _ := c.places.portable(p)
		e := entry{Path: name, Link: filepath.ToSlash(link)}
		if checkLink(e.Path, e.Link) != nil || !sameFile(filepath.Join(above, link), p) {
			continue
		}
		if err := c.note(&source{entry: e, file: p}, 0, filepath.Dir(p)); err != nil {
			return "", err
		}
		return filepath.Join(c.places.roots[root], rel), nil
	}
	return "", nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// put adds a file or directory whose parent directories are not links.
func (c *collector) put(file string, info fs.FileInfo, digest, folder string) error {
	name, ok := c.places.portable(file)
	if !ok {
		return nil
	}
	e := entry{Path: name, Mode: uint32(info.Mode().Perm()), Dir: info.IsDir()}
	if e.Dir {
		digest = ""
	} else {
		e.Size = info.Size()
	}
	if known := c.found[name]; known != nil {
		if digest != "" {
			known.digest = digest
		}
		return nil
	}
	if e.Size > c.limits.FileBytes {
		return fmt.Errorf("%s has %s, but a file in a fleet must have at most %s; make it smaller, or let trials download it",
			file, about(e.Size), files.Size(c.limits.FileBytes))
	}
	return c.note(&source{entry: e, file: file, digest: digest}, e.Size, folder)
}

// note adds an entry.
func (c *collector) note(s *source, bytes int64, folder string) error {
	if c.found[s.Path] != nil {
		return nil
	}
	if !utf8.ValidString(s.Path) || !isPortable(s.Path) {
		return fmt.Errorf("%q has a name that is not portable; rename it, or move it out of the suite", s.file)
	}
	c.usage.count(folder, bytes)
	c.found[s.Path] = s
	return nil
}

// tooMuch returns the error for files beyond the limits.
func (c *collector) tooMuch() error {
	if err := c.usage.check(c.limits); err != nil {
		return err
	}
	return fmt.Errorf("the directories of the suite and its skills must have at most %d files", maxWalked)
}

// entries returns the collected entries in the order of a manifest.
func (c *collector) entries() ([]*source, error) {
	if err := c.usage.check(c.limits); err != nil {
		return nil, err
	}
	list := slices.SortedFunc(maps.Values(c.found), func(a, b *source) int { return strings.Compare(sortKey(a.Path), sortKey(b.Path)) })
	for _, s := range list {
		if above := path.Dir(s.Path); above != "." && (c.found[above] == nil || !c.found[above].Dir) {
			return nil, fmt.Errorf("%s changed while it was packed; start the run again", s.file)
		}
	}
	return list, nil
}

// sortKey returns a key that sorts directories directly before their content.
func sortKey(p string) string { return strings.ReplaceAll(p, "/", "\x00") }
