package runflags

import (
	"slices"
	"strings"

	"waza/runner/grader/output"
	"waza/runner/record"
)

// ReplacedSnapshots lists the snapshots that the graders of a run replaced or created, in order.
func ReplacedSnapshots(h record.Handle) ([]string, error) {
	var names []string
	err := h.Outcomes(func(_ int, t *record.Trial, _ int64) error {
		for _, g := range t.Graders {
			for line := range strings.SplitSeq(g.Feedback, "\n") {
				if name, ok := strings.CutPrefix(line, output.SnapshotReplaced); ok && g.Type == output.Diff.Name && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}
