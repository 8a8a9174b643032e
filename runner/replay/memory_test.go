package replay

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
	"waza/runner/record"
)

// A recorded run reads its record once, and again after a file or the key changed.
func TestRecordIsReadOnce(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	log, err := store.Create("r", []byte(`{"runId":"r"}`))
	require.NoError(t, err)
	recordLines(t, log, record.RunStart, record.End)
	require.NoError(t, log.Close())
	h, err := Open(store, "r")
	require.NoError(t, err)

	own, err := h.State()
	require.NoError(t, err)
	stamp := h.Run.ReadingStamp()
	known := h.memory.recall(stamp)
	require.Nil(t, known.state, "it belongs to the caller")
	require.Equal(t, own.Progress, *known.progress)
	progress, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, own.Progress, progress)
	require.NotNil(t, known.journal, "the damage is known without another reading")
	_, err = h.Results()
	require.NoError(t, err)
	shared, err := h.sharedState()
	require.NoError(t, err)
	require.Same(t, h.memory.recall(stamp).state, shared, "results and trials need one reading")
	copied, err := h.State()
	require.NoError(t, err)
	require.NotSame(t, shared, copied)
	require.Equal(t, own, copied)
	damage, err := h.Damage()
	require.NoError(t, err)
	require.Nil(t, damage)
	known = h.memory.recall(stamp)
	require.NotNil(t, known.damage)
	require.Nil(t, known.journal)
	require.Zero(t, h.memory.recall("another stamp"))
	require.Zero(t, new(memory).recall(""), "a record without a stamp is always read")

	key := filepath.Join(store.Dir(), journal.KeyFile)
	b, err := os.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, os.Remove(key))
	damage, err = h.Damage()
	require.NoError(t, err)
	require.NotNil(t, damage, "nobody knows without the key whether waza wrote the record")
	require.NoError(t, os.WriteFile(key, b, 0o600))
	require.NotEqual(t, stamp, h.Run.ReadingStamp())

	file := h.Run.JournalPath()
	b, err = os.ReadFile(file)
	require.NoError(t, err)
	b[len(b)/4] ^= 1
	require.NoError(t, os.WriteFile(file, b, 0o600))
	damage, err = h.Damage()
	require.NoError(t, err)
	require.Equal(t, int64(1), damage.Events)
	damage.Files = append(damage.Files, record.DamagedFile{})
	damage.Events = 7
	again, err := h.Damage()
	require.NoError(t, err)
	require.Equal(t, int64(1), again.Events, "the caller owns the damage")
}
