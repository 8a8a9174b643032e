package attack

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"waza/eval"
	"waza/eval/files"
	"waza/eval/reach"
)

const (
	// maxCopyBytes limits the bytes of a copy of a suite, maxCopyFiles its files and directories.
	maxCopyBytes = 1 << 30
	maxCopyFiles = 50_000
)

// An original is a suite on disk, from which each agent gets a copy.
type original struct {
	suite, dir, root string
	// outside are the files of the repository that the suite depends on outside of its directory,
	// sorted.
	outside []string
	// skip are directories that no copy contains.
	skip []string
	// repositories means that tasks check out commits, so a copy needs them.
	repositories bool
}

// newOriginal returns the original of a suite. depends are absolute paths of files on which the
// suite depends.
func newOriginal(s *eval.Suite, depends map[string]bool, skip ...string) *original {
	o := &original{suite: s.File, dir: s.Dir, root: s.Root(), skip: skip}
	for _, path := range slices.Sorted(maps.Keys(depends)) {
		if reach.Within(o.root, path) && !reach.Within(o.dir, path) && files.IsRegular(path) {
			o.outside = append(o.outside, path)
		}
	}
	o.repositories = slices.ContainsFunc(s.Tasks, func(t *eval.Task) bool { return len(t.Inputs.Repos) > 0 })
	return o
}

// copyTo copies the suite's directory and the other files of the repository on which it depends to
// a directory that does not exist yet, which becomes the root of the copy. It returns the path of
// the suite's copy. Files keep their modes. A link within the directory stays a link; another one is
// replaced by the file that it leads to, so that no writer of the copy reaches the original.
func (o *original) copyTo(ctx context.Context, to string) (suite string, err error) {
	c := &copying{original: o, ctx: ctx, to: to, left: maxCopyBytes}
	if err := os.MkdirAll(filepath.Join(to, ".git"), 0o755); err != nil { // marks the root
		return "", err
	}
	if err := c.tree(o.dir); err != nil {
		return "", err
	}
	for _, path := range o.outside {
		if err := c.file(path); err != nil {
			return "", err
		}
	}
	if git := filepath.Join(o.root, ".git"); o.repositories && o.root != o.dir && files.IsDir(git) {
		if err := c.tree(git); err != nil {
			return "", err
		}
	}
	return c.place(o.suite), nil
}

// copying is the state of one copy.
type copying struct {
	*original
	ctx  context.Context
	to   string
	left int64 // bytes
	done int   // files and directories
}

// place returns the place of a file of the original in the copy.
func (c *copying) place(path string) string {
	rel, err := filepath.Rel(c.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		rel = filepath.Base(path) // cannot happen: callers give files below the root
	}
	return filepath.Join(c.to, rel)
}

// tree copies a directory.
func (c *copying) tree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case d.IsDir() && path != dir && (slices.Contains(c.skip, path) || d.Name() == ".git" && !c.repositories):
			return fs.SkipDir
		}
		if c.done++; c.done > maxCopyFiles {
			return fmt.Errorf("%s has more than %d files, too many for copies; move the suite into a directory of its own", c.dir, maxCopyFiles)
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(c.place(path), 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			return c.link(path)
		case d.Type().IsRegular():
			return c.file(path)
		}
		return nil // sockets and the like
	})
}

// link copies a link, or the file that it leads to if that is not within the suite's directory.
func (c *copying) link(path string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(target) && files.Within(c.dir, path) {
		return os.Symlink(target, c.place(path))
	}
	if files.IsRegular(path) {
		return c.file(path)
	}
	return nil // graders report missing files
}

// file copies a regular file.
func (c *copying) file(path string) error {
	from, err := files.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if c.left -= info.Size(); c.left < 0 {
		return fmt.Errorf("%s has more than %s, too much for copies; move the suite into a directory of its own", c.dir, files.Size(maxCopyBytes))
	}
	place := c.place(path)
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	to, err := os.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, io.LimitReader(from, info.Size())); err != nil {
		to.Close()
		return err
	}
	return to.Close()
}
