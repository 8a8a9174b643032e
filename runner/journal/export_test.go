package journal

import (
	"bytes"
	"io"
	"os"
)

// SetFsync replaces the function that syncs files.
func (s *Store) SetFsync(fsync func(*os.File) error) { s.fsync = fsync }

// ReadBytes reads any bytes as a journal.
func ReadBytes(b []byte) *Reader {
	r := bytes.NewReader(b)
	return newReader(r, io.NopCloser(r), Mark{})
}

// Offset returns the position of the next read.
func (r *Reader) Offset() int64 { return r.at.offset }
