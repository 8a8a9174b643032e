package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The files beside the journal, run.json and result.json, end like its lines: the last members of
// the object are a digest and a checksum of everything before it. Files from before these were
// introduced have none.

// A FileError reports that a file of a run's record is damaged.
type FileError struct {
	// File is the file name in the run's directory.
	File string
	Err  error
}

func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// fileError returns a [*FileError]; nil without an error.
func fileError(file string, err error) error {
	if err == nil {
		return nil
	}
	return &FileError{file, err}
}

var (
	errEmpty      = errors.New("empty file")
	errUnfinished = errors.New("the end is missing")
)

// blanks can follow the last member of a file and the object itself.
const blanks = " \t\r\n"

// sealWriter passes an object through and adds its digest and checksum at the end.
type sealWriter struct {
	w      io.Writer
	signer *signer // started
	sum    uint32
	held   []byte // the last bytes, which contain the end of the object
}

// heldBack is the minimum number of bytes to hold back for the end of an object and the blanks
// around it.
const heldBack = 64

func (s *sealWriter) Write(b []byte) (int, error) {
	s.held = append(s.held, b...)
	if n := len(s.held) - heldBack; n > 0 {
		if err := s.pass(s.held[:n]); err != nil {
			return 0, err
		}
		s.held = append(s.held[:0], s.held[n:]...)
	}
	return len(b), nil
}

func (s *sealWriter) pass(b []byte) error {
	s.sum = crc32.Update(s.sum, castagnoli, b)
	_, _ = s.signer.mac.Write(b) // never fails
	_, err := s.w.Write(b)
	return err
}

// finish writes the held bytes, then members, the digest and the checksum. An object without
// members gets neither.
func (s *sealWriter) finish(members string) error {
	body, ok := bytes.CutSuffix(bytes.TrimRight(s.held, blanks), []byte("}"))
	body = bytes.TrimRight(body, blanks)
	if !ok || bytes.HasSuffix(body, []byte("{")) {
		return s.pass(s.held)
	}
	if err := s.pass(append(body[:len(body):len(body)], members...)); err != nil {
		return err
	}
	if err := s.pass(fmt.Appendf(nil, `%s%x"`, macHead, s.signer.end())); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.w, "%s%08x%s\n", sealHead, s.sum, sealTail)
	return err
}

// sealed returns a function that calls write and adds members, a digest and a checksum to its
// object. The signer must be started.
func (s *signer) sealed(members string, write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		sw := &sealWriter{w: w, signer: s}
		if err := write(sw); err != nil {
			return err
		}
		return sw.finish(members)
	}
}

// Request returns run.json. The error is a [*FileError] when it is damaged, [record.ErrRunNotFound] when
// the run does not exist, and [os.ErrNotExist] when only the file is missing.
func (r *Run) Request() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, runFile))
	if err != nil {
		return nil, r.gone(err)
	}
	if b = bytes.TrimRight(b, blanks); len(b) == 0 {
		return nil, &FileError{runFile, errEmpty}
	}
	body, ok, err := unseal(b)
	if err == nil && !ok && (!json.Valid(b) || bytes.Contains(b[max(0, len(b)-heldBack):], []byte(`"crc"`))) {
		err = errNoObject
	}
	if err == nil {
		body, err = r.verifier().checkFile(forRequest, body)
	}
	if err != nil {
		return nil, &FileError{runFile, err}
	}
	return cutKeyID(body), nil
}

// A Result is an open result.json. Reading it returns the object without the members at its end,
// which [Writer.WriteResult] adds.
type Result struct {
	io.Reader
	ResultEnd

	file     *os.File
	verifier *verifier
	sealed   bool
	body     int64 // number of bytes that the checksum covers
	sum      uint32
	signed   int64 // number of bytes that the digest covers
	tag      tag
}

// A ResultEnd describes the journal at the time when result.json was written.
type ResultEnd struct {
	// Number is the number of the journal's last line; 0 where it is unknown. Size is the size
	// of the journal in bytes; 0 in results without a digest.
	Number, Size int64
	// Keyed reports whether the result has a digest; those of older versions have none.
	Keyed bool
	last  tag
}

// Matches reports whether the mark, which is after a line with the result's Number, is in the
// journal that the result describes.
func (e *ResultEnd) Matches(m Mark) bool { return e.Keyed == m.keyed && (!e.Keyed || m.tag == e.last) }

// Mark returns the position after the lines that the result describes. It is the zero Mark for a
// result without a digest.
func (e *ResultEnd) Mark() Mark {
	if !e.Keyed {
		return Mark{}
	}
	return Mark{offset: e.Size, number: e.Number, sealed: true, keyed: true, tag: e.last}
}

// The starts of the members about the journal.
const (
	linesHead = `,"lines":`
	bytesHead = `,"bytes":`
	lastHead  = `,"last":"`
)

// endSize is the maximum size of the members about the journal and of the digest.
const endSize = len(linesHead) + len(bytesHead) + 2*20 + len(lastHead) + 2*tagSize + 1 + soleSize

// Result opens result.json. The error is [os.ErrNotExist] when the run has not ended or its
// process died before writing it. It is [record.ErrRunNotFound] when the run does not exist, and a
// [*FileError] when the file is obviously damaged; see [Result.Check]. The caller closes the
// file.
func (r *Run) Result() (*Result, error) {
	f, err := os.Open(filepath.Join(r.dir, resultFile))
	if err != nil {
		return nil, r.gone(err)
	}
	res, err := newResult(f, r.verifier())
	if err != nil {
		f.Close()
		return nil, err
	}
	return res, nil
}

func newResult(f *os.File, v *verifier) (*Result, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, &FileError{resultFile, errEmpty}
	}
	r := &Result{file: f, verifier: v, body: max(0, info.Size()-int64(sealSize)-1)}
	end := make([]byte, info.Size()-r.body)
	if _, err := f.ReadAt(end, r.body); err != nil {
		return nil, &FileError{resultFile, err}
	}
	sum, ok := sealAt(end)
	switch {
	case ok && end[len(end)-1] == '\n':
		r.sealed, r.sum = true, sum
		object, err := r.cutEnd()
		if err == nil && !r.Keyed {
			err = fileError(resultFile, v.verifyMissing())
		}
		r.Reader = io.MultiReader(io.NewSectionReader(f, 0, object), strings.NewReader("}\n"))
		return r, err
	case ok, len(end) > sealSize && nearlySeal(end), bytes.Contains(end, []byte(`"crc"`)):
		return nil, &FileError{resultFile, errChecksum}
	case !bytes.HasSuffix(bytes.TrimRight(end, blanks), []byte("}")):
		return nil, &FileError{resultFile, errUnfinished}
	}
	r.Reader = f
	return r, fileError(resultFile, v.verifyMissing())
}

// cutEnd reads the digest and the members about the journal, and returns where these start.
func (r *Result) cutEnd() (object int64, err error) {
	b := make([]byte, min(r.body, int64(endSize)))
	from := r.body - int64(len(b))
	if _, err := r.file.ReadAt(b, from); err != nil {
		return 0, &FileError{resultFile, err}
	}
	if t, at, ok := cutSole(append(b, '}')); ok {
		r.Keyed, r.tag, r.signed = true, t, from+int64(at)
		b = b[:at]
	} else if n := len(b) - heldBack; n > 0 {
		b, from = b[n:], from+int64(n)
	}
	at := bytes.LastIndex(b, []byte(linesHead))
	if at < 0 {
		return from + int64(len(b)), nil
	}
	if err := r.readEnd(string(b[at+len(linesHead):])); err != nil {
		return 0, &FileError{resultFile, errChecksum}
	}
	return from + int64(at), nil
}

// readEnd reads the values of the members about the journal. Older results have only the first.
func (r *Result) readEnd(text string) (err error) {
	lines, rest, more := strings.Cut(text, bytesHead)
	if r.Number, err = strconv.ParseInt(lines, 10, 64); err != nil || !more {
		return err
	}
	size, last, more := strings.Cut(strings.TrimSuffix(rest, `"`), lastHead)
	if r.Size, err = strconv.ParseInt(size, 10, 64); err != nil {
		return err
	}
	if !more || len(last) != 2*tagSize || !decodeHex(r.last[:], []byte(last)) {
		return errChecksum
	}
	return nil
}

// Check reads the whole file and returns a [*FileError] when its checksum or digest is wrong. It
// does not affect reading.
func (r *Result) Check() error {
	if !r.sealed {
		return nil
	}
	sum, from := crc32.New(castagnoli), int64(0)
	if r.Keyed && r.verifier.signer != nil {
		r.verifier.signer.start(forResult)
		if _, err := io.Copy(io.MultiWriter(sum, r.verifier.signer.mac), io.NewSectionReader(r.file, 0, r.signed)); err != nil {
			return &FileError{resultFile, err}
		}
		if err := r.verifier.verify(r.tag, r.verifier.signer.end()); err != nil {
			return &FileError{resultFile, err}
		}
		from = r.signed
	}
	if _, err := io.Copy(sum, io.NewSectionReader(r.file, from, r.body-from)); err != nil {
		return &FileError{resultFile, err}
	}
	if sum.Sum32() != r.sum {
		return &FileError{resultFile, errChecksum}
	}
	return nil
}

// ReadAt reads from the file.
func (r *Result) ReadAt(b []byte, off int64) (int, error) { return r.file.ReadAt(b, off) }

// Close closes the file.
func (r *Result) Close() error { return r.file.Close() }

// Recorded reports whether a record exists: a request or lines of a journal. A directory without
// both was left by a process that was killed before it created the record.
func (r *Run) Recorded() bool {
	if _, err := os.Stat(filepath.Join(r.dir, runFile)); !errors.Is(err, os.ErrNotExist) {
		return true
	}
	info, err := os.Stat(r.JournalPath())
	return err == nil && info.Size() > 0
}

// gone returns [record.ErrRunNotFound] if the whole run is missing, else err.
func (r *Run) gone(err error) error {
	if errors.Is(err, os.ErrNotExist) && !r.Recorded() {
		return notFound(filepath.Base(r.dir))
	}
	return err
}
