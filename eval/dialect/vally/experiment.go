package vally

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// Limits of an experiment.
const (
	maxVariants    = 200
	maxEvals       = 500
	maxEvalFolders = 5000
)

// isExperiment reports whether a file has evals that differ between variants, see the page
// reference/experiment-file of Vally's documentation.
func isExperiment(root *yaml.Node) bool {
	evals := decode.Follow(decode.Lookup(root, "evals"))
	return (dialect.TextOf(evals) != "" || slices.ContainsFunc(dialect.Items(evals), decode.IsText)) &&
		(decode.Lookup(root, "variants") != nil || decode.Lookup(root, "matrix") != nil) &&
		decode.Lookup(root, "stimuli") == nil && decode.Lookup(root, "tasks") == nil
}

// experiment translates an experiment. Each stimulus of an eval becomes a task per variant, which only the
// cell of that variant does.
type experiment struct {
	*translator
	variants []*variant
	vary     []string // JSON pointers; nil for a matrix, whose axes are all that differs
}

// A variant is an arm of an experiment.
type variant struct {
	name      string
	at        *yaml.Node
	dir       string      // that paths of the environment are relative to
	overrides dialect.Map // run settings
	env       dialect.Map // environment, whose keys replace those of the evals
}

var (
	experimentKeys = []string{
		"name", "description", "version", "evals", "vary", "baseline", "variants", "matrix", "overrides", "execution", "metadata", "$schema",
	}
	variantKeys = []string{"overrides", "environment", "description"}
)

func translateExperiment(t *dialect.Translation) {
	e := &experiment{translator: newTranslator(t, &arms{})}
	e.translateHead()
	if !t.HeadOnly {
		e.translateEvals()
	}
	e.finish(nil)
}

// translateEvals fills in the tasks and the cells.
func (e *experiment) translateEvals() {
	e.warnUnknown(e.root, experimentKeys, "an experiment")
	e.readVariants()
	e.setWorkers()
	evals := e.findEvals()
	if e.Errors() > 0 {
		e.Params.Partial = true
		return
	}
	names := map[string]bool{}
	for _, src := range evals {
		prefix := ""
		if name := e.evalName(src, names); len(evals) > 1 {
			prefix = name + "/"
		}
		e.checkDrift(src)
		e.translateEval(src, prefix)
	}
	e.arms.setConfig(e.config)
}

// translateEval adds the tasks of an eval: each stimulus in all variants, then the next one.
func (e *experiment) translateEval(src *decode.Source, prefix string) {
	var columns [][]*yaml.Node
	for _, v := range e.variants {
		tr := newTranslator(&dialect.Translation{Findings: e.Findings, Source: src, Files: e.Files, Params: e.Params}, e.arms)
		tr.variant, tr.prefix = v, prefix
		tr.readVariant()
		list := tr.tasks()
		if list == nil {
			e.Params.Partial = true
			return
		}
		columns = append(columns, list.Content)
	}
	for i := range columns[0] {
		for _, column := range columns {
			e.Tasks = append(e.Tasks, dialect.Task{Source: src, Node: column[i]})
		}
	}
}

// setWorkers translates the number of trials that run at once.
func (e *experiment) setWorkers() {
	execution := decode.Follow(decode.Lookup(e.root, "execution"))
	if n := decode.Follow(decode.Lookup(execution, "workers")); n != nil && !decode.IsNull(n) {
		e.config.Set("parallel", dialect.Scalar(n, true))
		e.config.Set("workers", n)
	}
	e.warnUnknown(execution, []string{"workers"}, "execution")
}

// evalName returns the name of an eval, which is unique in the experiment.
func (e *experiment) evalName(src *decode.Source, taken map[string]bool) string {
	name := (&translator{Translation: &dialect.Translation{Source: src}, root: withParameters(e.Params, src.Root)}).nameOf()
	for taken[name] {
		name += "'"
	}
	taken[name] = true
	return name
}

// readVariants reads the variants, the baseline first.
func (e *experiment) readVariants() {
	shared := decode.Follow(decode.Lookup(e.root, "overrides"))
	e.checkOverrides(shared)
	list, axes := decode.Follow(decode.Lookup(e.root, "variants")), decode.Follow(decode.Lookup(e.root, "matrix"))
	vary := decode.Follow(decode.Lookup(e.root, "vary"))
	switch {
	case list != nil && axes != nil:
		e.fault(axes, "an experiment has either variants or matrix, not both")
		return
	case list != nil:
		e.readNamed(list)
		if e.vary = valuesOf(vary); len(e.vary) == 0 {
			e.fault(vary, "vary must list the JSON Pointers of the values that differ between variants, such as /defaults/model")
		}
	default:
		e.readAxes(axes)
		if vary != nil {
			e.fault(vary, "vary is for variants; a matrix varies the paths of its axes")
		}
	}
	for _, v := range e.variants {
		for _, p := range dialect.Pairs(shared) {
			if v.overrides.Get(p.Key.Value) == nil {
				v.overrides.Set(p.Key.Value, p.Value)
			}
		}
	}
	if len(e.variants) < 2 && e.Errors() == 0 {
		e.fault(firstOf(list, axes), "an experiment needs at least two variants, got %d", len(e.variants))
	}
	e.moveBaseline(axes)
}

// firstOf returns the first of two nodes that exists.
func firstOf(a, b *yaml.Node) *yaml.Node {
	if a != nil {
		return a
	}
	return b
}

// add adds a variant, within the limit.
func (e *experiment) add(v *variant) bool {
	if len(e.variants) == maxVariants {
		e.Reportf(e.Source, v.at, decode.Error, decode.CodeTooLarge, "the experiment has more than %d variants", maxVariants)
		return false
	}
	v.dir = filepath.Dir(e.Source.Path)
	e.variants = append(e.variants, v)
	return true
}

// readNamed reads variants with names.
func (e *experiment) readNamed(list *yaml.Node) {
	if list.Kind != yaml.MappingNode {
		e.fault(list, "variants must be a map of names and overrides, got %s", describe(list))
	}
	for _, p := range dialect.Pairs(list) {
		v := &variant{name: p.Key.Value, at: p.Key, overrides: dialect.NewMap(p.Key), env: dialect.NewMap(p.Key)}
		if strings.TrimSpace(v.name) == "" {
			e.fault(p.Key, "a variant must have a name")
		}
		if p.Value != nil && p.Value.Kind != yaml.MappingNode && !decode.IsNull(p.Value) {
			e.fault(p.Value, "a variant must be a map with overrides and environment, got %s", describe(p.Value))
		}
		for _, part := range dialect.Pairs(p.Value) {
			switch {
			case !slices.Contains(variantKeys, part.Key.Value):
				e.fault(part.Key, "unknown key %q in a variant; its keys are %s", text.Clip(part.Key.Value, 60), strings.Join(variantKeys, ", "))
			case part.Key.Value == "description" || decode.IsNull(part.Value):
			case part.Value.Kind != yaml.MappingNode:
				e.fault(part.Value, "%s of a variant must be a map, got %s", part.Key.Value, describe(part.Value))
			case part.Key.Value == "overrides":
				e.checkOverrides(part.Value)
				v.overrides = dialect.Map{Node: e.copied(part.Value)}
			default:
				v.env = dialect.Map{Node: e.copied(part.Value)}
			}
		}
		if !e.add(v) {
			return
		}
	}
}

// copied returns a copy without aliases, which is empty after it reported that they are too large.
func (e *experiment) copied(n *yaml.Node) *yaml.Node {
	c, err := dialect.Copy(n)
	if err != nil {
		e.fault(n, "%v", err)
		return dialect.NewMap(n).Node
	}
	return c
}

// checkOverrides reports run settings that waza does not know.
func (e *experiment) checkOverrides(n *yaml.Node) {
	if n != nil && n.Kind != yaml.MappingNode && !decode.IsNull(n) {
		e.fault(n, "overrides must be a map of run settings, got %s", describe(n))
	}
	for _, p := range dialect.Pairs(n) {
		e.checkSetting(p.Key, p.Key.Value, p.Value)
	}
}

func (e *experiment) checkSetting(at *yaml.Node, key string, value *yaml.Node) {
	switch {
	case !slices.Contains(settingKeys, key):
		e.fault(at, "waza does not know the run setting %q; it knows %s", text.Clip(key, 60), strings.Join(settingKeys, ", "))
	case value == nil || decode.IsNull(value):
	case key == "timeout":
		if _, err := durationOf(value); err != nil {
			e.fault(value, "timeout %v", err)
		}
	case key == "runs":
		if runs, ok := decode.FloatOf(value); !ok || runs != float64(int(runs)) || runs < 1 {
			e.fault(value, "runs must be a number from 1 on, got %s", describe(value))
		}
	case key != "executor" && value.Kind != yaml.ScalarNode:
		e.fault(value, "%s must be a text, got %s", key, describe(value))
	}
}

// An axisValue is a value of an axis with its label.
type axisValue struct {
	label string
	node  *yaml.Node
}

// readAxes reads a matrix: the variants are all combinations of the values of its axes.
func (e *experiment) readAxes(axes *yaml.Node) {
	if axes.Kind != yaml.MappingNode || len(axes.Content) == 0 {
		e.fault(axes, "matrix must be a map of axes, got %s", describe(axes))
		return
	}
	e.variants = []*variant{{at: axes, overrides: dialect.NewMap(axes), env: dialect.NewMap(axes)}}
	for _, p := range dialect.Pairs(axes) {
		pointer, values := e.axis(p)
		before := e.variants
		e.variants = nil
		for _, v := range before {
			for _, value := range values {
				next := &variant{at: value.node, overrides: dialect.Map{Node: e.copied(v.overrides.Node)}, env: dialect.Map{Node: e.copied(v.env.Node)}}
				next.name = strings.TrimPrefix(v.name+","+p.Key.Value+"="+value.label, ",")
				e.setAt(next, pointer, value.node)
				if !e.add(next) {
					return
				}
			}
		}
	}
}

// axis reads an axis: the keys of its path, and its values. A value is a scalar, or a map from its label.
func (e *experiment) axis(p decode.Pair) (pointer []string, values []axisValue) {
	for _, part := range dialect.Pairs(p.Value) {
		if !slices.Contains([]string{"path", "values", "description"}, part.Key.Value) {
			e.fault(part.Key, "unknown key %q in an axis; its keys are path and values", text.Clip(part.Key.Value, 60))
		}
	}
	at := decode.Follow(decode.Lookup(p.Value, "path"))
	pointer = keysOf(dialect.TextOf(at))
	switch {
	case len(pointer) == 2 && pointer[0] == "defaults":
	case len(pointer) > 1 && len(pointer) < 4 && pointer[0] == "environment":
	default:
		e.fault(firstOf(at, p.Key), "the path of the axis %q must be /defaults/KEY, /environment/KEY or /environment/KEY/NAME, got %s",
			text.Clip(p.Key.Value, 60), describe(at))
		return nil, nil
	}
	list := decode.Follow(decode.Lookup(p.Value, "values"))
	labels := map[string]bool{}
	for _, n := range dialect.Items(list) {
		v := axisValue{dialect.TextOf(n), n}
		if pairs := dialect.Pairs(n); len(pairs) == 1 {
			v = axisValue{pairs[0].Key.Value, pairs[0].Value}
		}
		switch {
		case v.label == "" || v.node == nil:
			e.fault(n, "a value of the axis %q must be a text, or a map from a label to the value, got %s", text.Clip(p.Key.Value, 60), describe(n))
			continue
		case labels[v.label]:
			e.fault(n, "the axis %q has the value %q twice", text.Clip(p.Key.Value, 60), text.Clip(v.label, 60))
			continue
		case pointer[0] == "defaults":
			e.checkSetting(n, pointer[1], v.node)
		}
		labels[v.label] = true
		values = append(values, v)
	}
	if len(values) == 0 {
		e.fault(firstOf(list, p.Key), "the axis %q has no values", text.Clip(p.Key.Value, 60))
	}
	return pointer, values
}

// setAt sets the value at the path of an axis.
func (e *experiment) setAt(v *variant, pointer []string, value *yaml.Node) {
	value = e.copied(value)
	switch {
	case len(pointer) < 2:
	case pointer[0] == "defaults":
		v.overrides.Set(pointer[1], value)
	case len(pointer) == 2:
		v.env.Set(pointer[1], value)
	default:
		inner := dialect.Map{Node: v.env.Get(pointer[1])}
		if inner.Node == nil {
			inner = dialect.NewMap(value)
			v.env.Set(pointer[1], inner.Node)
		}
		inner.Set(pointer[2], value)
	}
}

// keysOf returns the keys of a JSON Pointer; nil for other texts.
func keysOf(pointer string) []string {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil
	}
	keys := strings.Split(rest, "/")
	for i, key := range keys {
		keys[i] = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
	}
	return keys
}

// moveBaseline moves the baseline to the front, because comparisons are with the first cell.
func (e *experiment) moveBaseline(axes *yaml.Node) {
	n := decode.Follow(decode.Lookup(e.root, "baseline"))
	name := dialect.TextOf(n)
	if axes != nil {
		var parts []string
		for _, p := range dialect.Pairs(axes) {
			parts = append(parts, p.Key.Value+"="+dialect.TextOf(decode.Lookup(n, p.Key.Value)))
		}
		name = strings.Join(parts, ",")
	}
	i := slices.IndexFunc(e.variants, func(v *variant) bool { return v.name == name })
	switch {
	case i >= 0:
		base := e.variants[i]
		e.variants = slices.Insert(slices.Delete(e.variants, i, i+1), 0, base)
	case e.Errors() == 0:
		e.fault(firstOf(n, e.root), "baseline must be the name of a variant, or of a matrix a map from each axis to a value, got %s", describe(n))
	}
}

// findEvals reads the evals that the experiment names.
func (e *experiment) findEvals() (found []*decode.Source) {
	list := decode.Follow(decode.Lookup(e.root, "evals"))
	items := dialect.Items(list)
	if dialect.TextOf(list) != "" {
		items = []*yaml.Node{list}
	}
	seen := map[string]bool{}
	for _, n := range items {
		name := dialect.TextOf(n)
		if name == "" {
			e.fault(n, "evals must be a list of paths, got %s", describe(n))
			continue
		}
		before := len(found)
		for _, file := range e.filesOf(n, name) {
			if seen[file] {
				continue
			}
			seen[file] = true
			if src := e.readEval(n, file, hasGlob(name)); src != nil {
				found = append(found, src)
			}
			if len(found) > maxEvals {
				e.Reportf(e.Source, n, decode.Error, decode.CodeTooLarge, "the experiment has more than %d evals", maxEvals)
				return nil
			}
		}
		if len(found) == before && hasGlob(name) {
			e.Reportf(e.Source, n, decode.Warning, decode.CodeNoEffect, "no eval of Vally matches %q", text.Clip(name, 100))
		}
	}
	if len(found) == 0 && e.Errors() == 0 {
		e.Reportf(e.Source, list, decode.Error, decode.CodeMissingFile, "the experiment has no evals")
	}
	return found
}

func hasGlob(name string) bool { return strings.ContainsAny(name, "*?[{") }

// filesOf returns the absolute paths of the files that an item of evals names.
func (e *experiment) filesOf(at *yaml.Node, name string) []string {
	dir := filepath.Dir(e.Source.Path)
	if !hasGlob(name) {
		return []string{filepath.Join(dir, filepath.FromSlash(name))}
	}
	glob := path.Clean(name)
	if path.IsAbs(glob) || !doublestar.ValidatePattern(glob) || strings.Count(glob, "{")+strings.Count(glob, ",") > maxAlternatives {
		e.fault(at, "evals must be paths and globs relative to the experiment, got %s", describe(at))
		return nil
	}
	base, rest := doublestar.SplitPattern(glob)
	s := &evalSearch{experiment: e, glob: rest}
	s.search(filepath.Join(dir, filepath.FromSlash(base)), "")
	if s.folders > maxEvalFolders {
		e.Reportf(e.Source, at, decode.Error, decode.CodeTooLarge, "%q searches more than %d folders", text.Clip(name, 100), maxEvalFolders)
	}
	return s.found
}

// evalSearch finds the files below a folder that match a glob.
type evalSearch struct {
	*experiment
	glob    string
	folders int
	found   []string
}

func (s *evalSearch) search(dir, rel string) {
	if s.folders++; s.folders > maxEvalFolders {
		return
	}
	entries, _ := s.Files.List(dir) // a folder that cannot be read has no evals
	for _, entry := range entries {
		name := path.Join(rel, entry.Name())
		switch {
		case entry.IsDir():
			if entry.Name() != "node_modules" && entry.Name() != ".git" {
				s.search(filepath.Join(dir, entry.Name()), name)
			}
		case doublestar.MatchUnvalidated(s.glob, name):
			s.found = append(s.found, filepath.Join(dir, entry.Name()))
		}
	}
}

// readEval reads an eval; nil for other files, which a glob can match.
func (e *experiment) readEval(at *yaml.Node, file string, globbed bool) *decode.Source {
	data, err := e.Files.Read(file, decode.MaxTextBytes)
	if err != nil {
		e.Unreadable(e.Files.Shown(file), e.Source, at, err)
		return nil
	}
	src := e.Files.Parse(file, data)
	if src == nil || src.Root == nil {
		return nil
	}
	if isSuite(decode.Follow(src.Root)) {
		return src
	}
	if !globbed {
		e.fault(at, "%s is no eval of Vally: it has no stimuli", e.Files.Shown(file))
	}
	return nil
}

// checkDrift reports values of an eval that differ between variants although vary does not list them.
func (e *experiment) checkDrift(src *decode.Source) {
	if e.vary == nil {
		return
	}
	base := e.resolved(src, e.variants[0])
	for _, v := range e.variants[1:] {
		var differing []string
		diff(base, e.resolved(src, v), "", &differing)
		for _, pointer := range differing {
			if !slices.ContainsFunc(e.vary, func(allowed string) bool {
				allowed = strings.TrimSuffix(allowed, "/")
				return pointer == allowed || strings.HasPrefix(pointer, allowed+"/")
			}) {
				e.fault(v.at, "the variant %q differs from %q in %s, which vary does not list", text.Clip(v.name, 60),
					text.Clip(e.variants[0].name, 60), text.Clip(pointer, 100))
			}
		}
	}
}

// resolved returns the settings and the environment of an eval in a variant.
func (e *experiment) resolved(src *decode.Source, v *variant) *yaml.Node {
	root := decode.Follow(src.Root)
	defaults := dialect.NewMap(nil)
	for _, n := range []*yaml.Node{v.overrides.Node, decode.Lookup(root, "defaults"), decode.Lookup(root, "config")} {
		for _, p := range dialect.Pairs(n) {
			if defaults.Get(p.Key.Value) == nil {
				defaults.Set(p.Key.Value, p.Value)
			}
		}
	}
	all := dialect.NewMap(nil)
	all.Set("defaults", defaults.Node)
	all.Set("environment", merged(v.env.Node, decode.Follow(decode.Lookup(root, "environment"))))
	return all.Node
}

// merged returns a map with the keys of two maps, those of the first with priority. Maps in both are
// merged, too.
func merged(first, second *yaml.Node) *yaml.Node {
	m := dialect.NewMap(nil)
	for _, p := range dialect.Pairs(first) {
		value := p.Value
		if other := decode.Follow(decode.Lookup(second, p.Key.Value)); len(dialect.Pairs(value)) > 0 && len(dialect.Pairs(other)) > 0 {
			value = merged(value, other)
		}
		m.Set(p.Key.Value, value)
	}
	for _, p := range dialect.Pairs(second) {
		if m.Get(p.Key.Value) == nil {
			m.Set(p.Key.Value, p.Value)
		}
	}
	return m.Node
}

// diff appends the JSON Pointers of the values in which two nodes differ.
func diff(a, b *yaml.Node, at string, found *[]string) {
	a, b = decode.Follow(a), decode.Follow(b)
	switch {
	case a == nil && b == nil:
	case a == nil || b == nil || a.Kind != b.Kind || a.Kind != yaml.MappingNode && len(a.Content) != len(b.Content):
		*found = append(*found, at)
	case a.Kind == yaml.ScalarNode:
		if a.Value != b.Value {
			*found = append(*found, at)
		}
	case a.Kind == yaml.MappingNode:
		for _, p := range dialect.Pairs(a) {
			diff(p.Value, decode.Lookup(b, p.Key.Value), at+"/"+escaped(p.Key.Value), found)
		}
		for _, p := range dialect.Pairs(b) {
			if decode.Lookup(a, p.Key.Value) == nil {
				*found = append(*found, at+"/"+escaped(p.Key.Value))
			}
		}
	default:
		for i := range a.Content {
			before := len(*found)
			if diff(a.Content[i], b.Content[i], at, found); len(*found) > before {
				*found = append((*found)[:before], at) // one pointer for the list
				return
			}
		}
	}
}

// escaped returns a key as a JSON Pointer has it.
func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// readVariant reads the settings and the environment of an eval in its variant.
func (tr *translator) readVariant() {
	own := tr.readSettings()
	overrides := tr.placed(tr.variant.overrides.Node)
	tr.settings = runSettings{nodes: append([]*yaml.Node{overrides}, own.nodes...)}
	tr.setConfig()
}

// environment returns the environment of the variant for this eval; nil without one.
func (tr *translator) environment() *yaml.Node {
	if tr.variant == nil || tr.variant.env.Len() == 0 {
		return nil
	}
	return tr.placed(tr.variant.env.Node)
}

var evalVariable = text.Pattern(`\$\{eval\.[^}]*\}`)

// placed returns a copy of a part of the experiment for this eval: at its place, and with the values of
// ${eval.name}, ${eval.parent} and ${eval.grandparent}.
func (tr *translator) placed(n *yaml.Node) *yaml.Node {
	c := *n
	c.Line, c.Column, c.Content = tr.root.Line, tr.root.Column, nil
	if c.Kind == yaml.ScalarNode {
		dir := filepath.Dir(tr.Source.Path)
		c.Value = evalVariable().ReplaceAllStringFunc(c.Value, func(ref string) string {
			switch ref {
			case "${eval.name}":
				return tr.nameOf()
			case "${eval.parent}":
				return filepath.Base(dir)
			case "${eval.grandparent}":
				return filepath.Base(filepath.Dir(dir))
			}
			tr.fault(tr.root, "the experiment uses %s; waza knows ${eval.name}, ${eval.parent} and ${eval.grandparent}", text.Clip(ref, 60))
			return ref
		})
	}
	for _, child := range n.Content {
		c.Content = append(c.Content, tr.placed(child))
	}
	return &c
}

// addTaskSettings gives a task of an experiment the settings of its eval in its variant, which are those of
// the suite otherwise.
func (s *stimulus) addTaskSettings() {
	if s.variant == nil {
		return
	}
	s.task.Set("trials", s.config.Get("trials_per_task"))
	s.task.Set("timeout_seconds", s.config.Get("timeout_seconds"))
	s.task.Set("score_threshold", s.suite.Get("score_threshold"))
}
