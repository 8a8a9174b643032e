package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/decode"
	"waza/runner/report/reporttest"
)

func TestCommandsAreFound(t *testing.T) {
	t.Parallel()
	require.Len(t, reporttest.Commands(reporttest.Attack), 6)
}

// Findings quote lines of suites, one character at a time.
func TestAttackNoFindingIsACommandOfCI(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "::warning::.yaml")
	require.NoError(t, os.WriteFile(path, []byte("a ##[add-mask]b ###[x: 1\n::error::x: 1\n"), 0o644))
	var ds decode.Diagnostics
	for line := range 2 {
		ds = append(ds, decode.Diagnostic{
			File: path, Line: line + 1, Column: 3, Severity: decode.Error, Code: decode.CodeSyntax,
			Message: reporttest.Attack, Suggestion: reporttest.Attack,
		})
	}
	ds = append(ds, decode.Diagnostic{File: "::error::x", Message: "x"})
	var b bytes.Buffer
	require.NoError(t, Diagnostics(&b, ds, Options{}))
	require.Empty(t, reporttest.Commands(b.String()))
	require.Contains(t, b.String(), `a #\x23[add-mask]b ##\x23[x: 1`)
}

// Escaping commands of CI systems loses nothing in documents for programs.
func TestNoCommandIsLostInDocuments(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := JSONWriter(&b)
	data, err := json.Marshal(map[string]string{"text": reporttest.Attack + "####[x]#", "#": "##"})
	require.NoError(t, err)
	for _, c := range data { // write single bytes
		_, err := w.Write([]byte{c})
		require.NoError(t, err)
	}
	var got map[string]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	require.Equal(t, map[string]string{"text": reporttest.Attack + "####[x]#", "#": "##"}, got)
	require.NotContains(t, b.String(), "##")

	var element struct {
		Attr string `xml:"attr,attr"`
		Text string `xml:",chardata"`
	}
	document := "<e" + xmlAttr("attr", reporttest.Attack) + ">" + xmlText(reporttest.Attack) + "</e>"
	require.NoError(t, xml.Unmarshal([]byte(document), &element))
	require.Equal(t, reporttest.Attack, element.Attr)
	require.Equal(t, reporttest.Attack, element.Text)
	require.Empty(t, reporttest.Commands(document))
}

func TestInert(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "std::vector": "std::vector", "## heading": "## heading", "a ## [b]": "a ## [b]", ":": ":", "a ::b": "a ::b",
		"::x": `\x3a:x`, " \t::x": " \t" + `\x3a:x`, "##[x": `#\x23[x`, "a##vso[b": `a#\x23vso[b`, "###[": `##\x23[`, "##9[": "##9[",
	} {
		require.Equal(t, want, inert(text), text)
	}
}

func FuzzInert(f *testing.F) {
	f.Add(reporttest.Attack)
	f.Fuzz(func(t *testing.T, text string) {
		if found := reporttest.Commands(Clean(text)); len(found) > 0 {
			t.Fatalf("%q", found)
		}
		var b bytes.Buffer
		data, err := json.Marshal(text)
		require.NoError(t, err)
		_, err = JSONWriter(&b).Write(data)
		require.NoError(t, err)
		var want, got string
		require.NoError(t, json.Unmarshal(data, &want))
		require.NoError(t, json.Unmarshal(b.Bytes(), &got))
		require.Equal(t, want, got)
		if found := reporttest.Commands(b.String()); len(found) > 0 {
			t.Fatalf("%q", found)
		}
		if found := reporttest.Commands("<e>" + xmlText(text) + "</e>"); len(found) > 0 {
			t.Fatalf("%q", found)
		}
	})
}
