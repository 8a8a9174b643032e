package journal_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

// disk records the names of synced files.
type disk struct {
	mu     sync.Mutex // guards the fields below
	synced []string
	broken error
}

func (d *disk) fsync(f *os.File) error {
	name := filepath.Base(f.Name())
	if rest, ok := strings.CutPrefix(name, "."); ok { // about to be renamed
		name, _, _ = strings.Cut(rest, "-")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced = append(d.synced, name)
	return d.broken
}

// since returns the names synced since the last call.
func (d *disk) since() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.synced
	d.synced = nil
	return list
}

func newDisk(t *testing.T, policy journal.Sync) (*disk, *journal.Store) {
	t.Helper()
	d := &disk{}
	store := journal.NewStore(filepath.Join(t.TempDir(), "state"))
	store.Sync = policy
	store.SetFsync(d.fsync)
	return d, store
}

// A power failure cannot undo an event that was delivered.
func TestSyncAlways(t *testing.T) {
	t.Parallel()
	d, store := newDisk(t, journal.SyncAlways)
	w, err := store.Create("r", []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, []string{"record.key", "state", "run.json", "r", "runs", "state"}, d.since())
	write(t, w, 1, 3)
	require.Equal(t, []string{"journal.jsonl"}, d.since())
	_, err = w.Blobs().Put([]byte("content"))
	require.NoError(t, err)
	require.Empty(t, d.since(), "until there is a line that may refer to it")
	write(t, w, 4, 4)
	require.Equal(t, []string{"files.gz", "r", "journal.jsonl"}, d.since())
	write(t, w, 5, 5)
	require.Equal(t, []string{"journal.jsonl"}, d.since())

	d.broken = errors.New("broken")
	w.Append([]byte(`{"line":6}`))
	require.ErrorIs(t, w.Flush(), d.broken)
	d.broken = nil
	require.NoError(t, w.Close())
	d.since()
	r, err := w.Run().Journal()
	require.NoError(t, err)
	numbers, _ := lines(t, r)
	require.Len(t, numbers, 5, "undelivered events are not recorded")
}

// Flushed data is on disk a moment later, contents before lines. An error is returned with the
// next lines, or at the end.
func TestSyncGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := newDisk(t, journal.SyncGroup)
		w, err := store.Create("r", []byte("{}"))
		require.NoError(t, err)
		d.since()
		_, err = w.Blobs().Put([]byte("content"))
		require.NoError(t, err)
		write(t, w, 1, 3)
		require.Empty(t, d.since())
		time.Sleep(19 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"files.gz", "r", "journal.jsonl"}, d.since())
		time.Sleep(time.Second)
		require.Empty(t, d.since(), "nothing to do")

		d.broken = errors.New("broken")
		write(t, w, 4, 4)
		time.Sleep(time.Second)
		synctest.Wait()
		w.Append([]byte(`{"line":5}`))
		require.ErrorIs(t, w.Flush(), d.broken)
		require.ErrorIs(t, w.Close(), d.broken)
	})
}

func TestSyncNever(t *testing.T) {
	t.Parallel()
	d, store := newDisk(t, journal.SyncNever)
	w, err := store.Create("r", []byte("{}"))
	require.NoError(t, err)
	_, err = w.Blobs().Put([]byte("content"))
	require.NoError(t, err)
	write(t, w, 1, 3)
	require.NoError(t, w.WriteResult(func(io.Writer) error { return nil }))
	require.NoError(t, w.Close())
	require.Empty(t, d.since())
}

// A replaced result survives a power failure.
func TestSyncResult(t *testing.T) {
	t.Parallel()
	d, store := newDisk(t, journal.SyncGroup)
	w, err := store.Create("r", []byte("{}"))
	require.NoError(t, err)
	d.since()
	require.NoError(t, w.WriteResult(func(io.Writer) error { return nil }))
	require.Equal(t, []string{"result.json", "r"}, d.since())
	require.NoError(t, w.Close())
}

func TestParseSync(t *testing.T) {
	t.Parallel()
	for _, name := range journal.SyncNames() {
		s, err := journal.ParseSync(name)
		require.NoError(t, err)
		require.Equal(t, name, s.String())
	}
	zero, err := journal.ParseSync(journal.SyncNames()[0])
	require.NoError(t, err)
	require.Zero(t, zero)
	_, err = journal.ParseSync("sometimes")
	require.ErrorContains(t, err, "group, always, never")
}
