// Package output is what commands print and write: stdout with one error for all of
// it, files that appear whole, and texts that are safe for a terminal. Call [New]
// once for stdout and [Create] for a file that a flag names.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"syscall"

	"waza/runner/report"
)

// ErrBrokenPipe says that whoever read the output does so no more.
var ErrBrokenPipe error = syscall.EPIPE

// Stdout is stdout. It is not safe for concurrent use. It remembers its first error, so that printing need not
// look for one each time and a full disk is noticed all the same.
type Stdout struct {
	w   io.Writer
	err error
}

// New returns the output that is written to w.
func New(w io.Writer) *Stdout { return &Stdout{w: w} }

// Unwrap returns what is written to.
func (o *Stdout) Unwrap() io.Writer { return o.w }

// Err returns the first error of any Write.
func (o *Stdout) Err() error { return o.err }

func (o *Stdout) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = fmt.Errorf("stdout: %w", WithoutPath(err))
	}
	return n, o.err
}

// JSON prints a document for programs, indented so that people can read it too.
func (o *Stdout) JSON(v any) error {
	enc := json.NewEncoder(report.JSONWriter(o))
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Line prints a document as one line of JSON.
func (o *Stdout) Line(v any) error {
	enc := json.NewEncoder(report.JSONWriter(o))
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
