package template

import "time"

// idTime is the layout of the time at the start of a run's id.
const idTime = "20060102-150405.000"

// Timestamp returns the start time in a run's id, in RFC 3339 and UTC; "" if the id contains
// none.
func Timestamp(runID string) string {
	if len(runID) < len(idTime) {
		return ""
	}
	at, err := time.Parse(idTime, runID[:len(idTime)])
	if err != nil {
		return ""
	}
	return at.Format(time.RFC3339)
}
