package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

func parseTOML(text string) (*decode.Source, decode.Diagnostics) {
	var found decode.Findings
	src := decode.ParseFile("/x.toml", "x.toml", []byte(text), &found)
	return src, found.Diagnostics()
}

// The nodes have the places of the TOML text, in characters.
func TestParseTOMLPlaces(t *testing.T) {
	t.Parallel()
	src, found := parseTOML(`# head
a = 1_000
"ä".b = [0x10, -2.5e1, # no
  true]
when = 2024-01-01
[t.u]
s = 'x' # tail
i = {k = """
long""", l = [[2]]}
[[list]]
f = -inf
[[list]]
[list.sub]
`)
	require.Empty(t, found)
	var places []string
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		places = append(places, strings.TrimSpace(fmt.Sprintf("%d:%d %s %s", n.Line, n.Column, n.ShortTag(), n.Value)))
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(src.Root)
	require.Equal(t, []string{
		"1:1 !!map",
		"2:1 !!str a", "2:5 !!int 1000",
		"3:1 !!str ä", "3:1 !!map", "3:5 !!str b", "3:9 !!seq", "3:10 !!int 16", "3:16 !!float -2.5e1", "4:3 !!bool true",
		"5:1 !!str when", "5:8 !!str 2024-01-01",
		"6:2 !!str t", "6:2 !!map", "6:4 !!str u", "6:4 !!map",
		"7:1 !!str s", "7:5 !!str x",
		"8:1 !!str i", "8:5 !!map", "8:6 !!str k", "8:10 !!str long", "9:10 !!str l", "9:14 !!seq", "9:14 !!seq", "9:16 !!int 2",
		"10:3 !!str list", "10:3 !!seq", "10:3 !!map", "11:1 !!str f", "11:5 !!float -.inf",
		"12:3 !!map", "13:7 !!str sub", "13:7 !!map",
	}, places)
}

func TestParseTOMLFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "x.toml: error: the file is empty [empty-document]",
		"# only\n":                          "x.toml: error: the file is empty [empty-document]",
		"a = 1\na = 2":                      "x.toml:2:1: error: not valid TOML: ",
		"[a]\nb = 1\n[a.b]":                 "x.toml:3:",
		"a = ":                              "x.toml:1:",
		"a = \"\xff\"":                      "x.toml:1:6: error: not plain UTF-8 text: byte 0xff [not-text]",
		"a = " + strings.Repeat("[", 9_000): "x.toml:1:",
		"a = " + strings.Repeat("[", 150) + strings.Repeat("]", 150): "nested more than 100 levels deep [too-deep]",
		strings.Repeat("a = 1\n", 200_000):                           "x.toml: error: more than 100000 keys and items [too-large]",
	} {
		_, found := parseTOML(text)
		require.Len(t, found, 1, text)
		d := found[0]
		got := fmt.Sprintf("%s: %s: %s [%s]", d.File, d.Severity, d.Message, d.Code)
		if d.Line > 0 {
			got = fmt.Sprintf("%s:%d:%d: %s: %s [%s]", d.File, d.Line, d.Column, d.Severity, d.Message, d.Code)
		}
		require.Contains(t, got, want)
	}
}

// FuzzParseTOML compares the parser with the library's own decoder.
func FuzzParseTOML(f *testing.F) {
	for _, seed := range []string{
		"a = 1\n[b.c]\nd = ['x', {e = 2.5}]\n[[f]]\n[[f]]\ng.h = true\n", "x = nan", "d = 1979-05-27T07:32:00Z", `"" = ""`, "a = 0o17\nb = 1_0\nc = -9223372036854775808",
		"s = \"\"\"\\\n   x\\u00e4\"\"\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src, found := parseTOML(text)
		if src.Root == nil {
			require.True(t, found.HasErrors())
			return
		}
		var want map[string]any
		require.NoError(t, toml.Unmarshal([]byte(src.Text), &want))
		var check func(n *yaml.Node, want any)
		check = func(n *yaml.Node, want any) {
			require.True(t, n.Line >= 1 && n.Column >= 1)
			switch want := want.(type) {
			case map[string]any:
				require.Equal(t, yaml.MappingNode, n.Kind)
				require.Len(t, n.Content, 2*len(want))
				for i := 0; i < len(n.Content); i += 2 {
					require.Contains(t, want, n.Content[i].Value)
					check(n.Content[i+1], want[n.Content[i].Value])
				}
			case []any:
				require.Len(t, n.Content, len(want))
				for i, c := range n.Content {
					check(c, want[i])
				}
			case string:
				require.Equal(t, "!!str", n.ShortTag())
				require.Equal(t, want, n.Value)
			case int64:
				var got int64
				require.NoError(t, n.Decode(&got))
				require.Equal(t, want, got)
			case float64:
				var got float64
				require.NoError(t, n.Decode(&got))
				require.True(t, got == want || got != got && want != want, "%v %v", got, want)
			case bool:
				require.Equal(t, fmt.Sprint(want), n.Value)
			}
		}
		check(src.Root, want)
	})
}
