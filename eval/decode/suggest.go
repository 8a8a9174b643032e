package decode

import (
	"slices"
	"strings"
)

// Nearest returns the known word that was most likely meant by word, or "" when none is similar.
// Similar words differ by a few typing errors or by the order of their letters. A word with one
// typing error ([IsTypo]) is preferred to one with other or missing words. Case and the
// difference between '-' and '_' do not count. The time is bounded for any length of word.
func Nearest(word string, known []string) string {
	const longest = 64
	w := foldName(word)
	if w == "" || len(w) > longest {
		return ""
	}
	best, bestCost := "", 2*max(1, min(3, len(w)/4))+2 // costs are half edits
	for _, k := range known {
		f := foldName(k)
		if f == "" || len(f) > longest {
			continue
		}
		cost := 2 * editDistance(w, f)
		switch {
		case cost > 2 && strings.ReplaceAll(w, "_", "") == strings.ReplaceAll(f, "_", ""):
			cost = 2
		case cost > 2 && (sameLetters(w, f) || differByWholeWords(w, f)):
			cost = 3
		}
		if cost < bestCost {
			best, bestCost = k, cost
		}
	}
	return best
}

// IsTypo reports whether word is the known word with one typing error: a letter that is missing,
// added or different, or two letters that are swapped. Case, '-' and '_' do not count.
func IsTypo(word, known string) bool {
	w, k := foldName(word), foldName(known)
	if w == "" || len(k) < 2 || len(w) > 2*len(k) {
		return false
	}
	return strings.ReplaceAll(w, "_", "") == strings.ReplaceAll(k, "_", "") || editDistance(w, k) <= 1
}

func foldName(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "-", "_")
}

func sameLetters(a, b string) bool {
	norm := func(s string) []byte {
		out := []byte(strings.ReplaceAll(s, "_", ""))
		slices.Sort(out)
		return out
	}
	return slices.Equal(norm(a), norm(b))
}

// differByWholeWords reports whether one name is the other with whole words added, such as
// timeout and timeout_seconds.
func differByWholeWords(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= 4 && (strings.HasPrefix(b, a+"_") || strings.HasSuffix(b, "_"+a))
}

// editDistance returns the number of insertions, deletions, replacements and swaps of neighbors
// between a and b (optimal string alignment), in bytes.
func editDistance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			replace := prev[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
