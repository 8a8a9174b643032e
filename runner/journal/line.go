package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
)

// A line is a JSON object. In the file its last member is a checksum of all that
// stands before it, so that a line can be told to be whole without a look at the
// others, and nothing in it stands elsewhere than where it was appended:
//
//	appended  {"seq":7,"type":"log"}
//	in file   {"seq":7,"type":"log","crc":"8c1f2a03"}
//
// Journals that were written before there were checksums have none at all.
const (
	sealHead = `,"crc":"`
	sealTail = `"}`
	sealSize = len(sealHead) + 8 + len(sealTail)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errChecksum   = errors.New("its checksum is another")
	errNoChecksum = errors.New("it has no checksum")
	errNoObject   = errors.New("it is no JSON object")
)

// seal appends a line to buf as it stands in the file, newline included.
func seal(buf, line []byte) []byte {
	body := line[:len(line)-1]
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	buf = append(append(buf, body...), sealHead...)
	buf = hex.AppendEncode(buf, sum[:])
	return append(append(buf, sealTail...), '\n')
}

// Seal returns a line, a JSON object with members, as a journal has it: with its
// checksum and a newline.
func Seal(line []byte) []byte { return seal(nil, line) }

// Unseal returns what was sealed, and whether it is as it was then.
func Unseal(line string) (body []byte, ok bool) {
	body, sealed, err := unseal([]byte(strings.TrimSuffix(line, "\n")))
	return body, sealed && err == nil
}

// sealAt returns the checksum that stands at the head of b.
func sealAt(b []byte) (sum uint32, ok bool) {
	if len(b) < sealSize || !bytes.HasPrefix(b, []byte(sealHead)) || string(b[sealSize-len(sealTail):sealSize]) != sealTail {
		return 0, false
	}
	digits := b[len(sealHead) : sealSize-len(sealTail)]
	var raw [4]byte
	if _, err := hex.Decode(raw[:], digits); err != nil || bytes.ContainsAny(digits, "ABCDEF") {
		return 0, false
	}
	return binary.BigEndian.Uint32(raw[:]), true
}

// nearlySeal reports whether b was a checksum once: one or two of its bytes are
// others. Without, the first line of a journal would pass for one of a time before
// there were checksums.
func nearlySeal(b []byte) bool {
	same := 0
	for i, c := range []byte(sealHead) {
		if b[i] == c {
			same++
		}
	}
	for i, c := range []byte(sealTail) {
		if b[sealSize-len(sealTail)+i] == c {
			same++
		}
	}
	return same >= len(sealHead)+len(sealTail)-2
}

// unseal takes the checksum off a line, in place. Whether it had one is told apart
// from whether it was right.
func unseal(line []byte) (body []byte, sealed bool, err error) {
	at := len(line) - sealSize
	if at <= 0 {
		return line, false, nil
	}
	sum, ok := sealAt(line[at:])
	if !ok && nearlySeal(line[at:]) {
		return nil, true, errChecksum
	}
	if !ok {
		return line, false, nil
	}
	if crc32.Checksum(line[:at], castagnoli) != sum {
		return nil, true, errChecksum
	}
	line[at] = '}'
	return line[: at+1 : at+1], true, nil
}

// numberHead is how a line begins that tells its number.
const numberHead = `{"seq":`

// numberOf is the number that a line tells, and whether it tells any. What is no
// number that a line can have is 0.
func numberOf(line []byte) (n int64, told bool) {
	rest, ok := bytes.CutPrefix(line, []byte(numberHead))
	if !ok {
		return 0, false
	}
	for i, c := range rest[:min(len(rest), 19)] {
		switch {
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		case i > 0 && (c == ',' || c == '}'):
			return n, true
		default:
			return 0, true
		}
	}
	return 0, true
}
