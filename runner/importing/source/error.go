package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"waza/eval/files"
)

// The limits of a file. Larger files are rejected.
const (
	// MaxBytes is the size of the largest file, and of the largest entry of an archive.
	MaxBytes = 256 << 20
	// MaxTasks is the most tasks of a file.
	MaxTasks = 100_000
	// MaxTrials is the most trials of a file.
	MaxTrials = 1_000_000
	// MaxName is the most bytes of a name or id.
	MaxName = 4 << 10
)

// ErrChanged means that a second reading found a different file.
var ErrChanged = errors.New("the file changed while it was read")

// An Error means that a file cannot be read, and states where.
type Error struct {
	Path string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Member is the place in the document: tasks[2].runs[0].status. It can be empty.
	Member string
	Err    error
	// Hint suggests what to do; it can be empty.
	Hint string
}

func (e *Error) Error() string { return Place(e.Path, e.Line) + ": " + e.Inside().Error() }

// Place formats a line of a file; 0 means the file as a whole.
func Place(path string, line int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}

// Inside returns the error without the name of the file: tasks[2].runs[0]: status "x": expected
// …
func (e *Error) Inside() error {
	if e.Member == "" {
		return e.Err
	}
	return fmt.Errorf("%s: %w", e.Member, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// OpenFile opens a regular file that is not too large. The error is an [*Error].
func OpenFile(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, &Error{Path: path, Err: files.WithoutPath(err)}
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("not a regular file")
	case info.Size() > MaxBytes:
		err = fmt.Errorf("has %d bytes, the limit is %d", info.Size(), MaxBytes)
	default:
		return file, info, nil
	}
	file.Close()
	return nil, nil, &Error{Path: path, Err: err}
}
