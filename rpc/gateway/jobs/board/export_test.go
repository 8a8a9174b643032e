package board

import (
	"context"

	"waza/runner/catalog"
	"waza/runner/replay"
)

// Change applies a state of a run, and waits until no goroutine follows the run.
func (b *Board) Change(ctx context.Context, info catalog.Info) {
	b.settled(ctx, info.RunID)
	b.applyChange(ctx, &catalog.Change{Info: info}, true)
	b.settled(ctx, info.RunID)
}

func (b *Board) settled(ctx context.Context, id string) {
	_ = replay.Poll(ctx, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		j := b.jobs[id]
		return j != nil && !j.followed
	})
}
