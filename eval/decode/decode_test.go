package decode_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// options has a field of each kind that suites use.
type options struct {
	Name   string         `yaml:"name" alias:"title" jsonschema:"required"`
	Count  int            `yaml:"count" jsonschema:"minimum=1,maximum=10"`
	Seed   uint64         `yaml:"seed"`
	Small  int8           `yaml:"small"`
	Rate   *float64       `yaml:"rate" jsonschema:"exclusiveMinimum=0"`
	Strict bool           `yaml:"strict"`
	Mode   string         `yaml:"mode" jsonschema:"enum=fast,enum=slow"`
	Tags   []string       `yaml:"tags" jsonschema:"minItems=2"`
	Pair   [2]int         `yaml:"pair"`
	Env    map[string]int `yaml:"env"`
	Any    any            `yaml:"any"`
	Limits `yaml:",inline"`
	Nested []nested `yaml:"nested"`
}

// Limits is an embedded struct.
type Limits struct {
	Retries int `yaml:"retries"`
}

type nested struct {
	ID   string `yaml:"id"`
	Kept int    `yaml:"kept"`
}

func (n *nested) SetDefaults() { n.Kept = 7 }

// read decodes a document, and returns its value and its findings, one per line.
func read(text string) (o options, findings []string) {
	var found decode.Findings
	src := decode.Parse("/suites/eval.yaml", "eval.yaml", []byte(text), &found)
	if src.Root != nil {
		decode.NewDecoder(src, &found).Into(src.Root, &o)
	}
	for _, d := range found.Diagnostics() {
		findings = append(findings, strings.TrimPrefix(d.String(), "eval.yaml:"))
	}
	return o, findings
}

func TestDecodeValues(t *testing.T) {
	t.Parallel()
	half := 0.5
	for text, want := range map[string]options{
		"name: a\ncount: 3\nseed: 18446744073709551615\nsmall: -128\nrate: 0.5\nstrict: yes\nmode: slow": {
			Name: "a", Count: 3, Seed: 18446744073709551615, Small: -128, Rate: &half, Strict: true, Mode: "slow"},
		"name: 12\ntags: [a, 2]\npair: [1, 2]\nretries: 4": {
			Name: "12", Tags: []string{"a", "2"}, Pair: [2]int{1, 2}, Limits: Limits{Retries: 4},
		},
		"name: a\ncount: 3.0\nseed: 2e3":                          {Name: "a", Count: 3, Seed: 2000},
		"name: a\nnested: [{id: x}, {id: y, kept: 0}]":            {Name: "a", Nested: []nested{{"x", 7}, {"y", 0}}},
		"name: a\ncount: ~\ntags: null":                           {Name: "a"},
		"name: &n a\nmode: fast\nany: *n":                         {Name: "a", Mode: "fast", Any: "a"},
		"name: a\nany: {<<: [{x: 1}, {x: 2, y: .inf}], z: [1.5]}": {Name: "a", Any: map[string]any{"x": 1, "y": ".inf", "z": []any{1.5}}},
		"name: a\nenv: {<<: &b {A: 1, B: 2}, B: 3}":               {Name: "a", Env: map[string]int{"A": 1, "B": 3}},
		"\xff\xfen\x00a\x00m\x00e\x00:\x00 \x00\xe9\x00":          {Name: "é"},
		"\xef\xbb\xbfname: a":                                     {Name: "a"},
	} {
		got, findings := read(text)
		require.Empty(t, findings, text)
		require.Empty(t, cmp.Diff(want, got), text)
	}
}

// Each fault is reported at its place, and decoding continues after it.
func TestDecodeFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"count: 3":               {"1:1: error: name is missing [missing-field]"},
		"name: ''":               {"1:7: error: name is empty [missing-field]"},
		"name: ~":                {"1:1: error: name is empty [missing-field]"},
		"name: a\ncount: 0":      {`2:8: error: count must be between 1 and 10, got 0 [invalid-value]`},
		"name: a\nrate: 0":       {`2:7: error: rate must be more than 0, got 0 [invalid-value]`},
		"name: a\ncount: '3'":    {`2:8: error: count must be a whole number, got "3" (did you mean "3"?) [wrong-type]`},
		"name: a\ncount: 2.5":    {`2:8: error: count must be a whole number, got 2.5 [wrong-type]`},
		"name: a\nsmall: 128":    {`2:8: error: small must be a whole number, got 128 [wrong-type]`},
		"name: a\nstrict: 'yes'": {`2:9: error: strict must be true or false, got "yes" (did you mean "yes"?) [wrong-type]`},
		"name: a\nmode: fsat":    {`2:7: error: mode must be one of fast, slow, got "fsat" (did you mean "fast"?) [invalid-value]`},
		"name: a\ntags: [x]":     {`2:7: error: tags must have at least 2 elements [invalid-value]`},
		"name: a\ntags: [x, ~]":  {`2:11: error: tags[1] is empty [wrong-type]`},
		"name: a\npair: [1]":     {`2:7: error: pair must be a list of 2 values [wrong-type]`},
		"name: a\nconut: 1":      {`2:1: error: unknown key "conut" (did you mean "count"?) [unknown-key]`},
		"name: a\nzzz: 1":        {`2:1: warning: unknown key "zzz" [unknown-key]`},
		"title: a":               {`1:1: info: "title" is an older name of "name" (did you mean "name"?) [deprecated]`},
		"name: a\nname: b":       {`2:1: error: duplicate key "name"; it is first set in line 1 [duplicate-key]`},
		"name: a\nany: {<<: 1}":  {`2:11: error: << must be a map or a list of maps, got 1 [wrong-type]`},
		"[]":                     {"1:1: error: this must be a map, got a list [wrong-type]"},
		"# nothing":              {" error: the file is empty [empty-document]"},
		"name: a\n---\nname: b":  {"3:1: warning: waza reads only the first document of a file; this one has no effect [multiple-documents]"},
		"name: \x01":             {"1:7: error: not plain UTF-8 text: control character 0x01 [not-text]"},
		"name: a\nnested: [{id: [1]}, {kept: x}]": {
			"2:15: error: nested[0].id must be a text, got a list [wrong-type]",
			`2:28: error: nested[1].kept must be a whole number, got "x" [wrong-type]`,
		},
	} {
		_, findings := read(text)
		require.Equal(t, want, findings, text)
	}
}

// A whole number without a sign took any number: 1.5 became 1, and -1.0 an arbitrary one.
func TestDecodeFractionIsNoWholeNumber(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"1.5", "-1.0", "-1", "1e30", "18446744073709551616"} {
		o, findings := read("name: a\nseed: " + number)
		require.Len(t, findings, 1, number)
		require.Contains(t, findings[0], "seed must be a whole number", number)
		require.Zero(t, o.Seed, number)
	}
	_, findings := read("name: a\nany: 1\nretries: 9.223372036854775808e18")
	require.Len(t, findings, 1)
}

// Nesting and aliases cannot take more than a little time or memory.
func TestAttackDecodeBounds(t *testing.T) {
	t.Parallel()
	var deep decode.Findings
	root := decode.Parse("/e.yaml", "e.yaml", []byte("any: "+strings.Repeat("[", 200)+strings.Repeat("]", 200)), &deep).Root
	require.Nil(t, root)
	require.Equal(t, decode.CodeTooDeep, deep.Diagnostics()[0].Code)

	var b strings.Builder
	b.WriteString("name: a\nany:\n  - &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		fmt.Fprintf(&b, "  - &a%d [%s]\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	_, findings := read(b.String())
	require.NotEmpty(t, findings)
	require.Contains(t, findings[0], "too-many-aliases")

	_, findings = read("name: a\nany: &a [*a]")
	require.NotEmpty(t, findings)

	var many decode.Findings
	src := decode.Parse("/e.yaml", "e.yaml", []byte("name: a\n"+strings.Repeat("x: 1\n", 10_000)), &many)
	require.Less(t, many.Count(), 5000)
	require.True(t, many.Full())
	require.NotNil(t, src)
}

// FuzzDecode checks that any document gives a value or an error, that each finding is within the
// document, and that a document without errors has the value that yaml.v3 gives it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"name: a\ncount: 3\ntags: [a, b]\nenv: {A: 1}", "name: &x [*x]", "a: {<<: *b}", "\xff\xfen", "- - -",
		"name: |\n  x\n\ty", "name: \"\\u00e9\"\nseed: 0x1F",
		"name: a\nseed: 1_000\nretries: -0", "? [a]\n: b", "name: a\nenv: {<<: [{A: 1}, {B: 2}]}", "{name: a, any: 2001-01-01}",
		"env: {<<: [{?}]}", "env: {~: 3}",
	} {
		f.Add([]byte(s))
	}
	codes := map[decode.Code]bool{}
	for _, c := range decode.Codes() {
		codes[c.Code] = true
	}
	type plain struct {
		Name    string         `yaml:"name"`
		Count   int            `yaml:"count"`
		Seed    uint64         `yaml:"seed"`
		Rate    *float64       `yaml:"rate"`
		Tags    []string       `yaml:"tags"`
		Env     map[string]int `yaml:"env"`
		Retries int            `yaml:"retries"`
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var found decode.Findings
		src := decode.Parse("/eval.yaml", "eval.yaml", data, &found)
		var got, want plain
		if src.Root != nil {
			decode.NewDecoder(src, &found).Into(src.Root, &got)
		}
		list := found.Diagnostics()
		lines := 1
		for _, r := range src.Text {
			if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) { // YAML's line breaks
				lines++
			}
		}
		for _, d := range list {
			require.True(t, codes[d.Code], "%v", d)
			require.NotEmpty(t, d.Message)
			require.LessOrEqual(t, d.Line, lines, "%v", d)
			require.Equal(t, d.Line > 0, d.Column > 0, "%v", d)
			require.True(t, d.EndColumn == 0 || d.EndColumn >= d.Column, "%v", d)
		}
		if src.Root == nil {
			require.True(t, list.HasErrors())
			return
		}
		if len(list) > 0 || strings.Contains(src.Text, "!") || src.Root.Decode(&want) != nil {
			return // tags, which suites do not need, change values only there
		}
		maps.DeleteFunc(got.Env, func(key string, _ int) bool { // yaml.v3 leaves out keys that are null
			return key == "~" || strings.EqualFold(key, "null")
		})
		require.True(t, reflect.DeepEqual(got, want), "%s", cmp.Diff(want, got))
	})
}

// A yamlOnly decodes itself.
type yamlOnly struct{ text string }

func (y *yamlOnly) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return errors.New("expected a duration such as 5m")
	}
	y.text = n.Value
	return nil
}

// Types that decode themselves report at their place, without the line that yaml.v3 adds.
func TestDecodeCustom(t *testing.T) {
	t.Parallel()
	var found decode.Findings
	src := decode.Parse("/e.yaml", "e.yaml", []byte("a: 5m\nb: [1]\n"), &found)
	var v struct {
		A yamlOnly `yaml:"a"`
		B yamlOnly `yaml:"b"`
	}
	decode.NewDecoder(src, &found).Into(src.Root, &v)
	require.Equal(t, "5m", v.A.text)
	list := found.Diagnostics()
	require.Len(t, list, 1)
	require.Equal(t, "e.yaml:2:4: error: b: expected a duration such as 5m [wrong-type]", list[0].String())
}

func TestPaths(t *testing.T) {
	t.Parallel()
	var found decode.Findings
	src := decode.Parse("/e.yaml", "e.yaml", []byte("a: &x {b: [1, {c: 2}]}\nd: *x\n"), &found)
	for _, c := range []struct {
		path  decode.Path
		text  string
		depth int
		value string
	}{
		{decode.At("a", "b", 1, "c"), "a.b[1].c", 4, "2"},
		{decode.At("d", "b", 0), "d.b[0]", 3, "1"},
		{decode.At("a", "b", 0, "z"), "a.b[0].z", 3, "1"},
		{decode.At("a", "b", 2), "a.b[2]", 2, ""},
		{decode.At(), "", 0, ""},
		{decode.At("z"), "z", 0, ""},
	} {
		n, depth := decode.Walk(src.Root, c.path)
		require.Equal(t, c.text, c.path.String())
		require.Equal(t, c.depth, depth, c.text)
		require.Equal(t, c.value, n.Value, c.text)
	}
}
