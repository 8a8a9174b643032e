package board

import (
	"context"
	"time"

	"waza/runner/catalog"
)

// Change takes a state of a run, and waits until nothing follows the run.
func (b *Board) Change(ctx context.Context, info catalog.Info) {
	b.settled(info.RunID)
	b.change(ctx, &catalog.Change{Info: info}, true)
	b.settled(info.RunID)
}

func (b *Board) settled(id string) {
	for {
		b.mu.Lock()
		j := b.jobs[id]
		busy := j == nil || j.followed
		b.mu.Unlock()
		if !busy {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
