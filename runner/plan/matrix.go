package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/grader/judge"
	"waza/runner/record"
)

// Setup is the configuration that executes the trials of some tasks. A run without a matrix has
// one.
type Setup struct {
	ref      *record.Cell // nil without a matrix
	Executor executor.Kind
	Settings executor.Settings
	params   map[string]string // as templates and programs receive them
	// Baselines and triggers are the reasons why the cell measures no baselines and no trigger
	// tests; empty when it does.
	Baselines, triggers string
}

// newSetup prepares an executor of the suite for opening. Options may be nil.
func newSetup(p *Plan, kind executor.Kind, options any, model string) *Setup {
	if options == nil && kind.Options != nil {
		options = kind.Options()
	}
	c := &Setup{Executor: kind, Settings: executor.Settings{
		Suite: p.Suite, Options: options, Model: model, Workers: p.Config.ActualWorkers, Providers: p.Pool,
	}}
	c.Baselines, c.triggers = c.unmeasuredBaseline(), c.unmeasuredTriggers()
	return c
}

// planCells creates the cells: one for each combination of model and parameters, or a single one
// for a run without a matrix.
func (p *Plan) planCells(r *Planner, kind executor.Kind, models []string) error {
	variants := p.Suite.Variants
	if len(variants) == 0 {
		variants = []eval.Variant{{Executor: kind.Name, Options: p.Suite.ExecutorOptions[kind.Name]}}
	}
	names := map[string]bool{}
	for _, model := range models {
		for _, v := range variants {
			kind, ok := r.executors.Lookup(v.Executor)
			if !ok {
				return &record.UnknownExecutorError{Name: v.Executor, Known: r.executors.Names()}
			}
			c := newSetup(p, kind, v.Options, model)
			if len(models) > 1 || len(v.Params) > 0 {
				c.name(v.Params, len(models) > 1, names)
			}
			p.cells = append(p.cells, c)
		}
	}
	p.Config.Executor, p.Config.Agent = p.cells[0].Executor.Name, p.cells[0].agent()
	for _, c := range p.cells {
		if c.agent() != p.Config.Agent {
			p.Config.Agent = "" // the cells name their agents
		}
	}
	return nil
}

// name turns a setup into a cell of a matrix.
func (c *Setup) name(params []eval.Param, several bool, taken map[string]bool) {
	c.ref = &record.Cell{Model: c.Settings.Model}
	var parts []string
	if several {
		parts = append(parts, oneLine(c.Settings.Model))
	}
	for _, p := range params {
		if c.params == nil {
			c.params, c.ref.Params = map[string]string{}, map[string]any{}
		}
		text := eval.ParamText(p.Value)
		c.params[p.Name], c.ref.Params[p.Name] = text, p.Value
		if place, ok := p.Value.(eval.Proposal); ok {
			c.ref.Generation, c.ref.Proposal, c.ref.Params[p.Name] = place.Generation, place.Number, text
		}
		if p.Name != eval.ParamExecutor && p.Name != eval.ParamAgent {
			text = p.Name + "=" + oneLine(text)
		}
		parts = append(parts, oneLine(text))
	}
	name := strings.Join(parts, ",")
	for n := 2; taken[name]; n++ { // values that differ only beyond maxValue
		name = fmt.Sprintf("%s~%d", strings.Join(parts, ","), n)
	}
	taken[name] = true
	c.ref.Name = name
}

// maxValue limits the runes of a value in the name of a cell.
const maxValue = 40

// oneLine returns a value for a name: short, and without line ends and brackets.
func oneLine(value string) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '[' || r == ']':
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, value)
	if runes := []rune(text); len(runes) > maxValue {
		return string(runes[:maxValue-1]) + "…"
	}
	return text
}

// id returns the id of a task of the suite in the cell.
func (c *Setup) id(task string) string {
	if c.ref == nil {
		return task
	}
	return task + "[" + c.ref.Name + "]"
}

// title returns the name of a task in the cell. Some clients show only this name.
func (c *Setup) title(t *eval.Task) string {
	switch {
	case c.ref == nil:
		return t.Name
	case t.Name == t.ID:
		return c.id(t.ID)
	}
	return t.Name + " [" + c.ref.Name + "]"
}

// agent returns the name of the agent; empty without an agent.
func (c *Setup) agent() string {
	if o, ok := c.Settings.Options.(executor.Driver); ok && c.Executor.Name == AgentExecutor {
		return o.AgentName()
	}
	return ""
}

// Can returns the capabilities of the executor with these settings.
func (c *Setup) Can() executor.Capabilities { return c.Executor.Can(c.Settings) }

// Vars returns the template variables of a trial.
func (c *Setup) Vars(runID string, trial, attempt int) eval.TrialVars {
	return eval.TrialVars{RunID: runID, Trial: trial, Attempt: attempt, Model: c.Settings.Model, Params: c.params}
}

// models returns the models to run with, at least one. An empty model lets the executor choose.
func models(req *record.Request, suite *eval.Suite) []string {
	switch {
	case len(req.Models) > 0:
		var models []string
		for _, m := range req.Models {
			if !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
		return models
	case req.Model != "":
		return []string{req.Model}
	case len(suite.Config.Models) > 0:
		return suite.Config.Models
	}
	return []string{suite.Config.Model}
}

// defaultJudge returns the model for judges that name none, where config.judge_model is not set.
// It is the same in all cells, because scores of different judges are not comparable. It is
// config.model or, without that, the first model of the matrix.
func defaultJudge(req *record.Request, suite *eval.Suite) string {
	models, asked := models(req, suite), req.Model != "" || len(req.Models) > 0
	if suite.Config.Model == "" || asked && len(models) == 1 {
		return models[0]
	}
	return suite.Config.Model
}

// preflightJudges warns when a model of the matrix judges the others and itself.
func (p *Plan) preflightJudges() decode.Diagnostics {
	var ds decode.Diagnostics
	if len(p.Config.Models) == 0 || p.Config.JudgeModel != "" || p.Config.Judge.Agent != "" || p.Suite.Config.Model != "" {
		return nil
	}
	kind, _ := p.graders.Lookup("prompt")
	for _, g := range p.specsOf(kind) {
		if judge.NamesNoJudge(g) {
			ds = append(ds, g.Diagnose(decode.At("model"), decode.Warning, decode.CodeMissingField,
				fmt.Sprintf("no judge model is set, so %s, the first of the compared models, judges them all; set config.judge_model", p.judge)))
		}
	}
	return ds
}
