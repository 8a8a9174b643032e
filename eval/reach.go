package eval

import (
	"errors"
	"os"
	"path/filepath"

	"waza/eval/files"
)

// A suite may come from a stranger, and waza shows what it finds wrong with the
// files that the suite names. So a suite may read only files of these places:
//
//	its repository, or its own directory where it is in none
//	the fixture directory that the caller chose
//	the process's directory, where graders' files are looked for as a last resort
//
// A symbolic link in one place leads nowhere out of it. The suite file itself is
// the caller's choice, wherever it is. A skill may be anywhere, because agents'
// skills are often installed for a user; only the links in it are held in.

// Open opens a regular file of the suite for reading, given by its absolute path.
// It never waits, whatever is there by now. A file that the suite may not read is an
// [*files.OutsideError]; one that is not a regular file is [files.ErrNotRegular]. The
// caller closes the file.
func (s *Suite) Open(path string) (*os.File, error) {
	if path == s.File {
		return files.Open(path)
	}
	dir, name := s.place(path)
	if dir == "" {
		return nil, &files.OutsideError{Path: path, In: s.rootWord()}
	}
	return files.OpenNamed(dir, name, path)
}

// ReadFile is [Suite.Open] that returns the content. More than limit bytes are
// [files.ErrTooLarge].
func (s *Suite) ReadFile(path string, limit int64) ([]byte, error) {
	f, err := s.Open(path)
	return files.ReadOpened(f, err, limit)
}

// ReadSkill returns the content of a file of a skill, given by its absolute path. A
// skill may be in any place, but no link may lead out of it: out of the suite's
// repository if the skill is there, and else out of the file's own directory. More
// than limit bytes are [files.ErrTooLarge].
func (s *Suite) ReadSkill(path string, limit int64) ([]byte, error) {
	dir, name := filepath.Dir(path), "its directory"
	if within(s.Root(), path) {
		dir, name = s.Root(), s.rootWord()
	}
	f, err := files.OpenNamed(dir, name, path)
	return files.ReadOpened(f, err, limit)
}

// Replace begins a file of the suite that replaces the one at an absolute path, or
// makes it and its directories; see [files.Replace]. The error is an [*files.OutsideError]
// where the suite may not even read a file.
func (s *Suite) Replace(path string) (*files.Replacement, error) {
	dir, name := s.place(path)
	if dir == "" {
		return nil, &files.OutsideError{Path: path, In: s.rootWord()}
	}
	f, err := files.ReplaceWithin(dir, path)
	if errors.Is(err, files.ErrEscapes) {
		return nil, &files.OutsideError{Path: path, Place: name}
	}
	return f, err
}

// Allows returns nil if the suite may read the file at an absolute path, and
// otherwise an [*files.OutsideError]. The file need not exist.
func (s *Suite) Allows(path string) error {
	dir, name := s.place(path)
	switch {
	case dir == "":
		return &files.OutsideError{Path: path, In: s.rootWord()}
	case !files.Within(dir, path):
		return &files.OutsideError{Path: path, Place: name}
	}
	return nil
}

// Root returns the directory that the suite's own files must stay in: its
// repository's, or the suite's own where it is in none.
func (s *Suite) Root() string {
	if s.rootDir != "" {
		return s.rootDir
	}
	return files.RootOf(s.Dir)
}

func (s *Suite) rootWord() string {
	if s.Root() == s.Dir {
		return "the suite's directory"
	}
	return "the suite's repository"
}

// place returns the directory that a file must stay in, and what messages call it;
// dir is "" if the suite may not read the file.
func (s *Suite) place(path string) (dir, name string) {
	if within(s.Root(), path) {
		return s.Root(), s.rootWord()
	}
	if s.contextDir != "" && within(s.contextDir, path) {
		return s.contextDir, "the fixture directory"
	}
	if wd, err := os.Getwd(); err == nil && within(wd, path) {
		return wd, "the current directory"
	}
	return "", ""
}

// within reports whether path is dir or below it, by name alone.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
