package secrets

import (
	"bytes"
	"io"
)

// maskByte replaces each byte of a secret in a stream.
const maskByte = '*'

// Mask returns a reader of src in which asterisks replace the secrets, one for each byte, so that
// lengths that were announced before remain correct. It finds secrets in plain, in base64 and in
// hexadecimal digits, wherever src splits them. It holds bytes back only while they can be the
// start of a secret. It ignores secrets that the redactor learns later. Closing it closes src.
func (r *Redactor) Mask(src io.ReadCloser) io.ReadCloser {
	x := r.current()
	if x == nil {
		return src
	}
	m := &maskReader{src: src}
	for _, list := range x.heads {
		for _, sp := range list {
			m.needles = append(m.needles, []byte(sp.text))
		}
	}
	return m
}

// maskReader removes secrets from a stream. It is not safe for concurrent use, except for Close.
type maskReader struct {
	src     io.ReadCloser
	needles [][]byte
	raw     []byte // bytes of src that were not returned yet
	masked  []byte // the same bytes with asterisks
	clean   int    // number of masked bytes that can be returned
	err     error  // of src
}

// maskChunk is the number of bytes that are read from the source at once.
const maskChunk = 16 << 10

func (m *maskReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for m.clean == 0 && m.err == nil {
		m.fill()
	}
	n := copy(p, m.masked[:m.clean])
	m.raw, m.masked, m.clean = m.raw[n:], m.masked[n:], m.clean-n
	if n == 0 {
		return 0, m.err
	}
	return n, nil
}

// fill reads a part of the source, masks the secrets in it, and determines how much of it cannot
// be the start of one.
func (m *maskReader) fill() {
	held := len(m.raw)
	raw, masked := make([]byte, held+maskChunk), make([]byte, held+maskChunk)
	copy(raw, m.raw)
	n, err := m.src.Read(raw[held:])
	m.raw, m.err = raw[:held+n], err
	copy(masked, m.masked)
	copy(masked[held:], m.raw[held:])
	m.masked = masked[:len(m.raw)]
	for _, needle := range m.needles {
		for at := 0; ; at++ {
			i := bytes.Index(m.raw[at:], needle)
			if i < 0 {
				break
			}
			at += i
			for j := range needle {
				m.masked[at+j] = maskByte
			}
		}
	}
	m.clean = len(m.raw)
	if err == nil {
		m.clean -= m.open()
	}
}

// open returns the length of the longest end of the raw bytes with which a secret can start.
func (m *maskReader) open() (longest int) {
	for _, needle := range m.needles {
		end := m.raw[max(0, len(m.raw)-len(needle)+1):]
		for len(end) > longest && !bytes.HasPrefix(needle, end) {
			next := bytes.IndexByte(end[1:], needle[0])
			if next < 0 {
				end = nil
				break
			}
			end = end[1+next:]
		}
		longest = max(longest, len(end))
	}
	return longest
}

func (m *maskReader) Close() error { return m.src.Close() }
