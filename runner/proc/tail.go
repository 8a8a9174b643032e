package proc

import "strings"

// A Tail keeps the last Max bytes written to it, so that a program with too much output cannot
// exhaust memory and its last line is kept. It is not safe for concurrent use until the program
// has ended.
type Tail struct {
	Max     int
	buf     []byte
	written int
}

func (t *Tail) Write(b []byte) (int, error) {
	n := len(b)
	t.written += n
	if n > t.Max {
		b = b[n-t.Max:]
	}
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*t.Max { // copy now and then, not at each write
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.Max:]...)
	}
	return n, nil
}

// String returns the kept bytes as valid text.
func (t *Tail) String() string {
	return strings.ToValidUTF8(string(t.buf[max(0, len(t.buf)-t.Max):]), "\uFFFD")
}

// IsCut reports whether the first bytes were not kept.
func (t *Tail) IsCut() bool { return t.written > t.Max }
