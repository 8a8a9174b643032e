package history

import (
	"waza/runner/record"
)

// DigestOf returns the digest of an agent's behavior in a run.
func DigestOf(runID, output string, transcript []record.Entry) string {
	return newNormalizer(runID).digest(output, transcript)
}
