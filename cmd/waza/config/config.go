// Package config reads the configuration of `waza serve`. Environment variables override the
// YAML file, and flags override both. Call [Load]; problems are returned as findings with their
// positions, as for suites. A [Config] without findings of severity [decode.Error] can be
// served.
package config

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/rpc/gateway/agents"
	"waza/rpc/gateway/browser"
	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/router"
	"waza/runner/provider"
)

// Config is the file of `waza serve --config FILE`. Omitted keys have their defaults. A new door
// needs a block here, and a line in [Default] and [Config.Doors].
type Config struct {
	// Evaluation agents connect here by WebSocket and execute the trials of suites with
	// `executor: remote`.
	Agents agents.Config `yaml:"agents"`
	// The dashboard at `/`; JSON-RPC by WebSocket at `/rpc`, and by HTTP `/healthz`, `/readyz`
	// and `/metrics`. A client of `/rpc` can run any program, so it always presents a token.
	Jobs jobs.Config `yaml:"jobs"`
	// Browser extensions connect here by WebSocket, at `/ws`. They send commands to assistants
	// and run the tools that the model of `model` calls.
	Browser browser.Config `yaml:"browser"`
	// Clients of the message router connect here by WebSocket. Only this machine can reach the
	// door, because a registered client receives messages of the user.
	Router router.Config `yaml:"router"`
	// The model that the doors use.
	Model Model `yaml:"model"`

	// Keys maps the client ids of evaluation agents to their keys, from agents.keys_file. They
	// must not be logged.
	Keys map[string]string `yaml:"-"`
	// Key is the key of agents without a key of their own; empty for none.
	Key string `yaml:"-"`
}

// Model selects the model that the doors use.
type Model struct {
	// The API of the model.
	Executor string `yaml:"executor" jsonschema:"enum=openai,enum=anthropic"`
	// Name of the model in that API.
	Model             string `yaml:"model"`
	provider.Endpoint `yaml:",inline"`
}

//go:embed serve.schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of the file. The caller owns the slice.
func Schema() []byte { return slices.Clone(schema) }

// Default returns the configuration without any settings.
func Default() *Config {
	return &Config{
		Agents:  agents.Defaults(),
		Jobs:    jobs.Defaults(),
		Browser: browser.Defaults(),
		Router:  router.Defaults(),
	}
}

// Doors returns all doors, open or not.
func (c *Config) Doors() []Door {
	return []Door{
		{Name: "agents", Usage: "listen for evaluation agents at `ADDR`, or off", Config: &c.Agents.Config, Secret: c.agentSecret()},
		{
			Name:   "jobs",
			Usage:  "serve the dashboard, the job stream, JSON-RPC, health and metrics at `ADDR`, or off",
			Config: &c.Jobs.Config, Secret: "token",
		},
		{Name: "browser", Usage: "listen for browser assistants at `ADDR`, or off", Config: &c.Browser.Config, Path: "/ws", LocalOnly: true},
		{Name: "router", Usage: "listen for clients of the message router at `ADDR`, or off", Config: &c.Router.Config, LocalOnly: true},
	}
}

// Options lists the sources of a configuration.
type Options struct {
	// File is a YAML or JSON file; empty for none. Relative paths in it are relative to
	// its directory.
	File string
	// Dir is the directory of the caller; empty for none. Load warns about files there that
	// look like a configuration when File is empty. It reads none of them, because a directory
	// that a user enters must not decide which doors open.
	Dir string
	// Environ holds the environment variables, as os.Environ returns them. Variables that start
	// with WAZA_SERVE_ override the file.
	Environ []string
	// Flags override the environment.
	Flags []Setting
	// Key is the value of [Config.Key].
	Key string
}

// Setting is one value from outside the file.
type Setting struct {
	// From names the source in messages: --agents, or a variable.
	From string
	// Block and Key name the setting: agents and listen.
	Block, Key string
	// Value is the text of the setting; commas separate the items of a list.
	Value string
}

// Load reads the configuration. If the findings contain errors, the configuration is incomplete
// and must not be served.
func Load(o Options) (*Config, decode.Diagnostics) {
	l := &loader{config: Default(), places: map[string]place{}, environ: map[string]string{}}
	for _, e := range o.Environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			l.environ[name] = value
		}
	}
	l.config.Key = o.Key
	if o.File != "" {
		l.file(o.File)
	} else {
		l.unread(o.Dir)
	}
	l.environment()
	for _, s := range o.Flags {
		l.set(s)
	}
	if l.Errors() == 0 { // values that failed to decode would cause misleading findings
		l.check()
	}
	return l.config, l.diagnostics()
}

// loader reads one configuration. It is one type because each source and each check adds to the
// same values, their places and the findings.
type loader struct {
	decode.Findings
	config  *Config
	source  *decode.Source    // the file; nil without a file or when it cannot be parsed
	dir     string            // of the file; empty without one
	places  map[string]place  // sources of the values, by block.key
	environ map[string]string // environment variables by name
}

// place is the position that set a value.
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
	data, err := files.Read(abs, decode.MaxTextBytes)
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

// unread warns about files of a directory that the user might expect to be read.
func (l *loader) unread(dir string) {
	if dir == "" {
		return
	}
	for _, name := range []string{"serve.yaml", "serve.yml", "waza.yaml", "waza.yml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			l.Report(decode.Diagnostic{
				File: name, Severity: decode.Warning, Code: decode.CodeNoEffect,
				Message: "waza serve reads a configuration only with --config; to read this file, use --config " + name,
			})
		}
	}
}

// diagnostics returns the findings. An unknown key is an error, because waza would otherwise
// ignore a restriction that the key was meant to set.
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
