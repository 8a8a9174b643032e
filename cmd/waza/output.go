package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"waza/eval/files"
	"waza/runner/report"
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
		o.err = fmt.Errorf("stdout: %w", withoutPath(err))
	}
	return n, o.err
}

// printJSON prints a document for programs, indented so that people can read it too.
func (p *program) printJSON(v any) error {
	enc := json.NewEncoder(report.JSONWriter(p.stdout))
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printLine prints a document as one line of JSON.
func (p *program) printLine(v any) error {
	enc := json.NewEncoder(report.JSONWriter(p.stdout))
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// resultFile is a file that appears whole or not at all, unless it is a device
// or a pipe, which is written to as it is.
type resultFile struct {
	flag    string             // that asked for it, for messages
	device  *os.File           // nil for a regular file
	file    *files.Replacement // nil for a device
	written bool
}

// createFile begins a file that a flag asks for, or tells why it cannot be written.
func createFile(flag, path string) (*resultFile, error) {
	r := &resultFile{flag: flag}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, usage("name a file in it", "%s: is a directory", flag)
	case err == nil && !info.Mode().IsRegular():
		r.device, err = os.OpenFile(path, os.O_WRONLY, 0)
	default:
		r.file, err = files.Replace(path)
	}
	if err != nil {
		return nil, fileProblem(flag, err)
	}
	return r, nil
}

func fileProblem(flag string, err error) error {
	err = withoutPath(err)
	return usage("name a file in a directory that exists and can be written to", "%s: %v", flag, err)
}

func (r *resultFile) Write(b []byte) (int, error) {
	r.written = true
	if r.device != nil {
		return r.device.Write(b)
	}
	return r.file.Write(b)
}

// finish gives the file its name when it is whole and holds anything, and else
// leaves what there was before.
func (r *resultFile) finish(whole bool) error {
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

func (r *resultFile) commit() error {
	if r.device != nil {
		return r.device.Close()
	}
	if err := r.file.Commit(); err != nil {
		return fmt.Errorf("%s: %w", r.flag, withoutPath(err))
	}
	return nil
}

// withoutPath returns the cause of an error of the file system: the flag that is
// named in messages holds the path already.
func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
