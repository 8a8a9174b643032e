package telemetry

import (
	"strings"
	"time"

	"waza/eval/text"
)

// clip limits the length of a content. It makes it valid UTF-8, as attributes require.
func clip(content string) string {
	return strings.ToValidUTF8(text.Clip(content, maxText), "")
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// milliseconds converts a reported duration and limits it to between zero and a day.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), 24*3600*1000)) * time.Millisecond
}
