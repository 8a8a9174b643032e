package output

import (
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/report"
)

// Clean makes each line of a message safe to print. Further lines are indented and
// marked, so that what an agent wrote cannot be taken for a line of its own.
func Clean(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = report.Clean(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n  | ")
}

// NonNil makes nil lists JSON's [] rather than null.
func NonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Size gives a number of bytes as people say it.
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
