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

// Archive is the name of the export that is not a document: the packed directory of a run, for
// people who want to examine it.
const Archive = "archive"

// Exports returns all formats in which recorded runs can be exported: [Formats] and an archive.
func Exports(rn *runner.Runner) []Format {
	return append(Formats(), Format{
		Name: Archive, File: "run.tar.gz",
		Doc:   "The whole record of the run as a compressed tar file, without workspaces.",
		Write: func(w io.Writer, h record.Handle) error { return rn.Catalog().Archive(w, h.ID()) },
	})
}

// Find returns the format with a name.
func Find(formats []Format, name string) (Format, bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// Names returns the names of formats.
func Names(formats []Format) []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}

// Guess returns the format that a file's name implies: the format whose default file has that
// name, else the only format with that extension.
func Guess(formats []Format, file string) (Format, bool) {
	var guess Format
	n := 0
	name := strings.ToLower(filepath.Base(file))
	for _, f := range formats {
		if name == f.File {
			return f, true
		}
		if _, end, ok := strings.Cut(f.File, "."); ok && strings.HasSuffix(name, "."+end) && f.Name != "comment" {
			guess = f
			n++
		}
	}
	return guess, n == 1
}

// WriteFile creates or replaces a file completely or not at all. The file gets the permissions
// of the file it replaces; those of a new file depend on the process's umask. It returns an
// error if path leads to something other than a regular file.
func WriteFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := files.Replace(path)
	return fill(f, err, write)
}

// WriteFileWithin is like [WriteFile] for a file below dir. If links in the path lead out of
// dir, the error is [files.ErrEscapes].
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

// fill writes the content of a new file, unless creating it failed with err.
func fill(f *files.Replacement, err error, write func(io.Writer) error) error {
	if err != nil {
		return err
	}
	return f.Finish(write(f))
}
