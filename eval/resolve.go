package eval

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
)

// Paths of a suite are relative to the suite's directory. In a task file, which may be
// elsewhere, they are tried relative to that file as well where the suite's directory
// has no such file, so that a task can keep its files beside it.

// Beside is embedded in the options of graders that name files, with the tag
// `yaml:"-"`. It finds the files also beside the task file that declares the grader.
// The zero value is that of a grader of the suite.
type Beside struct{ dir string }

// declaredIn notes the directory of the task file.
func (b *Beside) declaredIn(dir string) { b.dir = dir }

// Resolve finds a regular file that the options name by a relative path: in the
// suite's directory, else in its repository's root (the nearest directory above with a
// .git), else beside the task file, else in the process's directory. It returns the
// file's absolute path and all paths that were tried up to it. An absolute path is
// taken as it is.
func (b Beside) Resolve(s *Suite, rel string) (abs string, tried []string, ok bool) {
	return s.resolve(rel, b.dir)
}

// Resolve is [Beside.Resolve] for a file that the suite itself names.
func (s *Suite) Resolve(rel string) (abs string, tried []string, ok bool) {
	return s.resolve(rel, "")
}

// resolve looks in beside, too, unless that is "".
func (s *Suite) resolve(rel, beside string) (abs string, tried []string, ok bool) {
	if rel == "" {
		return "", nil, false
	}
	if filepath.IsAbs(rel) {
		return rel, []string{rel}, files.IsRegular(rel)
	}
	dirs := []string{s.Dir}
	if root := files.RepositoryRoot(s.Dir); root != "" {
		dirs = append(dirs, root)
	}
	if beside != "" {
		dirs = append(dirs, beside)
	}
	if wd, err := os.Getwd(); err == nil {
		dirs = append(dirs, wd)
	}
	for _, dir := range dirs {
		p := filepath.Join(dir, filepath.FromSlash(rel))
		if slices.Contains(tried, p) {
			continue
		}
		tried = append(tried, p)
		if files.IsRegular(p) {
			return p, tried, true
		}
	}
	return "", tried, false
}

// beside returns the directory of the task's file; "" for a task of the suite file.
func (l *loader) beside(t *Task) string {
	if t == nil || t.File == l.suite.File {
		return ""
	}
	return filepath.Dir(t.File)
}

// directory returns a directory of the task, relative to the suite: as the task has it
// unless there is such a directory only beside the task file.
func (c *taskCheck) directory(dir string) string {
	l := c.loader
	beside := l.beside(c.task)
	if dir == "" || beside == "" || filepath.IsAbs(dir) || files.IsDir(l.fromSuite(dir)) {
		return dir
	}
	found := filepath.Join(beside, filepath.FromSlash(dir))
	l.looked(found)
	if !files.IsDir(found) {
		return dir
	}
	return l.relative(found)
}

// maxMentioned bounds the words of a text that are taken for names of files.
const maxMentioned = 1000

// Mentioned returns the absolute paths of the regular files at or below the
// suite's directory that shell commands name, or the arguments of a program:
// relative to dir, which is relative to the suite's, or by $WAZA_SUITE_DIR. It
// takes commands for words and runs nothing, so what a command makes up of parts
// it does not find; what a command writes to by '>' is none. Each file is returned
// once.
func (s *Suite) Mentioned(dir string, commands ...string) []string {
	base := filepath.FromSlash(dir)
	if !filepath.IsAbs(base) {
		base = filepath.Join(s.Dir, base)
	}
	suiteDir := strings.NewReplacer("${WAZA_SUITE_DIR}", s.Dir, "$WAZA_SUITE_DIR", s.Dir)
	var found []string
	words := 0
	for _, command := range commands {
		for word := range wordsOf(command) {
			if words++; words > maxMentioned {
				return found
			}
			path := filepath.Clean(filepath.FromSlash(suiteDir.Replace(word)))
			if !filepath.IsAbs(path) {
				path = filepath.Join(base, path)
			}
			if within(s.Dir, path) && !slices.Contains(found, path) && files.IsRegular(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// wordsOf gives the words of a shell command, but for those that output goes to.
func wordsOf(command string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := command; rest != ""; {
			start := strings.IndexFunc(rest, func(r rune) bool { return !betweenWords(r) })
			if start < 0 {
				return
			}
			written := strings.Contains(rest[:start], ">")
			rest = rest[start:]
			end := strings.IndexFunc(rest, betweenWords)
			if end < 0 {
				end = len(rest)
			}
			if !written && !yield(rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// betweenWords reports what parts the words of a shell command.
func betweenWords(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;&|<>()=,", r) }
