package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/config"
	"waza/eval"
)

// schemaNode is the part of a JSON Schema that the documents show.
type schemaNode struct {
	Ref         string                 `json:"$ref"`
	Type        any                    `json:"type"`
	Description string                 `json:"description"`
	Properties  orderedNodes           `json:"properties"`
	Items       *schemaNode            `json:"items"`
	Additional  json.RawMessage        `json:"additionalProperties"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	OneOf       []*schemaNode          `json:"oneOf"`
	Enum        []any                  `json:"enum"`
	Default     any                    `json:"default"`
	Required    []string               `json:"required"`
	Deprecated  bool                   `json:"deprecated"`
	Defs        map[string]*schemaNode `json:"$defs"`
}

// orderedNodes are properties in their written order.
type orderedNodes []namedNode

type namedNode struct {
	name string
	*schemaNode
}

func (o *orderedNodes) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		n := new(schemaNode)
		if err := dec.Decode(n); err != nil {
			return err
		}
		*o = append(*o, namedNode{fmt.Sprint(name), n})
	}
	return nil
}

func parseSchema(t *testing.T, text []byte) *schemaNode {
	t.Helper()
	s := new(schemaNode)
	require.NoError(t, json.Unmarshal(text, s))
	require.NotEmpty(t, s.Defs)
	return s
}

// writer writes sections about the definitions of a schema, each once.
type writer struct {
	strings.Builder
	defs  map[string]*schemaNode
	done  map[string]bool
	queue []string // mentioned, and not written yet
}

func newWriter(s *schemaNode) *writer { return &writer{defs: s.Defs, done: map[string]bool{}} }

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// object returns the node with the properties of a definition: the definition, or its
// alternative that is a map.
func (w *writer) object(name string) *schemaNode {
	def := w.defs[name]
	if def == nil {
		return nil
	}
	for _, n := range slices.Concat([]*schemaNode{def}, def.AnyOf, def.OneOf) {
		if len(n.Properties) > 0 {
			return n
		}
	}
	return nil
}

func refOf(n *schemaNode) string { return strings.TrimPrefix(n.Ref, "#/$defs/") }

// title returns the name of a definition in the text.
func title(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func anchor(name string) string { return strings.ToLower(title(name)) }

// kind describes the type of a value.
func (w *writer) kind(n *schemaNode) string {
	switch {
	case n == nil:
		return "anything"
	case n.Ref != "":
		name := refOf(n)
		if w.object(name) == nil {
			return w.kind(w.defs[name])
		}
		if !w.done[name] && !slices.Contains(w.queue, name) {
			w.queue = append(w.queue, name)
		}
		return fmt.Sprintf("[%s](#%s)", title(name), anchor(name))
	case len(n.Enum) > 0:
		var words []string
		for _, e := range n.Enum {
			words = append(words, fmt.Sprintf("`%v`", e))
		}
		return strings.Join(words, ", ")
	case len(n.AnyOf)+len(n.OneOf) > 0:
		var kinds []string
		for _, a := range append(slices.Clone(n.AnyOf), n.OneOf...) {
			if k := w.kind(a); !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
		return strings.Join(kinds, ", or ")
	}
	return w.plainKind(n)
}

func (w *writer) plainKind(n *schemaNode) string {
	switch n.Type {
	case "array":
		return "list of " + w.kind(n.Items)
	case "object":
		values := new(schemaNode)
		if len(n.Additional) > 0 && n.Additional[0] == '{' && json.Unmarshal(n.Additional, values) == nil {
			return "map of " + w.kind(values)
		}
		return "map"
	case "boolean":
		return "true or false"
	case nil:
		return "anything"
	}
	if list, ok := n.Type.([]any); ok {
		if slices.Contains(list, any("string")) {
			return "text"
		}
		return fmt.Sprint(list...)
	}
	if n.Type == "string" {
		return "text"
	}
	return fmt.Sprint(n.Type)
}

// keys writes a table of properties, then one of deprecated properties.
func (w *writer) keys(nodes []namedNode, required []string) {
	w.printf("| key | type | meaning |\n|---|---|---|\n")
	var past []string
	for _, p := range nodes {
		if p.Deprecated {
			past = append(past, fmt.Sprintf("- `%s`: %s", p.name, inCell(p.Description)))
			continue
		}
		meaning := p.Description
		if slices.Contains(required, p.name) {
			meaning = "**Required.** " + meaning
		}
		if p.Default != nil {
			meaning += fmt.Sprintf(" Default: `%s`.", defaultText(p.Default))
		}
		w.printf("| `%s` | %s | %s |\n", p.name, w.kind(p.schemaNode), inCell(meaning))
	}
	if len(past) > 0 {
		w.printf("\nOlder names, and keys that are understood and have no effect:\n\n%s\n", strings.Join(past, "\n"))
	}
}

// section writes about a definition, once.
func (w *writer) section(level, name string) {
	o := w.object(name)
	if w.done[name] || o == nil {
		return
	}
	w.done[name] = true
	w.printf("\n%s %s\n\n", level, title(name))
	if d := w.defs[name].Description; d != "" {
		w.printf("%s\n\n", strings.Join(strings.Fields(d), " "))
	}
	w.keys(o.Properties, o.Required)
}

// mentioned writes about all definitions that were mentioned so far.
func (w *writer) mentioned(level string) {
	for len(w.queue) > 0 {
		name := w.queue[0]
		w.queue = w.queue[1:]
		w.section(level, name)
	}
}

// optionsName returns the name of the definition of a kind's options.
func optionsName(k eval.Kind) string {
	if k.Options == nil {
		return ""
	}
	return typeName(reflect.TypeOf(k.Options()).Elem())
}

func writeKind(w *writer, k eval.Kind) {
	w.printf("\n## %s\n\n", k.Name)
	if len(k.Aliases) > 0 {
		w.printf("Also `%s`. ", strings.Join(k.Aliases, "`, `"))
	}
	w.printf("%s\n", strings.Join(strings.Fields(k.Summary), " "))
}

func gradersDocument(t *testing.T, v *eval.Vocabulary, suite []byte) string {
	t.Helper()
	w := newWriter(parseSchema(t, suite))
	for _, k := range v.Graders {
		writeKind(w, k)
		name := optionsName(k)
		if o := w.object(name); o != nil {
			w.printf("\n")
			w.keys(o.Properties, o.Required)
			w.done[name] = true
			w.mentioned("###")
		}
	}
	return handwritten(t, "docs/graders.md", w.String())
}

func executorsDocument(t *testing.T, v *eval.Vocabulary, suite []byte) string {
	t.Helper()
	w := newWriter(parseSchema(t, suite))
	config := w.object("Config")
	require.NotNil(t, config)
	for _, k := range v.Executors {
		writeKind(w, k)
		var nodes []namedNode
		for _, key := range optionKeys(k) {
			for _, p := range config.Properties {
				if p.name == key {
					nodes = append(nodes, p)
				}
			}
		}
		if len(nodes) > 0 {
			w.printf("\n")
			w.keys(nodes, nil)
			w.mentioned("###")
		}
	}
	return handwritten(t, "docs/executors.md", w.String())
}

// optionKeys returns the keys of config that a kind accepts.
func optionKeys(k eval.Kind) []string {
	if k.Options == nil {
		return nil
	}
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(k.Options()).Elem()) { // includes inlined structs
		if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

func suiteDocument(t *testing.T, v *eval.Vocabulary, suite, triggers []byte) string {
	t.Helper()
	w := newWriter(parseSchema(t, suite))
	for _, k := range v.Executors {
		own := optionKeys(k) // these are in the document about executors
		config := w.object("Config")
		config.Properties = slices.DeleteFunc(config.Properties, func(n namedNode) bool { return slices.Contains(own, n.name) })
	}
	w.section("##", "Suite")
	w.mentioned("##")
	w.section("##", "Task")
	w.mentioned("##")
	tests := newWriter(parseSchema(t, triggers))
	tests.section("##", "TriggerTests")
	tests.mentioned("##")
	return handwritten(t, "docs/suite.md", w.String(), tests.String())
}

func projectDocument(t *testing.T, project []byte) string {
	t.Helper()
	w := newWriter(parseSchema(t, project))
	w.section("##", "Project")
	w.mentioned("##")
	return handwritten(t, "docs/project.md", w.String())
}

func configurationDocument(t *testing.T, configuration []byte) string {
	t.Helper()
	w := newWriter(parseSchema(t, configuration))
	for _, block := range w.object("config.Config").Properties {
		o := w.object(refOf(block.schemaNode))
		require.NotNil(t, o, block.name)
		w.printf("\n## %s\n\n%s\n\n", block.name, strings.Join(strings.Fields(block.Description), " "))
		w.keys(o.Properties, o.Required)
	}
	text := handwritten(t, "docs/configuration.md", w.String())
	require.Contains(t, text, "`"+config.Variable("agents", "listen")+"`")
	return text
}

// handwritten returns a handwritten page and replaces its parts between the marks "generated"
// and "end of generated".
func handwritten(t *testing.T, page string, parts ...string) string {
	t.Helper()
	const start, end = "<!-- generated: make docs writes what follows -->\n", "<!-- end of generated -->\n"
	text, err := os.ReadFile(filepath.Join(repositoryRoot, filepath.FromSlash(page)))
	require.NoError(t, err)
	var b strings.Builder
	rest := string(text)
	for _, part := range parts {
		before, after, ok := strings.Cut(rest, start)
		require.True(t, ok, "%s has fewer than %d generated parts", page, len(parts))
		_, rest, ok = strings.Cut(after, end)
		require.True(t, ok, "%s has a generated part without end", page)
		b.WriteString(before + start + "\n" + strings.Trim(part, "\n") + "\n\n" + end)
	}
	require.NotContains(t, rest, start, "%s has more than %d generated parts", page, len(parts))
	return b.String() + rest
}

// defaultText formats a value as people write it in YAML: 8388608, not 8.388608e+06.
func defaultText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
