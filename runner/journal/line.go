package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
)

// A line is a JSON object. In the file, its last member is a checksum of everything before it,
// including the digest that chain.go describes. The checksum shows where a line is damaged, also
// without the key, and no part of a line is valid in another place:
//
//	appended  {"seq":7,"type":"log"}
//	in file   {"seq":7,"type":"log","mac":"…","crc":"8c1f2a03"}
//
// Journals from before checksums were introduced have none.
const (
	sealHead = `,"crc":"`
	sealTail = `"}`
	sealSize = len(sealHead) + 8 + len(sealTail)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errChecksum   = errors.New("checksum mismatch")
	errNoChecksum = errors.New("no checksum")
	errNoObject   = errors.New("not a JSON object")
)

// appendSeal appends the checksum of the bytes from start on, a brace and a newline.
func appendSeal(buf []byte, start int) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(buf[start:], castagnoli))
	buf = append(buf, sealHead...)
	buf = hex.AppendEncode(buf, sum[:])
	return append(append(buf, sealTail...), '\n')
}

// sealAt returns the checksum at the start of b.
func sealAt(b []byte) (sum uint32, ok bool) {
	if len(b) < sealSize || !bytes.HasPrefix(b, []byte(sealHead)) || string(b[sealSize-len(sealTail):sealSize]) != sealTail {
		return 0, false
	}
	digits := b[len(sealHead) : sealSize-len(sealTail)]
	var raw [4]byte
	if !decodeHex(raw[:], digits) {
		return 0, false
	}
	return binary.BigEndian.Uint32(raw[:]), true
}

// nearlySeal reports whether b is a checksum with one or two damaged bytes. Without this check,
// the first line of a journal could pass for a line from before checksums were introduced.
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

// unseal removes the checksum from a line, in place. sealed reports whether the line had one,
// right or wrong.
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

// numberHead is the start of a line that contains its number.
const numberHead = `{"seq":`

// numberOf returns the number in a line, and whether the line contains one. It returns 0 for an
// impossible number.
func numberOf(line []byte) (n int64, reported bool) {
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
