package eval

import (
	"path/filepath"
	"strings"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/reach"
)

// A reader reads the files that one suite may read, on the disk or unsaved in an editor. It reports
// to the caller of Load which files the suite depends on, and shows paths as the caller would.
type reader struct {
	view     files.View
	places   reach.Places
	shownDir string // the suite's directory as the caller wrote it
}

// MaxFixtureBytes limits a file that is put into a workspace, maxTaskFixtures all such files of
// one task. Every trial copies them.
const (
	MaxFixtureBytes = 1 << 30
	maxTaskFixtures = 4 << 30
)

// Size limits of the files that are read. A file that is too large is refused before its first
// byte is read.
const (
	maxYAMLBytes    = decode.MaxTextBytes
	maxPromptBytes  = decode.MaxTextBytes
	maxDatasetBytes = 64 << 20
)

// dependsOn reports the paths that the suite depends on to the caller of Load.
func (r *reader) dependsOn(paths ...string) { r.view.Note(paths...) }

// readFile returns the content of a file of the suite of at most limit bytes, or of the editor's
// unsaved copy of it. [reach.Places.Open] documents the files that it refuses.
func (r *reader) readFile(path string, limit int64) ([]byte, error) {
	return r.view.Read(path, limit, r.places.ReadFile)
}

// readSkill is like readFile, for the files of a skill.
func (r *reader) readSkill(path string, limit int64) ([]byte, error) {
	return r.view.Read(path, limit, r.places.ReadSkill)
}

// readNear is like readFile, for a file above the suite. It refuses a link that leads out of the
// file's directory.
func (r *reader) readNear(path string, limit int64) ([]byte, error) {
	return r.view.Read(path, limit, func(path string, limit int64) ([]byte, error) {
		if reach.Within(r.places.Root(), path) {
			return r.places.ReadFile(path, limit)
		}
		return files.ReadNamed(filepath.Dir(path), "its directory", path, limit)
	})
}

// display returns an absolute path as the caller of Load would write it: relative to the
// caller's path of the suite.
func (r *reader) display(abs string) string {
	rel, err := filepath.Rel(r.places.Dir, abs)
	if err != nil {
		return filepath.ToSlash(abs)
	}
	return filepath.ToSlash(filepath.Join(r.shownDir, rel))
}

func (r *reader) displayAll(paths []string) string {
	shown := make([]string, len(paths))
	for i, p := range paths {
		shown[i] = r.display(p)
	}
	return strings.Join(shown, ", ")
}

// relative returns a path relative to the suite's directory, with slashes.
func (r *reader) relative(path string) string {
	rel, err := filepath.Rel(r.places.Dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// beside returns the directory of the task's file; "" for a task of the suite file.
func (r *reader) beside(t *Task) string {
	if t == nil || t.File == r.places.File {
		return ""
	}
	return filepath.Dir(t.File)
}
