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

	"waza/eval/files"
)

// Reopen opens a run whose process has died, to continue it. New lines follow the existing ones,
// and the run counts as alive again. Reopen removes an incomplete last line. The error is
// [ErrRecorded] or [ErrAmended] when another writer, of any process, has the run. The caller
// closes the writer.
//
// Reopen must read all lines. So that a caller who needs them, too, does not read them again, it
// passes them to read, unless that is nil. read gets them before any change, while nobody else can
// write, and may leave the rest of them to Reopen. Its error is that of Reopen.
func (r *Run) Reopen(read func(lines *Reader) error) (*Writer, error) {
	// Held until the journal's own lock is held, because an amendment checks that lock.
	amend, err := r.lockAmend()
	if err != nil {
		return nil, err
	}
	defer release(amend)
	r.Requests().drop() // requests to a dead process
	f, err := os.OpenFile(r.JournalPath(), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, r.gone(err)
	}
	if err := lockPatiently(f, moment); err != nil {
		f.Close()
		return nil, ErrRecorded
	}
	if err := amend.Truncate(0); err == nil { // even without the id of the process, others learn that one exists
		_, _ = fmt.Fprintln(amend, os.Getpid())
	}
	w, err := r.continued(f, f, read)
	if err == nil {
		r.touch()
	}
	return w, err
}

// ResumerPID returns the process that last resumed the run, as soon as that process has the run; 0
// when none did.
func (r *Run) ResumerPID() int {
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

// continued returns the writer of a journal that already has lines. It owns the file and the
// lock, which may be the same. read can be nil.
func (r *Run) continued(f, lock *os.File, read func(lines *Reader) error) (*Writer, error) {
	w := &Writer{run: r, file: f, lock: lock}
	err := w.loadKey()
	if err == nil {
		err = w.recount(read)
	}
	if err != nil {
		release(lock)
		f.Close()
		return nil, err
	}
	return w.start(), nil
}

// moment is how long other processes take to check a lock.
const moment = 10 * time.Millisecond

// lockPatiently acquires a lock that other processes may hold for a moment to check it.
func lockPatiently(f *os.File, patience time.Duration) error {
	const pause = 2 * time.Millisecond
	err := files.Lock(f)
	for range patience / pause {
		if err == nil {
			break
		}
		time.Sleep(pause)
		err = files.Lock(f)
	}
	return err
}

// recount reads the existing lines, see [Run.Reopen], and truncates an incomplete last line. Damaged
// lines remain.
func (w *Writer) recount(read func(*Reader) error) error {
	r := newReader(w.file, io.NopCloser(w.file), Mark{}, w.run.verifier())
	defer r.Close()
	r.index = &w.index
	if read != nil {
		if err := read(r); err != nil {
			return err
		}
	}
	r.ReadAhead()
	for {
		_, _, _, err := r.NextUndamaged()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := w.file.Truncate(r.at.offset); err != nil {
		return fmt.Errorf("journal: truncate an incomplete line: %w", err)
	}
	w.at, w.pending = r.at, r.at
	return nil
}

// WriteRequest replaces run.json, completely or not at all. It adds the id of the key, a digest
// and a checksum.
func (w *Writer) WriteRequest(request []byte) error {
	return w.writeFile(runFile, forRequest, fmt.Sprintf(`%s%x"`, keyIDHead, w.key.id), func(out io.Writer) error {
		_, err := out.Write(request)
		return err
	})
}

// RemoveEnd removes the traces of the earlier end of a resumed run: result.json, the named
// reports, and unfinished files of killed processes.
func (w *Writer) RemoveEnd(reports ...string) error {
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
