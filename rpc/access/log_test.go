package access_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/access"
)

// Strangers could fill the disk with the records of their connections.
func TestAttackFloodedLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := access.LimitLog(slog.New(slog.NewTextHandler(&b, nil)))
		other := log.With("door", "jobs").With("host", strings.Repeat("h", 10_000))
		for range 1000 {
			log.Warn("client refused", "error", errors.New(strings.Repeat("x", 100_000)))
			other.Info("request refused", "origin", strings.Repeat("o", 100_000))
		}
		require.Equal(t, 50, strings.Count(b.String(), "\n"), "both count")
		require.Less(t, b.Len(), 50*1000)
		time.Sleep(10 * time.Second)
		b.Reset()
		for range 100 {
			log.Warn("client refused")
		}
		require.Equal(t, 10, strings.Count(b.String(), "\n"))
		require.Contains(t, b.String(), "omitted=1950")
	})
}
