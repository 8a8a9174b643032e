package doortest

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Log collects log records. Its zero value is empty. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Handler returns a handler that writes records of all levels into the log.
func (l *Log) Handler() slog.Handler {
	return slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})
}

// String returns the contents of the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// Write adds to the log. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// errors returns the lines of level ERROR that contain no expected text.
func (l *Log) errors(expected []string) []string {
	return slices.DeleteFunc(strings.Split(l.String(), "\n"), func(line string) bool {
		return !strings.Contains(line, "level=ERROR") ||
			slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(line, text) })
	})
}
