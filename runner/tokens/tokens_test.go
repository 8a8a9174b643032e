package tokens_test

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"

	"waza/runner/tokens"
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

// Most texts have the count of another implementation.
func TestCountEqualsTheLibrary(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Hello, world! It's 12345 o'clock.", "don't DON'T we'll WE'LL I'm", "a  b   c\td", "x\n\ny\n\n\nz",
		"  indented\n    more\n", "a/b//c\n//d",
		"中文和English混排，１２３", "Привет, мир! Ёлка №5", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก",
		"e\u0301clair naïve ŒUVRE ǅ", "👩‍👩‍👧 🇩🇪!!", "a\u00a0b\u3000c",
		"tail   ", "\t", "no newline\r\nat all\r\n", "{\"a\": [1, 22, 333, 4444]}", strings.Repeat("ab", 3000), strings.Repeat("=", 500),
	}
	for _, file := range []string{"../../README.md", "../../CONTRIBUTING.md", "tokens.go", "../../go.sum"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		texts = append(texts, string(data))
	}
	library := codec.NewO200kBase()
	for _, text := range texts {
		want, err := library.Count(text)
		require.NoError(t, err)
		got, err := tokens.Count(text)
		require.NoError(t, err)
		require.Equal(t, want, got, "%.60q", text)
	}
}

// Lines of white space were split where the encoding does not split them, and U+007F did not
// count. Each of these texts is one token of the encoding, or counted by hand.
func TestCountOfWhiteSpace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"\n \n": 1, "\n\t\n": 1, "\n    \n": 1, "\t\n\t\n": 1, " \n \n": 1, "\r\n\t\r\n": 1, "\n\n \n": 1, "    \n    \n    \n    \n": 1,
		"\u3000\u3000\n\n\u3000\u3000\n\n": 1, "\n\n\u3000\n": 1, "\x7f": 1,
		"a\n \nb": 3, "a \n \n b": 3, "\n \n ": 2, "  x": 2, " x": 1, "   ": 1, "a\u00a0\u00a0b": 4,
	} {
		got, err := tokens.Count(text)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", text)
	}
}

// A token that the splitter keeps whole counts as one.
func TestCountOfTokens(t *testing.T) {
	t.Parallel()
	library, whole := codec.NewO200kBase(), 0
	for id := uint(0); id < 199_998; id += 7 {
		text, err := library.Decode([]uint{id})
		require.NoError(t, err)
		if n, err := tokens.Count(text); utf8.ValidString(text) && strings.TrimSpace(text) == "" {
			require.NoError(t, err)
			require.Equal(t, 1, n, "%q", text)
			whole++
		}
	}
	require.Greater(t, whole, 20)
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
