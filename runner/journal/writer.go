package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"waza/eval/files"
)

// indexEvery is the distance between remembered line offsets. A seek reads at most that many
// lines in vain, and a million lines take 128 kB.
const indexEvery = 64

// A Writer records one run. Only one goroutine may call Append, Flush and Close; any may call
// Lines. A Writer has one goroutine of its own, which syncs the file and ends with Close.
type Writer struct {
	run  *Run
	file *os.File
	fd   int         // of file
	made os.FileInfo // of file, when it was opened
	lock *os.File    // the locked file, which may be the same
	buf  []byte      // appended lines that are not flushed
	// checked is when readers last found the file under its name.
	checked time.Time

	// key is the key of the record. The writer keeps it, because its file can be removed while
	// the run is recorded.
	key    *stateKey
	signer *signer
	blobs  Blobs

	mu      sync.Mutex // guards the fields below
	index   []Mark     // before every indexEvery-th line
	at      Mark       // after the flushed lines
	syncErr error

	pending      Mark // after the appended lines
	pendingIndex []Mark

	dirty chan struct{} // capacity 1: something was flushed since the last sync
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when the syncing goroutine has ended
}

// create creates a journal. The lock on its file marks the run as being recorded.
func (r *Run) create(request []byte) (*Writer, error) {
	f, err := os.OpenFile(r.JournalPath(), os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	// Processes that watch runs hold the lock for a moment, to check whether this process is
	// alive.
	if err := lockPatiently(f, time.Second); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	// run.json is written last: a directory with it also has a journal.
	w := &Writer{run: r, file: f, lock: f}
	if err := w.loadKey(); err != nil {
		release(f)
		return nil, err
	}
	if err := w.WriteRequest(request); err != nil {
		release(f)
		return nil, err
	}
	return w.start(), nil
}

// loadKey loads the key of the state directory, or creates it if it is missing. A record has
// only one key, so loadKey returns an error for a run that was recorded with a different one.
func (w *Writer) loadKey() (err error) {
	if w.key, err = w.run.store.keys.ensure(w.run.disk); err != nil {
		return err
	}
	if v := w.run.verifier(); v.other != nil && v.other() {
		return fmt.Errorf("run %s was recorded with a different key, so waza adds nothing to its record", w.run.ID())
	}
	w.signer = newSigner(w.key, w.run.ID())
	return nil
}

// start completes a writer and starts the goroutine that syncs its file, if the store has one.
func (w *Writer) start() *Writer {
	w.blobs.dir, w.blobs.disk = w.run.dir, w.run.disk
	w.made, _ = w.file.Stat() // checked by the first Flush
	w.fd = int(w.file.Fd())
	w.dirty, w.stop, w.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	if w.run.disk.policy == SyncGroup {
		go w.syncLoop()
	} else {
		close(w.done)
	}
	return w
}

// Dir returns the run's directory.
func (w *Writer) Dir() string { return w.run.dir }

// WorkDir returns the directory for the run's workspaces. This package does not create it.
func (w *Writer) WorkDir() string { return w.run.work }

// Blobs returns the store for contents beside the lines.
func (w *Writer) Blobs() *Blobs { return &w.blobs }

// Append adds a line, a JSON object with members on one line, and returns its offset in the
// file. The line stays in memory until Flush.
func (w *Writer) Append(line []byte) int64 {
	off := w.pending.offset
	if w.pending.line%indexEvery == 0 {
		w.pendingIndex = append(w.pendingIndex, w.pending)
	}
	before := len(w.buf)
	var t tag
	w.buf, t = w.signer.sign(w.buf, line, w.pending.tag)
	w.pending = Mark{
		offset: off + int64(len(w.buf)-before), line: w.pending.line + 1, number: w.pending.last() + 1,
		sealed: true, tag: t, keyed: true,
	}
	return off
}

// Flush writes the appended lines in one write. They then survive this process; with
// [SyncAlways], a power failure, too. After an error the journal accepts nothing more, and
// unwritten lines are dropped.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if err := w.write(); err != nil {
		w.pending, w.pendingIndex = w.at, nil
		return err
	}
	w.run.store.written.lines.Add(w.pending.line - w.at.line)
	w.run.store.written.bytes.Add(w.pending.offset - w.at.offset)
	w.mu.Lock()
	w.at = w.pending
	w.index = append(w.index, w.pendingIndex...)
	err := w.syncErr
	w.mu.Unlock()
	w.pendingIndex = w.pendingIndex[:0]
	select {
	case w.dirty <- struct{}{}:
	default:
	}
	return err
}

func (w *Writer) write() error {
	defer func() {
		if w.buf = w.buf[:0]; cap(w.buf) > 4<<20 {
			w.buf = nil
		}
	}()
	if w.run.disk.policy == SyncAlways {
		if err := w.blobs.flush(); err != nil {
			return err
		}
	}
	n, err := w.file.Write(w.buf)
	if err == nil {
		err = w.checkReplaced()
	}
	if err == nil && w.run.disk.policy == SyncAlways {
		err = w.syncNow()
	}
	if err != nil && n > 0 {
		_ = w.file.Truncate(w.at.offset) // leave no incomplete line, and none that Flush reported as failed
	}
	return err
}

// checkReplaced returns an error if the file being written is not the file that readers find:
// the run's record was deleted or replaced. It notices at once that the file has no name any more,
// and at most syncDelay later that its name is that of another file, because that takes ten times
// as long to find out.
func (w *Writer) checkReplaced() error {
	var now unix.Stat_t
	if err := unix.Fstat(w.fd, &now); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if now.Nlink > 0 && time.Since(w.checked) < syncDelay {
		return nil
	}
	w.checked = time.Now()
	found, err := os.Stat(w.file.Name())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s", ErrVanished, w.file.Name())
	case err != nil:
		return fmt.Errorf("journal: %w", err)
	case w.made == nil || !os.SameFile(found, w.made):
		return fmt.Errorf("%w: another file replaced %s", ErrVanished, w.file.Name())
	}
	return nil
}

// WriteResult writes result.json, completely or not at all. It adds the number of lines, the
// size of the journal, the tag of the last line, a digest and a checksum.
func (w *Writer) WriteResult(write func(io.Writer) error) error {
	end := fmt.Sprintf(`%s%d%s%d%s%x"`, linesHead, w.pending.last(), bytesHead, w.pending.offset, lastHead, w.pending.tag)
	return w.writeFile(resultFile, forResult, end, write)
}

// writeFile writes a file beside the journal, with members, a digest and a checksum.
func (w *Writer) writeFile(name, purpose, members string, write func(io.Writer) error) error {
	s := newSigner(w.key, w.run.ID())
	s.start(purpose)
	return w.run.disk.writeAtomically(filepath.Join(w.run.dir, name), s.sealed(members, write))
}

// Lines opens the flushed lines, starting at or before the line with the given number (from 1).
// The first returned number shows where the reader started. Lines also works after Close.
// The caller closes the reader.
func (w *Writer) Lines(number int64) (*Reader, error) {
	f, err := os.Open(w.file.Name())
	if err != nil {
		return nil, err
	}
	from, end := w.find(number)
	return newReader(io.NewSectionReader(f, from.offset, end-from.offset), f, from, w.run.verifier()), nil
}

// Number returns the number of the line that Append adds next. A line that contains its number
// must contain this one.
func (w *Writer) Number() int64 { return w.pending.last() + 1 }

// find returns the last known position before the line with the given number, and the end of the
// flushed lines.
func (w *Writer) find(number int64) (from Mark, end int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	after, _ := slices.BinarySearchFunc(w.index, number, func(m Mark, n int64) int { return cmp.Compare(m.number, n) })
	if after > 0 {
		from = w.index[after-1]
	}
	return from, w.at.offset
}

// Run returns read access to the run that this writer records.
func (w *Writer) Run() *Run { return w.run }

// Close flushes, syncs, releases the lock and closes the file. The error includes a sync that
// failed before.
func (w *Writer) Close() error {
	err := w.Flush()
	close(w.stop)
	<-w.done
	if w.run.disk.policy != SyncNever {
		err = cmp.Or(err, w.syncErr, w.syncNow())
	}
	err = cmp.Or(err, w.blobs.close())
	if w.lock == w.file {
		err = cmp.Or(err, files.Unlock(w.file))
	} else {
		_ = files.Unlock(w.lock) // nothing was written to it
		err = cmp.Or(err, w.file.Close())
	}
	w.run.touch()
	return err
}
