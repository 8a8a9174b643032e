package tokens_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"

	"waza/eval/tokens"
)

// The expected counts are from the documentation of the encoding's publisher.
func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                             0,
		"tiktoken is great!":           6,
		"antidisestablishmentarianism": 6,
		"2 + 2 = 4":                    7,
		"お誕生日おめでとう":                    8,
		"<|endoftext|>":                7,
	} {
		got, err := tokens.Count(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	require.Equal(t, []int{0, 1, 1, 2}, []int{tokens.Estimate(""), tokens.Estimate("a"), tokens.Estimate("abcd"), tokens.Estimate("あい")})
}

// Counting a text in pieces must not change the count.
func TestCountOfLongTexts(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../../README.md", "../../docs/suites.md", "../../CONTRIBUTING.md", "tokens.go"} {
		data, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		want, err := codec.NewO200kBase().Count(string(data))
		require.NoError(t, err)
		got, err := tokens.Count(string(data))
		require.NoError(t, err)
		require.Equal(t, want, got, file)
	}
}

// A text of line breaks and spaces used to need quadratic time.
func TestAttackCountTakesLinearTime(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"\n ", " ", "a", "=", "あ", "A\n/", "\xff"} {
		got, err := tokens.Count(strings.Repeat(part, 1<<16) + "x")
		require.NoError(t, err)
		require.Positive(t, got)
	}
}
