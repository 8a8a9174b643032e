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

// The files beside the journal, run.json and result.json, end like its lines: the last member of
// the object is a checksum of everything before it. Files from before checksums were introduced
// have none.

// A FileError reports that a file of a run's record is damaged.
type FileError struct {
	// File is the file name in the run's directory.
	File string
	Err  error
}

func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

var (
	errEmpty      = errors.New("empty file")
	errUnfinished = errors.New("the end is missing")
)

// blanks can follow the last member of a file and the object itself.
const blanks = " \t\r\n"

// sealWriter passes an object through and adds its checksum at the end.
type sealWriter struct {
	w    io.Writer
	sum  uint32
	held []byte // the last bytes, which contain the end of the object
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
	_, err := s.w.Write(b)
	return err
}

// finish writes the held bytes, then members and the checksum. An object without members gets no
// checksum.
func (s *sealWriter) finish(members string) error {
	body, ok := bytes.CutSuffix(bytes.TrimRight(s.held, blanks), []byte("}"))
	body = bytes.TrimRight(body, blanks)
	if !ok || bytes.HasSuffix(body, []byte("{")) {
		return s.pass(s.held)
	}
	if err := s.pass(append(body[:len(body):len(body)], members...)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.w, "%s%08x%s\n", sealHead, s.sum, sealTail)
	return err
}

// sealed returns a function that calls write and adds members and a checksum to its object.
func sealed(members string, write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		s := &sealWriter{w: w}
		if err := write(s); err != nil {
			return err
		}
		return s.finish(members)
	}
}

// Request returns run.json. The error is a [*FileError] when it is damaged, [ErrNotFound] when
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
	if err != nil {
		return nil, &FileError{runFile, err}
	}
	return body, nil
}

// A Result is an open result.json. Reading it returns the object without its last two members,
// which [Writer.WriteResult] adds.
type Result struct {
	io.Reader
	// Number is the number of the journal's last line when the result was written; 0 where it is
	// unknown.
	Number int64
	file   *os.File
	sealed bool
	body   int64 // number of bytes that the checksum covers
	sum    uint32
}

// linesHead is the start of the member with the number of the journal's last line.
const linesHead = `,"lines":`

// Result opens result.json. The error is [os.ErrNotExist] when the run has not ended or its
// process died before writing it. It is [ErrNotFound] when the run does not exist, and a
// [*FileError] when the file is obviously damaged; see [Result.Check]. The caller closes the
// file.
func (r *Run) Result() (*Result, error) {
	f, err := os.Open(filepath.Join(r.dir, resultFile))
	if err != nil {
		return nil, r.gone(err)
	}
	res, err := newResult(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return res, nil
}

func newResult(f *os.File) (*Result, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, &FileError{resultFile, errEmpty}
	}
	r := &Result{file: f, body: max(0, info.Size()-int64(sealSize)-1)}
	end := make([]byte, info.Size()-r.body)
	if _, err := f.ReadAt(end, r.body); err != nil {
		return nil, &FileError{resultFile, err}
	}
	sum, ok := sealAt(end)
	switch {
	case ok && end[len(end)-1] == '\n':
		r.sealed, r.sum = true, sum
		object, err := r.cutLines()
		r.Reader = io.MultiReader(io.NewSectionReader(f, 0, object), strings.NewReader("}\n"))
		return r, err
	case ok, len(end) > sealSize && nearlySeal(end), bytes.Contains(end, []byte(`"crc"`)):
		return nil, &FileError{resultFile, errChecksum}
	case !bytes.HasSuffix(bytes.TrimRight(end, blanks), []byte("}")):
		return nil, &FileError{resultFile, errUnfinished}
	}
	r.Reader = f
	return r, nil
}

// cutLines reads the number of lines and returns its offset.
func (r *Result) cutLines() (object int64, err error) {
	b := make([]byte, min(r.body, heldBack))
	if _, err := r.file.ReadAt(b, r.body-int64(len(b))); err != nil {
		return 0, &FileError{resultFile, err}
	}
	at := bytes.LastIndex(b, []byte(linesHead))
	if at < 0 {
		return r.body, nil
	}
	n, err := strconv.ParseInt(string(b[at+len(linesHead):]), 10, 64)
	if err != nil {
		return 0, &FileError{resultFile, errChecksum}
	}
	r.Number = n
	return r.body - int64(len(b)-at), nil
}

// Check reads the whole file and returns a [*FileError] when its checksum is wrong. It does not
// affect reading.
func (r *Result) Check() error {
	if !r.sealed {
		return nil
	}
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, io.NewSectionReader(r.file, 0, r.body)); err != nil {
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

// gone returns [ErrNotFound] if the whole run is missing, else err.
func (r *Run) gone(err error) error {
	if errors.Is(err, os.ErrNotExist) && !r.Recorded() {
		return ErrNotFound
	}
	return err
}
