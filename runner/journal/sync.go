package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sync says when what is recorded is brought to the disk, that is, what a power
// failure may cost. A crash of the process costs nothing that was flushed,
// whatever it is.
type Sync int

// The policies. The zero value is the one to use.
const (
	// SyncGroup puts at most 20 ms of work at risk, for next to no time.
	SyncGroup Sync = iota
	// SyncAlways puts nothing at risk that anyone was told of.
	SyncAlways
	// SyncNever leaves it to the system.
	SyncNever
)

var syncNames = []string{"group", "always", "never"}

// SyncNames are what [ParseSync] knows, the default first.
func SyncNames() []string { return slices.Clone(syncNames) }

func (s Sync) String() string { return syncNames[s] }

// ParseSync returns the policy of that name; the error lists those there are.
func ParseSync(name string) (Sync, error) {
	i := slices.Index(syncNames, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown policy %q, known are %s", name, strings.Join(syncNames, ", "))
	}
	return Sync(i), nil
}

// syncDelay is how long after lines were flushed the disk is asked to take them.
// It is half of what may be at risk, for the disk takes its time, too.
const syncDelay = 10 * time.Millisecond

// syncLoop brings what was flushed to the disk, at most once per syncDelay.
func (w *Writer) syncLoop() {
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
		if err := w.syncNow(); err != nil {
			w.mu.Lock()
			w.syncErr = err
			w.mu.Unlock()
		}
	}
}

// syncNow brings all there is to the disk: contents first, so that no line refers
// to one that is not there.
func (w *Writer) syncNow() error {
	if err := w.blobs.flush(); err != nil {
		return err
	}
	if err := w.run.disk.sync(w.file); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// disk brings files to the disk, by a policy.
type disk struct {
	policy Sync
	fsync  func(*os.File) error // of tests; nil means the file's own
}

func (d disk) sync(f *os.File) error {
	switch {
	case d.policy == SyncNever:
		return nil
	case d.fsync != nil:
		return d.fsync(f)
	}
	return f.Sync()
}

// syncDir brings the entries of a directory to the disk: a file that was made or
// renamed may be gone without. There are file systems that know no such thing.
func (d disk) syncDir(dir string) error {
	if d.policy == SyncNever {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.sync(f); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
