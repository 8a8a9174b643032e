package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reopen opens a run whose process is gone, to go on with it: lines follow those
// it has, and it counts as alive again. A last line that was cut off is removed.
// The error is [ErrRecorded] or [ErrAmended] when another writer, of any process,
// has the run. The caller closes the writer.
func (r *Run) Reopen() (*Writer, error) {
	// Held until the journal's own lock is: an amendment looks for that one.
	amend, err := r.lockAmend()
	if err != nil {
		return nil, err
	}
	defer release(amend)
	r.dropRequests() // to a process that is gone
	f, err := os.OpenFile(r.JournalPath(), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, r.gone(err)
	}
	if err := lockPatiently(f, moment); err != nil {
		f.Close()
		return nil, ErrRecorded
	}
	if err := amend.Truncate(0); err == nil { // who cannot learn the process learns that there is one
		_, _ = fmt.Fprintln(amend, os.Getpid())
	}
	w, err := r.continued(f, f)
	if err == nil {
		r.touch()
	}
	return w, err
}

// Resumer is the process that resumed the run last, from the moment on at which it has
// the run; 0 when none did.
func (r *Run) Resumer() int {
	b, err := os.ReadFile(filepath.Join(r.dir, amendFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// continued makes the writer of a journal that has lines already. It takes over
// the file and the lock, which may be the same.
func (r *Run) continued(f, lock *os.File) (*Writer, error) {
	w := &Writer{run: r, file: f, lock: lock}
	if err := w.recount(); err != nil {
		release(lock)
		f.Close()
		return nil, err
	}
	return newWriter(w), nil
}

// moment is how long it takes others to see whether they can have a lock.
const moment = 10 * time.Millisecond

// lockPatiently takes a lock that others may hold for a moment, to see whether
// they can.
func lockPatiently(f *os.File, patience time.Duration) error {
	const pause = 2 * time.Millisecond
	err := lock(f)
	for range patience / pause {
		if err == nil {
			break
		}
		time.Sleep(pause)
		err = lock(f)
	}
	return err
}

// recount finds out what lines there are and where, and cuts off what is no whole
// line. Damaged ones stay where they are.
func (w *Writer) recount() error {
	r := newReader(w.file, io.NopCloser(w.file), Mark{})
	for indexed := int64(-1); ; {
		before := r.Mark()
		_, _, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if damaged := (*DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
			return err
		}
		if before.line/indexEvery > indexed {
			indexed = before.line / indexEvery
			w.index = append(w.index, before)
		}
	}
	if err := w.file.Truncate(r.at.offset); err != nil {
		return fmt.Errorf("journal: cut off an unfinished line: %w", err)
	}
	w.at, w.pending = r.at, r.at
	return nil
}

// WriteRequest replaces run.json, in one piece or not at all, and adds a checksum.
func (w *Writer) WriteRequest(request []byte) error {
	return w.run.disk.writeAtomically(filepath.Join(w.run.dir, runFile), sealed("", func(out io.Writer) error {
		_, err := out.Write(request)
		return err
	}))
}

// ForgetEnd removes what a run that goes on has from when it was over: result.json,
// the reports of these names, and files that a process which was killed had not yet
// put in their place.
func (w *Writer) ForgetEnd(reports ...string) error {
	entries, err := os.ReadDir(w.run.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name != resultFile && name[0] != '.' && !slices.Contains(reports, name) {
			continue
		}
		if err := os.Remove(filepath.Join(w.run.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
