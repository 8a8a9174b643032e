package behavior

import (
	"slices"

	"waza/runner/grader/internal/match"
)

// An overlap compares two lists as multisets.
type overlap struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	// Expected and Actual are the compared lists; Actual has at most maxListed entries.
	Expected []string `json:"expected"`
	Actual   []string `json:"actual"`
	missing  []string // of Expected, not in Actual
	extra    []string // of Actual, not in Expected
}

func newOverlap(expected, actual []string) overlap {
	o := overlap{Expected: expected, Actual: actual}
	left := map[string]int{}
	for _, e := range expected {
		left[e]++
	}
	common := 0
	for _, a := range actual {
		if left[a] > 0 {
			left[a]--
			common++
		} else {
			o.extra = append(o.extra, a)
		}
	}
	for _, e := range slices.Backward(expected) {
		if left[e] > 0 {
			left[e]--
			o.missing = append(o.missing, e)
		}
	}
	slices.Reverse(o.missing)
	if len(actual) > match.MaxListed {
		o.Actual = slices.Concat(actual[:match.MaxListed], []string{"…"})
	}
	if common > 0 {
		o.Precision = float64(common) / float64(len(actual))
		o.Recall = float64(common) / float64(len(expected))
		o.F1 = 2 * o.Precision * o.Recall / (o.Precision + o.Recall)
	}
	return o
}

// isSubsequence reports whether have contains all of want in order.
func isSubsequence(want, have []string) bool {
	for _, h := range have {
		if len(want) > 0 && want[0] == h {
			want = want[1:]
		}
	}
	return len(want) == 0
}
