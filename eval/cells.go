package eval

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// Cells are the cells of a run in place of the combinations of a matrix.
type Cells []CellSpec

// A CellSpec is a cell that a suite describes: a model with its parameters.
type CellSpec struct {
	Name   string // empty: the model and the parameters are the name
	Model  string
	Params []Param // in the order of the suite
	// options are those that the cell sets for its executor: a map of any values, which are no parameters; nil
	// without any.
	options *yaml.Node

	nodes map[string]matrixNodes
	node  *yaml.Node
}

// DecodeShape decodes a list of maps from parameter to value.
func (c *Cells) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		d.WrongType(n, "a list of maps from parameter to value")
		return
	}
	for i, item := range n.Content {
		d.Push(fmt.Sprintf("[%d]", i))
		*c = append(*c, decodeCell(d, decode.Follow(item)))
		d.Pop()
	}
}

func decodeCell(d *decode.Decoder, n *yaml.Node) CellSpec {
	cell := CellSpec{nodes: map[string]matrixNodes{}, node: n}
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map from parameter to value")
		return cell
	}
	for _, p := range d.Pairs(n) {
		d.Push(p.Key.Value)
		value := decode.Follow(p.Value)
		switch {
		case p.Key.Value == cellOptions:
			if value.Kind != yaml.MappingNode {
				d.WrongType(value, "a map of options of the executor")
				break
			}
			cell.options = value
		case value.Kind != yaml.ScalarNode || decode.IsNull(value):
			d.WrongType(value, "a text, a number, true or false")
		case p.Key.Value == paramModel:
			cell.Model = value.Value
		case p.Key.Value == cellName:
			cell.Name = value.Value
		default:
			cell.Params = append(cell.Params, Param{p.Key.Value, decode.ScalarOf(value)})
			cell.nodes[p.Key.Value] = matrixNodes{key: p.Key, values: []*yaml.Node{p.Value}}
		}
		d.Pop()
	}
	return cell
}

// Keys of a cell besides its model and its parameters.
const (
	cellName    = "name"
	cellOptions = "options"
)

// named reports whether config.cells has a cell with that name.
func (c Cells) named(name string) bool {
	return slices.ContainsFunc(c, func(cell CellSpec) bool { return cell.Name == name })
}

// checkNames reports cells whose name is not the name of one cell.
func (l *matrixLoader) checkNames() {
	names := map[string]bool{}
	for i, cell := range l.suite.Config.Cells {
		at := decode.Lookup(cell.node, cellName)
		switch {
		case at == nil:
		case strings.TrimSpace(cell.Name) == "":
			l.Reportf(l.src, at, decode.Error, decode.CodeInvalidValue, "config.cells[%d]: name is empty", i)
		case names[cell.Name]:
			l.Reportf(l.src, at, decode.Error, decode.CodeDuplicateID, "config.cells[%d]: an earlier cell has the name %q", i, text.Clip(cell.Name, 60))
		}
		names[cell.Name] = true
	}
}

// spread makes the models and the matrix that contain all cells. Only the cells themselves are run.
func (l *matrixLoader) spread() {
	c := &l.suite.Config
	if len(c.Cells) == 0 {
		return
	}
	if len(c.Models) > 0 || len(c.Matrix) > 0 || decode.Lookup(decode.Lookup(l.src.Root, "config"), paramModel) != nil {
		l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "cells"),
			"config.cells excludes config.model, config.models and config.matrix")
		c.Cells = nil
		return
	}
	if len(c.Cells) > maxCombinations {
		l.reportAt(decode.Error, decode.CodeTooLarge, decode.At("config", "cells"), "config.cells has more than %d cells", maxCombinations)
		c.Cells = nil
		return
	}
	l.checkNames()
	l.matrix = map[string]matrixNodes{}
	for i, cell := range c.Cells {
		if strings.TrimSpace(cell.Model) == "" && cell.Name == "" { // else config.model or the executor chooses
			l.Reportf(l.src, cell.node, decode.Error, decode.CodeMissingField, "config.cells[%d]: model is missing", i)
		}
		if cell.Model != "" && !slices.Contains(c.Models, cell.Model) {
			c.Models = append(c.Models, cell.Model)
		}
		for _, p := range cell.Params {
			l.addParam(p, cell.nodes[p.Name])
		}
	}
}

// addParam adds a value of a parameter to the matrix.
func (l *matrixLoader) addParam(p Param, nodes matrixNodes) {
	c := &l.suite.Config
	at := slices.IndexFunc(c.Matrix, func(other MatrixParam) bool { return other.Name == p.Name })
	if at < 0 {
		c.Matrix = append(c.Matrix, MatrixParam{Name: p.Name})
		at = len(c.Matrix) - 1
		l.matrix[p.Name] = matrixNodes{key: nodes.key}
	}
	if !slices.Contains(c.Matrix[at].Values, p.Value) {
		c.Matrix[at].Values = append(c.Matrix[at].Values, p.Value)
		all := l.matrix[p.Name]
		all.values = append(all.values, nodes.values...)
		l.matrix[p.Name] = all
	}
}

// cellVariants returns a combination for each cell, without the parameters that flags replace. Cells
// that are then the same are one.
func (l *matrixLoader) cellVariants() (variants []Variant) {
	s, all := l.suite, l.matrix
	defer func() { l.matrix = all }()
	taken := map[string]bool{}
	for _, cell := range s.Config.Cells {
		var own Matrix
		options := l.optionsIn(cell)
		name := cell.Name + "\x00" + cell.Model + "\x00" + yamlOf(options)
		for _, p := range cell.Params {
			if slices.ContainsFunc(s.Config.Matrix, func(kept MatrixParam) bool { return kept.Name == p.Name }) {
				own = append(own, MatrixParam{Name: p.Name, Values: []any{p.Value}})
				name += "\x00" + p.Name + "\x00" + ParamText(p.Value)
			}
		}
		if taken[name] {
			l.Reportf(l.src, cell.node, decode.Warning, decode.CodeNoEffect, "the cell of model %q has no effect: an earlier one is the same",
				text.Clip(cell.Model, 60))
			continue
		}
		taken[name] = true
		l.matrix = cell.nodes
		v := l.variant(own, make([]int, len(own)), options)
		v.Name, v.Model = cell.Name, cell.Model
		variants = append(variants, v)
	}
	return variants
}

// optionsIn returns the options of a cell, or nil if flags replace its executor, whose options they are.
func (l *matrixLoader) optionsIn(c CellSpec) *yaml.Node {
	if l.options.Executor != "" || l.options.Agent != "" {
		return nil
	}
	return c.options
}

// yamlOf returns a text that is the same for nodes with the same values.
func yamlOf(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	data, err := yaml.Marshal(n)
	if err != nil { // of an alias that contains itself, which other checks report
		return ""
	}
	return string(data)
}

// withOptions returns config with the options of a cell. It reports those that the executor does not have.
func (l *matrixLoader) withOptions(config *yaml.Node, kind Kind, options *yaml.Node) *yaml.Node {
	var all any
	if kind.Options != nil {
		all = kind.Options()
	}
	for _, p := range dialect.Pairs(options) {
		if all == nil || !decode.TakesKey(all, p.Key.Value) {
			l.Reportf(l.src, p.Key, decode.Error, decode.CodeUnknownOption, "options of a cell: executor %s has no option %q", kind.Name, text.Clip(p.Key.Value, 60))
			continue
		}
		config = withKey(config, p.Key.Value, p.Value)
	}
	return config
}
