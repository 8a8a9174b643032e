package grader

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waza/eval"
)

// snapshotDirs lists where snapshots are looked for before the places of other
// files of the suite: in contextDir alone when it is given, else in the fixture
// directory of the task. Only directories that are there are listed.
func snapshotDirs(suite *eval.Suite, task *eval.Task, contextDir string) []string {
	if contextDir != "" {
		return existingDirs(contextDir, suiteDirs(suite))
	}
	fixtures := "fixtures"
	if task != nil {
		fixtures = cmp.Or(task.ContextDir, fixtures)
	}
	return existingDirs(fixtures, []string{suite.Dir})
}

// suiteDirs are the places where paths of a suite lead: its directory, its
// repository's root and the process's directory.
func suiteDirs(suite *eval.Suite) []string {
	dirs := []string{suite.Dir}
	_, tried, _ := suite.Resolve(absentName)
	for _, path := range tried {
		if dir := filepath.Dir(path); dir != suite.Dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// absentName is a name that no file has, to learn where files are searched.
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

// findSnapshot returns the absolute path of a snapshot, or "" when there is none.
func findSnapshot(suite *eval.Suite, dirs []string, snapshot string) string {
	if !isLocal(snapshot) {
		return ""
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, filepath.FromSlash(snapshot))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	abs, _, ok := suite.Resolve(snapshot)
	if !ok {
		return ""
	}
	return abs
}

func searched(dirs []string) string {
	return strings.Join(append(dirs[:len(dirs):len(dirs)], "the suite's directory, its repository's root, the process's directory"), ", ")
}

// writeSnapshot renews a snapshot where it is, or makes it in the first of dirs.
// A reader sees the old content or the new.
func writeSnapshot(dirs []string, path, snapshot string, data []byte) error {
	if path == "" {
		if len(dirs) == 0 {
			return errors.New("update_snapshots: there is no directory for snapshots: give context_dir, or make fixtures/ beside the suite")
		}
		path = filepath.Join(dirs[0], filepath.FromSlash(snapshot))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return fmt.Errorf("snapshot %s: %w", snapshot, err)
		}
	} else if old, err := readBounded(path); err == nil && string(old) == string(data) {
		return nil
	}
	if err := replaceFile(path, data); err != nil {
		return fmt.Errorf("snapshot %s: %w", snapshot, err)
	}
	return nil
}

func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".snapshot-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
