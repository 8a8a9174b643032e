package eval

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// graderLoader loads the graders of the suite and of its tasks.
type graderLoader struct{ *loader }

// load checks the graders of the suite (task nil) or of a task, and returns the usable ones.
func (l graderLoader) load(list []*Grader, task *Task) []*Grader {
	names := map[string]bool{}
	if task != nil {
		// A grader without a name must not accidentally replace one of the suite's graders.
		for _, g := range l.suite.Graders {
			names[g.Name] = true
		}
	}
	return l.loadNamed(list, task, names)
}

// loadNamed is like load, but gives no grader without a name one of the given names.
func (l graderLoader) loadNamed(list []*Grader, task *Task, names map[string]bool) []*Grader {
	return l.loadAmong(list, task, names, map[string]int{})
}

// loadAmong is like loadNamed for a list or a group in it. lines has the line of each name of the list.
func (l graderLoader) loadAmong(list []*Grader, task *Task, names map[string]bool, lines map[string]int) []*Grader {
	list = slices.DeleteFunc(list, func(g *Grader) bool { return g.node == nil })
	for _, g := range list {
		if g.Name != "" {
			l.renameDuplicate(g, lines)
			names[g.Name] = true
		}
	}
	var out []*Grader
	for _, g := range list {
		if g.Name == "" && g.Type != "" {
			g.Name = uniqueName(g.Type, names)
			names[g.Name] = true
		}
		if !l.loadGrader(g, task) {
			continue
		}
		if group, ok := g.Options.(*GroupOptions); ok {
			out = append(out, l.members(g, group, task, names, lines)...)
			continue
		}
		out = append(out, g)
	}
	return out
}

// renameDuplicate renames a grader if an earlier one of its list has the same name.
func (l graderLoader) renameDuplicate(g *Grader, own map[string]int) {
	line, twice := own[g.Name]
	if !twice {
		own[g.Name] = g.Line
		return
	}
	old, first := g.Name, ""
	for n := 2; twice; n++ {
		g.Name = fmt.Sprintf("%s_%d", old, n)
		_, twice = own[g.Name]
	}
	own[g.Name] = g.Line
	if line > 0 { // a translation can add graders that no line has
		first = fmt.Sprintf(", first used in line %d", line)
	}
	l.Reportf(g.src, decode.Place(g.node, "name"), decode.Warning, decode.CodeDuplicateGrader,
		"duplicate grader name %q%s; this grader is reported as %q", text.Clip(old, 60), first, text.Clip(g.Name, 60))
}

func uniqueName(base string, taken map[string]bool) string {
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// loadGrader resolves a grader's type, decodes its options and has its kind check them. It returns
// false when the grader cannot be used.
func (l graderLoader) loadGrader(g *Grader, task *Task) bool {
	label := "grader"
	if g.Name != "" {
		label = fmt.Sprintf("grader %q", text.Clip(g.Name, 60))
	}
	d := l.decoder(g.src)
	d.Label = label + ": "
	if g.Type == "" {
		l.reportMissingType(g, d)
		return false
	}
	if w := decode.Lookup(g.node, "weight"); w != nil && g.Weight <= 0 && !decode.IsNull(w) {
		d.Report(w, decode.Warning, decode.CodeNoEffect, "", "weight %s counts as 1, because it is not positive", text.Clip(w.Value, 20))
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
			"unknown type %q; known types: %s", text.Clip(g.Type, 60), strings.Join(kindNames(v.Graders), ", "))
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
	l.checkPaths(g, task)
	if o, ok := g.Options.(interface{ DeclaredIn(dir string) }); ok {
		o.DeclaredIn(l.beside(task))
	}
	if o, ok := g.Options.(interface{ UpdatesSnapshots() }); ok && l.options.UpdateSnapshots {
		o.UpdatesSnapshots()
	}
	if o, ok := g.Options.(interface{ SetPassReward(least float64) }); ok && l.options.PassReward != nil {
		o.SetPassReward(*l.options.PassReward)
	}
	if kind.Check != nil && !d.Failed {
		kind.Check(&Check{loader: l.loader, src: g.src, options: g.config, decl: g.node, label: label, task: task}, g.Options)
	}
	return true
}

func (l graderLoader) reportMissingType(g *Grader, d *decode.Decoder) {
	if ref := decode.Lookup(g.node, "ref"); ref != nil {
		d.Report(ref, decode.Error, decode.CodeUnknownGrader, "",
			"graders from another repository (ref) are not supported; write the grader itself")
		return
	}
	message := "type is missing"
	if v := l.options.Vocabulary; v != nil {
		message += "; known types: " + strings.Join(kindNames(v.Graders), ", ")
	}
	d.Report(g.node, decode.Error, decode.CodeMissingField, "", "%s", message)
}

// gather makes one map of the options from all places: config, assertions and rubric beside it
// and, in flat graders, any option that the kind takes. An option in config has priority.
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
			d.Report(p.Key, decode.Error, decode.CodeUnknownGrader, "",
				"graders from another repository (ref) are not supported; write the grader itself")
		case !takes(key) && key != "assertions":
			d.UnknownKey(p.Key, reflect.TypeFor[Grader](),
				append(slices.Clone(decode.FieldsIn(g.Options)), fields.Field{Name: "config"}, fields.Field{Name: "assertions"})...)
		case have[key]:
			d.Report(p.Key, decode.Warning, decode.CodeNoEffect, "", "%s has no effect because config.%s is set", key, key)
		default:
			add(p)
		}
	}
	if k, v := decode.LookupPair(g.node, "rubric"); k != nil && !have["rubric"] && !decode.IsNull(v) {
		if takes("rubric") {
			add(decode.Pair{Key: k, Value: v})
		} else {
			d.Report(k, decode.Warning, decode.CodeNoEffect, "", "graders of type %s have no option rubric", g.Type)
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
		d.Report(config, decode.Error, decode.CodeWrongType, "", "config must be a map, got %s", decode.Describe(config))
		return
	}
	all.Line, all.Column = config.Line, config.Column
	for _, p := range d.Pairs(config) {
		add(p)
	}
}

// decodeOptions decodes the gathered options into the value that the kind returned.
func (l graderLoader) decodeOptions(g *Grader, kind Kind, d *decode.Decoder) {
	d.UnknownCode = decode.CodeUnknownOption
	if g.Options == nil {
		for i := 0; i+1 < len(g.config.Content); i += 2 {
			d.Report(g.config.Content[i], decode.Warning, decode.CodeUnknownOption, "", "graders of type %s have no options", kind.Name)
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

// Diagnose returns a finding about a place in the grader's options, located as [Check] does it.
// It is for faults that are found only just before a run. Path elements are keys and indexes.
func (g *Grader) Diagnose(path decode.Path, severity decode.Severity, code decode.Code, message string) decode.Diagnostic {
	if g.src == nil {
		return decode.Diagnostic{File: g.File, Line: g.Line, Column: g.Column, Severity: severity, Code: code, Message: message}
	}
	c := Check{src: g.src, options: g.config, decl: g.node}
	return g.src.Diagnostic(c.locate(path), severity, code, fmt.Sprintf("grader %q: %s", text.Clip(g.Name, 60), message))
}

// effective joins the suite's graders with a task's. A grader or group of the task replaces the suite's
// grader or group of the same name, in its position.
func effective(suite, own []*Grader) []*Grader {
	if len(own) == 0 {
		return suite
	}
	byName := make(map[string][]*Grader, len(own))
	for _, g := range own {
		byName[g.unit()] = append(byName[g.unit()], g)
	}
	out := make([]*Grader, 0, len(suite)+len(own))
	placed := map[string]bool{}
	for _, g := range suite {
		switch replacing, name := byName[g.unit()], g.unit(); {
		case replacing == nil:
			out = append(out, g)
		case !placed[name]:
			placed[name] = true
			out = append(out, replacing...)
		}
	}
	for _, g := range own {
		if !placed[g.unit()] {
			out = append(out, g)
		}
	}
	return out
}

// unit returns the name of the grader's group or, outside of groups, of the grader: that of what counts
// in the verdict.
func (g *Grader) unit() string {
	if g.Group != nil {
		return g.Group.Name
	}
	return g.Name
}
