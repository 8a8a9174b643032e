package pattern_test

import (
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/require"

	"waza/eval/pattern"
)

func TestJavaScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, in, want string
		found             bool
	}{
		{"b+", "abbc", "bb", true},
		{"B+", "abbc", "", false},
		{"(?i)B+", "abbc", "bb", true},
		{"(?i)(?m)^C$", "a\nc\nd", "c", true},
		{"(?im)^C$", "a\nc\nd", "c", true},
		{"a.b", "a\nb", "", false},
		{"(?s)a.b", "a\nb", "a\nb", true},
		{"a(?!b)", "ab ac", "a", true},
		{"(?<=x)y", "y xy", "y", true},
		{`(\w)\1`, "abccd", "cc", true},
		{`^\d+$`, "٣", "", false},
		{`a$`, "a\n", "", false},
		{`\u{61}`, "a", "", false}, // without the flag u, as in JavaScript
	} {
		p, err := pattern.Compile(pattern.JavaScript, c.pattern)
		require.NoError(t, err, c.pattern)
		got, found, err := p.Find(c.in)
		require.NoError(t, err, c.pattern)
		require.Equal(t, c.found, found, c.pattern)
		require.Equal(t, c.want, got, c.pattern)
	}
}

// Matches are counted like those of a JavaScript pattern with the flag g, empty ones included.
func TestCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, in string
		want        int
	}{{"a", "banana", 3}, {"ana", "banana", 1}, {"x", "banana", 0}, {"x*", "ab", 3}, {"(?m)^", "a\nb", 2}, {"é", "éaé", 2}} {
		for _, syntax := range []pattern.Syntax{pattern.RE2, pattern.JavaScript} {
			p, err := pattern.Compile(syntax, c.pattern)
			require.NoError(t, err)
			n, err := p.Count(c.in)
			require.NoError(t, err)
			require.Equal(t, c.want, n, "%s %s", syntax, c.pattern)
		}
	}
	p, err := pattern.Compile(pattern.JavaScript, `^(a+)+\1$`)
	require.NoError(t, err)
	_, err = p.Count(strings.Repeat("a", 1001) + "!")
	require.ErrorContains(t, err, "takes too long")
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"(", "[", "a**", "(?<n"} {
		_, err := pattern.Compile(pattern.JavaScript, bad)
		require.Error(t, err, bad)
		_, err = pattern.Compile("", bad)
		require.Error(t, err, bad)
	}
	_, err := pattern.Compile("pcre", "a")
	require.EqualError(t, err, `the syntax must be re2 or javascript, got "pcre"`)
	_, err = pattern.Compile(pattern.RE2, "a(?!b)")
	require.Error(t, err)
}

// A malicious pattern must not block a run.
func TestExponentialPattern(t *testing.T) {
	t.Parallel()
	p, err := pattern.Compile(pattern.JavaScript, `^(a+)+\1$`)
	require.NoError(t, err)
	_, _, err = p.Find(strings.Repeat("a", 1001) + "!")
	require.ErrorContains(t, err, `the pattern /^(a+)+\1$/ takes too long`)
}

// FuzzJavaScript compares the engine with the interpreter of JavaScript.
func FuzzJavaScript(f *testing.F) {
	for _, seed := range [][2]string{{"a|b", "xb"}, {"^x.y$", "x\ny"}, {`\bfoo\b`, "a foo"}, {"[^a-c]+?", "abcd"}, {"(?=a)b", "ab"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		if len(text) > 100 || len(in) > 200 {
			return
		}
		p, err := pattern.Compile(pattern.JavaScript, text)
		if err != nil {
			return
		}
		_, _, _ = p.Find(in) // must neither panic nor hang
	})
}

// The engine agrees with JavaScript about patterns of the kinds that suites use.
func TestAgreesWithJavaScript(t *testing.T) {
	t.Parallel()
	vm := goja.New()
	for _, text := range []string{`\bSQL\b`, `name:.*nginx`, `^\s*#`, `(?:yes|no)\.?$`, `[^\w\s]`, `\d{2,4}-\d`, `a{0}b`, `x*?y`, `(a)|(b)`, `[\s\S]+end`} {
		p, err := pattern.Compile(pattern.JavaScript, text)
		require.NoError(t, err)
		for _, in := range []string{"", "SQL injection", "name: my-nginx\n", "  # x", "no", "no.\n", "a!b", "2024-1", "b", "xxy", "the\nend"} {
			_, found, err := p.Find(in)
			require.NoError(t, err)
			require.NoError(t, vm.Set("text", text))
			require.NoError(t, vm.Set("input", in))
			want, err := vm.RunString("new RegExp(text).test(input)")
			require.NoError(t, err)
			require.Equal(t, want.ToBoolean(), found, "%s in %q", text, in)
		}
	}
}
