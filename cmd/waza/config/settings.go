package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/text"
)

// Prefix is the prefix of environment variables that override the file: WAZA_SERVE_AGENTS_LISTEN
// sets listen of agents.
const Prefix = "WAZA_SERVE_"

// block is a map at the top level of the file: the keys of a door, or of the model.
type block struct {
	name   string
	value  reflect.Value // the struct
	fields []field
}

type field struct {
	fields.Field
	tag reflect.StructTag
}

// isPath reports whether the value of the key is a file name.
func (f field) isPath() bool {
	return f.Name == "tls_cert" || f.Name == "tls_key" || strings.HasSuffix(f.Name, "_file")
}

// blocks returns the blocks of a configuration, in the order of the documentation.
func (l *loader) blocks() []block {
	v := reflect.ValueOf(l.config).Elem()
	var list []block
	for _, f := range decode.FieldsOf(v.Type()) {
		b := block{name: f.Name, value: v.FieldByIndex(f.Index)}
		for _, key := range decode.FieldsOf(f.Type) {
			b.fields = append(b.fields, field{key, f.Type.FieldByIndex(key.Index).Tag})
		}
		list = append(list, b)
	}
	return list
}

// Variable returns the name of the variable that overrides a key of a block.
func Variable(block, key string) string {
	return Prefix + strings.ToUpper(block) + "_" + strings.ToUpper(key)
}

// environment applies the variables that override the file, in the order of the keys.
func (l *loader) environment() {
	var known []string
	for _, b := range l.blocks() {
		for _, f := range b.fields {
			name := Variable(b.name, f.Name)
			known = append(known, name)
			if value, ok := l.environ[name]; ok {
				l.set(Setting{From: name, Block: b.name, Key: f.Name, Value: value})
			}
		}
	}
	for name := range l.environ {
		if strings.HasPrefix(name, Prefix) && !slices.Contains(known, name) {
			// This is only a warning because clusters set variables for the names of their
			// services.
			l.Report(decode.Diagnostic{
				File: name, Severity: decode.Warning, Code: decode.CodeNoEffect, Suggestion: decode.Nearest(name, known),
				Message: "unknown variable of waza serve",
			})
		}
	}
}

// set decodes a value from outside the file as if it were in the file. It ignores an empty
// value.
func (l *loader) set(s Setting) {
	if strings.TrimSpace(s.Value) == "" {
		return
	}
	scalar := func(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }
	pair := func(key string, value *yaml.Node) *yaml.Node {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{scalar(key), value}}
	}
	value := scalar(s.Value)
	source := decode.NewSource(s.From, s.From, "")
	for _, b := range l.blocks() {
		for _, f := range b.fields {
			if b.name != s.Block || f.Name != s.Key {
				continue
			}
			if f.Type == reflect.TypeFor[[]string]() {
				value = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
				for part := range strings.SplitSeq(s.Value, ",") {
					if part = strings.TrimSpace(part); part != "" {
						value.Content = append(value.Content, scalar(part))
					}
				}
			}
			l.places[b.name+"."+f.Name] = place{source, value}
			decode.NewDecoder(source, &l.Findings).Into(pair(b.name, pair(f.Name, value)), l.config)
			return
		}
	}
	l.Report(decode.Diagnostic{
		File: s.From, Severity: decode.Error, Code: decode.CodeUnknownKey,
		Message: fmt.Sprintf("unknown key %s.%s", text.Clip(s.Block, 40), text.Clip(s.Key, 40)),
	})
}
