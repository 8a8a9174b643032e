package match

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// Fold returns a form of a text that is the same for all its spellings in upper and lower case.
// It uses full Unicode case folding: both Σ and ς become σ, and ß becomes ss. The result is
// for comparisons and not for people.
func Fold(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return cases.Fold().String(text)
		}
	}
	return strings.ToLower(text) // the same for ASCII, and much faster
}
