package acp

import "waza/runner/executor"

// SetMaxTrial bounds the bytes that an agent may send in one trial. Decoding the
// real bound takes a minute under the race detector.
func SetMaxTrial(e executor.Executor, n int64) { e.(*acp).maxTrial = n }
