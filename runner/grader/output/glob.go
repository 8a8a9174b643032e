package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/text"
	"waza/runner/grader"
)

const (
	// maxGlobEntries is the most files and directories that one pattern looks at.
	maxGlobEntries = 500_000
	// maxGlobDepth is the deepest level that a pattern with ** looks at.
	maxGlobDepth = 256
)

// A pathPattern names files and directories of a workspace by a path or by a pattern. A pattern
// also matches a name that equals its text, because names such as [id].tsx are common.
type pathPattern struct {
	text string
	// The fields below are for patterns. glob is nil for a plain path.
	glob   *regexp.Regexp // on paths below base
	base   string
	depth  int
	follow bool // follow symbolic links to directories
}

// newPathPattern parses a path or pattern. The error describes a malformed one.
func newPathPattern(s string) (pathPattern, error) {
	p := pathPattern{text: s}
	if !strings.ContainsAny(s, `*?[{\`) {
		return p, nil
	}
	base, rest := doublestar.SplitPattern(path.Clean(s))
	glob, err := discover.CompileGlob(rest)
	if err != nil {
		return p, fmt.Errorf("malformed pattern %q (%w): put a backslash before special characters that are meant literally",
			text.Clip(s, grader.ExcerptBytes), err)
	}
	p.glob, p.base, p.depth = glob, base, maxGlobDepth
	// ** does not follow links, because they can lead in circles.
	if p.follow = !strings.Contains(rest, "**"); p.follow {
		p.depth = strings.Count(rest, "/")
	}
	return p, nil
}

// checkPattern reports a path or pattern that is malformed or leads out of the workspace.
func checkPattern(c *eval.Check, at decode.Path, value string) {
	grader.CheckLocal(c, at, value)
	if _, err := newPathPattern(value); err != nil {
		c.Errorf(at, decode.CodeBadGlob, "%s: %s", at, err)
	}
}

// lost returns an error if it is no longer known whether the workspace contained a match.
func (p *pathPattern) lost(s *grader.Subject) error {
	if p.glob != nil {
		return s.MissingAt("") // the pattern looks at many places
	}
	return s.MissingAt(p.text)
}

// matching says which matches of a pattern count.
type matching struct {
	// follow lets a symbolic link count as its target.
	follow bool
	// files leaves out directories and special files.
	files bool
	// given reports whether a file does not count, because the agent started with it. Nil means that all
	// count.
	given func(path string) bool
}

// counts reports whether a match counts.
func (m *matching) counts(root *os.Root, name string) bool {
	if !m.files && m.given == nil {
		return true
	}
	stat := root.Lstat
	if m.follow && m.given == nil {
		stat = root.Stat
	}
	info, err := stat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular() && (m.given == nil || !m.given(path.Clean(name)))
}

// find returns the path of a match, or "" if nothing matches, like each.
func (p *pathPattern) find(ctx context.Context, root *os.Root, m matching) (found string, err error) {
	err = p.each(ctx, root, m, func(name string) (more bool) {
		found = name
		return false
	})
	return found, err
}

// each calls yield for each match that counts, until it wants no more. The error is ErrEscapes, the
// cause of ctx, or a fault of the file system; whether there are more matches is then unknown.
func (p *pathPattern) each(ctx context.Context, root *os.Root, m matching, yield func(name string) (more bool)) error {
	found, err := grader.Exists(root, p.text, m.follow)
	found = found && m.counts(root, p.text)
	switch {
	case found && (!yield(p.text) || p.glob == nil):
		return nil
	case p.glob == nil:
		return err
	case err != nil && !errors.Is(err, grader.ErrEscapes):
		return err
	}
	w := &globWalk{pathPattern: p, ctx: ctx, root: root, matching: m, yield: func(name string) bool {
		return found && name == path.Clean(p.text) || yield(name)
	}}
	return w.directory("", p.depth)
}

// A globWalk looks for the matches of a pattern.
type globWalk struct {
	*pathPattern
	matching
	ctx   context.Context
	root  *os.Root
	yield func(name string) (more bool)
	seen  int
	done  bool // no more matches are wanted
}

// directory searches a directory, given by its path below base, and depth levels of directories
// in it.
func (w *globWalk) directory(rel string, depth int) error {
	entries, err := fs.ReadDir(w.root.FS(), path.Join(w.base, rel))
	switch {
	case err == nil:
	case grader.Absent(err) || errors.Is(grader.RootFault(err), grader.ErrEscapes):
		return nil // not in the workspace
	default:
		return err
	}
	for _, e := range entries {
		if w.seen++; w.seen > maxGlobEntries {
			return fmt.Errorf("the workspace contains more than %d files and directories", maxGlobEntries)
		}
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		below := path.Join(rel, e.Name())
		isDir := w.visit(below, e)
		if isDir && depth > 0 && !w.done {
			err = w.directory(below, depth-1)
		}
		if err != nil || w.done {
			return err
		}
	}
	return nil
}

// visit yields a match. It reports whether the entry is a directory to search.
func (w *globWalk) visit(below string, e fs.DirEntry) (isDir bool) {
	name, there := path.Join(w.base, below), true
	isDir = e.IsDir()
	if e.Type()&fs.ModeSymlink != 0 {
		info, err := w.root.Stat(name)
		there = err == nil || !w.matching.follow // a link is a match wherever it leads
		isDir = err == nil && info.IsDir() && w.pathPattern.follow
	}
	if there && w.glob.MatchString(below) && w.counts(w.root, name) {
		w.done = !w.yield(name)
	}
	return isDir
}
