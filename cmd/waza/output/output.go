// Package output holds the streams of the process: stdout with one error for all writes, files that
// appear complete, and text that is safe for a terminal. Call [New] once for stdout and [Create]
// for a file that a flag names.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"syscall"

	"waza/cmd/waza/terminal"
	"waza/runner/report"
)

// ErrBrokenPipe is the error of a write after the reader closed the pipe.
var ErrBrokenPipe error = syscall.EPIPE

// Stdout is standard output. It remembers its first error, so that callers can print without
// checking errors and a full disk is still noticed. It is not safe for concurrent use.
type Stdout struct {
	w   io.Writer
	err error
}

// New returns a Stdout that writes to w.
func New(w io.Writer) *Stdout { return &Stdout{w: w} }

// Unwrap returns the underlying writer.
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

// Table prints rows. The first row is the header.
func (o *Stdout) Table(rows [][]string) error { return report.Table(o, rows, terminal.Options(o)) }
