package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine limits the bytes of a line that a reader keeps. It is far above what a run writes.
const maxLine = 256 << 20

// A Reader reads the lines of a journal in order. Only one goroutine may use it.
type Reader struct {
	r     *bufio.Reader
	c     io.Closer
	ahead *ahead // nil unless ReadAhead was called
	at    Mark
	held  []byte       // the rest of the current line of the file
	was   DamagedError // the position of the line or damaged part that Next returned last

	reuse bool   // see Reuse
	line  []byte // memory for the next line, if reuse is set

	// index, unless it is nil, receives the position of every indexEvery-th line.
	index *[]Mark

	verifier *verifier
}

// A Mark is a position between two lines. The zero value is the position before the first.
type Mark struct {
	offset int64 // of the next byte
	line   int64 // number of lines of the file before it
	number int64 // number of the last undamaged line before it
	// sealed reports whether a line before it has a checksum, so that all later lines must have
	// one.
	sealed bool
	// tag is the tag of the last undamaged line, or what the next line must continue instead.
	tag    tag
	keyed  bool   // whether a line before it has a digest, so that all later lines must have one
	damage damage // since the last undamaged line
}

// Number returns the number of the last undamaged line before the mark; 0 without one.
func (m Mark) Number() int64 { return m.number }

func newReader(r io.Reader, c io.Closer, at Mark, v *verifier) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), c: c, at: at, verifier: v}
}

// Reuse makes all further lines valid only until the following call of Next. Reading then needs no
// memory for each line.
func (r *Reader) Reuse() { r.reuse = true }

// ReadAhead is like Reuse, and makes the reader use all processors. It is for callers that need all
// lines, because the reader is then ahead of them. After the end, it does not notice that the file
// grows. A caller that does not read to the end must close the reader.
func (r *Reader) ReadAhead() { r.readAhead(chunkSize) }

func (r *Reader) readAhead(size int) {
	r.Reuse()
	if r.ahead == nil {
		r.ahead = newAhead(r.r, r.verifier, size)
	}
}

// Unverifiable describes why some of the record cannot be verified, although the user trusts it;
// empty when all of it can.
func (r *Reader) Unverifiable() string { return r.verifier.doubt() }

// KeyFault returns the error of a missing or unreadable key, without which no line can be
// verified; nil with a key.
func (r *Reader) KeyFault() error { return r.verifier.err }

// Mark returns the position after the line or damaged part that Next returned last.
func (r *Reader) Mark() Mark { return r.at }

// Last returns the number of the last line so far. It counts damaged lines as accurately as
// possible.
func (r *Reader) Last() int64 { return r.at.last() }

// Next returns the next line as it was appended, its number and its offset. The number is the
// line's first member, "seq". A line without it has the number after that of the line before.
// Numbers rise. The caller owns the bytes, see Reuse. At the end, and at an incomplete last line, Next
// returns io.EOF.
//
// For a damaged part, or one that waza did not write, it returns a [*DamagedError]. The next call
// continues after that part. Missing numbers are those of lost lines. Any other error is an error
// of the file and permanent.
func (r *Reader) Next() (line []byte, number, offset int64, err error) {
	raw, p, skipped, err := r.take()
	if err != nil {
		return nil, 0, 0, err
	}
	if r.index != nil && r.at.line/indexEvery == int64(len(*r.index)) {
		*r.index = append(*r.index, r.at)
	}
	why := errTooLong
	if skipped == 0 {
		if line, number, why = r.check(raw, p); why == nil {
			return r.whole(line, number, raw)
		}
		if end := wholeHead(raw); end > 0 {
			if line, number, err = r.check(raw[:end], nil); err == nil {
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

// NextUndamaged is like Next, but skips damaged parts.
func (r *Reader) NextUndamaged() (line []byte, number, offset int64, err error) {
	for {
		line, number, offset, err = r.Next()
		if damaged := (*DamagedError)(nil); !errors.As(err, &damaged) {
			return line, number, offset, err
		}
	}
}

// whole records that raw is an undamaged line.
func (r *Reader) whole(line []byte, number int64, raw []byte) ([]byte, int64, int64, error) {
	r.was = DamagedError{Line: r.at.line + 1, Offset: r.at.offset, Length: int64(len(raw))}
	r.advance(raw, 0)
	r.at.number, r.at.damage = number, damage{}
	return line, number, r.was.Offset, nil
}

// MarkDamaged marks the line that Next returned last as damaged although its checksum is right.
// The caller knows that its content is invalid.
func (r *Reader) MarkDamaged(why error) *DamagedError {
	err := r.was
	err.Err = why
	return &err
}

// take returns the bytes up to and including the next newline, and their proof if it is known. For a
// line that is too long it returns the end, and the number of bytes that it skipped.
func (r *Reader) take() (raw []byte, p *proof, skipped int64, err error) {
	if raw, r.held = r.held, nil; raw != nil {
		return raw, nil, 0, nil
	}
	if r.reuse {
		raw = r.line[:0]
	}
	for {
		part, p, err := r.part()
		if err == nil && r.reuse && len(raw) == 0 {
			return part, p, skipped, nil // not copied: the buffer is not used again before the next call
		}
		raw = append(raw, part...)
		if err == nil {
			r.line = raw
			return raw, nil, skipped, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, nil, 0, err
		}
		if len(raw) > maxLine {
			skipped += int64(len(raw) / 2)
			raw = append(raw[:0], raw[len(raw)/2:]...)
		}
	}
}

// part returns the next line, or a part of it, like [bufio.Reader.ReadSlice].
func (r *Reader) part() (part []byte, p *proof, err error) {
	if r.ahead != nil {
		return r.ahead.line()
	}
	part, err = r.r.ReadSlice('\n')
	return part, nil, err
}

func (r *Reader) advance(raw []byte, skipped int64) {
	r.at.offset += int64(len(raw)) + skipped
	if bytes.HasSuffix(raw, []byte("\n")) {
		r.at.line++
	}
}

// check returns an undamaged line, or an error that describes the damage. p is the proof of the
// line, if it is known.
func (r *Reader) check(raw []byte, p *proof) (line []byte, number int64, err error) {
	if p == nil {
		own := r.verifier.prove(raw)
		p = &own
	}
	line = p.line
	switch {
	case p.damage != nil:
		return nil, 0, p.damage
	case !p.sealed && r.at.sealed:
		return nil, 0, errNoChecksum
	case !p.sealed && (len(line) == 0 || line[0] != '{' || !json.Valid(line)):
		return nil, 0, errNoObject
	}
	number, reported := numberOf(line)
	if !reported {
		number = r.at.last() + 1
	}
	if missing := number - r.at.number - 1; missing < 0 || missing > r.at.damage.room(p.sealed) {
		return nil, 0, fmt.Errorf("line number %d after %d", number, r.at.number)
	}
	line, t, err := r.verifier.follow(p, r.at.tag, number == r.at.number+1 && r.at.damage == damage{})
	switch {
	case err == nil && !p.keyed && r.at.keyed:
		err = errUnkeyed
	case err == nil && p.keyed && !p.sealed: // checksums are older than digests
		err = errNoChecksum
	}
	if err != nil {
		return nil, 0, err
	}
	r.at.sealed, r.at.keyed, r.at.tag = p.sealed, p.keyed, t
	return line, number, nil
}

// Close closes the file, and ends reading ahead.
func (r *Reader) Close() error {
	if r.ahead != nil {
		r.ahead.close()
	}
	return r.c.Close()
}
