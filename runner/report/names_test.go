package report

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"greet": "greet", "a b/c": "a-b-c", "../x": "x", "..": "none", "": "none", "-.é.-": "é", "a\x00\n": "a",
		strings.Repeat("x", 300): strings.Repeat("x", 100), strings.Repeat("é", 300): strings.Repeat("é", 50),
	} {
		require.Equal(t, want, FileName(in, "none"), "%q", in)
	}
}

func TestNamesDifferWithoutCase(t *testing.T) {
	t.Parallel()
	var n Names
	got := []string{}
	for _, name := range []string{"a.txt", "A.txt", "a.TXT", "a-2.txt", "b", "B", "ß", "SS", "ſ", "s"} {
		got = append(got, n.Add(name))
	}
	require.Equal(t, []string{"a.txt", "A-2.txt", "a-3.TXT", "a-2-2.txt", "b", "B-2", "ß", "SS", "ſ", "s-2"}, got)
}

// The search for free names does not start again for each name.
func TestManyEqualNames(t *testing.T) {
	t.Parallel()
	var n Names
	for i := range 100_000 {
		name := n.Add("x")
		if i > 0 {
			require.Equal(t, "x-"+strconv.Itoa(i+1), name)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a", "A", "a-2")
	f.Add("../x", "", "\xff")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var n Names
		seen := map[string]bool{}
		for _, s := range []string{a, b, c} {
			name := n.Add(FileName(s, "none"))
			require.True(t, filepath.IsLocal(name), "%q", name)
			require.Equal(t, filepath.Base(name), name)
			require.LessOrEqual(t, len(name), 110)
			require.False(t, seen[folded(name)], "%q", name)
			seen[folded(name)] = true
		}
	})
}
