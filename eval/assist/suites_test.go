package assist

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// Everything that the repository's suites contain would have been proposed: each key, and each
// value with a limited choice.
func TestSuiteContentIsProposed(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{
		"../../testdata/suites/*/eval.yaml", "../../testdata/suites/*/*/eval.yaml",
		"../../testdata/suites/*/*/*/*.yaml",
	} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	a := New(Options{Vocabulary: vocabulary()})
	asked := 0
	for _, file := range files {
		suite, _, err := eval.Load(filepath.Join(suiteDir(file), "eval.yaml"), eval.Options{})
		data, readErr := os.ReadFile(file)
		path, absErr := filepath.Abs(file)
		if err != nil || suite == nil {
			continue
		}
		require.NoError(t, readErr)
		require.NoError(t, absErr)
		q := a.ask(Document{Path: path, Text: string(data), Suite: suite})
		if q == nil || q.tree.root == nil {
			continue
		}
		eachPair(q.tree.root, func(p *pair) {
			shapes := q.tree.shapes(p.key.parent)
			values := q.tree.property(shapes, p.key.text(), p.value)
			if len(values) == 0 || values[0].deprecated || !hasProperty(shapes, p.key.text()) {
				return
			}
			asked++
			c := a.Complete(q.Document, p.key.span.End, false)
			require.True(t, slices.ContainsFunc(c.Items, func(it Item) bool { return it.Insert == p.key.text() }) || usedNested(p),
				"%s: the key %q is not proposed", file, p.key.text())
			require.Equal(t, p.key.raw, q.Text[c.Range.Start:c.Range.End])
		})
	}
	require.Greater(t, asked, 300)
}

// suiteDir returns the directory of the suite that a file belongs to.
func suiteDir(file string) string {
	dir := filepath.Dir(file)
	if _, err := os.Stat(filepath.Join(dir, "eval.yaml")); err != nil {
		return filepath.Dir(dir)
	}
	return dir
}

func hasProperty(shapes []view, key string) bool {
	return slices.ContainsFunc(shapes, func(v view) bool { return v.Properties.get(key) != nil })
}

// usedNested reports whether a key should be in a map beside it, or is an option of an executor
// that the suite does not name.
func usedNested(p *pair) bool {
	m := p.key.parent
	return m.get("config") != nil || m.get("inputs") != nil || m.get("executor") != nil || m.get("engine") != nil
}

func eachPair(n *node, f func(*pair)) {
	if n == nil {
		return
	}
	for _, p := range n.pairs {
		if p.key != nil {
			f(p)
		}
		eachPair(p.value, f)
	}
	for _, it := range n.items {
		eachPair(it.value, f)
	}
}

// Texts that are designed to be slow are not.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	a := New(Options{Vocabulary: vocabulary()})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"dashes":   strings.Repeat("- ", 200_000),
		"brackets": strings.Repeat("[", 50_000),
		"braces":   strings.Repeat("{a: ", 20_000),
		"quotes":   strings.Repeat("a: \"\n", 20_000),
		"stairs":   stairs(800, "a: \""),
		"deep":     stairs(800, "a:"),
		"comments": "a\n" + strings.Repeat("#\n", 50_000),
		"keys":     strings.Repeat("k:\n", 20_000),
		"aliases":  "a: &a [*a, *a]\nb: &b\n  <<: *b\n" + strings.Repeat("- *b\n", 10_000),
		"literal":  "a: |\n" + strings.Repeat("  b\n", 50_000),
		"folded":   "a: b\n" + strings.Repeat("  b\n", 50_000),
		"tags":     "a: " + strings.Repeat("!a &b ", 100_000),
		"markers":  strings.Repeat("#\n---\n", 50_000),
	} {
		begin := time.Now()
		d := Document{Path: filepath.Join(dir, "eval.yaml"), Text: text}
		for _, at := range []int{0, len(text) / 2, len(text)} {
			a.Complete(d, at, true)
			a.Hover(d, at)
			a.Define(d, at)
		}
		a.Symbols(d)
		a.Links(d)
		require.Less(t, time.Since(begin), 60*time.Second, name) // quadratic time would be hours
		t.Log(name, time.Since(begin))
	}
}

func stairs(n int, step string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + step + "\n")
	}
	return b.String()
}
