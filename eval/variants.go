package eval

import (
	"reflect"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/template"

	"gopkg.in/yaml.v3"
)

var configType = reflect.TypeFor[Config]()

// A Variant is a combination of the parameters of config.matrix.
type Variant struct {
	Params []Param // in the order of the suite
	// Name is the name of a cell of config.cells; empty if the cell has none.
	Name string
	// Model is the model of a cell of config.cells; empty if the run or the executor chooses it, and for the
	// combinations of a matrix.
	Model string
	// Executor is the canonical name of the executor that does the trials.
	Executor string
	// Options are the executor's options, including the parameters, of the type that
	// Kind.Options returns; nil for executors without options.
	Options any
}

// A Param is a parameter with its value in a combination: a text, a number or a boolean.
type Param struct {
	Name  string
	Value any
}

// ParamUse is how an executor uses a parameter of config.matrix that is not one of its options.
// In any case the parameter is also a template variable.
type ParamUse int

// The uses of parameters.
const (
	// ParamsInTexts uses a parameter as a template variable only.
	ParamsInTexts ParamUse = iota
	// ParamsInEnvironment sets an environment variable of the agent, see [EnvName].
	ParamsInEnvironment
	// ParamsInOption adds the parameter to the option params, a map, unless a text of the suite
	// uses it as a variable and the suite's params do not name it.
	ParamsInOption
)

// optionParams is the option of [ParamsInOption].
const optionParams = "params"

// combine fills in the combinations of the matrix. The last parameter changes fastest. It checks
// each combination like the options of a suite, and reports faults at the value in the matrix.
// The tasks must be complete.
func (l *matrixLoader) combine() {
	s := l.suite
	if len(s.Config.Matrix)+len(s.Config.Cells) == 0 || l.options.Vocabulary == nil {
		return
	}
	for _, p := range s.Config.Matrix {
		if slices.ContainsFunc(s.Tasks, func(t *Task) bool { _, clash := t.Vars[p.Name]; return clash }) && s.Inputs[p.Name] == "" {
			l.Reportf(l.src, l.matrix[p.Name].key, decode.Error, decode.CodeInvalidValue,
				"config.matrix: %q cannot be a parameter: it is also a column of the dataset", p.Name)
		}
	}
	l.used, l.effective = l.usedVariables(), map[string]bool{}
	if len(s.Config.Cells) > 0 {
		s.Variants = l.cellVariants()
	} else {
		for at := make([]int, len(s.Config.Matrix)); at != nil; at = next(at, s.Config.Matrix) {
			s.Variants = append(s.Variants, l.variant(s.Config.Matrix, at, nil))
		}
	}
	for _, p := range s.Config.Matrix {
		if !l.effective[p.Name] && p.Name != ParamAgent {
			l.Reportf(l.src, l.matrix[p.Name].key, decode.Warning, decode.CodeNoEffect, "config.matrix: parameter %q has no "+
				"effect: executor %s does not use it, and no text of the suite contains {{%s}}",
				p.Name, s.Variants[0].Executor, p.Name)
		}
	}
}

// next returns the following index of each parameter's value; nil after the last combination.
func next(at []int, m Matrix) []int {
	at = slices.Clone(at)
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < len(m[i].Values) {
			return at
		}
		at[i] = 0
	}
	return nil
}

// variant returns one combination of a matrix with the options of its cell, and notes which parameters have an
// effect in it.
func (l *matrixLoader) variant(m Matrix, at []int, options *yaml.Node) Variant {
	s := l.suite
	var v Variant
	nodes := map[string]*yaml.Node{}
	v.Executor = s.Config.Executor
	for i, p := range m {
		v.Params = append(v.Params, Param{p.Name, p.Values[at[i]]})
		nodes[p.Name] = l.matrix[p.Name].values[at[i]]
		l.effective[p.Name] = l.effective[p.Name] || l.used[p.Name]
		if p.Name == ParamExecutor {
			v.Executor = ParamText(p.Values[at[i]])
			l.effective[p.Name] = true
		}
	}
	kind, ok := l.options.Vocabulary.Executor(v.Executor)
	decl := l.node()
	if n := nodes[ParamExecutor]; n != nil {
		decl = n
	}
	if !ok {
		if n := nodes[ParamExecutor]; n != nil {
			l.reportUnknown(v.Executor, l.src, n)
		}
		return v // the suite's own executor was reported before
	}
	v.Executor = kind.Name
	if l.noAgent(kind, nodes[ParamAgent]) {
		delete(nodes, ParamAgent)
	}
	config := decode.Lookup(l.src.Root, "config")
	if l.options.Agent != "" {
		config = withKey(config, agentKey, l.agentNode())
	}
	config = l.withOptions(config, kind, options)
	for _, p := range v.Params {
		config = l.withParam(config, kind, p.Name, nodes[p.Name])
	}
	v.Options = l.optionsOf(kind, config, decl, true)
	return v
}

// noAgent reports a parameter that chooses an agent for an executor that drives none. It only
// warns if the caller of Load chose the executor.
func (l *matrixLoader) noAgent(kind Kind, at *yaml.Node) bool {
	if at == nil || drives(kind) {
		return false
	}
	severity := decode.Error
	if l.options.Executor != "" {
		severity = decode.Warning
	}
	l.Reportf(l.src, at, severity, decode.CodeNoEffect, "executor %s drives no agent, so it cannot use agent %s; executors that drive one: %s",
		kind.Name, decode.Describe(decode.Follow(at)), l.options.Vocabulary.executors(drives, ", "))
	return true
}

// withParam returns config with a parameter, if the executor takes it.
func (l *matrixLoader) withParam(config *yaml.Node, kind Kind, name string, value *yaml.Node) *yaml.Node {
	if name == ParamExecutor || value == nil {
		return config
	}
	inParams := func() bool {
		return kind.Params == ParamsInOption && (!l.used[name] || decode.Lookup(decode.Lookup(config, optionParams), name) != nil)
	}
	switch {
	case name != optionParams && kind.Options != nil && decode.TakesKey(kind.Options(), name):
		config = withKey(config, name, value)
	case inParams():
		config = withKey(config, optionParams, withKey(decode.Lookup(config, optionParams), name, value))
	case kind.Params != ParamsInEnvironment:
		return config
	}
	l.effective[name] = true
	return config
}

// withKey returns a copy of a map with a key added or replaced.
func withKey(n *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	with := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if n := decode.Follow(n); n != nil && n.Kind == yaml.MappingNode {
		*with = *n
		with.Content = nil
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value != key {
				with.Content = append(with.Content, n.Content[i], n.Content[i+1])
			}
		}
	}
	with.Content = append(with.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
	return with
}

// usedVariables returns the template variables in all texts of the suite: its prompts and its
// files.
func (l *matrixLoader) usedVariables() map[string]bool {
	used := map[string]bool{}
	for _, text := range l.texts {
		noteVariables(text, used)
	}
	for _, t := range l.suite.Tasks {
		noteVariables(t.Inputs.Prompt, used)
		for _, p := range t.Inputs.FollowUpPrompts {
			noteVariables(p, used)
		}
	}
	return used
}

func noteVariables(text string, used map[string]bool) {
	for expr := range template.Variables(text) {
		name := strings.TrimPrefix(expr, ".")
		if space, rest, dotted := strings.Cut(name, "."); dotted && strings.EqualFold(space, "params") {
			name = rest
		}
		used[name] = true
	}
}
