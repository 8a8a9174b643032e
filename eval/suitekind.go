package eval

import (
	"slices"
	"strings"

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
		l.compares()
		if l.suite.Config.Matrix.values() < 2 {
			l.at(decode.Error, decode.CodeMissingField, decode.At("kind"),
				"a suite of the kind param_tune compares parameters: list at least two values in config.matrix, such as temperature: [0, 0.7]")
		}
	},
	PromptTune: func(l suiteCheck) {
		l.compares()
		c := l.suite.Config
		switch given := c.Matrix.given(ParamSystemPrompt); {
		case c.PromptTune.Generations > 0 && given == 0:
			l.at(decode.Error, decode.CodeMissingField, decode.At("config", "prompt_tune"), "config.prompt_tune starts from a system prompt: list at least one in config.matrix.system_prompt")
		case c.PromptTune.Generations == 0 && given < 2:
			l.at(decode.Error, decode.CodeMissingField, decode.At("kind"),
				"a suite of the kind prompt_tune compares system prompts: list at least two in config.matrix.system_prompt, or let a model propose them with config.prompt_tune")
		}
	},
	Judge:     suiteCheck.judges,
	Benchmark: suiteCheck.measures,
}

// measures checks that the speed of all models is measured, in all trials.
func (l suiteCheck) measures() {
	c, v := l.suite.Config, l.options.Vocabulary
	if c.Stopping.Confidence != 0 {
		l.at(decode.Error, decode.CodeInvalidValue, decode.At("config", "stopping"), "a suite of the kind benchmark measures all trials; remove config.stopping")
	}
	if c.GroupBy != "" {
		l.at(decode.Error, decode.CodeInvalidValue, decode.At("config", "group_by"), "a suite of the kind benchmark is grouped by model and context_tokens; remove config.group_by")
	}
	if v == nil {
		return
	}
	executors := []string{c.Executor}
	for _, variant := range l.suite.Variants {
		executors = append(executors, variant.Executor)
	}
	if len(l.suite.Variants) > 0 {
		executors = executors[1:]
	}
	severity := decode.Error
	if l.options.Executor != "" { // to try a suite out with another executor is no fault
		severity = decode.Warning
	}
	said := map[string]bool{}
	for _, name := range executors {
		kind, ok := v.Executor(name)
		if !ok || kind.MeasuresSpeed || said[kind.Name] {
			continue
		}
		said[kind.Name] = true
		l.at(severity, decode.CodeInvalidValue, decode.At("config", "executor"),
			"a suite of the kind benchmark measures speed, which the executor %s does not report; set config.executor to %s",
			kind.Name, strings.Join(measuring(v), " or "))
	}
}

// measuring are the executors that report speed.
func measuring(v *Vocabulary) (names []string) {
	for _, kind := range v.Executors {
		if kind.MeasuresSpeed {
			names = append(names, kind.Name)
		}
	}
	return names
}

// ParamSystemPrompt is the parameter of the matrix that prompt_tune varies.
const ParamSystemPrompt = "system_prompt"

// compares checks a suite that is run to find the best cell of its matrix.
func (l suiteCheck) compares() {
	c := l.suite.Config
	if c.GroupBy != "" {
		l.at(decode.Error, decode.CodeInvalidValue, decode.At("config", "group_by"), "a suite of the kind %s is grouped by the cells of its matrix; remove config.group_by", l.suite.Kind)
	}
	if c.FailFast {
		l.at(decode.Error, decode.CodeInvalidValue, decode.At("config", "fail_fast"), "a suite of the kind %s compares scores, which needs all trials; remove config.fail_fast", l.suite.Kind)
	}
	if c.Stopping.Confidence != 0 {
		l.at(decode.Error, decode.CodeInvalidValue, decode.At("config", "stopping"), "a suite of the kind %s compares scores, which needs all trials; remove config.stopping", l.suite.Kind)
	}
}

// judges checks that there is a model for each grader that asks one.
func (l suiteCheck) judges() {
	if l.suite.Config.JudgeModel != "" {
		return
	}
	for _, t := range l.suite.Tasks {
		for _, g := range t.Effective {
			if o, ok := g.Options.(JudgeNamer); ok && !o.NamesJudge() {
				l.at(decode.Error, decode.CodeMissingField, decode.At("kind"),
					"a suite of the kind judge needs a judge: set config.judge_model, or a model in each prompt grader and a prompt grader for each task")
				return
			}
		}
	}
}

// judgeAll gives the tasks of a suite of the kind judge a grader that asks a model, unless
// they have one.
func (l *loader) judgeAll(tasks []*Task) {
	v := l.options.Vocabulary
	if l.suite.Kind != Judge || v == nil {
		return
	}
	i := slices.IndexFunc(v.Graders, func(k Kind) bool { return k.Judges != nil })
	if i < 0 {
		return
	}
	kind := v.Graders[i]
	general := map[string]*Grader{}
	for _, t := range tasks {
		names := map[string]bool{}
		judged := false
		for _, g := range t.Effective {
			names[g.Name] = true
			judged = judged || g.Type == kind.Name
		}
		if judged {
			continue
		}
		name := uniqueName(string(Judge), names)
		if general[name] == nil {
			general[name] = &Grader{Name: name, Type: kind.Name, Weight: 1, Options: kind.Judges(), File: l.suite.File, Line: 1, Column: 1}
		}
		t.Effective = append(slices.Clone(t.Effective), general[name])
	}
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
