package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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
	// maxGlobEntries bounds how many files and directories one pattern looks at.
	maxGlobEntries = 500_000
	// maxGlobDepth bounds how deep a pattern with ** looks.
	maxGlobDepth = 256
)

// pathPattern names files and directories of a workspace: by a path, or by a
// pattern. A pattern names also what has its very text as its name, since names
// such as [id].tsx are common.
type pathPattern struct {
	text string
	// The fields below are those of a pattern. glob is nil for a plain path.
	glob   *regexp.Regexp // on paths below base
	base   string
	depth  int
	follow bool // symbolic links to directories
}

// newPathPattern parses a path or pattern. The error says what is wrong with it.
func newPathPattern(s string) (pathPattern, error) {
	p := pathPattern{text: s}
	if !strings.ContainsAny(s, `*?[{\`) {
		return p, nil
	}
	base, rest := doublestar.SplitPattern(path.Clean(s))
	glob, err := discover.CompileGlob(rest)
	if err != nil {
		return p, fmt.Errorf("malformed pattern %q (%w); a backslash before a special character takes its meaning away", text.Clip(s, grader.ExcerptBytes), err)
	}
	p.glob, p.base, p.depth = glob, base, maxGlobDepth
	// Links are not followed at any depth, because they may lead in circles.
	if p.follow = !strings.Contains(rest, "**"); p.follow {
		p.depth = strings.Count(rest, "/")
	}
	return p, nil
}

// checkPattern reports a path or pattern that is faulty or leads out of the workspace.
func checkPattern(c *eval.Check, at decode.Path, value string) {
	grader.CheckLocal(c, at, value)
	if _, err := newPathPattern(value); err != nil {
		c.Errorf(at, decode.CodeBadGlob, "%s: %s", at, err)
	}
}

// lost says that the workspace may have held what the pattern names, and that this
// is not known any more.
func (p *pathPattern) lost(s *grader.Subject) error {
	if p.glob != nil {
		return s.LostAt("") // it looks at many places
	}
	return s.LostAt(p.text)
}

// find returns the path of something that the pattern names, or "" when there is
// nothing. Symbolic links count by what they lead to when follow is set. The error
// is errEscapes, ctx's cause, or a fault of the file system: then nothing is known.
func (p *pathPattern) find(ctx context.Context, root *os.Root, follow bool) (string, error) {
	found, err := grader.Exists(root, p.text, follow)
	switch {
	case found:
		return p.text, nil
	case p.glob == nil:
		return "", err
	case err != nil && !errors.Is(err, grader.ErrEscapes):
		return "", err
	}
	w := &globWalk{pathPattern: p, ctx: ctx, root: root, linksCount: !follow}
	if err := w.directory("", p.depth); err != nil {
		return "", err
	}
	return w.found, nil
}

// globWalk looks for the first match of a pattern.
type globWalk struct {
	*pathPattern
	ctx        context.Context
	root       *os.Root
	linksCount bool // a link is a match wherever it leads
	seen       int
	found      string
}

// directory looks through a directory, given by its path below base, and through
// depth levels of those in it.
func (w *globWalk) directory(rel string, depth int) error {
	entries, err := fs.ReadDir(w.root.FS(), path.Join(w.base, rel))
	switch {
	case err == nil:
	case grader.Absent(err) || errors.Is(grader.RootFault(err), grader.ErrEscapes):
		return nil // nothing of the workspace is there
	default:
		return err
	}
	for _, e := range entries {
		if w.seen++; w.seen > maxGlobEntries {
			return fmt.Errorf("the workspace holds more than %d files and directories", maxGlobEntries)
		}
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		below := path.Join(rel, e.Name())
		isDir, err := w.visit(below, e)
		if err != nil || w.found != "" {
			return err
		}
		if isDir && depth > 0 {
			if err := w.directory(below, depth-1); err != nil || w.found != "" {
				return err
			}
		}
	}
	return nil
}

// visit notes a match. It reports whether the entry is a directory to look through.
func (w *globWalk) visit(below string, e fs.DirEntry) (isDir bool, err error) {
	name, there := path.Join(w.base, below), true
	isDir = e.IsDir()
	if e.Type()&fs.ModeSymlink != 0 {
		info, err := w.root.Stat(name)
		there = err == nil || w.linksCount
		isDir = err == nil && info.IsDir() && w.follow
	}
	if there && w.glob.MatchString(below) {
		w.found = name
	}
	return isDir, nil
}
