package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/jsonwalk"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// Matrix is a list of parameters with their values, in the order of the suite. A run covers
// every combination of values.
type Matrix []MatrixParam

// A MatrixParam is a parameter and its values: texts, numbers and booleans.
type MatrixParam struct {
	Name   string
	Values []any
}

// maxCombinations limits the combinations of a matrix, including models.
const maxCombinations = 1000

// MarshalJSON returns an object with its members in the order of the parameters.
func (m Matrix) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.Name)
		if err != nil {
			return nil, err
		}
		values, err := json.Marshal(p.Values)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%s", name, values)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON decodes the output of MarshalJSON, and keeps the order.
func (m *Matrix) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	*m = nil
	dec := json.NewDecoder(bytes.NewReader(data))
	err := jsonwalk.Object(dec, func(name string) error {
		p := MatrixParam{Name: name}
		err := dec.Decode(&p.Values)
		*m = append(*m, p)
		return err
	})
	if err != nil {
		return fmt.Errorf("matrix must be a JSON object: %w", err)
	}
	return nil
}

// DecodeShape decodes a map from parameter to a list of values.
func (m *Matrix) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map from parameter to a list of values")
		return
	}
	l := d.Context.(*loader)
	l.matrix = map[string]matrixNodes{}
	for _, p := range d.Pairs(n) {
		d.Push(p.Key.Value)
		param := MatrixParam{Name: p.Key.Value}
		nodes := matrixNodes{key: p.Key}
		matrixValues(d, p.Value, &param, &nodes)
		d.Pop()
		*m = append(*m, param)
		l.matrix[param.Name] = nodes
	}
}

// matrixNodes are the nodes of a parameter and of each of its values.
type matrixNodes struct {
	key    *yaml.Node
	values []*yaml.Node
}

func matrixValues(d *decode.Decoder, n *yaml.Node, p *MatrixParam, nodes *matrixNodes) {
	list := decode.Follow(n)
	if list.Kind == yaml.ScalarNode && !decode.IsNull(list) {
		list = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}}
	}
	if list.Kind != yaml.SequenceNode {
		d.WrongType(list, "a list of values")
		return
	}
	for i, c := range list.Content {
		value := decode.Follow(c)
		d.Push(fmt.Sprintf("[%d]", i))
		switch {
		case value.Kind != yaml.ScalarNode || decode.IsNull(value):
			d.WrongType(value, "a text, a number, true or false")
		case slices.Contains(p.Values, decode.ScalarOf(value)):
			d.Report(c, decode.Warning, decode.CodeNoEffect, "", "%s has no effect: %s is already in the list", d.Here(), decode.Describe(value))
		default:
			p.Values = append(p.Values, decode.ScalarOf(value))
			nodes.values = append(nodes.values, c)
		}
		d.Pop()
	}
	if len(list.Content) == 0 {
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s must contain at least one value", d.Here())
	}
}

// The parameters that choose who does the trials.
const (
	ParamExecutor = "executor"
	ParamAgent    = agentKey
	paramModel    = "model"
)

// matrixLoader checks config.models and config.matrix, and makes their combinations.
type matrixLoader struct {
	executorLoader
	used      map[string]bool // template variables that texts of the suite use
	effective map[string]bool // parameters that have an effect
}

// check looks for faults in models and matrix, and moves the models of the matrix to
// config.models.
func (l *matrixLoader) check() {
	c := &l.suite.Config
	l.spread()
	l.checkModels()
	if i := slices.IndexFunc(c.Matrix, func(p MatrixParam) bool { return p.Name == paramModel && len(p.Values) > 0 }); i >= 0 {
		l.useModels(c.Matrix[i])
	}
	c.Matrix = slices.DeleteFunc(c.Matrix, func(p MatrixParam) bool {
		return len(p.Values) == 0 || // already reported
			p.Name == ParamExecutor && l.options.Executor != "" || p.Name == ParamAgent && l.options.Agent != "" ||
			p.Name == paramModel
	})
	l.addProposals()
	names := map[string]string{}
	for _, p := range c.Matrix {
		if why := l.badParam(p.Name); why != "" {
			l.Reportf(l.src, l.matrix[p.Name].key, decode.Error, decode.CodeInvalidValue,
				"config.matrix: %q cannot be a parameter: %s", text.Clip(p.Name, 60), why)
		}
		if other := names[EnvName(p.Name)]; other != "" {
			l.Reportf(l.src, l.matrix[p.Name].key, decode.Error, decode.CodeInvalidValue,
				"config.matrix: %q and %q have the same environment variable, %s", p.Name, other, EnvName(p.Name))
		}
		names[EnvName(p.Name)] = p.Name
	}
	// Dividing avoids the overflow of a product.
	left := maxCombinations / max(1, len(c.Models))
	for _, p := range c.Matrix {
		left /= len(p.Values)
	}
	if left == 0 && len(c.Cells) == 0 {
		l.reportAt(decode.Error, decode.CodeTooLarge, decode.At("config", "matrix"),
			"config.matrix has more than %d combinations, including models", maxCombinations)
		c.Matrix = nil
	}
}

func (l *matrixLoader) checkModels() {
	c := &l.suite.Config
	var models []string
	for i, m := range c.Models {
		switch {
		case strings.TrimSpace(m) == "":
			l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "models", i), "config.models[%d] is empty", i)
		case slices.Contains(models, m):
			l.reportAt(decode.Warning, decode.CodeNoEffect, decode.At("config", "models", i),
				"config.models[%d] has no effect: %q is already in the list", i, m)
		default:
			models = append(models, m)
		}
	}
	if len(models) > 0 && decode.Lookup(decode.Lookup(l.src.Root, "config"), paramModel) != nil {
		l.reportAt(decode.Info, decode.CodeNoEffect, decode.At("config", paramModel),
			"config.model has no effect on trials because config.models is set; only judges without a model use it")
	}
	c.Models = models
}

// useModels adds the values of matrix.model to config.models.
func (l *matrixLoader) useModels(p MatrixParam) {
	c := &l.suite.Config
	if len(c.Models) > 0 {
		l.Reportf(l.src, l.matrix[p.Name].key, decode.Error, decode.CodeInvalidValue,
			"config.matrix.model and config.models mean the same; use only one")
		return
	}
	for i, v := range p.Values {
		if strings.TrimSpace(ParamText(v)) == "" {
			l.Reportf(l.src, l.matrix[p.Name].values[i], decode.Error, decode.CodeInvalidValue, "config.matrix.model[%d] is empty", i)
		}
		c.Models = append(c.Models, ParamText(v))
	}
}

// badParam returns why a parameter cannot have a name; "" if it can.
func (l *matrixLoader) badParam(name string) string {
	config := fields.Find(decode.FieldsOf(configType), name)
	switch {
	case name == ParamExecutor || name == ParamAgent:
		return ""
	case !variableName().MatchString(name):
		return "names consist of letters, digits, '_' and '-'"
	case isBuiltin(name):
		return "it is a built-in template variable"
	case l.suite.Inputs[name] != "":
		return "it is also an input of the suite"
	case config != nil && config.Name != "max_tokens": // model APIs use this name, too
		return "config." + config.Name + " is the same for all combinations"
	}
	return ""
}

// ParamText returns the value of a parameter as texts and programs get it.
func ParamText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case Proposal:
		return v.String()
	case nil:
		return ""
	}
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(b)
}

// EnvName returns the environment variable that passes a parameter to programs.
func EnvName(param string) string {
	return "WAZA_PARAM_" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, param)
}

// names returns the parameters as template variables that have a value.
func (m Matrix) names() map[string]string {
	params := map[string]string{}
	for _, p := range m {
		params[p.Name] = ""
	}
	return params
}
