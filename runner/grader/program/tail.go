package program

import (
	"strings"
)

// A tail keeps the last bytes written to it, so that a program with too much output cannot
// exhaust memory and its last line is kept. It is not safe for concurrent use.
type tail struct {
	max     int
	buf     []byte
	written int
}

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	t.written += n
	if n > t.max {
		b = b[n-t.max:]
	}
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*t.max { // copy now and then, not at each write
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.max:]...)
	}
	return n, nil
}

// String returns the kept bytes as valid text.
func (t *tail) String() string {
	return strings.ToValidUTF8(string(t.buf[max(0, len(t.buf)-t.max):]), "\uFFFD")
}

// isCut reports whether the first bytes were not kept.
func (t *tail) isCut() bool { return t.written > t.max }
