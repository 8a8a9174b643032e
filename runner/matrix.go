package runner

import (
	"waza/eval"
	"waza/runner/executor"
)

// CellRef names a cell of a run's matrix: one combination of model and parameters.
type CellRef struct {
	// Name tells the cell from the others of its run.
	Name string `json:"name"`
	// Model is empty when the executor chooses.
	Model string `json:"model,omitempty"`
	// Params are the parameters by name: texts, numbers and truth values.
	Params map[string]any `json:"params,omitempty"`
}

// cell is what the trials of some tasks are executed with. A run without a matrix
// has one.
type cell struct {
	ref      *CellRef // nil without a matrix
	executor executor.Kind
	settings executor.Settings
	// baselines and triggers say why the cell measures none; empty when it does.
	baselines, triggers string
}

// newCell makes an executor of the suite ready to be opened. Options may be nil.
func (p *Plan) newCell(kind executor.Kind, options any, model string) *cell {
	if options == nil && kind.Options != nil {
		options = kind.Options()
	}
	c := &cell{executor: kind, settings: executor.Settings{
		Suite: p.Suite, Options: options, Model: model, Workers: p.config.ActualWorkers, Providers: p.pool,
	}}
	c.baselines, c.triggers = c.unmeasuredBaseline(), c.unmeasuredTriggers()
	return c
}

func (c *cell) can() executor.Capabilities { return c.executor.Can(c.settings) }

// vars are the template variables of a trial.
func (c *cell) vars(runID string, trial, attempt int) eval.TrialVars {
	return eval.TrialVars{RunID: runID, Trial: trial, Attempt: attempt}
}
