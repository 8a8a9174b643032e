// Package reach decides which files a suite may read, and finds the files that it names.
// [Places] describes where a suite is. [Places.Open] opens a file of the suite, and
// [Places.Resolve] finds one.
package reach

import (
	"errors"
	"os"
	"path/filepath"

	"waza/eval/files"
)

// Places are the directories of a suite. They are never modified.
type Places struct {
	// File is the absolute path of the suite file, Dir its directory.
	File string `json:"file" path:"file"`
	Dir  string `json:"dir" path:"file"`
	// RootDir is the result of [Places.Root], which computes it when it is empty. Fixtures is
	// the fixture directory that the caller chose. Both are absolute.
	RootDir  string `json:"root" path:"file"`
	Fixtures string `json:"fixtures,omitempty" path:"file"`
	// WorkDir is the absolute path of the current directory of the process that loaded the
	// suite; empty means that of this process.
	WorkDir string `json:"workDir,omitempty" path:"file"`
}

// At returns the places of the suite whose file has this absolute path.
func At(file string) Places {
	p := Places{File: file, Dir: filepath.Dir(file), RootDir: files.RootOf(filepath.Dir(file))}
	p.WorkDir = p.workDir()
	return p
}

// AtHome is like [At] for a suite whose files are all in the directory home if it is in no repository.
// An empty home means the directory of the file.
func AtHome(file, home string) Places {
	p := At(file)
	if home != "" && files.RepositoryRoot(p.Dir) == "" && Within(home, file) {
		p.RootDir = home
	}
	return p
}

// A suite can come from a stranger, and waza prints the faults of the files that it names. So a
// suite may read only files in these places:
//
//	its repository, or its own directory if it is in none
//	the fixture directory that the caller chose
//	the current directory, where graders' files are looked for as a last resort
//
// A symbolic link in one place must not lead out of it. The suite file itself is the caller's
// choice and can be anywhere. A skill can also be anywhere, because users often install skills
// for all their projects; only its links are restricted.

// Open opens a regular file of the suite by its absolute path. It never blocks, even if the file
// was replaced. A file that the suite may not read gives a [*files.OutsideError], a file that is
// not regular [files.ErrNotRegular]. The caller closes the file.
func (p Places) Open(path string) (*os.File, error) {
	if path == p.File {
		return files.Open(path)
	}
	dir, name := p.place(path)
	if dir == "" {
		return nil, &files.OutsideError{Path: path, In: p.RootWord()}
	}
	return files.OpenNamed(dir, name, path)
}

// ReadFile is like [Places.Open], but returns the content. A file of more than limit bytes gives
// [files.ErrTooLarge].
func (p Places) ReadFile(path string, limit int64) ([]byte, error) {
	f, err := p.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return files.ReadAll(f, limit)
}

// Tree returns a reader of many files of the suite that are below [Places.Root], other than the
// suite file. It refuses the same files as [Places.Open]. The caller closes it.
func (p Places) Tree() *files.Tree { return &files.Tree{Dir: p.Root(), Name: p.RootWord()} }

// ReadSkill returns the content of a file of a skill by its absolute path. A skill can be
// anywhere. No link may lead out of the suite's repository if that contains the skill, else out
// of the file's own directory. A file of more than limit bytes gives [files.ErrTooLarge].
func (p Places) ReadSkill(path string, limit int64) ([]byte, error) {
	dir, name := filepath.Dir(path), "its directory"
	if Within(p.Root(), path) {
		dir, name = p.Root(), p.RootWord()
	}
	return files.ReadNamed(dir, name, path, limit)
}

// Replace starts to write a file of the suite at an absolute path. It creates missing
// directories; see [files.Replace]. The error is an [*files.OutsideError] if the suite may not
// even read the file.
func (p Places) Replace(path string) (*files.Replacement, error) {
	dir, name := p.place(path)
	if dir == "" {
		return nil, &files.OutsideError{Path: path, In: p.RootWord()}
	}
	f, err := files.ReplaceWithin(dir, path)
	if errors.Is(err, files.ErrEscapes) {
		return nil, &files.OutsideError{Path: path, Place: name}
	}
	return f, err
}

// Allows returns nil if the suite may read the file at an absolute path, else an
// [*files.OutsideError]. The file need not exist.
func (p Places) Allows(path string) error {
	dir, name := p.place(path)
	switch {
	case dir == "":
		return &files.OutsideError{Path: path, In: p.RootWord()}
	case !files.Within(dir, path):
		return &files.OutsideError{Path: path, Place: name}
	}
	return nil
}

// Root returns the directory that must contain the suite's own files: its repository, or its own
// directory if it is in none.
func (p Places) Root() string {
	if p.RootDir != "" {
		return p.RootDir
	}
	return files.RootOf(p.Dir)
}

// RootWord returns the name of [Places.Root] in messages.
func (p Places) RootWord() string {
	if p.Root() == p.Dir {
		return "the suite's directory"
	}
	return "the suite's repository"
}

// place returns the directory that must contain a file, and its name in messages. dir is "" if
// the suite may not read the file.
func (p Places) place(path string) (dir, name string) {
	if Within(p.Root(), path) {
		return p.Root(), p.RootWord()
	}
	if p.Fixtures != "" && Within(p.Fixtures, path) {
		return p.Fixtures, "the fixture directory"
	}
	if wd := p.workDir(); wd != "" && Within(wd, path) {
		return wd, "the current directory"
	}
	return "", ""
}

// workDir returns the current directory; "" if it does not exist any more.
func (p Places) workDir() string {
	if p.WorkDir != "" {
		return p.WorkDir
	}
	wd, err := os.Getwd()
	if err != nil {
		return ""
	}
	return wd
}

// Within reports whether path is dir or below it, without following links.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
