package match_test

import (
	"strings"
	"testing"

	"golang.org/x/text/cases"

	"waza/runner/grader/internal/match"
)

// FuzzFold checks that Fold, which folds ASCII without tables, agrees with the tables.
func FuzzFold(f *testing.F) {
	for _, s := range []string{
		"", "Plain", "ΣΑΣ ς", "Straße", "İI\u0307", "e\u0301É", "ﬁ ﬀ", "\xffA\xe2\x82B\xe2", "日本語 ABC", strings.Repeat("ẞ", 300) + "X",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := match.Fold(text), cases.Fold().String(text); got != want {
			t.Fatalf("Fold(%q) = %q, want %q", text, got, want)
		}
	})
}
