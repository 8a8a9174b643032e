package journal

import (
	"os"
	"path/filepath"

	"waza/eval/files"
)

// Amend opens the run to append lines. It removes an incomplete last line. The error is
// [ErrRecorded] or [ErrAmended] when another writer, of any process, has the run. An amended run
// does not count as alive, because amendments have their own lock. The caller closes the writer.
func (r *Run) Amend() (*Writer, error) {
	l, err := r.lockAmend()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(r.JournalPath(), os.O_RDWR|os.O_APPEND, 0)
	if err == nil && files.Locked(f) {
		f.Close()
		err = ErrRecorded
	}
	if err != nil {
		release(l)
		return nil, r.gone(err)
	}
	return r.continued(f, l, nil)
}

// lockAmend acquires the lock of amendments, or returns [ErrAmended]. It creates the lock's file
// when it is first needed. The file remains.
func (r *Run) lockAmend() (*os.File, error) {
	l, err := os.OpenFile(filepath.Join(r.dir, amendFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, r.gone(err)
	}
	if err := lockPatiently(l, moment); err != nil {
		l.Close()
		return nil, ErrAmended
	}
	return l, nil
}

// release releases a lock. Nothing was written to its file.
func release(l *os.File) { _ = files.Unlock(l) }
