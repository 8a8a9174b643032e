package eval

import (
	"fmt"
	"slices"

	"waza/eval/decode"

	"gopkg.in/yaml.v3"
)

// The limits of [PromptTuning]; its tags repeat them.
const (
	mostGenerations = 10
	mostPrompts     = 20
)

// PromptTuning controls how a model proposes system prompts. The prompts of
// config.matrix.system_prompt are generation 0. The results of all generations so far guide the
// next one.
type PromptTuning struct {
	// Number of generations of proposed prompts. The model sees the scores of all earlier prompts.
	Generations int `yaml:"generations" json:"generations" jsonschema:"minimum=0,maximum=10"`
	// Number of prompts in each generation.
	Prompts int `yaml:"prompts" json:"prompts" jsonschema:"minimum=1,maximum=20,default=4"`
	// Model that proposes the prompts; the judges' model when absent.
	Model string `yaml:"model" json:"model,omitempty"`
}

// SetDefaults sets four prompts per generation.
func (p *PromptTuning) SetDefaults() { p.Prompts = 4 }

// A Proposal is the position of a system prompt that a model will propose. Number starts at 1 in
// each generation. The zero value means no proposal.
type Proposal struct{ Generation, Number int }

// MarshalText returns the position in readable form.
func (p Proposal) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Proposal) String() string {
	return fmt.Sprintf("generation %d, prompt %d", p.Generation, p.Number)
}

// addProposals adds placeholders to the matrix for the prompts that a model will propose. An
// executor's option is a template variable there; the run sets its value.
func (l *matrixLoader) addProposals() {
	c := &l.suite.Config
	nodes := l.matrix[ParamSystemPrompt]
	if l.suite.Kind != PromptTune || len(nodes.values) == 0 {
		if c.PromptTune.Generations > 0 && l.suite.Kind != PromptTune {
			l.reportAt(decode.Warning, decode.CodeNoEffect, decode.At("config", "prompt_tune"),
				"config.prompt_tune has no effect without `kind: prompt_tune`")
		}
		return
	}
	if c.PromptTune.Generations > mostGenerations || c.PromptTune.Prompts > mostPrompts {
		return // reported elsewhere
	}
	i := slices.IndexFunc(c.Matrix, func(p MatrixParam) bool { return p.Name == ParamSystemPrompt })
	for g := range c.PromptTune.Generations {
		for n := range c.PromptTune.Prompts {
			p := Proposal{g + 1, n + 1}
			node := *nodes.values[0]
			node.Kind, node.Tag, node.Value, node.Style = yaml.ScalarNode, "!!str", "{{"+ParamSystemPrompt+"}}", 0
			c.Matrix[i].Values, nodes.values = append(c.Matrix[i].Values, p), append(nodes.values, &node)
		}
	}
	l.matrix[ParamSystemPrompt] = nodes
}

// listed returns the number of values that the suite lists for a parameter.
func (m Matrix) listed(param string) (n int) {
	for _, p := range m {
		for _, v := range p.Values {
			if _, proposed := v.(Proposal); p.Name == param && !proposed {
				n++
			}
		}
	}
	return n
}
