package telemetry

import (
	"strings"
	"time"
)

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + " …"
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// milliseconds is a duration that somebody reported: never negative, nor longer
// than a day.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), 24*3600*1000)) * time.Millisecond
}
