package exit

import (
	"waza/runner/record"
)

// OfRun returns the exit code of a run that has ended, for its [record.EndingOf].
func OfRun(status record.Status, why string, sum *record.Summary) int {
	switch record.EndingOf(status, why, sum) {
	case record.EndingPassed:
		return Passed
	case record.EndingFailed:
		return Failed
	case record.EndingInterrupted:
		return Interrupted
	}
	return Error
}
