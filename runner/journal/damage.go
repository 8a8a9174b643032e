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

// DamagedError tells of a part of a journal that is no line as one was appended.
type DamagedError struct {
	// Line is where it begins, as an editor counts the lines of the file, from 1.
	// Offset and Length say the same in bytes.
	Line, Offset, Length int64
	Err                  error // what is wrong with it
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal: line %d (byte %d) is damaged: %v", e.Line, e.Offset, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

var errTooLong = errors.New("it is longer than a run can write")

// damage is what is known of what is damaged between two lines.
type damage struct {
	parts int64 // damaged parts
	bytes int64 // in them
	high  int64 // the highest number that seems to stand in them
}

// minLine is less than any line takes that tells its number, in bytes.
const minLine = 10

// maxMissing bounds the numbers that may be missing before a line with a right
// checksum where nothing is damaged, for somebody may have cut lines out.
const maxMissing = 1 << 20

// room is how many lines may be lost here. What a line without a checksum tells is
// worth only as much as fits.
func (d damage) room(sealed bool) int64 {
	room := d.bytes / minLine
	if sealed {
		room += maxMissing
	}
	return room
}

func (m Mark) last() int64 { return max(m.number+m.damage.parts, m.damage.high) }

// damaged notes that bad, and what was skipped before it, is no line.
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

// heads yields where in b, from an offset on, a line that tells its number may begin.
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

// A newline that got lost, or a line that was cut off and another one after it,
// make one line of two:
//
//	{"seq":7,…,"crc":"8c1f2a03"}?{"seq":8,…,"crc":"77ab01f0"}
//	{"seq":7,"type":"lo{"seq":8,…,"crc":"77ab01f0"}
//
// What a checksum proves to be whole at its head or its end is a line. What an
// agent says cannot pass for one: it stands neither here nor there.

// wholeHead returns where a line ends that raw begins with and goes on after; 0
// when there is none.
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

// maxHashed bounds the bytes that are gone through in search of a line, so that
// nothing that can stand in a file takes long.
const maxHashed = 1 << 30

// wholeTail returns where a line begins that raw ends with, of a number above
// after; 0 when there is none.
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
