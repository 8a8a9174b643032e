package match_test

import (
	"strings"
	"testing"
	"unicode"

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

// Each character is folded as by the tables of package cases, also beside others.
func TestFoldEachCharacter(t *testing.T) {
	t.Parallel()
	folder := cases.Fold()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for _, text := range []string{string(r), "A" + string(r) + "Z"} {
			if got, want := match.Fold(text), folder.String(text); got != want {
				t.Fatalf("Fold(%q) = %q, want %q", text, got, want)
			}
		}
	}
}

func BenchmarkFold(b *testing.B) {
	for name, line := range map[string]string{
		"ascii":    "The agent reads src/cafe.go and answers at length.\n",
		"mixed":    "The agent reads src/café.go and answers at length.\n",
		"cyrillic": "Агент читает файл и отвечает подробно.\n",
	} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(line, 4_000_000/len(line))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				match.Fold(text)
			}
		})
	}
}
