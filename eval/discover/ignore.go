package discover

import (
	"path/filepath"
	"regexp"
	"strings"

	"waza/eval/files"
)

// ignores are the patterns of .gitignore files, outermost directory first. The last match
// decides, like in git. They support only what can hide suites: comments, negation, '/' at
// either end, wildcards and '**'.
type ignores []ignore

type ignore struct {
	dir      string // absolute; patterns match paths relative to it
	pattern  *regexp.Regexp
	negated  bool
	dirsOnly bool
}

// maxIgnoreFile limits the size of a .gitignore, maxIgnorePatterns its patterns.
const (
	maxIgnoreFile     = 256 << 10
	maxIgnorePatterns = 2_000
)

func (is ignores) with(dir string) ignores {
	data, err := files.Read(filepath.Join(dir, ".gitignore"), maxIgnoreFile)
	if err != nil {
		return is
	}
	added := 0
	for line := range strings.Lines(string(data)) {
		if ig, ok := parseIgnore(dir, line); ok && added < maxIgnorePatterns {
			is = append(is, ig)
			added++
		}
	}
	return is
}

func parseIgnore(dir, line string) (ignore, bool) {
	line = strings.TrimRight(line, "\r\n")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " \t")
	}
	if line == "" || line[0] == '#' {
		return ignore{}, false
	}
	ig := ignore{dir: dir}
	line, ig.negated = strings.CutPrefix(line, "!")
	line, ig.dirsOnly = strings.CutSuffix(line, "/")
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if !anchored {
		line = "**/" + line
	}
	// Braces have no meaning in git.
	pattern, err := CompileGlob(strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line))
	ig.pattern = pattern
	return ig, err == nil && line != ""
}

// ignoresAbove returns the patterns of the directories above dir, starting at the root of its
// repository.
func ignoresAbove(dir string) ignores {
	root := files.RepositoryRoot(dir)
	if root == "" || root == dir {
		return nil
	}
	rel, err := filepath.Rel(root, filepath.Dir(dir))
	if err != nil {
		return nil
	}
	is := ignores(nil).with(root)
	at := root
	if rel != "." {
		for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
			at = filepath.Join(at, part)
			is = is.with(at)
		}
	}
	return is
}

// match reports whether git would ignore an absolute path.
func (is ignores) match(path string, isDir bool) bool {
	ignored := false
	for _, ig := range is {
		if ig.negated != ignored || ig.dirsOnly && !isDir {
			continue
		}
		rel, err := filepath.Rel(ig.dir, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if ig.pattern.MatchString(filepath.ToSlash(rel)) {
			ignored = !ig.negated
		}
	}
	return ignored
}
