package acp

import (
	"time"

	"waza/runner/executor"
)

// SetMaxTrial sets the number of bytes that an agent can send in one trial. Decoding the default
// number takes a minute under the race detector.
func SetMaxTrial(e executor.Executor, n int64) { e.(*acp).maxTrial = n }

// SetGrace sets how long an agent can clean up after session/cancel.
func SetGrace(e executor.Executor, d time.Duration) { e.(*acp).grace = d }
