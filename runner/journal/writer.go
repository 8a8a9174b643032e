package journal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// syncDelay is how much work a power failure may cost: what was flushed is on
// the disk at most this much later. A crash of the process costs nothing that
// was flushed.
const syncDelay = 20 * time.Millisecond

// indexEvery is the distance between remembered line offsets: a seek reads at
// most that many lines in vain, and a million lines cost 128 kB.
const indexEvery = 64

// Writer records one run. Append, Flush and Close belong to one goroutine;
// Lines may be called by any. It runs one goroutine of its own, which
// syncs the file and ends with Close.
type Writer struct {
	run  *Run
	file *os.File
	lock *os.File // the file whose lock is held, which may be the same
	buf  []byte   // lines appended, not yet flushed

	blobs Blobs

	mu      sync.Mutex // guards the fields below
	index   []int64    // offset of line 1, 1+indexEvery, …
	lines   int64      // lines flushed
	written int64      // bytes flushed
	syncErr error

	pendingLines int64
	pendingIndex []int64

	dirty chan struct{} // capacity 1: something was flushed since the last sync
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when the syncing goroutine has ended
}

// create begins a journal. The lock on its file says that the run is recorded.
func (r *Run) create(request []byte) (*Writer, error) {
	f, err := os.OpenFile(r.JournalPath(), os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	// run.json comes last: a directory with it has a journal too.
	w := &Writer{run: r, file: f, lock: f}
	if err := w.WriteRequest(request); err != nil {
		release(f)
		return nil, err
	}
	return newWriter(w), nil
}

func newWriter(w *Writer) *Writer {
	w.blobs.dir = w.run.dir
	w.dirty, w.stop, w.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go w.sync()
	return w
}

// Dir is the run's directory.
func (w *Writer) Dir() string { return w.run.dir }

// WorkDir is where the run's workspaces belong. It is not made by this package.
func (w *Writer) WorkDir() string { return w.run.work }

// Blobs keeps contents beside the lines.
func (w *Writer) Blobs() *Blobs { return &w.blobs }

// Append adds a line, which must not contain a newline, and returns the offset
// at which it will stand. It is kept in memory until Flush.
func (w *Writer) Append(line []byte) int64 {
	off := w.written + int64(len(w.buf)) // written changes in Flush only, which is ours
	if (w.lines+w.pendingLines)%indexEvery == 0 {
		w.pendingIndex = append(w.pendingIndex, off)
	}
	w.buf = append(append(w.buf, line...), '\n')
	w.pendingLines++
	return off
}

// Flush hands the appended lines to the system in one write, after which they
// survive this process. After an error the journal is at its end; what was not
// written is dropped.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	n, err := w.file.Write(w.buf)
	size := len(w.buf)
	if w.buf = w.buf[:0]; cap(w.buf) > 4<<20 {
		w.buf = nil
	}
	if err != nil {
		if n > 0 {
			_ = w.file.Truncate(w.written) // leave no torn line behind
		}
		return err
	}
	w.mu.Lock()
	w.written += int64(size)
	w.lines += w.pendingLines
	w.index = append(w.index, w.pendingIndex...)
	err, w.syncErr = w.syncErr, nil
	w.mu.Unlock()
	w.pendingLines, w.pendingIndex = 0, w.pendingIndex[:0]
	select {
	case w.dirty <- struct{}{}:
	default:
	}
	return err
}

// sync brings what was flushed to the disk, at most once per syncDelay.
func (w *Writer) sync() {
	defer close(w.done)
	for {
		select {
		case <-w.dirty:
		case <-w.stop:
			return
		}
		select {
		case <-time.After(syncDelay):
		case <-w.stop:
			return
		}
		if err := w.file.Sync(); err != nil {
			w.mu.Lock()
			w.syncErr = fmt.Errorf("sync journal: %w", err)
			w.mu.Unlock()
		}
	}
}

// WriteResult writes result.json in one piece or not at all.
func (w *Writer) WriteResult(write func(io.Writer) error) error {
	return writeAtomically(filepath.Join(w.run.dir, resultFile), write)
}

// Lines opens what has been flushed, from a line at or before the given one
// (from 1): its first numbers tell which. It works after Close, too. The caller
// closes the reader.
func (w *Writer) Lines(line int64) (*Reader, error) {
	f, err := os.Open(w.file.Name())
	if err != nil {
		return nil, err
	}
	off, first, end := w.find(line)
	return newReader(io.NewSectionReader(f, off, end-off), f, Mark{line: first - 1, offset: off}), nil
}

// Number is the number of the line that Append adds next.
func (w *Writer) Number() int64 { return w.lines + w.pendingLines + 1 }

// find returns the nearest known offset at or before that of the given line, the
// number of the line there, and where the flushed lines end.
func (w *Writer) find(line int64) (off, at, end int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.index) == 0 {
		return 0, 1, w.written
	}
	i := min(max(0, (line-1)/indexEvery), int64(len(w.index)-1))
	return w.index[i], i*indexEvery + 1, w.written
}

// Run gives read access to what this writer records.
func (w *Writer) Run() *Run { return w.run }

// Close flushes, syncs, gives up the lock and closes the file.
func (w *Writer) Close() error {
	err := w.Flush()
	close(w.stop)
	<-w.done
	if berr := w.blobs.close(); err == nil {
		err = berr
	}
	if serr := w.file.Sync(); err == nil {
		err = serr
	}
	unlock(w.lock) // before it is closed, as release does
	if cerr := w.file.Close(); err == nil {
		err = cerr
	}
	if w.lock != w.file {
		_ = w.lock.Close() // nothing was written to it
	}
	return err
}
