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

// Matrix are parameters with the values that each takes, in the order of the
// suite. Every combination of values is run.
type Matrix []MatrixParam

// MatrixParam is a parameter and its values: texts, numbers and truth values.
type MatrixParam struct {
	Name   string
	Values []any
}

// MaxCombinations bounds the combinations of a matrix, models included.
const MaxCombinations = 1000

// MarshalJSON writes an object, its members in the order of the parameters.
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

// UnmarshalJSON reads what MarshalJSON writes, and keeps the order.
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
		return fmt.Errorf("matrix: an object is wanted: %w", err)
	}
	return nil
}

// DecodeShape takes a map from parameter to a list of values.
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

// matrixNodes are where a parameter and each of its values stand.
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
			d.Report(c, decode.Warning, decode.CodeNoEffect, "", "%s has no effect: %s stands there already", d.Here(), decode.Describe(value))
		default:
			p.Values = append(p.Values, decode.ScalarOf(value))
			nodes.values = append(nodes.values, c)
		}
		d.Pop()
	}
	if len(list.Content) == 0 {
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s must hold at least one value", d.Here())
	}
}

// The parameters that choose what does the trials.
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

// check looks for faults of models and matrix, and puts the models that the
// matrix lists where models are.
func (l *matrixLoader) check() {
	c := &l.suite.Config
	l.models()
	c.Matrix = slices.DeleteFunc(c.Matrix, func(p MatrixParam) bool {
		return len(p.Values) == 0 || // a fault that was reported
			p.Name == ParamExecutor && l.options.Executor != "" || p.Name == ParamAgent && l.options.Agent != "" ||
			p.Name == paramModel && l.modelsOf(p)
	})
	l.propose()
	names := map[string]string{}
	for _, p := range c.Matrix {
		if why := l.badParam(p.Name); why != "" {
			l.Reportf(l.src, l.matrix[p.Name].key, decode.Error, decode.CodeInvalidValue, "config.matrix: %q cannot be a parameter: %s", text.Clip(p.Name, 60), why)
		}
		if other := names[EnvName(p.Name)]; other != "" {
			l.Reportf(l.src, l.matrix[p.Name].key, decode.Error, decode.CodeInvalidValue, "config.matrix: %q and %q have the same environment variable, %s", p.Name, other, EnvName(p.Name))
		}
		names[EnvName(p.Name)] = p.Name
	}
	// Divided rather than multiplied: the product may overflow.
	left := MaxCombinations / max(1, len(c.Models))
	for _, p := range c.Matrix {
		left /= len(p.Values)
	}
	if left == 0 {
		l.at(decode.Error, decode.CodeTooLarge, decode.At("config", "matrix"), "config.matrix has more than %d combinations, models included", MaxCombinations)
		c.Matrix = nil
	}
}

func (l *matrixLoader) models() {
	c := &l.suite.Config
	var models []string
	for i, m := range c.Models {
		switch {
		case strings.TrimSpace(m) == "":
			l.at(decode.Error, decode.CodeInvalidValue, decode.At("config", "models", i), "config.models[%d] is empty", i)
		case slices.Contains(models, m):
			l.at(decode.Warning, decode.CodeNoEffect, decode.At("config", "models", i), "config.models[%d] has no effect: %q stands there already", i, m)
		default:
			models = append(models, m)
		}
	}
	if len(models) > 0 && decode.Lookup(decode.Lookup(l.src.Root, "config"), paramModel) != nil {
		l.at(decode.Info, decode.CodeNoEffect, decode.At("config", paramModel), "config.model has no effect on trials beside models; judges that name no model ask it")
	}
	c.Models = models
}

// modelsOf takes matrix.model for models; it is no parameter then.
func (l *matrixLoader) modelsOf(p MatrixParam) bool {
	c := &l.suite.Config
	if len(c.Models) > 0 {
		l.Reportf(l.src, l.matrix[p.Name].key, decode.Error, decode.CodeInvalidValue, "config.matrix.model and config.models mean the same; give one")
		return true
	}
	for i, v := range p.Values {
		if strings.TrimSpace(ParamText(v)) == "" {
			l.Reportf(l.src, l.matrix[p.Name].values[i], decode.Error, decode.CodeInvalidValue, "config.matrix.model[%d] is empty", i)
		}
		c.Models = append(c.Models, ParamText(v))
	}
	return true
}

// badParam says why a parameter cannot have that name; "" if it can.
func (l *matrixLoader) badParam(name string) string {
	config := fields.Find(decode.FieldsOf(configType), name)
	switch {
	case name == ParamExecutor || name == ParamAgent:
		return ""
	case !variableName().MatchString(name):
		return "names are letters, digits, '_' and '-'"
	case isBuiltin(name):
		return "it is a template variable of its own"
	case l.suite.Inputs[name] != "":
		return "it is an input of the suite, too"
	case config != nil && config.Name != "max_tokens": // which model APIs call so, too
		return "config." + config.Name + " is the same for all combinations"
	}
	return ""
}

// ParamText is the value of a parameter as texts and programs get it.
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

// EnvName is the environment variable in which programs find a parameter.
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

// names are the names of the parameters, as variables that have a value.
func (m Matrix) names() map[string]string {
	params := map[string]string{}
	for _, p := range m {
		params[p.Name] = ""
	}
	return params
}
