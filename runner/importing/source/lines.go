package source

import (
	"bytes"
	"fmt"
)

// The limits of a file of JSON lines.
const (
	maxLine  = 64 << 20
	maxLines = 2 * MaxTrials
)

// Lines is a file in memory with one JSON document in each line.
type Lines struct {
	Path string
	// Sum is the hash of the file.
	Sum  []byte
	list [][]byte // empty lines are empty
}

// ReadLines reads a file of JSON lines. The error is an [*Error].
func ReadLines(path string) (*Lines, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := &Lines{Path: path, Sum: Sum(text)}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > maxLine {
			return nil, l.Fail(len(l.list), fmt.Errorf("the line has %d bytes, the limit is %d", len(line), maxLine))
		}
		if len(line) > 0 {
			if line, err = CheckJSON(line); err != nil {
				return nil, l.Fail(len(l.list), err)
			}
		}
		if l.list = append(l.list, line); len(l.list) > maxLines {
			return nil, &Error{Path: path, Err: fmt.Errorf("has more than %d lines", maxLines)}
		}
	}
	return l, nil
}

// Reread reads the file again. It returns an error if the file changed.
func (l *Lines) Reread() (*Lines, error) {
	again, err := ReadLines(l.Path)
	if err == nil && !bytes.Equal(again.Sum, l.Sum) {
		return nil, &Error{Path: l.Path, Err: ErrChanged}
	}
	return again, err
}

// Len returns the number of lines.
func (l *Lines) Len() int { return len(l.list) }

// Line returns the document of a line, which can be empty.
func (l *Lines) Line(i int) []byte { return l.list[i] }

// Fail returns an error about a line.
func (l *Lines) Fail(i int, err error) error { return &Error{Path: l.Path, Line: i + 1, Err: err} }
