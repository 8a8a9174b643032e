// Package pause waits for some time or for the end of a context, whichever comes first. Call
// [For]. Call [About] where several callers that failed together should not retry together.
package pause

import (
	"context"
	"math/rand/v2"
	"time"
)

// For blocks for d and returns nil. When ctx ends first, it returns the cause of ctx at once. A
// d of 0 or less does not block, but returns the cause of a context that has ended.
func For(ctx context.Context, d time.Duration) error { return Unless(ctx, nil, d) }

// About is like [For], but blocks for a random time between d/2 and d.
func About(ctx context.Context, d time.Duration) error { return AboutUnless(ctx, nil, d) }

// Unless is like [For], but also returns nil as soon as stop, which may be nil, is closed.
func Unless(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// AboutUnless is like [Unless], but blocks for a random time between d/2 and d.
func AboutUnless(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	return Unless(ctx, stop, d/2+rand.N(max(0, d/2)+1))
}
