package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds what is kept of a line when reading: far above what a run writes.
const maxLine = 256 << 20

// Reader reads the lines of a journal in order. It belongs to one goroutine.
type Reader struct {
	r    *bufio.Reader
	c    io.Closer
	at   Mark
	held []byte       // what follows in the same line of the file
	was  DamagedError // the place of what Next returned last
}

// Mark is a place between two lines. The zero value stands before the first.
type Mark struct {
	offset int64 // where what follows it begins
	line   int64 // lines of the file before it
	number int64 // of the last undamaged line before it
	// sealed: a line before it has a checksum, so those after it have one, too.
	sealed bool
	damage damage // since the last undamaged line
}

// Number is that of the last undamaged line before the mark; 0 when there is none.
func (m Mark) Number() int64 { return m.number }

func newReader(r io.Reader, c io.Closer, at Mark) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), c: c, at: at}
}

// Mark is the place after what Next returned last.
func (r *Reader) Mark() Mark { return r.at }

// Last is the number of the last line so far. Damaged ones are counted, as well as
// can be told.
func (r *Reader) Last() int64 { return r.at.last() }

// Next returns the next line as it was appended, its number and the offset at
// which it stands. The number is what the line itself tells as its first member,
// "seq"; a line that tells none has the one after that of the line before. Numbers
// rise. The bytes are the caller's. At the end, and at a last line that was cut
// off, it returns io.EOF.
//
// Of what is damaged it returns a [*DamagedError], and goes on after it with the
// next call: the error tells of a part of the journal, as a line does. Numbers
// that are missing then are those of lines that are lost. Any other error is the
// file's, and the last word.
func (r *Reader) Next() (line []byte, number, offset int64, err error) {
	raw, skipped, err := r.take()
	if err != nil {
		return nil, 0, 0, err
	}
	why := errTooLong
	if skipped == 0 {
		if line, number, why = r.check(raw); why == nil {
			return r.whole(line, number, raw)
		}
		if end := wholeHead(raw); end > 0 {
			if line, number, err = r.check(raw[:end]); err == nil {
				r.held = raw[end:]
				return r.whole(line, number, raw[:end])
			}
		}
	}
	bad := raw
	if start := wholeTail(raw, r.at.number); start > 0 {
		bad, r.held = raw[:start], raw[start:]
	}
	return nil, 0, 0, r.damaged(bad, skipped, why)
}

// NextWhole is Next for whom damage makes no difference: it passes it over.
func (r *Reader) NextWhole() (line []byte, number, offset int64, err error) {
	for {
		line, number, offset, err = r.Next()
		if damaged := (*DamagedError)(nil); !errors.As(err, &damaged) {
			return line, number, offset, err
		}
	}
}

// whole notes that raw is an undamaged line.
func (r *Reader) whole(line []byte, number int64, raw []byte) ([]byte, int64, int64, error) {
	r.was = DamagedError{Line: r.at.line + 1, Offset: r.at.offset, Length: int64(len(raw))}
	r.advance(raw, 0)
	r.at.number, r.at.damage = number, damage{}
	return line, number, r.was.Offset, nil
}

// Refuse says that the line which Next returned last is damaged whatever its
// checksum: its reader knows better.
func (r *Reader) Refuse(why error) *DamagedError {
	err := r.was
	err.Err = why
	return &err
}

// take returns the bytes up to and with the next newline. Of a line that is too
// long it returns the end, and how many bytes before that it skipped.
func (r *Reader) take() (raw []byte, skipped int64, err error) {
	if raw, r.held = r.held, nil; raw != nil {
		return raw, 0, nil
	}
	for {
		part, err := r.r.ReadSlice('\n')
		raw = append(raw, part...)
		if err == nil {
			return raw, skipped, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, 0, err
		}
		if len(raw) > maxLine {
			skipped += int64(len(raw) / 2)
			raw = append(raw[:0], raw[len(raw)/2:]...)
		}
	}
}

func (r *Reader) advance(raw []byte, skipped int64) {
	r.at.offset += int64(len(raw)) + skipped
	if bytes.HasSuffix(raw, []byte("\n")) {
		r.at.line++
	}
}

// check takes a line to be undamaged, or says why it is not.
func (r *Reader) check(raw []byte) (line []byte, number int64, err error) {
	raw = bytes.TrimSuffix(raw, []byte("\n"))
	line, sealed, err := unseal(raw)
	switch {
	case err != nil:
		return nil, 0, err
	case !sealed && r.at.sealed:
		return nil, 0, errNoChecksum
	case !sealed && (len(raw) == 0 || raw[0] != '{' || !json.Valid(raw)):
		return nil, 0, errNoObject
	}
	number, told := numberOf(line)
	if !told {
		number = r.at.last() + 1
	}
	if missing := number - r.at.number - 1; missing < 0 || missing > r.at.damage.room(sealed) {
		return nil, 0, fmt.Errorf("its number is %d, after %d", number, r.at.number)
	}
	r.at.sealed = sealed
	return line, number, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.c.Close() }
