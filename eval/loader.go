package eval

import (
	"os"
	"path/filepath"
	"waza/eval/decode"
)

// loader holds what is shared while one suite is read.
type loader struct {
	decode.Findings
	options  Options
	suite    *Suite
	shownDir string             // the suite's directory as the caller wrote it
	src      *decode.Source     // the suite file
	skills   map[string][]skill // skills found in a directory, by its path
	usual    *[]string          // what usualSkillDirectory found; nil before
	matrix   map[string]matrixNodes
	texts    []string // of the YAML files that were read
}

// looked tells the caller of what the suite depends on.
func (l *loader) looked(paths ...string) {
	if l.options.Looked == nil {
		return
	}
	for _, path := range paths {
		l.options.Looked(path)
	}
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// RepositoryRoot returns the nearest directory at or above dir that holds .git,
// or "".
func RepositoryRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
