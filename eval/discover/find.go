package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"waza/eval/dialect/builtin"
	"waza/eval/files"
)

// A NotFoundError means that a suite file, or the directory to search, does not exist.
type NotFoundError struct{ Path string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s: no such file or directory", e.Path) }

// An AmbiguousError means that a directory does not contain exactly one suite.
type AmbiguousError struct {
	Dir    string
	Suites []string // the suites in it; possibly empty
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
	return fmt.Sprintf("%s: several suites in this directory; choose one: %s%s", e.Dir, strings.Join(list, ", "), rest)
}

// Find returns the suite file for path: path itself, or the only suite below it if it is a
// directory. The error is a [*NotFoundError], an [*AmbiguousError] or the reason why the search
// failed.
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

// suitesAt returns the suite files of a directory. One that is a link out of the directory's
// repository is an error, because no user named it.
func suitesAt(dir string, v files.View) ([]string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	entries, _ := os.ReadDir(dir) // a directory that cannot be listed contains no suites
	var suites []string
	named := namesIn(abs, v)
	for _, e := range entries {
		file, path := filepath.Join(dir, e.Name()), filepath.Join(abs, e.Name())
		switch root := files.RootOf(abs); {
		case !isSuiteNamed(path, named) || !files.IsRegular(path):
		case !files.Within(root, path):
			return nil, fmt.Errorf("%s: %w", file, &files.OutsideError{Path: file, Place: rootWordOf(root, abs)})
		case !isWorkflowFile(path, v):
			suites = append(suites, file)
		}
	}
	return withoutRepeated(suites), nil
}

// withoutRepeated leaves out the suites of a directory that do others in several ways, unless it has only
// such suites.
func withoutRepeated(suites []string) []string {
	if others := slices.DeleteFunc(slices.Clone(suites), builtin.RepeatsOthers); len(others) > 0 {
		return others
	}
	return suites
}

// rootWordOf returns the name of a directory's root in messages.
func rootWordOf(root, dir string) string {
	if root == dir {
		return "its directory"
	}
	return "its repository"
}
