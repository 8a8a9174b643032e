package journal

import (
	"os"
	"path/filepath"
)

// Amend opens the run for further lines after those it has. A last line that was
// cut off is removed. The error is [ErrRecorded] or [ErrAmended] when another
// writer, of any process, has the run. While it is amended the run does not count
// as alive: its lock is one of its own. The caller closes the writer.
func (r *Run) Amend() (*Writer, error) {
	l, err := r.lockAmend()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(r.JournalPath(), os.O_RDWR|os.O_APPEND, 0)
	if err == nil && locked(f) {
		f.Close()
		err = ErrRecorded
	}
	if err != nil {
		release(l)
		return nil, r.gone(err)
	}
	return r.continued(f, l)
}

// lockAmend takes the lock of amendments, or returns [ErrAmended]. Its file is
// made when it is first needed, and stays.
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

// release gives up a lock. Closing alone would leave it with a child that was
// forked just now and has not come to its own program yet.
func release(l *os.File) {
	unlock(l)
	_ = l.Close() // nothing was written to it
}
