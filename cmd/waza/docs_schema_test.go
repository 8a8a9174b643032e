package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/config"
	"waza/eval"
)

// schemaNode is as much of a JSON Schema as the documents tell.
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

// orderedNodes are properties in the order in which they are written.
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

// object is the node that holds the properties of a definition: itself, or the
// one of its alternatives that is a map.
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

// title is how a definition is called in the text.
func title(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func anchor(name string) string { return strings.ToLower(title(name)) }

// kind says of what type a value is.
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

// keys writes a table of properties, and below it those of the past.
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

// section writes about a definition, unless that has been done.
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

// optionsName is the definition of a kind's options.
func optionsName(k eval.Kind) string {
	if k.Options == nil {
		return ""
	}
	t := reflect.TypeOf(k.Options()).Elem()
	return path.Base(t.PkgPath()) + "." + t.Name()
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
	w.printf(`# Graders

A grader gives a finished trial a score from 0 to 1 and says whether it passed. A suite lists graders under ` + "`graders`" + `,
which apply to all its tasks, and so does a task. Their options are in ` + "`config`" + `.

## Failed or error

A trial is *failed* when a grader looked at what the agent left and was not satisfied. It is an *error*, which counts
neither as failed nor as passed, when a grader could not look. One rule decides for all graders:

| what happened | verdict |
|---|---|
| an assertion or a program takes longer than its own limit, takes too much memory or crashes | failed |
| the time of the whole trial (` + "`timeout_seconds`" + `) is up while graders still run | timeout, which counts as not passed; error when a recorded trial is graded again, since the agent was in time |
| an interpreter, a program or a file of the suite is missing, a judge does not answer, tokens are not known | error |
| somebody else kills the program or the interpreter, the system that is short of memory for example | error |
| the agent deleted its workspace, or replaced it by a link, a file or another directory | failed, with score 0, whatever graders would say |
| a check depends on what waza did not keep: a part of the output beyond 4 MiB, entries of the transcript beyond its limit, a file of a recorded workspace | error, unless another check of the grader failed for certain |

Programs and assertions run over the agent's work, so an agent whose work makes them hang has failed, and cannot leave
the pass rate that way. Raise the limit where a machine is slow.
`)
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
	return w.String()
}

func executorsDocument(t *testing.T, v *eval.Vocabulary, suite []byte) string {
	t.Helper()
	w := newWriter(parseSchema(t, suite))
	config := w.object("Config")
	require.NotNil(t, config)
	w.printf("# Executors\n\nAn executor does the trials. `config.executor` names it; its options stand beside that, in `config`.\n")
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
	return w.String()
}

// optionKeys are the keys of config that a kind takes.
func optionKeys(k eval.Kind) []string {
	if k.Options == nil {
		return nil
	}
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(k.Options()).Elem()) { // those of inlined structs, too
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
		own := optionKeys(k) // they are in the executors' document
		config := w.object("Config")
		config.Properties = slices.DeleteFunc(config.Properties, func(n namedNode) bool { return slices.Contains(own, n.name) })
	}
	w.printf(`# The suite format

A suite is a file named eval.yaml, eval.<word>.yaml, eval-<word>.yaml or <word>.eval.yaml. Spellings of older generations
of the format are taken as well. Executors and graders have documents of their own: [executors](executors.md),
[graders](graders.md). What is wrong with a suite is told by [findings](diagnostics.md).
`)
	w.section("##", "Suite")
	w.mentioned("##")
	w.section("##", "Task")
	w.mentioned("##")
	tests := newWriter(parseSchema(t, triggers))
	tests.printf("\nTrigger tests stand in trigger_tests.yaml beside the suite.\n")
	tests.section("##", "TriggerTests")
	tests.mentioned("##")
	return w.String() + tests.String()
}

func configurationDocument(t *testing.T, configuration []byte) string {
	t.Helper()
	w := newWriter(parseSchema(t, configuration))
	w.printf(`# The configuration of waza serve

`+"`waza serve --config FILE`"+` reads a YAML or JSON file, `+"`waza serve --check --config FILE`"+` reports what is wrong with it and
lists the doors. Each door has a block; a key that is left out has its default. `+"`waza schema serve`"+` prints the JSON Schema of
the file. What the doors do: [serve.md](serve.md).

`+"```yaml"+`
agents:
  listen: 127.0.0.1:8080
  keys_file: keys.yaml      # mode 0600, a line per agent: its client id, a colon and its key
jobs:
  listen: off
`+"```"+`

Names of files are relative to the directory of the configuration. Times are written as `+"`90s`, `5m` or `1h30m`"+`. `+"`listen: off`"+`
closes a door. A key that waza does not know is an error.

A variable of the environment overrides a key: `+"`%s`"+` overrides `+"`listen`"+` of `+"`agents`"+`. A list
is separated by commas there. The flags of `+"`waza serve`"+` override both. The variable `+"`WAZA_AGENT_KEY`"+` is the key that all
agents must show which have none of their own in `+"`keys_file`"+`. waza removes it from its environment, so that agents and
graders do not inherit it.
`, config.Variable("agents", "listen"))
	for _, block := range w.object("config.Config").Properties {
		o := w.object(refOf(block.schemaNode))
		require.NotNil(t, o, block.name)
		w.printf("\n## %s\n\n%s\n\n", block.name, strings.Join(strings.Fields(block.Description), " "))
		w.keys(o.Properties, o.Required)
	}
	return w.String()
}

// defaultText writes a value as a person would write it in YAML: 8388608, not 8.388608e+06.
func defaultText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
