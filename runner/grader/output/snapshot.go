package output

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/eval/files"
	"waza/runner/grader"
)

// snapshotDirs lists the directories that are searched for snapshots before the places of other
// files of the suite: context_dir alone if it is given, else the fixture directory of the task.
// Only existing directories are listed.
func (o *DiffOptions) snapshotDirs(suite *eval.Suite, task *eval.Task) []string {
	for _, path := range o.possibleDirs(suite, task) {
		if files.IsDir(path) {
			return []string{path}
		}
	}
	return nil
}

// possibleDirs lists the directories that [DiffOptions.snapshotDirs] chooses from.
func (o *DiffOptions) possibleDirs(suite *eval.Suite, task *eval.Task) []string {
	if o.ContextDir != "" {
		return suite.Candidates(o.ContextDir, o.BesideDir)
	}
	dir := "fixtures"
	if task != nil {
		dir = cmp.Or(task.ContextDir, dir)
	}
	return []string{suite.Path(dir)}
}

// snapshotPaths lists the paths that a snapshot can have, in the order of the search.
func (o *DiffOptions) snapshotPaths(suite *eval.Suite, dirs []string, snapshot string) []string {
	if !grader.IsLocal(snapshot) {
		return nil
	}
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(snapshot)))
	}
	return append(paths, suite.Candidates(snapshot, o.BesideDir)...)
}

// findSnapshot returns the absolute path of a snapshot, or "" if it does not exist.
func (o *DiffOptions) findSnapshot(suite *eval.Suite, dirs []string, snapshot string) string {
	for _, path := range o.snapshotPaths(suite, dirs, snapshot) {
		if files.IsRegular(path) {
			return path
		}
	}
	return ""
}

func searched(dirs []string) string {
	return strings.Join(append(dirs[:len(dirs):len(dirs)],
		"the suite's directory, its repository's root, the directory of the task file, the process's directory"),
		", ")
}

// writeSnapshot replaces an existing snapshot in place, or creates a new one in the first of
// dirs. A concurrent reader sees either the old content or the new.
func writeSnapshot(suite *eval.Suite, dirs []string, path, snapshot string, data []byte) (written string, changed bool, err error) {
	if path == "" {
		if len(dirs) == 0 {
			return "", false, errors.New("update_snapshots: no directory for snapshots: give context_dir, or create fixtures/ beside the suite")
		}
		path = filepath.Join(dirs[0], filepath.FromSlash(snapshot))
	} else if old, err := suite.ReadFile(path, grader.MaxFileBytes); err == nil && string(old) == string(data) {
		return path, false, nil
	}
	if err := replaceFile(suite, path, data); err != nil {
		return path, false, fmt.Errorf("snapshot %s: %w", snapshot, err)
	}
	return path, true, nil
}

func replaceFile(suite *eval.Suite, path string, data []byte) error {
	f, err := suite.Replace(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return f.Finish(err)
}
