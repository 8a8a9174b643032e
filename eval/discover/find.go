package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"waza/eval/files"
)

// NotFoundError says that a suite file, or the directory to search, is not there.
type NotFoundError struct{ Path string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s: no such file or directory", e.Path) }

// AmbiguousError says that a directory was named where a suite is wanted, and
// it does not hold exactly one.
type AmbiguousError struct {
	Dir    string
	Suites []string // those found, possibly none
}

func (e *AmbiguousError) Error() string {
	if len(e.Suites) == 0 {
		return fmt.Sprintf("%s: no suite in this directory; a suite is a file named eval.yaml", e.Dir)
	}
	const most = 20
	list, rest := e.Suites, ""
	if len(list) > most {
		list, rest = list[:most], fmt.Sprintf(" and %d more", len(e.Suites)-most)
	}
	return fmt.Sprintf("%s: several suites in this directory, name one: %s%s", e.Dir, strings.Join(list, ", "), rest)
}

// Find returns the suite file that path means: itself or, where it is a directory,
// the only suite below it. The error is a [*NotFoundError], an [*AmbiguousError]
// or what kept it from being looked for.
func Find(path string, v files.View) (string, error) {
	if abs, err := filepath.Abs(path); err == nil && v.Overlay[abs] != nil {
		return path, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return "", &NotFoundError{Path: path}
	case err != nil:
		return "", fmt.Errorf("%s: %s", path, files.Reason(err))
	case !info.IsDir():
		return path, nil
	}
	suites, err := suitesAt(path, v)
	if err != nil {
		return "", err
	}
	if len(suites) == 0 {
		found, err := Suites(path, v)
		if err != nil {
			return "", err
		}
		for _, s := range found.Suites {
			suites = append(suites, s.Path)
		}
	}
	if len(suites) != 1 {
		return "", &AmbiguousError{Dir: path, Suites: suites}
	}
	return suites[0], nil
}

// suitesAt lists the suite files of a directory. One that is a link out of the
// directory's repository is an error: nobody has named it.
func suitesAt(dir string, v files.View) ([]string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	entries, _ := os.ReadDir(dir) // what cannot be listed holds no suite to find
	var suites []string
	for _, e := range entries {
		file, path := filepath.Join(dir, e.Name()), filepath.Join(abs, e.Name())
		switch root := files.RootOf(abs); {
		case !IsSuite(path) || !files.IsRegular(path):
		case !files.Within(root, path):
			return nil, fmt.Errorf("%s: %w", file, &files.OutsideError{Path: file, Place: rootWordOf(root, abs)})
		case !isWorkflowFile(path, v):
			suites = append(suites, file)
		}
	}
	return suites, nil
}

// rootWordOf says what a directory calls its root in messages.
func rootWordOf(root, dir string) string {
	if root == dir {
		return "its directory"
	}
	return "its repository"
}
