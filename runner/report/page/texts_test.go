package page

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/require"
)

// viewer runs the page's scripts that show texts, without a page: elements become the texts in
// them.
func viewer(t *testing.T) *goja.Runtime {
	t.Helper()
	vm := goja.New()
	_, err := vm.RunString(`
		const el = (name, properties, ...children) => children.flat(Infinity).filter((c) => c).join('');
		const put = (place, ...children) => el('', {}, ...children);
		const svg = el;
		const clip = (text, most) => (text.length > most ? text.slice(0, most - 1) + '…' : text);
		const plural = (n, one) => n + ' ' + one, bytes = (n) => n + ' bytes';
	`)
	require.NoError(t, err)
	for _, name := range []string{"texts.js", "viewer.js"} {
		script, err := os.ReadFile(filepath.Join("web", name))
		require.NoError(t, err)
		_, err = vm.RunScript(name, string(script))
		require.NoError(t, err)
	}
	return vm
}

// A grader's detail that repeats "expected" and "got" once kept the browser's tab busy for
// seconds. The regular expression that searched for them took cubic time in the length of the
// text. Texts with many line ends took quadratic time.
func TestAttackViewerShowsHostileTextsAtOnce(t *testing.T) {
	t.Parallel()
	const size = maxHTMLText / 4 // an interpreter is slow
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for call, texts := range map[string][]string{
		"expected": {
			repeat(`: expected "`), repeat(`, expected `), repeat(`: expected ", got "`), repeat(`: expected a, got `) + "\n",
			repeat(`: expected "`)[:size/2] + repeat(`", got "`)[:size/2], `: expected "` + repeat(`", got "`) + "x", repeat("expected "),
			`: expected a` + repeat(", got ") + "\n", repeat("\""), repeat("\n"),
		},
		"prose": {repeat("\n") + "x", "x" + repeat("\n") + "x", repeat("```\n"), repeat("\n```"), repeat("`")},
		"value": {repeat(`"`), repeat(`\`), repeat(`\"`), repeat(" "), repeat("1"), repeat("-1e"), repeat("{\"a\":")},
		"(t) => coloured(JSON.stringify([t, { [t]: 1 }], null, 2))": {
			repeat(`"`), repeat(`\`), repeat(`\"`), repeat(" : "), repeat("true"), repeat("1e"),
		},
		"oneLine":                        {repeat(" "), repeat(" x"), repeat("\n")},
		"(t) => oneLine({ a: t, b: t })": {repeat(" "), repeat("\n")},
	} {
		vm := viewer(t)
		for _, text := range texts {
			require.NoError(t, vm.Set("hostile", text))
			done := make(chan error, 1)
			go func() {
				_, err := vm.RunString("(" + call + ")(hostile)")
				done <- err
			}()
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(time.Minute):
				t.Fatalf("%s is still busy with %.60q…", call, text)
			}
		}
	}
}

// The page splits texts in the same way as the former regular expression.
func TestViewerSplitsExpectations(t *testing.T) {
	t.Parallel()
	vm := viewer(t)
	_, err := vm.RunString(`
		function before(detail) {
		  const found = /^([^]*?)(?:: |, )expected ("[^]*"|[^"\n]+), got ("[^]*"|[^"\n]+)$/.exec(detail);
		  return found ? found.slice(1).join('|') : '';
		}
		function now(detail) {
		  const found = expectation(detail);
		  return found ? [found.about, found.expected, found.got].join('|') : '';
		}
	`)
	require.NoError(t, err)
	both := func(text string) (before, now string) {
		require.NoError(t, vm.Set("text", text))
		value, err := vm.RunString("[before(text), now(text)]")
		require.NoError(t, err)
		list := value.Export().([]any)
		return list[0].(string), list[1].(string)
	}
	for text, want := range map[string]string{
		`line 3: expected a, got b`:                          `line 3|a|b`,
		`x, expected "a", got "b"`:                           `x|"a"|"b"`,
		"a.txt: expected \"one\ntwo\", got \"one, got two\"": "a.txt|\"one\ntwo\"|\"one, got two\"",
		`: expected 1, got 2, got 3`:                         `|1, got 2|3`,
		`: expected "a", got "b", got c"`:                    `|"a"|"b", got c"`,
		`expected a, got b`:                                  ``,
		"x: expected a\n, got b":                             ``,
		`x: expected a, got `:                                ``,
		`says "x: expected y": expected a, got b`:            `says "x: expected y"|a|b`,
	} {
		before, now := both(text)
		require.Equal(t, want, before, text)
		require.Equal(t, want, now, text)
	}
	pieces := []string{": expected ", ", expected ", ", got ", `"`, "a", "\n", `"x"`, ": ", "expected ", "got "}
	random := rand.New(rand.NewPCG(1, 2))
	for range 4_000 {
		var text strings.Builder
		for range 1 + random.IntN(9) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		before, now := both(text.String())
		require.Equal(t, before, now, "%q", text.String())
	}
}

func TestViewerTrimsLines(t *testing.T) {
	t.Parallel()
	vm := viewer(t)
	for _, tt := range []struct{ text, want string }{
		{"", ""}, {"\n", ""}, {"\n\n\n", ""}, {"a", "a"}, {"\n\na\n\nb\n", "a\n\nb"}, {" \na", " \na"},
	} {
		require.NoError(t, vm.Set("text", tt.text))
		got, err := vm.RunString("withoutEmptyLines(text)")
		require.NoError(t, err)
		require.Equal(t, tt.want, got.String())
	}
}
