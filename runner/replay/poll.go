package replay

import (
	"context"
	"time"
	"waza/runner/pause"
)

// The pauses between two polls of another process's files: short after a change, then longer and
// longer.
const (
	LeastPause = time.Millisecond
	mostPause  = 50 * time.Millisecond
)

// NextPause returns the pause after a pause d without a change.
func NextPause(d time.Duration) time.Duration { return min(mostPause, max(LeastPause, d+d/2)) }

// Poll blocks until done returns true, and returns nil then. It returns the cause of ctx when
// that ends first.
func Poll(ctx context.Context, done func() bool) error {
	for d := LeastPause; !done(); d = NextPause(d) {
		if err := pause.For(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
