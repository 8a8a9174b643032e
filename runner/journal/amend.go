package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Amend opens the run for further lines after those it has. A last line that was
// cut off is removed. The error is [ErrRecorded] or [ErrAmended] when another
// writer, of any process, has the run. While it is amended the run does not count
// as alive: its lock is the one on run.json. The caller closes the writer.
func (r *Run) Amend() (*Writer, error) {
	w, err := r.reopen()
	if err != nil {
		return nil, err
	}
	if err := w.recount(); err != nil {
		unlock(w.lock)
		w.lock.Close()
		w.file.Close()
		return nil, err
	}
	return newWriter(w), nil
}

func (r *Run) reopen() (*Writer, error) {
	l, err := os.Open(filepath.Join(r.dir, runFile))
	if err != nil {
		return nil, err
	}
	if err := lockPatiently(l); err != nil {
		l.Close()
		return nil, ErrAmended
	}
	f, err := os.OpenFile(r.JournalPath(), os.O_RDWR|os.O_APPEND, 0)
	if err == nil && locked(f) {
		f.Close()
		err = ErrRecorded
	}
	if err != nil {
		unlock(l)
		l.Close()
		return nil, err
	}
	return &Writer{run: r, file: f, lock: l}, nil
}

// lockPatiently takes a lock that others may hold for a moment, to see whether
// they can.
func lockPatiently(f *os.File) error {
	err := lock(f)
	for range 5 {
		if err == nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
		err = lock(f)
	}
	return err
}

// recount finds out how many lines there are and where, and cuts off what is no
// whole line.
func (w *Writer) recount() error {
	r := newReader(w.file, io.NopCloser(w.file), Mark{})
	for {
		_, number, off, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if (number-1)%indexEvery == 0 {
			w.index = append(w.index, off)
		}
	}
	w.lines, w.written = r.at.line, r.at.offset
	if err := w.file.Truncate(w.written); err != nil {
		return fmt.Errorf("journal: cut off an unfinished line: %w", err)
	}
	return nil
}
