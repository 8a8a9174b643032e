package output

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"waza/cmd/waza/exit"
	"waza/eval/files"
)

// File is a file that appears complete or not at all. Devices and pipes are written to directly.
type File struct {
	flag    string             // the flag that names it, for messages
	device  *os.File           // nil for a regular file
	file    *files.Replacement // nil for a device
	written bool
}

// WriteFile writes the file that a flag names, complete or not at all.
func WriteFile(flag, path string, write func(io.Writer) error) error {
	f, err := Create(flag, path)
	if err != nil {
		return err
	}
	err = write(f)
	return cmp.Or(err, f.Finish(err == nil))
}

// Create opens the file that a flag names. Its error describes why the file cannot be written.
func Create(flag, path string) (*File, error) {
	r := &File{flag: flag}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, exit.Usagef("name a file in that directory", "%s is a directory, expected a file", flag)
	case err == nil && !info.Mode().IsRegular():
		r.device, err = os.OpenFile(path, os.O_WRONLY, 0)
	default:
		r.file, err = files.Replace(path)
	}
	if err != nil {
		return nil, Problem(flag, err)
	}
	return r, nil
}

// Problem returns the usage error for a file that a flag names and that cannot be written.
func Problem(flag string, err error) error {
	err = WithoutPath(err)
	return exit.Usagef("name a file in an existing, writable directory", "%s: %v", flag, err)
}

// FolderProblem is like [Problem] for a directory.
func FolderProblem(flag string, err error) error {
	return exit.Usagef("name a writable directory", "%s: %v", flag, WithoutPath(err))
}

func (r *File) Write(b []byte) (int, error) {
	r.written = true
	if r.device != nil {
		return r.device.Write(b)
	}
	return r.file.Write(b)
}

// Finish moves a complete, non-empty file to its path. Otherwise it leaves the previous file as
// it was.
func (r *File) Finish(whole bool) error {
	if whole && r.written {
		return r.commit()
	}
	if r.device != nil {
		r.device.Close()
	} else {
		r.file.Discard()
	}
	return nil
}

func (r *File) commit() error {
	if r.device != nil {
		return r.device.Close()
	}
	if err := r.file.Commit(); err != nil {
		return fmt.Errorf("%s: %w", r.flag, WithoutPath(err))
	}
	return nil
}

// WithoutPath returns the cause of a file system error without the path, because messages
// already contain it with the flag.
func WithoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
