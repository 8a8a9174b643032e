package eval

import (
	"fmt"
	"slices"

	"waza/eval/decode"

	"gopkg.in/yaml.v3"
)

// The limits of [PromptTuning], which its tags repeat.
const (
	mostGenerations = 10
	mostPrompts     = 20
)

// PromptTuning says how a model proposes system prompts. Those of config.matrix.system_prompt
// are generation 0; each further generation is proposed by how those before it did.
type PromptTuning struct {
	// How often prompts are proposed, each time by how those before did.
	Generations int `yaml:"generations" json:"generations" jsonschema:"minimum=0,maximum=10"`
	// How many prompts are proposed each time.
	Prompts int `yaml:"prompts" json:"prompts" jsonschema:"minimum=1,maximum=20,default=4"`
	// Model that proposes them; the model of judges when absent.
	Model string `yaml:"model" json:"model,omitempty"`
}

// SetDefaults asks for four prompts.
func (p *PromptTuning) SetDefaults() { p.Prompts = 4 }

// Proposal is the place of a system prompt that a model is going to propose. Number counts
// from 1 in its generation. The zero value is the place of none.
type Proposal struct{ Generation, Number int }

// MarshalText writes the place as people read it.
func (p Proposal) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Proposal) String() string {
	return fmt.Sprintf("generation %d, prompt %d", p.Generation, p.Number)
}

// propose adds places for the prompts that a model is going to propose to the matrix. An
// executor's option is a template variable there, whose value the run sets.
func (l *matrixLoader) propose() {
	c := &l.suite.Config
	nodes := l.matrix[ParamSystemPrompt]
	if l.suite.Kind != PromptTune || len(nodes.values) == 0 {
		if c.PromptTune.Generations > 0 && l.suite.Kind != PromptTune {
			l.at(decode.Warning, decode.CodeNoEffect, decode.At("config", "prompt_tune"), "config.prompt_tune has no effect without kind: prompt_tune")
		}
		return
	}
	if c.PromptTune.Generations > mostGenerations || c.PromptTune.Prompts > mostPrompts {
		return // which is a fault of its own
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

// given is how many values the suite lists for a parameter.
func (m Matrix) given(param string) (n int) {
	for _, p := range m {
		for _, v := range p.Values {
			if _, proposed := v.(Proposal); p.Name == param && !proposed {
				n++
			}
		}
	}
	return n
}
