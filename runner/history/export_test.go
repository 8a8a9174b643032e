package history

import (
	"waza/runner/record"
)

// DigestOf names what an agent did in a run.
func DigestOf(runID, output string, transcript []record.Entry) string {
	return newNormalizer(runID).digest(output, transcript)
}
