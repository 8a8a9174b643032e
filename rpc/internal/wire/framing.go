package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
)

// ErrForeign ends a stream whose input starts with another protocol, such as HTTP or TLS; see
// Options.RefuseForeign.
var ErrForeign = errors.New("input is neither JSON nor a Content-Length header")

// errTooLong means that a line was skipped to its end.
var errTooLong = errors.New("line too long")

const (
	// readSize is the size of the read buffer, and of the pieces in which a long message is
	// collected.
	readSize = 64 << 10
	// maxHeader limits the length of a header line.
	maxHeader = 8 << 10
)

// A framer splits the input into messages. Each line is a message, unless the first line is a
// Content-Length header: then such headers frame all messages of the stream. Every message has
// its own memory. One goroutine reads; limit and framed are safe for concurrent use.
type framer struct {
	br            *bufio.Reader
	limit         atomic.Int64 // longest message, in bytes
	refuseForeign bool
	sniffed       bool        // the first line that is not blank has been seen
	framed        atomic.Bool // the stream uses Content-Length headers
}

func newFramer(r io.Reader, limit int, refuseForeign bool) *framer {
	f := &framer{br: bufio.NewReaderSize(r, readSize), refuseForeign: refuseForeign}
	f.limit.Store(int64(limit))
	return f
}

// next returns the next message. An error of type *Error is the reply to a message that could
// not be read, and reading can continue. Any other error is the end: io.EOF if the input ended
// properly.
func (f *framer) next() ([]byte, error) {
	if f.framed.Load() {
		return f.frame(nil)
	}
	if f.refuseForeign && !f.sniffed && f.foreignByte() {
		return nil, ErrForeign
	}
	for {
		line, err := f.line(f.longest)
		if !f.sniffed && len(line) > 0 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
			if !blank(line) {
				f.sniffed = true
				if _, _, ok := header(line); ok {
					f.framed.Store(true)
					return f.frame(line)
				}
				if f.refuseForeign && foreignLine(line) {
					return nil, ErrForeign
				}
			}
		}
		switch {
		case errors.Is(err, errTooLong):
			return nil, tooLong(f.longest())
		case err != nil:
			return nil, err
		case !blank(line):
			return line, nil
		}
	}
}

func (f *framer) longest() int { return int(f.limit.Load()) }

func tooLong(limit int) *Error {
	e := invalidRequest("message is too long")
	e.Data["limit"] = limit
	return e
}

func blank(line []byte) bool { return len(bytes.TrimLeft(line, " \t\r\n")) == 0 }

// line reads up to the next newline or the end of the input and returns the bytes before it. If
// the line is longer than the limit, it returns only the start, with errTooLong. It never stores
// more than the limit and a buffer. It calls longest when the line arrives, which may be long
// after the call of line.
func (f *framer) line(longest func() int) ([]byte, error) {
	frag, err := f.br.ReadSlice('\n')
	limit := longest()
	if err == nil && len(frag)-1 <= limit {
		return bytes.Clone(frag[:len(frag)-1]), nil
	}
	parts, size, long := [][]byte{bytes.Clone(frag)}, len(frag), false
	for errors.Is(err, bufio.ErrBufferFull) {
		frag, err = f.br.ReadSlice('\n')
		size += len(frag)
		if long = long || size > limit+1; long {
			parts = parts[:1]
			continue
		}
		parts = append(parts, bytes.Clone(frag))
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case size == 0:
		return nil, io.EOF
	}
	if err == nil {
		size--
	}
	if size > limit {
		return parts[0], errTooLong
	}
	if len(parts) > 1 {
		parts[0] = bytes.Join(parts, nil)
	}
	return parts[0][:size], nil
}

// frame reads one message with headers before it. first is a header line that has already been
// read, or nil. Lines that are not headers are skipped up to the next blank line, and get one
// error reply. The length of the following message is unknown then, so its lines are treated as
// headers, too, until the next Content-Length.
func (f *framer) frame(first []byte) ([]byte, error) {
	length, fault, started := -1, "", false
	for {
		line, err := first, error(nil)
		if first = nil; line == nil {
			line, err = f.line(func() int { return maxHeader })
		}
		switch {
		case errors.Is(err, io.EOF) && started:
			return nil, parseError("input ends within a header")
		case errors.Is(err, errTooLong):
			started, fault = true, "header is too long"
			continue
		case err != nil:
			return nil, err
		case blank(line) && !started:
			continue
		case blank(line):
			return f.body(length, fault)
		}
		started = true
		length, fault = readHeader(line, length, fault)
	}
}

// readHeader evaluates one header line.
func readHeader(line []byte, length int, fault string) (int, string) {
	name, value, ok := header(line)
	switch {
	case !ok:
		return length, fmt.Sprintf("not a header: %.40q", line)
	case name != "content-length":
		return length, fault
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || length >= 0 && length != int(n) {
		return length, fmt.Sprintf("bad Content-Length %.40q", value)
	}
	return int(n), fault
}

// header splits a header line. It accepts only the two headers of the framing.
func header(line []byte) (name, value string, ok bool) {
	if len(line) > maxHeader {
		return "", "", false
	}
	name, value, ok = strings.Cut(string(line), ":")
	name = strings.ToLower(name)
	return name, strings.TrimSpace(value), ok && (name == "content-length" || name == "content-type")
}

// body reads the message after the headers.
func (f *framer) body(length int, fault string) ([]byte, error) {
	limit := f.longest()
	switch {
	case fault != "":
		return nil, parseError(fault)
	case length < 0:
		return nil, parseError("header Content-Length is missing")
	case length > limit:
		if _, err := io.CopyN(io.Discard, f.br, int64(length)); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, tooLong(limit)
	}
	// Read in pieces, because a client can claim any length.
	var parts [][]byte
	for length > 0 {
		part := make([]byte, min(length, readSize))
		if _, err := io.ReadFull(f.br, part); err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, parseError("input ends within a message")
		} else if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		length -= len(part)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return bytes.Join(parts, nil), nil
}

const byteOrderMark = "\ufeff"

// foreignByte skips white space and reports whether neither a JSON text nor a header can start
// with the next byte. It waits only for that byte, because other protocols may never send a
// newline. It leaves read errors to the next read.
func (f *framer) foreignByte() bool {
	for {
		b, err := f.br.Peek(1)
		if err != nil {
			return false
		}
		if !blank(b) {
			return !canStart(b[0]) && b[0] != byteOrderMark[0]
		}
		_, _ = f.br.Discard(1) // never fails: the byte is in the buffer
	}
}

// canStart reports whether a JSON text or a header of the framing can start with c.
func canStart(c byte) bool {
	return digit(c) || bytes.IndexByte([]byte(`{["-tfnCc`), c) >= 0
}

// foreignLine reports whether the first line belongs to another protocol: it is not a header,
// and neither an object, an array nor any other JSON text. Objects and arrays may be broken,
// because no other protocol starts with their brackets.
func foreignLine(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r")
	return line[0] != '{' && line[0] != '[' && !json.Valid(line)
}
