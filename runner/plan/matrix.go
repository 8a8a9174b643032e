package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/record"
)

// Setup is the configuration that executes the trials of some tasks. A run without a matrix has
// one.
type Setup struct {
	ref      *record.Cell // nil without a matrix
	cell     string       // the name in config.cells; empty if the cell has none
	Executor executor.Kind
	Settings executor.Settings
	ownModel bool              // the model is that of some tasks, in place of that of the cell
	params   map[string]string // as templates and programs receive them
	// Baselines and triggers are the reasons why the cell measures no baselines and no trigger
	// tests; empty when it does.
	Baselines, triggers string
}

// does reports whether the cell does a task.
func (c *Setup) does(t *eval.Task) bool { return len(t.Cells) == 0 || slices.Contains(t.Cells, c.cell) }

// name turns a setup into a cell of a matrix. Its name contains the model if there are several.
func (c *Setup) name(v eval.Variant, several bool, taken map[string]bool) {
	c.ref = &record.Cell{Model: c.Settings.Model}
	var parts []string
	own, replaced := nameWith(v, c.Settings.Model)
	if several && !replaced {
		parts = append(parts, oneLine(c.Settings.Model))
	}
	if own != "" {
		parts = append(parts, oneLine(own))
	}
	for _, p := range v.Params {
		if c.params == nil {
			c.params, c.ref.Params = map[string]string{}, map[string]any{}
		}
		text := eval.ParamText(p.Value)
		c.params[p.Name], c.ref.Params[p.Name] = text, p.Value
		if place, ok := p.Value.(eval.Proposal); ok {
			c.ref.Generation, c.ref.Proposal, c.ref.Params[p.Name] = place.Generation, place.Number, text
		}
		if v.Name != "" {
			continue
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

// nameWith returns the name of a cell with the model that replaces its own one in it. It reports whether the
// name had that model.
func nameWith(v eval.Variant, model string) (name string, replaced bool) {
	if v.Model == "" || v.Model == model {
		return v.Name, false
	}
	parts := strings.Split(v.Name, ", ")
	for i, p := range parts {
		if p == v.Model {
			parts[i], replaced = model, true
		}
	}
	return strings.Join(parts, ", "), replaced
}

// maxValue limits the runes of a value in the name of a cell.
const maxValue = 40

// oneLine returns a value for a name: short, and without line ends and brackets.
func oneLine(value string) string {
	line := strings.Map(func(r rune) rune {
		switch {
		case r == '[' || r == ']':
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, value)
	return text.ClipRunes(line, maxValue)
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
