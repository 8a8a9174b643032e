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

// Sync determines when recorded data is synced to disk, and thus what a power failure can
// destroy. A crash of the process destroys nothing that was flushed, with any policy.
type Sync int

// The policies. The zero value is recommended.
const (
	// SyncGroup risks at most 20 ms of work and takes almost no time.
	SyncGroup Sync = iota
	// SyncAlways syncs before any event is delivered.
	SyncAlways
	// SyncNever leaves syncing to the system.
	SyncNever
)

var syncNames = []string{"group", "always", "never"}

// SyncNames returns the names that [ParseSync] accepts, the default first.
func SyncNames() []string { return slices.Clone(syncNames) }

func (s Sync) String() string { return syncNames[s] }

// ParseSync returns the policy with the given name. Its error lists the valid names.
func ParseSync(name string) (Sync, error) {
	i := slices.Index(syncNames, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown policy %q, expected one of %s", name, strings.Join(syncNames, ", "))
	}
	return Sync(i), nil
}

// syncDelay is the delay between flushing lines and syncing them. It is half of what may be
// lost, because the disk takes its time, too.
const syncDelay = 10 * time.Millisecond

// syncLoop syncs flushed lines to disk, at most once per syncDelay.
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

// syncNow syncs everything to disk. It syncs contents first, so that no line refers to a missing
// content.
func (w *Writer) syncNow() error {
	if err := w.blobs.flush(); err != nil {
		return err
	}
	if err := w.run.disk.sync(w.file); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// disk syncs files to disk according to a policy.
type disk struct {
	policy Sync
	fsync  func(*os.File) error // set by tests; nil means File.Sync
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

// syncDir syncs the entries of a directory to disk. Without it, a power failure can lose a
// created or renamed file. Some file systems do not support this.
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
