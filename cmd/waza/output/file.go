package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"waza/cmd/waza/exit"
	"waza/eval/files"
)

// File is a file that appears whole or not at all, unless it is a device
// or a pipe, which is written to as it is.
type File struct {
	flag    string             // that asked for it, for messages
	device  *os.File           // nil for a regular file
	file    *files.Replacement // nil for a device
	written bool
}

// Create begins a file that a flag asks for, or tells why it cannot be written.
func Create(flag, path string) (*File, error) {
	r := &File{flag: flag}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, exit.Usagef("name a file in it", "%s: is a directory", flag)
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

// Problem says why the file that a flag names cannot be written.
func Problem(flag string, err error) error {
	err = WithoutPath(err)
	return exit.Usagef("name a file in a directory that exists and can be written to", "%s: %v", flag, err)
}

func (r *File) Write(b []byte) (int, error) {
	r.written = true
	if r.device != nil {
		return r.device.Write(b)
	}
	return r.file.Write(b)
}

// Finish gives the file its name when it is whole and holds anything, and else
// leaves what there was before.
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

// WithoutPath returns the cause of an error of the file system: the flag that is
// named in messages holds the path already.
func WithoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
