//go:build unix

package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seeded returns the random numbers of a test that disturbs waza. It logs their seed, and
// WAZA_TEST_SEED repeats those of a logged seed. They are safe for concurrent use.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WAZA_TEST_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("WAZA_TEST_SEED=%d", seed)
	return rand.New(&lockedSource{source: rand.NewPCG(seed, 0)})
}

type lockedSource struct {
	mu     sync.Mutex
	source rand.Source // mu guards it
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}

// upTo returns a random duration below the limit.
func upTo(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(limit)))
}
