package journal

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line when reading: far above what a run writes.
const maxLine = 256 << 20

// Reader reads the lines of a journal in order. It belongs to one goroutine.
type Reader struct {
	r    *bufio.Reader
	c    io.Closer
	line int64
	off  int64
}

func newReader(r io.Reader, c io.Closer) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), c: c}
}

// Next returns the next whole line without its newline, its number and the
// offset at which it stands. The bytes are the caller's. At the end, and at a
// last line that was cut off, it returns io.EOF.
func (r *Reader) Next() (line []byte, number, offset int64, err error) {
	for {
		part, err := r.r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, 0, 0, err
		}
		if len(line) > maxLine {
			return nil, 0, 0, errors.New("journal: a line is longer than a run can write")
		}
	}
	offset = r.off
	r.off += int64(len(line))
	r.line++
	return bytes.TrimSuffix(line, []byte("\n")), r.line, offset, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.c.Close() }
