package telemetry

import (
	"strings"
	"time"

	"waza/eval/text"
)

// clip bounds a content. Attributes must be valid UTF-8.
func clip(content string) string {
	if len(content) <= maxText {
		return content
	}
	return strings.ToValidUTF8(text.Head(content, maxText), "") + " …"
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
