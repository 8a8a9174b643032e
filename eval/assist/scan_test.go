package assist

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// shown writes a tree in comparable form: keys, items and scalars with their lines and columns.
func shown(b *strings.Builder, t *tree, n *node, path string) {
	if n == nil || n.kind == scalar && n.style == plain && n.raw == "" {
		fmt.Fprintf(b, "%s = null\n", path)
		return
	}
	line := strings.Count(t.text[:n.span.Start], "\n") + 1
	switch n.kind {
	case alias:
		fmt.Fprintf(b, "%s = %s\n", path, n.raw)
	case scalar:
		if value := strings.TrimRight(n.text(), "\n"); n.style == plain && (value == "~" || value == "null") {
			fmt.Fprintf(b, "%s = null\n", path)
		} else {
			fmt.Fprintf(b, "%s = %q in line %d\n", path, value, line)
		}
	case mapping:
		for _, p := range n.pairs {
			key := "?"
			if p.key != nil {
				key = p.key.text()
			}
			shown(b, t, p.value, path+"."+key)
		}
	case sequence:
		for i, it := range n.items {
			shown(b, t, it.value, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func shownYAML(b *strings.Builder, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.AliasNode:
		fmt.Fprintf(b, "%s = *%s\n", path, n.Value)
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			fmt.Fprintf(b, "%s = null\n", path)
		} else {
			fmt.Fprintf(b, "%s = %q in line %d\n", path, strings.TrimRight(n.Value, "\n"), n.Line)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			shownYAML(b, n.Content[i+1], path+"."+n.Content[i].Value)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			shownYAML(b, c, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// For a well-formed text, the scanner and the parser make the same tree.
func TestScanAgreesWithTheParser(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"quotes":        "a: \"x: y # z\"\nb: 'it''s'\n'c d': \"e\n  f\"\n\"g\":h\n",
		"blocks":        "a: |\n  x: y\n  - z\n\n  # no comment\nb: >-\n  one\n  two\nc: |2\n   x\n",
		"lists":         "a:\n- b\n- c: 1\n  d: 2\n-\n  e: 3\n- - f\n  - g\n-\nh: i\n",
		"flow":          "a: [1, \"b, c\", {d: e, f: [g]}]\nh: {i: j, k: {l: m}, n: }\no: [\n  p,\n  q\n]\nr: {\"s\":t, 'u': v}\n",
		"comments":      "# x\na: b # c\n# d\ne: f#g\n\n#h\ni:\n  # j\n  k: l\n",
		"anchors":       "a: &x\n  b: c\nd: *x\ne:\n  <<: *x\n  f: &y g\nh: [*y, &z i]\n",
		"documents":     "%YAML 1.1\n---\na: b\n---\nc: d\n",
		"folded":        "a: b c\n  d e\n  f\ng: h\n",
		"windows":       "a: b\r\nc:\r\n  - d\r\n  - e: |\r\n      f\r\n",
		"colons":        "a: http://x:1\nb: c:d\ne:f: g\n",
		"tags":          "a: !!str 1\nb: !x\n  c: d\n",
		"empty values":  "a:\nb:\n  c:\n  d: ~\n",
		"deep":          "a:\n  b:\n    c:\n      - d:\n          - e: f\n  g: h\n",
		"byte order":    "\uFEFFa: b\n",
		"template":      "a: Say {{x}} and {{ y }}\nb: [\"{{z}}\"]\n",
		"dashes":        "a: -1\nb: - c\n",
		"long quotes":   "a:\n  - \"b\n\n    c\"\n  - d\n",
		"a lone scalar": "hello\n",
	}
	for _, pattern := range []string{
		"../../testdata/suites/*/eval.yaml", "../../testdata/suites/*/*/*.yaml", "../../testdata/agents/*/*.yaml",
		"../testdata/*/*.yaml", "../testdata/*/*/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			require.NoError(t, err)
			texts[f] = string(data)
		}
	}
	compared := 0
	for name, text := range texts {
		var doc yaml.Node
		if yaml.NewDecoder(strings.NewReader(text)).Decode(&doc) != nil || len(doc.Content) == 0 {
			continue
		}
		compared++
		var want, got strings.Builder
		shownYAML(&want, doc.Content[0], "")
		tr, _ := scan(text, noMark)
		shown(&got, tr, tr.root, "")
		if d := cmp.Diff(want.String(), got.String()); d != "" {
			t.Errorf("%s: (-parser +scanner)\n%s", name, d)
		}
	}
	require.Greater(t, compared, 40)
}

// Incomplete input does not affect the rest of the text.
func TestScanOfBrokenTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"con\nname: x\n":                    ".con = null\n.name = \"x\" in line 2\n",
		"a:\n  b: 1\n  c\n  d: 2\n":         ".a.b = \"1\" in line 2\n.a.c = null\n.a.d = \"2\" in line 4\n",
		"a: [b, \nc: d\n":                   ".a[0] = \"b\" in line 1\n.c = \"d\" in line 2\n",
		"a: {b: c\nd: e\n":                  ".a.b = \"c\" in line 1\n.d = \"e\" in line 2\n",
		"a: \"b\nc: d\n":                    ".a = \"b\" in line 1\n.c = \"d\" in line 2\n",
		"a:\n  - b: 1\n   c: 2\n  - d: 3\n": ".a[0].b = \"1\" in line 2\n.a[1].c = \"2\" in line 3\n.a[2].d = \"3\" in line 4\n",
		"a:\n  - b\n  c\n":                  ".a[0] = \"b\" in line 2\n.a[1] = \"c\" in line 3\n",
		"graders\n  - type: text\n":         ".graders[0].type = \"text\" in line 2\n",
		"a: b\n  c: d\ne: f\n":              ".a = \"b\" in line 1\n.?.c = \"d\" in line 2\n.e = \"f\" in line 3\n",
		"  a: b\nc: d\n":                    ".a = \"b\" in line 1\n.c = \"d\" in line 2\n",
		"a: b\n\tc: d\n":                    ".a = \"b\" in line 1\n.?.c = \"d\" in line 2\n",
		"]\na: b\n":                         ".] = null\n.a = \"b\" in line 2\n",
	} {
		tr, _ := scan(text, noMark)
		var got strings.Builder
		shown(&got, tr, tr.root, "")
		require.Equal(t, want, got.String(), "%q", text)
	}
}
