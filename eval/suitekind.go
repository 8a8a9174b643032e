package eval

import (
	"waza/eval/decode"
)

// SuiteKind says what a suite measures. Clients of the job stream know it as the type of a job.
type SuiteKind string

// The kinds of suites.
const (
	// ToolEval asks how well agents and models do tasks and choose their tools.
	ToolEval SuiteKind = "tool_eval"
	// Benchmark asks how fast models answer and what they cost, by the length of their context.
	Benchmark SuiteKind = "benchmark"
	// ParamTune looks for the best parameters of a model.
	ParamTune SuiteKind = "param_tune"
	// PromptTune looks for the best system prompt.
	PromptTune SuiteKind = "prompt_tune"
	// Judge lets a model judge answers, and compare two models.
	Judge SuiteKind = "judge"
)

// kindChecks say what each kind asks of a suite beyond what all need. The tasks are
// complete when they are called, and so are the combinations of the matrix.
var kindChecks = map[SuiteKind]func(l suiteCheck){
	ParamTune: func(l suiteCheck) {
		if l.suite.Config.Matrix.values() < 2 {
			l.at(decode.Error, decode.CodeMissingField, decode.At("kind"),
				"a suite of the kind param_tune compares parameters: list at least two values in config.matrix, such as temperature: [0, 0.7]")
		}
	},
}

// kind checks that the suite has what its kind needs.
func (l suiteCheck) kind() {
	if check := kindChecks[l.suite.Kind]; check != nil {
		check(l)
	}
}

// values is how many combinations of values there are; 0 without parameters.
func (m Matrix) values() int {
	if len(m) == 0 {
		return 0
	}
	n := 1
	for _, p := range m {
		n *= len(p.Values)
	}
	return n
}
