package acp

import (
	"time"

	"waza/runner/executor"
)

// SetMaxTrial bounds the bytes that an agent may send in one trial. Decoding the
// real bound takes a minute under the race detector.
func SetMaxTrial(e executor.Executor, n int64) { e.(*acp).maxTrial = n }

// SetGrace says how long an agent may clean up after session/cancel.
func SetGrace(e executor.Executor, d time.Duration) { e.(*acp).grace = d }
