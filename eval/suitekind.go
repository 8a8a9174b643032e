package eval

import (
	"slices"

	"waza/eval/decode"
)

// A SuiteKind is what a suite measures. Clients of the job stream see it as the type of a job.
type SuiteKind string

// The kinds of suites.
const (
	// ToolEval measures how well agents and models do tasks and choose their tools.
	ToolEval SuiteKind = "tool_eval"
	// Benchmark measures how fast models answer and what they cost, by the length of their
	// context.
	Benchmark SuiteKind = "benchmark"
	// ParamTune finds the best parameters of a model.
	ParamTune SuiteKind = "param_tune"
	// PromptTune finds the best system prompt.
	PromptTune SuiteKind = "prompt_tune"
	// Judge lets a model rate answers, and compares two models.
	Judge SuiteKind = "judge"
)

// kindCheck checks what a suite measures, once its tasks and the combinations of its matrix are
// complete.
type kindCheck struct{ *loader }

// kindChecks are the additional checks of each kind of suite.
var kindChecks = map[SuiteKind]func(l kindCheck){
	ParamTune: func(l kindCheck) {
		l.checkComparison()
		if l.suite.Config.Matrix.combinations() < 2 {
			l.reportAt(decode.Error, decode.CodeMissingField, decode.At("kind"),
				"a suite of the kind param_tune compares parameters: list at least two values in config.matrix, such as temperature: [0, 0.7]")
		}
	},
	PromptTune: func(l kindCheck) {
		l.checkComparison()
		c := l.suite.Config
		switch given := c.Matrix.listed(ParamSystemPrompt); {
		case c.PromptTune.Generations > 0 && given == 0:
			l.reportAt(decode.Error, decode.CodeMissingField, decode.At("config", "prompt_tune"),
				"config.prompt_tune starts from a system prompt: list at least one in config.matrix.system_prompt")
		case c.PromptTune.Generations == 0 && given < 2:
			l.reportAt(decode.Error, decode.CodeMissingField, decode.At("kind"),
				"a suite of the kind prompt_tune compares system prompts: list at least two in config.matrix.system_prompt, "+
					"or let a model propose them with config.prompt_tune")
		}
	},
	Judge:     kindCheck.checkJudges,
	Benchmark: kindCheck.checkSpeed,
}

// checkSpeed checks that the executors measure speed, in all trials.
func (l kindCheck) checkSpeed() {
	c := l.suite.Config
	if c.Stopping.Confidence != 0 {
		l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "stopping"),
			"a suite of the kind benchmark measures all trials; remove config.stopping")
	}
	if c.GroupBy != "" {
		l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "group_by"),
			"a suite of the kind benchmark is grouped by model and context_tokens; remove config.group_by")
	}
	if l.options.Vocabulary == nil {
		return
	}
	severity := decode.Error
	if l.options.Executor != "" { // trying a suite with another executor is not a fault
		severity = decode.Warning
	}
	for _, kind := range l.executors().kinds() {
		if !kind.MeasuresSpeed {
			l.reportAt(severity, decode.CodeInvalidValue, decode.At("config", "executor"),
				"a suite of the kind benchmark measures speed, which executor %s does not report; set config.executor to %s",
				kind.Name, l.options.Vocabulary.executors(func(k Kind) bool { return k.MeasuresSpeed }, " or "))
		}
	}
}

// ParamSystemPrompt is the matrix parameter that prompt_tune varies.
const ParamSystemPrompt = "system_prompt"

// checkComparison checks a suite that searches for the best cell of its matrix.
func (l kindCheck) checkComparison() {
	c := l.suite.Config
	if c.GroupBy != "" {
		l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "group_by"),
			"a suite of the kind %s is grouped by the cells of its matrix; remove config.group_by", l.suite.Kind)
	}
	if c.FailFast {
		l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "fail_fast"),
			"a suite of the kind %s compares scores, which needs all trials; remove config.fail_fast", l.suite.Kind)
	}
	if c.Stopping.Confidence != 0 {
		l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "stopping"),
			"a suite of the kind %s compares scores, which needs all trials; remove config.stopping", l.suite.Kind)
	}
}

// checkJudges checks that each grader that asks a model has one.
func (l kindCheck) checkJudges() {
	if l.suite.Config.JudgeModel != "" || l.suite.Config.Judge.Agent != "" {
		return
	}
	for _, t := range l.suite.Tasks {
		for _, g := range t.Effective {
			if o, ok := g.Options.(JudgeNamer); ok && !o.NamesJudge() {
				l.reportAt(decode.Error, decode.CodeMissingField, decode.At("kind"),
					"a suite of the kind judge needs a judge: set config.judge_model or config.judge.agent, or a model in each "+
						"prompt grader and a prompt grader for each task")
				return
			}
		}
	}
}

// judgeAll adds a judge to each task without one, in a suite of the kind judge.
func (l kindCheck) judgeAll(tasks []*Task) {
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

func (l kindCheck) check() {
	if check := kindChecks[l.suite.Kind]; check != nil {
		check(l)
	}
	l.checkBaseline()
}

// checkBaseline reports a comparison of two equal sides.
func (l kindCheck) checkBaseline() {
	s := l.suite
	if !s.Baseline || len(s.Tasks) == 0 || l.skills.agent != nil ||
		slices.ContainsFunc(s.Tasks, func(t *Task) bool { return len(t.Skills) > 0 }) {
		return
	}
	if l.options.Baseline {
		s.Baseline = false // like other tools, skip suites without skills
	}
	l.reportAt(decode.Warning, decode.CodeNoEffect, decode.At("baseline"),
		"baseline compares nothing: no task has a skill, so both sides are the same")
}

// combinations returns the number of combinations of values; 0 without parameters.
func (m Matrix) combinations() int {
	if len(m) == 0 {
		return 0
	}
	n := 1
	for _, p := range m {
		n *= len(p.Values)
	}
	return n
}
