package decode_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// A file that contains JSON is read as JSON, whatever its name, since YAML has no pairs of \u escapes.
func TestParseFileWithJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`\n{"a": "\ud83d\ude00"}`, `{a: "😀"}`} {
		var found decode.Findings
		src := decode.ParseFile("/x.yaml", "x.yaml", []byte(strings.ReplaceAll(text, `\n`, "\n")), &found)
		require.Empty(t, found.Since(0))
		require.Equal(t, "😀", decode.Lookup(decode.Follow(src.Root), "a").Value)
	}
}

func parseJSON(text string) (*decode.Source, decode.Diagnostics) {
	var found decode.Findings
	src := decode.ParseFile("/x.json", "x.json", []byte(text), &found)
	return src, found.Diagnostics()
}

// The nodes have the places of the JSON text, in characters.
func TestParseJSONPlaces(t *testing.T) {
	t.Parallel()
	src, found := parseJSON("\uFEFF{\n  \"ä\": \"\\ud83d\\ude00\", \"b\": [1,\n\t-2.5e1 , null, true],\r\n \"c\":{} }\n")
	require.Empty(t, found)
	var places []string
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		places = append(places, fmt.Sprintf("%d:%d %s %s", n.Line, n.Column, n.ShortTag(), n.Value))
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(src.Root)
	require.Equal(t, []string{
		"1:1 !!map ",
		"2:3 !!str ä", "2:8 !!str 😀",
		"2:24 !!str b", "2:29 !!seq ", "2:30 !!int 1", "3:2 !!float -2.5e1", "3:11 !!null null", "3:17 !!bool true",
		"4:2 !!str c", "4:6 !!map ",
	}, places)
}

func TestParseJSONFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "x.json: error: the file is empty [empty-document]",
		"null":                      "x.json: error: the file is empty [empty-document]",
		"{} x":                      "x.json:1:4: error: not valid JSON: more text after the end of the document [syntax]",
		"{\"a\": 1":                 "x.json:1:8: error: the file ends in the middle of its JSON, perhaps because it is truncated [syntax]",
		"{\n // no\n}":              "x.json:2:2: error: not valid JSON: it must not contain comments [syntax]",
		"{\"a\"\n 1}":               "x.json:2:2: error: not valid JSON: invalid character '1' after object key [syntax]",
		"{\"a\":1,\n\"a\":2}":       "x.json:2:1: error: duplicate key \"a\"; it is first set in line 1 [duplicate-key]",
		"\"\xff\"":                  "x.json:1:2: error: not plain UTF-8 text: byte 0xff [not-text]",
		strings.Repeat("[", 20_000): "x.json:1:100: error: nested more than 100 levels deep [too-deep]",
	} {
		_, found := parseJSON(text)
		require.Len(t, found, 1, text)
		d := found[0]
		got := fmt.Sprintf("%s: %s: %s [%s]", d.File, d.Severity, d.Message, d.Code)
		if d.Line > 0 {
			got = fmt.Sprintf("%s:%d:%d: %s: %s [%s]", d.File, d.Line, d.Column, d.Severity, d.Message, d.Code)
		}
		require.Equal(t, want, got)
	}
}

// FuzzParseJSON compares the parser with encoding/json.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,"x\ud83d\ude00"],"b":{"c":null}}`, `[]`, `"x"`, "{\"a\":1}\n", `[1,]`, `{"a" 1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src, found := parseJSON(text)
		if src.Root == nil {
			require.True(t, found.HasErrors())
			return
		}
		var want any
		require.NoError(t, json.Unmarshal([]byte(src.Text), &want))
		lines := strings.Count(src.Text, "\n") + 1
		var check func(n *yaml.Node)
		check = func(n *yaml.Node) {
			require.True(t, n.Line >= 1 && n.Line <= lines && n.Column >= 1)
			for _, c := range n.Content {
				check(c)
			}
		}
		check(src.Root)
		if _, isText := want.(string); isText {
			require.Equal(t, want, src.Root.Value)
		}
	})
}
