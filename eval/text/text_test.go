package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waza/eval/text"
)

func TestShortening(t *testing.T) {
	t.Parallel()
	require.Equal(t, "naï", text.Head("naïve", 4))
	require.Equal(t, "na", text.Head("naïve", 3), "between characters")
	require.Equal(t, "naïve", text.Head("naïve", 6))
	require.Empty(t, text.Head("naïve", 0))
	require.Equal(t, "na…", text.Clip("naïve", 3))
	require.Equal(t, "naïve", text.Clip("naïve", 6))
	require.Equal(t, "na…", text.ClipRunes("naïve", 3))
	require.Equal(t, "…", text.ClipRunes("naïve", 1))
	require.Equal(t, "naïve", text.ClipRunes("naïve", 5))
	require.Equal(t, "…ve", text.ClipStart("naïve", 3))
	require.Equal(t, "…ïve", text.ClipStart("naïve", 4))
	require.Equal(t, "naïve", text.ClipStart("naïve", 6))
	require.Equal(t, "abcd\n[5 bytes left out]\njk", text.ClipMiddle("abcdefghijk", 6))
	require.Equal(t, "abc", text.ClipMiddle("abc", 3))
}

func TestPlurals(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 tasks", text.Count(0, "task", "tasks"))
	require.Equal(t, "1 task", text.Count(1, "task", "tasks"))
	require.Equal(t, "2 tasks", text.Count(2, "task", "tasks"))
	require.Equal(t, "is", text.Plural(1, "is", "are"))
	require.Equal(t, "are", text.Plural(3, "is", "are"))
}

func FuzzShortening(f *testing.F) {
	f.Add("naïve", 3)
	f.Add("\xff\x80\x80", 1)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(0, min(most, len(s)+1))
		require.True(t, strings.HasPrefix(s, text.Head(s, most)))
		require.LessOrEqual(t, len(text.Head(s, most)), most)
		require.LessOrEqual(t, len(text.Clip(s, most)), most+len("…"))
		require.LessOrEqual(t, len(text.ClipStart(s, most)), most+len("…"))
		require.LessOrEqual(t, utf8.RuneCountInString(text.ClipRunes(s, most)), max(most, 1))
		for _, short := range []string{
			text.Head(s, most), text.Clip(s, most), text.ClipRunes(s, most), text.ClipStart(s, most),
			text.ClipMiddle(s, most),
		} {
			require.True(t, !utf8.ValidString(s) || utf8.ValidString(short), "%q", short)
		}
	})
}
