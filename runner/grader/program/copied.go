package program

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/text"
	"waza/runner/grader"
)

// copies are planned files written to another directory. They have the same places relative to
// each other as in the suite's repository.
type copies struct {
	root     string // of the suite
	dir      string
	contents map[string]grader.PlannedFile
	longest  []string // the paths of contents, longer ones before shorter ones
}

// copied writes planned files below dir and returns the command line and the environment with
// their paths there. Links lead to the rest of the suite's repository, as far as it existed when
// the run was planned.
func (g *programGrader) copied(
	line commandLine, environ []string, contents map[string]grader.PlannedFile, dir, workspace string,
) (commandLine, []string, error) {
	paths := slices.Sorted(maps.Keys(contents)) // directories before what they contain
	c := copies{g.env.Suite.Root(), dir, contents, slices.Clone(paths)}
	slices.Reverse(c.longest) // a path precedes those that it starts with
	above := map[string]bool{}
	for _, path := range paths {
		if err := c.write(path); err != nil {
			return commandLine{}, nil, err
		}
		for from := filepath.Dir(path); reach.Within(c.root, from) && !above[from]; from = filepath.Dir(from) {
			above[from] = true
		}
	}
	for from := range above {
		if contents[from].Type == fs.ModeDir {
			continue // complete
		}
		names, err := g.env.Planned.Above(from)
		if err != nil {
			return commandLine{}, nil, err
		}
		for _, name := range names {
			if err := link(filepath.Join(from, name), filepath.Join(c.place(from), name)); err != nil {
				return commandLine{}, nil, err
			}
		}
	}
	args := slices.Clone(line.args)
	for i, a := range args {
		args[i] = c.renamed(a, workspace)
	}
	environ = slices.Clone(environ)
	for i, kv := range environ {
		switch name, _, _ := strings.Cut(kv, "="); {
		case name == suiteVariable:
			environ[i] = name + "=" + c.place(g.env.Suite.Dir)
		case !ownPlaces().MatchString(name):
			environ[i] = c.renamed(kv, workspace)
		}
	}
	return commandLine{args, line.own}, environ, nil
}

// ownPlaces matches variables that name directories of the user or of waza.
var ownPlaces = text.Pattern(`^(?:HOME|PWD|OLDPWD|TMPDIR|XDG_.*|WAZA_.*)$`)

// place returns the place of the copy of a path.
func (c *copies) place(path string) string {
	if rel, err := filepath.Rel(c.root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(c.dir, "root", rel)
	}
	return filepath.Join(c.dir, "elsewhere", path)
}

// write writes the copy of a path. It reads the content that the plan does not hold.
func (c *copies) write(path string) error {
	f, to := c.contents[path], c.place(path)
	if f.Type == fs.ModeDir {
		return os.MkdirAll(to, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	switch {
	case f.Type == fs.ModeSymlink:
		target := f.Link
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if reach.Within(c.root, target) {
			target = c.place(target)
		}
		return link(target, to)
	case f.Data == nil:
		// Interpreters look for more files beside the target of a link, so only large files are
		// links.
		data, err := files.Read(path, maxLinked)
		if err != nil {
			return link(path, to)
		}
		f.Data = data
	}
	mode := fs.FileMode(0o600)
	if f.Executable {
		mode = 0o700
	}
	return os.WriteFile(to, f.Data, mode)
}

// maxLinked is the size of the largest file that is copied although waza does not hold its
// content.
const maxLinked = 8 << 20

// link creates a symbolic link unless there is something else.
func link(target, path string) error {
	if err := os.Symlink(target, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot link a file of the grader: %w", err)
	}
	return nil
}

// renamed returns a text with the paths of the copies instead of those of the originals. It does
// not change paths in the workspace, which can be below the suite's directory.
func (c *copies) renamed(text, workspace string) string {
	var out strings.Builder
	done := 0
	for i := 0; i < len(text); {
		from := ""
		if text[i] == '/' && !isRest(text[:i]) {
			from = c.pathAt(text[i:], workspace)
		}
		if from == "" {
			i++
			continue
		}
		out.WriteString(text[done:i])
		if from != workspace {
			out.WriteString(c.place(from))
		} else {
			out.WriteString(from)
		}
		i += len(from)
		done = i
	}
	return out.String() + text[done:]
}

// pathAt returns the longest path of an original, or the workspace, with which a text starts.
func (c *copies) pathAt(text, workspace string) string {
	starts := func(path string) bool {
		rest, ok := strings.CutPrefix(text, path)
		return ok && (rest == "" || !isNameByte(rest[0]))
	}
	if starts(workspace) {
		return workspace
	}
	for _, path := range c.longest {
		if starts(path) {
			return path
		}
	}
	return ""
}

// isRest reports whether a path that follows a text is the rest of another path.
func isRest(before string) bool {
	if before == "" || !isNameByte(before[len(before)-1]) {
		return false
	}
	start := strings.LastIndexFunc(before, func(r rune) bool { return r != '/' && (r > 127 || !isNameByte(byte(r))) })
	return strings.Contains(before[start+1:], "/")
}

// isNameByte reports whether a byte usually belongs to the name of a file.
func isNameByte(b byte) bool {
	return b > 127 || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || strings.IndexByte("_.-+~@", b) >= 0
}
