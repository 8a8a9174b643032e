package formats

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"waza/eval/files"
	"waza/runner"
	"waza/runner/record"
)

// Archive is the name of the export that is no document: a run's directory, packed
// for whoever is to look into it.
const Archive = "archive"

// Exports returns what recorded runs can be exported as: all formats, and an archive.
func Exports(rn *runner.Runner) []Format {
	return append(Formats(), Format{
		Archive, "run.tar.gz", "The whole record of the run as a compressed tar file, without workspaces.",
		func(w io.Writer, h record.Handle) error { return rn.Catalog().Archive(w, h.ID()) },
	})
}

// Find returns the format of that name among some.
func Find(formats []Format, name string) (Format, bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// Names lists the names of formats.
func Names(formats []Format) []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}

// Guess returns the format among some that a file's name tells: that of a default
// file of the same name, else the only one whose files end so.
func Guess(formats []Format, file string) (Format, bool) {
	var guess Format
	n := 0
	name := strings.ToLower(filepath.Base(file))
	for _, f := range formats {
		if name == f.File {
			return f, true
		}
		if _, end, _ := strings.Cut(f.File, "."); strings.HasSuffix(name, "."+end) && f.Name != "comment" {
			guess = f
			n++
		}
	}
	return guess, n == 1
}

// WriteFile makes a file, or replaces it, in one piece or not at all. It has the
// permissions of the file it replaces; those of a new file depend on the process's
// umask. A path that leads to something other than a file is an error.
func WriteFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := files.Replace(path)
	return fill(f, err, write)
}

// WriteFileWithin is [WriteFile] for a file below dir. A path that links lead out of
// dir is [files.ErrEscapes].
func WriteFileWithin(dir, path string, write func(io.Writer) error) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: path, Err: errors.New("not a regular file")}
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: errors.New("its directory does not exist")}
	}
	f, err := files.ReplaceWithin(dir, path)
	return fill(f, err, write)
}

// fill writes a file that was begun, unless that failed.
func fill(f *files.Replacement, err error, write func(io.Writer) error) error {
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}
