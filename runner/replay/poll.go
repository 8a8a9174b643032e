package replay

import (
	"context"
	"time"
	"waza/runner/pause"
)

// The pauses between two looks at what another process writes: short after there
// was something, then longer and longer.
const (
	LeastPause = time.Millisecond
	mostPause  = 50 * time.Millisecond
)

// NextPause is the pause after one in vain.
func NextPause(d time.Duration) time.Duration { return min(mostPause, max(LeastPause, d+d/2)) }

// Poll returns nil when done does, or the cause of ctx when that ends first.
func Poll(ctx context.Context, done func() bool) error {
	for d := LeastPause; !done(); d = NextPause(d) {
		if err := pause.For(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
