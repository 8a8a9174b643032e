package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
)

// A DamagedError describes a part of a journal that is not a line as it was appended.
type DamagedError struct {
	// Line is the line of the file where the damage starts, from 1. Offset and Length are its
	// position in bytes.
	Line, Offset, Length int64
	Err                  error // describes the damage
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal: line %d (byte %d) is damaged: %v", e.Line, e.Offset, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

var errTooLong = errors.New("longer than any line that waza writes")

// damage describes the damage between two lines.
type damage struct {
	parts int64 // number of damaged parts
	bytes int64 // their total size
	high  int64 // the highest line number that seems to be in them
}

// minLine is a lower bound of the size of a line with a number, in bytes.
const minLine = 10

// maxMissing limits how many numbers may be missing before a line with a right checksum where
// nothing is damaged; someone may have deleted lines.
const maxMissing = 1 << 20

// room returns the maximum number of lines that can be lost here. The number in a line without
// checksum is trusted only if that many lines fit.
func (d damage) room(sealed bool) int64 {
	room := d.bytes / minLine
	if sealed {
		room += maxMissing
	}
	return room
}

func (m Mark) last() int64 { return max(m.number+m.damage.parts, m.damage.high) }

// damaged records that bad, and the skipped bytes before it, are not a line.
func (r *Reader) damaged(bad []byte, skipped int64, why error) error {
	err := &DamagedError{Line: r.at.line + 1, Offset: r.at.offset, Length: int64(len(bad)) + skipped, Err: why}
	r.advance(bad, skipped)
	d := &r.at.damage
	d.parts++
	d.bytes += err.Length
	for at := range heads(bad, 0) {
		if n, _ := numberOf(bad[at:]); n > d.high && n-r.at.number-1 <= d.room(false) {
			d.high = n
		}
	}
	return err
}

// heads yields the offsets in b, starting at from, where a line with a number may start.
func heads(b []byte, from int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from < len(b) {
			i := bytes.Index(b[from:], []byte(numberHead))
			if i < 0 || !yield(from+i) {
				return
			}
			from += i + 1
		}
	}
}

// A lost newline, or an incomplete line followed by another one, turns two lines into one:
//
//	{"seq":7,…,"crc":"8c1f2a03"}?{"seq":8,…,"crc":"77ab01f0"}
//	{"seq":7,"type":"lo{"seq":8,…,"crc":"77ab01f0"}
//
// A part at the head or the end is a line if its checksum proves that it is complete. Text of an
// agent cannot pass for a line, because it is never at the head or the end.

// wholeHead returns the end of a complete line at the start of raw that is followed by other
// bytes; 0 when there is no such line.
func wholeHead(raw []byte) int {
	sum, done := uint32(0), 0
	for from := 0; ; {
		i := bytes.Index(raw[from:], []byte(sealHead))
		if i < 0 {
			return 0
		}
		at := from + i
		from = at + 1
		want, ok := sealAt(raw[at:])
		if !ok {
			continue
		}
		sum, done = crc32.Update(sum, castagnoli, raw[done:at]), at
		if end := at + sealSize; sum == want && end < len(raw) && json.Valid(slices.Concat(raw[:at], []byte("}"))) {
			return end
		}
	}
}

// maxHashed limits the bytes that are hashed in search of a line, so that no file content takes
// long.
const maxHashed = 1 << 30

// wholeTail returns the start of a complete line at the end of raw, with a number above after; 0
// when there is no such line.
func wholeTail(raw []byte, after int64) int {
	line := bytes.TrimSuffix(raw, []byte("\n"))
	end := len(line) - sealSize
	if end <= 0 {
		return 0
	}
	want, ok := sealAt(line[end:])
	if !ok {
		return 0
	}
	hashed := 0
	for at := range heads(line[:end], 1) {
		if n, _ := numberOf(line[at:]); n <= after {
			continue
		}
		if hashed += end - at; hashed > maxHashed {
			return 0
		}
		if crc32.Checksum(line[at:end], castagnoli) == want {
			return at
		}
	}
	return 0
}
