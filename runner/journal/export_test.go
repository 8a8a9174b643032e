package journal

import (
	"bytes"
	"io"
	"os"
)

// SetFsync lets a test do what brings files to the disk.
func (s *Store) SetFsync(fsync func(*os.File) error) { s.fsync = fsync }

// ReadBytes reads anything as a journal.
func ReadBytes(b []byte) *Reader {
	r := bytes.NewReader(b)
	return newReader(r, io.NopCloser(r), Mark{})
}

// Offset is where reading goes on.
func (r *Reader) Offset() int64 { return r.at.offset }
