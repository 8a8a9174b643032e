package output

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/runner/grader"
)

// snapshotDirs lists the directories that are searched for snapshots before the places of other
// files of the suite: context_dir alone if it is given, else the fixture directory of the task.
// Only existing directories are listed.
func (o *DiffOptions) snapshotDirs(suite *eval.Suite, task *eval.Task) []string {
	if o.ContextDir != "" {
		return existingDirs(o.ContextDir, o.suiteDirs(suite))
	}
	fixtures := "fixtures"
	if task != nil {
		fixtures = cmp.Or(task.ContextDir, fixtures)
	}
	return existingDirs(fixtures, []string{suite.Dir})
}

// suiteDirs returns the directories in which a suite's paths are searched, see
// [eval.Beside.Resolve].
func (o *DiffOptions) suiteDirs(suite *eval.Suite) []string {
	dirs := []string{suite.Dir}
	_, tried, _ := o.Resolve(suite, absentName)
	for _, path := range tried {
		if dir := filepath.Dir(path); dir != suite.Dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// absentName is a name that no file has. Resolving it returns the searched places.
const absentName = "\x01"

// existingDirs returns the first of the places in which dir is a directory.
func existingDirs(dir string, places []string) []string {
	paths := []string{dir}
	if !filepath.IsAbs(dir) {
		paths = nil
		for _, place := range places {
			paths = append(paths, filepath.Join(place, filepath.FromSlash(dir)))
		}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return []string{path}
		}
	}
	return nil
}

// findSnapshot returns the absolute path of a snapshot, or "" if it does not exist.
func (o *DiffOptions) findSnapshot(suite *eval.Suite, dirs []string, snapshot string) string {
	if !grader.IsLocal(snapshot) {
		return ""
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, filepath.FromSlash(snapshot))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	abs, _, ok := o.Resolve(suite, snapshot)
	if !ok {
		return ""
	}
	return abs
}

func searched(dirs []string) string {
	return strings.Join(append(dirs[:len(dirs):len(dirs)], "the suite's directory, its repository's root, the directory of the task file, the process's directory"), ", ")
}

// writeSnapshot replaces an existing snapshot in place, or creates a new one in the first of
// dirs. A concurrent reader sees either the old content or the new.
func writeSnapshot(suite *eval.Suite, dirs []string, path, snapshot string, data []byte) (changed bool, err error) {
	if path == "" {
		if len(dirs) == 0 {
			return false, errors.New("update_snapshots: no directory for snapshots: give context_dir, or create fixtures/ beside the suite")
		}
		path = filepath.Join(dirs[0], filepath.FromSlash(snapshot))
	} else if old, err := suite.ReadFile(path, grader.MaxFileBytes); err == nil && string(old) == string(data) {
		return false, nil
	}
	if err := replaceFile(suite, path, data); err != nil {
		return false, fmt.Errorf("snapshot %s: %w", snapshot, err)
	}
	return true, nil
}

func replaceFile(suite *eval.Suite, path string, data []byte) error {
	f, err := suite.Replace(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}
