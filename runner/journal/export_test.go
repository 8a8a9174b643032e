package journal

import (
	"bytes"
	"io"
)

// Seal is a line as it stands in the file.
func Seal(line []byte) []byte { return seal(nil, line) }

// ReadBytes reads anything as a journal.
func ReadBytes(b []byte) *Reader {
	r := bytes.NewReader(b)
	return newReader(r, io.NopCloser(r), Mark{})
}

// Offset is where reading goes on.
func (r *Reader) Offset() int64 { return r.at.offset }
