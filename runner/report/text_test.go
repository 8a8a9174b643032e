package report

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestCleanKeepsTextAndDisarmsControls(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text, é, 漢字, 👍":    "plain text, é, 漢字, 👍",
		"two\nlines\tand a tab":   "two lines and a tab",
		"\x1b[2J\x1b]0;title\a":   `\x1b[2J\x1b]0;title\x07`,
		"del\x7f and c1 \u009b1m": `del\x7f and c1 \x9b1m`,
		"abc\u202egnp.exe":        `abc\u202egnp.exe`,
		"bad \xff byte":           `bad \xff byte`,
		"real \ufffd stays":       "real \ufffd stays",
		"a\u2028b":                `a\u2028b`,
	} {
		require.Equal(t, want, Clean(in), "%q", in)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "e\u0301e\u0301", "a\x1b[31m", "\xff\xfe", "漢\u200d\u202e", "tab\there"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		c := Clean(s)
		require.True(t, utf8.ValidString(c))
		require.False(t, strings.ContainsFunc(c, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
		}), "%q", c)
		require.Equal(t, c, Clean(c), "cleaning twice changes nothing")
		most = max(0, most%200)
		require.LessOrEqual(t, Columns(Clip(c, most)), most)
		shown, mark := excerpt(s, most, most+3, 40)
		require.LessOrEqual(t, Columns(shown), 40)
		require.Equal(t, 1, strings.Count(mark, "^"))
	})
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "漢字": 4, "ｆ": 2, "👍": 2, "–": 1, "…": 1} {
		require.Equal(t, want, Columns(s), "%q", s)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "long…"}, {"漢字漢字", 5, "漢字…"}, {"漢字漢字", 4, "漢…"},
		{"abc", 1, "…"}, {"abc", 0, ""}, {"abc", -3, ""},
	} {
		require.Equal(t, c.want, Clip(c.in, c.most))
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"one two", "three", "incomprehensibilities", "x"}, Wrap("one two three incomprehensibilities x", 8))
	require.Equal(t, []string{"as it is"}, Wrap("as it is", 0))
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: "0 ms", 0: "0 ms", 999 * time.Millisecond: "999 ms", time.Second: "1.0 s", 59940 * time.Millisecond: "59.9 s",
		59999 * time.Millisecond: "1 min 00 s", 185 * time.Second: "3 min 05 s", time.Hour - time.Millisecond: "1 h 00 min",
		130 * time.Minute: "2 h 10 min",
	} {
		require.Equal(t, want, Duration(d), "%v", d)
	}
}
