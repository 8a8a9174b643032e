package output

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/report"
)

// Clean makes each line of a message safe to print. It indents and marks further lines, so that
// text from an agent cannot pass for a line of waza.
func Clean(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = report.Clean(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n  | ")
}

// WarnDamage prints that the record of a run is damaged or cannot be verified, unless damage is nil.
func WarnDamage(stderr io.Writer, run string, damage *record.Damage) {
	if damage != nil {
		fmt.Fprintf(stderr, "waza: warning: run %s: %v\n", Clean(run), damage)
	}
}

// NonNil returns list, or an empty list for nil, so that JSON has [] rather than null.
func NonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Path returns a path relative to the current directory, with slashes, if it is below it.
func Path(path string) string {
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	return filepath.ToSlash(path)
}

// Size formats a number of bytes for people.
func Size(bytes int64) string {
	n, unit := float64(bytes), ""
	for _, larger := range []string{"kB", "MB", "GB", "TB"} {
		if n < 999.5 {
			break
		}
		n, unit = n/1000, larger
	}
	switch {
	case unit == "":
		return text.Count(int(bytes), "byte", "bytes")
	case n < 9.95:
		return fmt.Sprintf("%.1f %s", n, unit)
	}
	return fmt.Sprintf("%.0f %s", n, unit)
}
