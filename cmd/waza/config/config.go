// Package config reads the configuration of `waza serve`: a YAML file, over that environment
// variables, over those flags. Call [Load]; what is wrong comes back as findings with
// their places, as for suites. A [Config] without findings of severity [decode.Error]
// can be served.
package config

import (
	_ "embed"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/rpc/gateway/agents"
	"waza/rpc/gateway/jobs"
)

// Config is what the file of `waza serve --config FILE` says. Keys that are left out
// have their defaults.
type Config struct {
	// Evaluation agents connect here by WebSocket and do the trials of suites with
	// `executor: remote`.
	Agents agents.Config `yaml:"agents"`
	// The dashboard at `/`; JSON-RPC by WebSocket at `/rpc`, and by HTTP `/healthz`, `/readyz` and
	// `/metrics`. A client of `/rpc` can run any program, so it always shows a token.
	Jobs jobs.Config `yaml:"jobs"`
	// Browser assistants. This version has no such door: `listen` must be off.
	Browser Browser `yaml:"browser"`
	// Clients that messages are routed to. This version has no such door: `listen` must
	// be off.
	Router Router `yaml:"router"`
	// The model that doors ask.
	Model Model `yaml:"model"`

	// Keys are what evaluation agents must show, by client id: those of
	// agents.keys_file. Nobody logs them.
	Keys map[string]string `yaml:"-"`
	// Key is what agents without a key of their own must show; empty for none.
	Key string `yaml:"-"`
}

// Model says which model doors ask.
type Model struct {
	// The API that the model is reached by.
	Executor string `yaml:"executor" jsonschema:"enum=openai,enum=anthropic"`
	// Name of the model, as that API calls it.
	Model string `yaml:"model"`
}

//go:embed serve.schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of the file. The caller owns the slice.
func Schema() []byte { return slices.Clone(schema) }

// Default returns what holds when nothing is said.
func Default() *Config {
	return &Config{Agents: agents.Defaults(), Jobs: jobs.Defaults(), Browser: defaultBrowser(), Router: defaultRouter()}
}

// Options say where a configuration comes from.
type Options struct {
	// File is a YAML or JSON file; empty for none. Relative paths in it are relative to
	// its directory.
	File string
	// Environ are the variables of the environment, as os.Environ returns them. Those
	// that begin with WAZA_SERVE_ override the file.
	Environ []string
	// Flags override the environment.
	Flags []Setting
	// Key is for [Config.Key].
	Key string
}

// Setting is one value from outside the file.
type Setting struct {
	// From names its origin in messages: --agents, or a variable.
	From string
	// Block and Key say what is set: agents and listen.
	Block, Key string
	// Value is as it was written; a list is separated by commas.
	Value string
}

// Load reads the configuration. It is as good as its sources allow, and must not be
// served when the findings have errors.
func Load(o Options) (*Config, decode.Diagnostics) {
	l := &loader{config: Default(), places: map[string]place{}}
	l.config.Key = o.Key
	if o.File != "" {
		l.file(o.File)
	}
	l.environment(o.Environ)
	for _, s := range o.Flags {
		l.set(s)
	}
	if l.Errors() == 0 { // what was not understood would lead to findings that mislead
		l.check()
	}
	return l.config, l.diagnostics()
}

// loader reads one configuration.
type loader struct {
	decode.Findings
	config *Config
	source *decode.Source   // the file; nil when there is none or it was not understood
	dir    string           // of the file; empty when there is none
	places map[string]place // where values come from, by block.key
}

// place is where a value was set.
type place struct {
	source *decode.Source
	node   *yaml.Node
}

func (l *loader) file(name string) {
	abs, err := filepath.Abs(name)
	if err != nil {
		l.Unreadable(name, nil, nil, err)
		return
	}
	l.dir = filepath.Dir(abs)
	f, err := files.Open(abs)
	data, err := files.ReadOpened(f, err, decode.MaxTextBytes)
	if err != nil {
		l.Unreadable(filepath.ToSlash(name), nil, nil, err)
		return
	}
	l.source = decode.Parse(abs, filepath.ToSlash(name), data, &l.Findings)
	if l.source.Root == nil {
		return
	}
	d := decode.NewDecoder(l.source, &l.Findings)
	d.Into(l.source.Root, l.config)
	root := decode.Follow(l.source.Root)
	for _, b := range l.blocks() {
		for _, f := range b.fields {
			n := decode.Lookup(decode.Lookup(root, b.name), f.Name)
			if decode.IsNull(decode.Follow(n)) {
				continue
			}
			l.places[b.name+"."+f.Name] = place{source: l.source, node: n}
			if f.isPath() {
				l.relative(b.value.FieldByIndex(f.Index))
			}
		}
	}
}

// diagnostics returns the findings. A key that is not known is an error: what it was
// meant to forbid would be allowed.
func (l *loader) diagnostics() decode.Diagnostics {
	ds := l.Diagnostics()
	for i := range ds {
		d := &ds[i]
		if d.Code == decode.CodeUnknownKey {
			d.Severity = decode.Error
		}
		if d.Code == decode.CodeInvalidValue && d.Suggestion == "" {
			d.Suggestion = l.durationAt(*d)
		}
	}
	return ds
}
