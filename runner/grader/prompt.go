package grader

import (
	"strings"

	"waza/eval"
)

// prompt is known to suites; this program has no judge to grade with it.
var prompt = kindOf(eval.Kind{
	Name:    "prompt",
	Aliases: []string{"llm", "llm_comparison"},
	Summary: "Asks a judge model for its verdict on the trial.",
	Options: func() any { return &PromptOptions{Mode: "independent"} },
}, checkPrompt, nil)

// PromptOptions are the options of the prompt grader.
type PromptOptions struct {
	// What the judge is to look for. May use template variables.
	Prompt string `yaml:"prompt"`
	// The same as prompt: a text, or the path of a file with it.
	Rubric string `yaml:"rubric"`
	// Model of the judge; config.judge_model when absent.
	Model string `yaml:"model"`
	// Let the judge go on in the agent's session.
	ContinueSession bool `yaml:"continue_session"`
	// How the judge compares: independent, or pairwise with the run without skills, in both orders.
	Mode string `yaml:"mode" jsonschema:"enum=independent,enum=pairwise"`
	// Least score, 0 to 1, that passes; when absent the judge decides.
	Threshold *float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`
	// Text that a good output is compared with.
	Reference string `yaml:"reference"`
}

func checkPrompt(c *eval.Check, o *PromptOptions) {
	if strings.TrimSpace(o.Prompt+o.Rubric+o.Reference) == "" {
		c.Errorf(eval.At(), eval.CodeChecksNothing, "nothing to judge: give prompt or rubric")
	}
}
