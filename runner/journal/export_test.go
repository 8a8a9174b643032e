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
	return newReader(r, io.NopCloser(r), Mark{}, &verifier{})
}

// Offset returns the position of the next read.
func (r *Reader) Offset() int64 { return r.at.offset }

// Seal returns a line as older versions wrote it: with a checksum, but without a digest.
func Seal(line []byte) []byte { return appendSeal(append([]byte(nil), line[:len(line)-1]...), 0) }

// ReadAheadBy is like ReadAhead, with chunks of another size.
func (r *Reader) ReadAheadBy(size int) { r.readAhead(size) }

// Die releases the lock of a scratch directory, as the death of its owner does.
func (s *Scratch) Die() { release(s.lock) }
