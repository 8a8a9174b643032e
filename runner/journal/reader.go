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
	r  *bufio.Reader
	c  io.Closer
	at Mark
}

// Mark is a place between two lines. The zero value stands before the first.
type Mark struct {
	line   int64 // number of the line before it
	offset int64 // where the line after it begins
}

func newReader(r io.Reader, c io.Closer, at Mark) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), c: c, at: at}
}

// Mark is the place after the last line that Next returned.
func (r *Reader) Mark() Mark { return r.at }

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
	offset = r.at.offset
	r.at.offset += int64(len(line))
	r.at.line++
	return bytes.TrimSuffix(line, []byte("\n")), r.at.line, offset, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.c.Close() }
