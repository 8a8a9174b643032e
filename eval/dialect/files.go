package dialect

import (
	"io/fs"
	"os"
	"path/filepath"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/reach"
)

// Files reads the files around a suite, and notes that the suite depends on them. All paths are
// absolute. A suite may read only the files that its places allow.
type Files struct {
	// Places are the directories of the suite.
	Places reach.Places
	// View contains the unsaved files of an editor.
	View files.View
	// Shown returns a path as messages have it.
	Shown func(path string) string
	// Parse parses a file that Read returned, in the syntax that its extension names, and reports its
	// faults. The root of the result is nil when the text cannot be parsed.
	Parse func(path string, data []byte) *decode.Source
}

// Root is the directory that must contain the suite's files: its repository, or its own directory.
func (f *Files) Root() string { return f.Places.Root() }

// Read returns the content of a regular file of at most limit bytes, or of the editor's unsaved copy
// of it.
func (f *Files) Read(path string, limit int64) ([]byte, error) {
	return f.View.Read(path, limit, f.Places.ReadFile)
}

// ReadSkill is like Read, for the files of a skill, which can be anywhere.
func (f *Files) ReadSkill(path string, limit int64) ([]byte, error) {
	return f.View.Read(path, limit, f.Places.ReadSkill)
}

// Stat describes a file or directory, and follows links.
func (f *Files) Stat(path string) (fs.FileInfo, error) {
	f.View.Note(path)
	if err := f.Places.Allows(path); err != nil {
		return nil, err
	}
	return os.Stat(path)
}

// Exists reports whether the suite can read something at a path, on the disk or in an editor.
func (f *Files) Exists(path string) bool {
	_, err := f.Stat(path)
	return err == nil || f.View.Overlay[path] != nil
}

// List returns the entries of a directory, sorted by name.
func (f *Files) List(path string) ([]fs.DirEntry, error) {
	f.View.Note(path)
	if err := f.Places.Allows(path); err != nil {
		return nil, err
	}
	return os.ReadDir(path)
}

// Relative returns a path relative to the directory of the suite, with slashes.
func (f *Files) Relative(path string) string {
	rel, err := filepath.Rel(f.Places.Dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}
