package worker

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A worker that started removed the directory of another one that had not locked it yet. All trials of the
// other one ended in errors.
func TestWorkersStartTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				h, err := openHome(dir, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(h.work, "lock")); err != nil {
					t.Error(err)
				}
				h.close()
			}
		})
	}
	all.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "work", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
