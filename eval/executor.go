package eval

import (
	"reflect"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// DecodeShape decodes the common keys. All others must be options of some executor;
// [executorLoader.load] decodes those.
func (c *Config) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	l := d.Context.(*loader)
	d.Structure(n, c, func(p decode.Pair) bool {
		v := l.options.Vocabulary
		if p.Key.Value == "baseline" {
			d.Into(p.Value, &l.suite.Baseline)
			return true
		}
		if v == nil {
			// Without a vocabulary any key may be an executor's, so only likely typing errors
			// are reported.
			return !decode.IsTypo(p.Key.Value, decode.Nearest(p.Key.Value, decode.Keys(c))) && withoutEffect[reflect.TypeOf(*c)][p.Key.Value] == ""
		}
		options := []fields.Field{{Name: "baseline"}}
		for _, k := range v.Executors {
			if k.Options != nil {
				o := k.Options()
				if decode.TakesKey(o, p.Key.Value) {
					return true
				}
				options = append(options, decode.FieldsIn(o)...)
			}
		}
		d.UnknownKey(p.Key, reflect.TypeOf(*c), options...)
		return true
	})
}

// executorLoader resolves executors and decodes their options.
type executorLoader struct{ *loader }

func (l *loader) executors() executorLoader { return executorLoader{l} }

// load resolves the suite's executor and decodes the options of all executors. It checks only
// the options of the executor in use, because a key can have a different meaning for another
// one.
func (l executorLoader) load() {
	s, v := l.suite, l.options.Vocabulary
	at := l.node()
	if l.options.Executor != "" {
		s.Config.Executor = l.options.Executor
	}
	if v == nil {
		return
	}
	if agent := l.defaultAgent(); agent != "" {
		l.options.Agent = agent
		for _, k := range v.Executors {
			if drives(k) {
				s.Config.Executor = k.Name
				break
			}
		}
	}
	used, ok := v.Executor(s.Config.Executor)
	switch _, chosen := l.matrix[ParamExecutor]; {
	case ok:
		s.Config.Executor = used.Name
	case s.Config.Executor == "" && !chosen: // a format without agents, see record.UnknownExecutorError
		l.Reportf(l.src, nil, decode.Info, decode.CodeMissingField,
			"the format names no agent; choose one with --agent or --executor, or set defaults.agent in .waza.yaml")
	case !chosen || l.options.Executor != "":
		l.reportUnknown(s.Config.Executor, l.src, at)
	}
	s.ExecutorOptions = map[string]any{}
	config := decode.Lookup(l.src.Root, "config")
	if l.options.Agent != "" {
		config = l.withAgent(config, used, at)
	}
	for _, k := range v.Executors {
		// With a matrix or cells, the options of its combinations are used instead.
		o := l.optionsOf(k, config, at, k.Name == used.Name && len(s.Config.Matrix)+len(s.Config.Cells) == 0)
		if k.Options != nil {
			s.ExecutorOptions[k.Name] = o
		}
	}
}

// optionsOf decodes the options of an executor and, if it is used, checks them.
func (l executorLoader) optionsOf(k Kind, config, decl *yaml.Node, used bool) any {
	check := &Check{loader: l.loader, src: l.src, options: config, decl: decl, label: "executor " + k.Name}
	if k.Options == nil {
		if used && k.Check != nil {
			k.Check(check, nil)
		}
		return nil
	}
	o := k.Options()
	d := l.decoder(l.src)
	d.Quiet, d.Label = !used, "executor "+k.Name+": "
	if n := decode.Follow(config); n != nil && n.Kind == yaml.MappingNode {
		d.Push("config")
		d.Structure(n, o, decode.Anything)
	}
	if used && k.Check != nil && !d.Failed {
		k.Check(check, o)
	}
	return o
}

// remote reports whether [Kind.Remote] executors can do trials of the suite, and whether others
// can. Without a vocabulary or an executor, both can.
func (l executorLoader) remote() (some, others bool) {
	if l.options.Vocabulary == nil || len(l.kinds()) == 0 {
		return true, true
	}
	for _, k := range l.kinds() {
		some, others = some || k.Remote, others || !k.Remote
	}
	return some, others
}

// kinds returns the known executors that do the suite's trials, each once.
func (l executorLoader) kinds() []Kind {
	var kinds []Kind
	for _, name := range l.names() {
		k, ok := l.options.Vocabulary.Executor(name)
		if ok && !slices.ContainsFunc(kinds, func(other Kind) bool { return other.Name == k.Name }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// withoutKind returns the names of the suite's executors if none of their kinds takes something,
// and the names of all kinds that do.
func (l executorLoader) withoutKind(takes func(Kind) bool) (names, takers string) {
	v, used := l.options.Vocabulary, l.names()
	if v == nil || l.options.Executor != "" { // trying another executor is not a fault
		return "", ""
	}
	for _, name := range used {
		if k, ok := v.Executor(name); !ok || takes(k) {
			return "", "" // unknown ones are reported elsewhere
		}
	}
	return text.Clip(strings.Join(used, ", "), 60), v.executors(takes, ", ")
}

// names returns the names of the executors that do the suite's trials.
func (l executorLoader) names() []string {
	if l.options.Executor != "" {
		return []string{l.options.Executor}
	}
	var names []string
	for _, p := range l.suite.Config.Matrix {
		if p.Name == ParamExecutor {
			for _, value := range p.Values {
				names = append(names, ParamText(value))
			}
		}
	}
	if names == nil {
		return []string{l.suite.Config.Executor}
	}
	return names
}

// agentKey is the option that chooses the agent of an executor.
const agentKey = "agent"

// withAgent returns config with the agent of the options. Findings about it have no place in the
// file, because it is not written there.
func (l executorLoader) withAgent(config *yaml.Node, used Kind, at *yaml.Node) *yaml.Node {
	if used.Name != "" && !drives(used) {
		l.Reportf(l.src, at, decode.Error, decode.CodeNoEffect, "executor %s drives no agent, so it cannot use agent "+
			"%q; executors that drive one: %s",
			used.Name, text.Clip(l.options.Agent, 60), l.options.Vocabulary.executors(drives, ", "))
	}
	return withKey(config, agentKey, l.agentNode())
}

func (l executorLoader) agentNode() *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: l.options.Agent}
}

// drives reports whether an executor drives an agent that the agent key chooses.
func drives(k Kind) bool { return k.Options != nil && decode.TakesKey(k.Options(), agentKey) }

// executors returns the names of the executors that have something, joined.
func (v *Vocabulary) executors(has func(Kind) bool, separator string) string {
	var names []string
	for _, k := range v.Executors {
		if has(k) {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, separator)
}

func (l executorLoader) node() *yaml.Node {
	return decode.Place(l.src.Root, "config", "executor")
}

func (l executorLoader) reportUnknown(name string, src *decode.Source, at *yaml.Node) {
	p := l.suite.Project
	config := decode.Lookup(l.src.Root, "config")
	fromProject := p != nil && p.Defaults.Engine != nil && l.options.Executor == "" && l.matrix[ParamExecutor].key == nil &&
		decode.Lookup(config, "executor") == nil && decode.Lookup(config, "engine") == nil
	if fromProject {
		src, at = p.Place("defaults", "engine")
	}
	known := kindNames(l.options.Vocabulary.Executors)
	d := src.Diagnostic(at, decode.Error, decode.CodeUnknownExecutor,
		"unknown executor \""+text.Clip(name, 60)+"\"; known executors: "+strings.Join(known, ", "))
	d.Suggestion = nearestKind(name, l.options.Vocabulary.Executors)
	l.Report(d)
}

func kindNames(kinds []Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

// nearestKind returns the most similar name or alias of a kind.
func nearestKind(name string, kinds []Kind) string {
	known := kindNames(kinds)
	for _, k := range kinds {
		known = append(known, k.Aliases...)
	}
	return decode.Nearest(name, known)
}

// DiagnoseExecutor returns a finding about the suite's executor, located where the suite names
// it. It is for faults that are found only just before a run.
func (s *Suite) DiagnoseExecutor(severity decode.Severity, code decode.Code, message string) decode.Diagnostic {
	return s.Diagnose(decode.At("config", "executor"), severity, code, message)
}

// Diagnose returns a finding about a place in the suite's file.
func (s *Suite) Diagnose(at decode.Path, severity decode.Severity, code decode.Code, message string) decode.Diagnostic {
	if s.src == nil {
		return decode.Diagnostic{File: s.File, Severity: severity, Code: code, Message: message}
	}
	return s.src.Diagnostic(decode.Place(s.src.Root, at...), severity, code, message)
}

// clientsOf returns the clients of the suite's executor; nil if it has none. They are not known
// with a matrix of executors, or without a vocabulary.
func (l executorLoader) clientsOf() (clients Addresser, known bool) {
	if _, several := l.matrix[ParamExecutor]; several || l.options.Vocabulary == nil || l.options.Executor != "" {
		return nil, false
	}
	clients, _ = l.suite.ExecutorOptions[l.suite.Config.Executor].(Addresser)
	return clients, true
}
