package eval

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// graderLoader loads the graders of the suite and of its tasks.
type graderLoader struct{ *loader }

// load checks the graders of the suite (task nil) or of a task, and returns
// those that could be made sense of.
func (l graderLoader) load(list []*Grader, task *Task) []*Grader {
	names := map[string]bool{}
	if task != nil {
		// A grader without a name must not replace one of the suite's by chance.
		for _, g := range l.suite.Graders {
			names[g.Name] = true
		}
	}
	own := map[string]int{} // name → line
	list = slices.DeleteFunc(list, func(g *Grader) bool { return g.node == nil })
	for _, g := range list {
		if g.Name != "" {
			l.sameName(g, own)
			names[g.Name] = true
		}
	}
	var out []*Grader
	for _, g := range list {
		if g.Name == "" && g.Type != "" {
			g.Name = uniqueName(g.Type, names)
			names[g.Name] = true
		}
		if l.grader(g, task) {
			out = append(out, g)
		}
	}
	return out
}

// sameName renames a grader whose name another of its list has.
func (l graderLoader) sameName(g *Grader, own map[string]int) {
	line, twice := own[g.Name]
	if !twice {
		own[g.Name] = g.Line
		return
	}
	old := g.Name
	for n := 2; own[g.Name] != 0; n++ {
		g.Name = fmt.Sprintf("%s_%d", old, n)
	}
	own[g.Name] = g.Line
	l.Reportf(g.src, decode.Place(g.node, "name"), decode.Warning, decode.CodeDuplicateGrader,
		"another grader is named %q, in line %d; this one is reported as %q", text.Clip(old, 60), line, text.Clip(g.Name, 60))
}

func uniqueName(base string, taken map[string]bool) string {
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// grader resolves a grader's type, decodes its options and lets its kind check
// them. It returns false when the grader cannot be used.
func (l graderLoader) grader(g *Grader, task *Task) bool {
	label := "grader"
	if g.Name != "" {
		label = fmt.Sprintf("grader %q", text.Clip(g.Name, 60))
	}
	d := l.decoder(g.src)
	d.Label = label + ": "
	if g.Type == "" {
		l.missingType(g, d)
		return false
	}
	if w := decode.Lookup(g.node, "weight"); w != nil && g.Weight <= 0 && !decode.IsNull(w) {
		d.Report(w, decode.Warning, decode.CodeNoEffect, "", "a weight of %s counts as 1", text.Clip(w.Value, 20))
	}
	if g.Weight <= 0 {
		g.Weight = 1
	}
	v := l.options.Vocabulary
	if v == nil {
		g.gather(d, func(string) bool { return true })
		return true
	}
	kind, ok := v.Grader(g.Type)
	if !ok {
		d.Report(decode.Place(g.node, "type"), decode.Error, decode.CodeUnknownGrader, nearestKind(g.Type, v.Graders),
			"unknown type %q; the known ones are %s", text.Clip(g.Type, 60), strings.Join(kindNames(v.Graders), ", "))
		return false
	}
	if g.Type != kind.Name {
		g.TypeAlias, g.Type = g.Type, kind.Name
	}
	if kind.Options != nil {
		g.Options = kind.Options()
	}
	g.gather(d, func(key string) bool { return decode.TakesKey(g.Options, key) })
	l.decodeOptions(g, kind, d)
	if o, ok := g.Options.(interface{ declaredIn(dir string) }); ok {
		o.declaredIn(l.beside(task))
	}
	if kind.Check != nil && !d.Failed {
		kind.Check(&Check{loader: l.loader, src: g.src, options: g.config, decl: g.node, label: label, task: task}, g.Options)
	}
	return true
}

func (l graderLoader) missingType(g *Grader, d *decode.Decoder) {
	if ref := decode.Lookup(g.node, "ref"); ref != nil {
		d.Report(ref, decode.Error, decode.CodeUnknownGrader, "", "graders from another repository (ref) are not supported; write the grader itself")
		return
	}
	message := "type is missing"
	if v := l.options.Vocabulary; v != nil {
		message += "; the known ones are " + strings.Join(kindNames(v.Graders), ", ")
	}
	d.Report(g.node, decode.Error, decode.CodeMissingField, "", "%s", message)
}

// gather makes one map of the options of all the places they may stand in:
// config, and beside it assertions, rubric and, in flat graders, any option that
// the kind takes. What stands in config wins.
func (g *Grader) gather(d *decode.Decoder, takes func(key string) bool) {
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: g.node.Line, Column: g.node.Column}
	have := map[string]bool{}
	add := func(p decode.Pair) {
		have[p.Key.Value] = true
		all.Content = append(all.Content, p.Key, p.Value)
	}
	if g.config != nil {
		g.configPairs(d, all, add)
	}
	for _, p := range g.flat {
		switch key := p.Key.Value; {
		case key == "ref":
			d.Report(p.Key, decode.Error, decode.CodeUnknownGrader, "", "graders from another repository (ref) are not supported; write the grader itself")
		case !takes(key) && key != "assertions":
			d.UnknownKey(p.Key, reflect.TypeFor[Grader](), append(decode.Keys(g.Options), "config", "assertions"))
		case have[key]:
			d.Report(p.Key, decode.Warning, decode.CodeNoEffect, "", "%s has no effect beside config.%s", key, key)
		default:
			add(p)
		}
	}
	if k, v := decode.LookupPair(g.node, "rubric"); k != nil && !have["rubric"] && !decode.IsNull(v) {
		if takes("rubric") {
			add(decode.Pair{Key: k, Value: v})
		} else {
			d.Report(k, decode.Warning, decode.CodeNoEffect, "", "graders of type %s take no rubric", g.Type)
		}
	}
	g.config = all
	g.Config, _ = d.Any(all).(map[string]any)
}

func (g *Grader) configPairs(d *decode.Decoder, all *yaml.Node, add func(decode.Pair)) {
	config, alias, ok := d.Enter(g.config)
	if !ok {
		return
	}
	defer d.Leave(alias)
	if decode.IsNull(config) {
		return
	}
	if config.Kind != yaml.MappingNode {
		d.Report(config, decode.Error, decode.CodeWrongType, "", "config must be a map, not %s", decode.Describe(config))
		return
	}
	all.Line, all.Column = config.Line, config.Column
	for _, p := range d.Pairs(config) {
		add(p)
	}
}

// decodeOptions decodes the gathered options into what the kind gave for them.
func (l graderLoader) decodeOptions(g *Grader, kind Kind, d *decode.Decoder) {
	d.UnknownCode = decode.CodeUnknownOption
	if g.Options == nil {
		for i := 0; i+1 < len(g.config.Content); i += 2 {
			d.Report(g.config.Content[i], decode.Warning, decode.CodeUnknownOption, "", "graders of type %s take no options", kind.Name)
		}
		return
	}
	d.Into(g.config, g.Options)
	if g.Rubric == "" {
		if text, ok := g.Config["rubric"].(string); ok {
			g.Rubric = text
		}
	}
}

// Diagnose makes a finding about a place in the grader's options, located as
// [Check] locates it, for faults that are found only when the suite is about to
// run. Path elements are keys and indexes.
func (g *Grader) Diagnose(path decode.Path, severity decode.Severity, code decode.Code, message string) decode.Diagnostic {
	if g.src == nil {
		return decode.Diagnostic{File: g.File, Line: g.Line, Column: g.Column, Severity: severity, Code: code, Message: message}
	}
	c := Check{src: g.src, options: g.config, decl: g.node}
	return g.src.Diagnostic(c.locate(path), severity, code, fmt.Sprintf("grader %q: %s", text.Clip(g.Name, 60), message))
}

// effective joins the suite's graders with a task's: those that the task names
// anew stand in their place.
func effective(suite, own []*Grader) []*Grader {
	if len(own) == 0 {
		return suite
	}
	byName := make(map[string]*Grader, len(own))
	for _, g := range own {
		byName[g.Name] = g
	}
	out := make([]*Grader, 0, len(suite)+len(own))
	for _, g := range suite {
		if r := byName[g.Name]; r != nil {
			g = r
			delete(byName, g.Name)
		}
		out = append(out, g)
	}
	for _, g := range own {
		if byName[g.Name] == g {
			out = append(out, g)
		}
	}
	return out
}
