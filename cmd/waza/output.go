package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// errBrokenPipe says that whoever read the output does so no more.
var errBrokenPipe error = syscall.EPIPE

// output is stdout. It remembers its first error, so that printing need not
// look for one each time and a full disk is noticed all the same.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		o.err = fmt.Errorf("stdout: %w", err)
	}
	return n, o.err
}

// printJSON prints a document for programs, indented so that people can read it too.
func (p *program) printJSON(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printLine prints a document as one line of JSON.
func (p *program) printLine(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// resultFile is a file that appears whole or not at all, unless it is a device
// or a pipe, which is written to as it is.
type resultFile struct {
	flag    string // that asked for it, for messages
	path    string
	f       *os.File
	temp    bool
	written bool
}

// createFile begins a file that a flag asks for, or tells why it cannot be written.
func createFile(flag, path string) (*resultFile, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return nil, usage("name a file in it", "%s: is a directory", flag)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fileProblem(flag, err)
		}
		return &resultFile{flag: flag, path: path, f: f}, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, fileProblem(flag, err)
	}
	return &resultFile{flag: flag, path: path, f: f, temp: true}, nil
}

func fileProblem(flag string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return usage("name a file in a directory that exists and can be written to", "%s: %v", flag, err)
}

func (r *resultFile) Write(b []byte) (int, error) {
	r.written = true
	return r.f.Write(b)
}

// finish gives the file its name when it is whole and holds anything, and else
// leaves what there was before.
func (r *resultFile) finish(whole bool) error {
	if whole && r.written {
		return r.commit()
	}
	r.f.Close()
	if r.temp {
		os.Remove(r.f.Name())
	}
	return nil
}

func (r *resultFile) commit() error {
	if !r.temp {
		return r.f.Close()
	}
	err := r.f.Chmod(0o644)
	if cerr := r.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(r.f.Name(), r.path)
	}
	if err != nil {
		os.Remove(r.f.Name())
		return fmt.Errorf("%s: %w", r.flag, err)
	}
	return nil
}
