package eval

import (
	"os"
	"path/filepath"
	"slices"

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
