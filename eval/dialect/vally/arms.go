package vally

import (
	"slices"
	"strings"

	"waza/eval/dialect"
)

// An arm does some of the stimuli: in a variant of an experiment, with an executor. It becomes a cell if
// there are several.
type arm struct {
	variant, executor string // each can be empty
	stimuli           []*stimulus
}

// arms are the arms of a run, in the order of their first stimuli.
type arms struct{ list []*arm }

// add adds a stimulus to its arm.
func (a *arms) add(s *stimulus) {
	variant := ""
	if s.variant != nil {
		variant = s.variant.name
	}
	i := slices.IndexFunc(a.list, func(other *arm) bool { return other.variant == variant && other.executor == s.executor })
	if i < 0 {
		i = len(a.list)
		a.list = append(a.list, &arm{variant: variant, executor: s.executor})
	}
	a.list[i].stimuli = append(a.list[i].stimuli, s)
}

// setConfig sets the model and the executor of the suite or, if there are several arms, its cells. Each
// task then names its cell.
func (a *arms) setConfig(config dialect.Map) {
	executors := map[string]bool{}
	for _, one := range a.list {
		executors[one.executor] = true
	}
	if len(executors) == 1 && a.list[0].executor != "" {
		config.Set("executor", dialect.Scalar(a.list[0].stimuli[0].executorNode, a.list[0].executor))
	}
	if len(a.list) == 1 && a.list[0].variant == "" {
		if model := a.list[0].takeModel(); model != "" {
			config.Set("model", dialect.Scalar(a.list[0].stimuli[0].modelNode, model))
		}
		return
	}
	names := a.names()
	cells := dialect.List(nil)
	for i, one := range a.list {
		cell := dialect.NewMap(nil)
		cell.Set("name", dialect.Scalar(nil, names[i]))
		if model := one.takeModel(); model != "" {
			cell.Set("model", dialect.Scalar(nil, model))
		}
		if len(executors) > 1 && one.executor != "" {
			cell.Set("executor", dialect.Scalar(nil, one.executor))
		}
		cells.Content = append(cells.Content, cell.Node)
		for _, s := range one.stimuli {
			s.task.Set("cells", dialect.Texts(s.node, names[i]))
		}
	}
	if len(cells.Content) > 0 {
		config.Set("cells", cells)
	}
}

// takeModel returns the model of all stimuli of the arm. If evals of an experiment have different models,
// it returns "" and gives them to the tasks.
func (a *arm) takeModel() string {
	model := a.stimuli[0].model
	if !slices.ContainsFunc(a.stimuli, func(s *stimulus) bool { return s.model != model }) {
		return model
	}
	for _, s := range a.stimuli {
		if s.model != "" && s.task.Get("model") == nil {
			s.task.Set("model", dialect.Scalar(s.modelNode, s.model))
		}
	}
	return ""
}

// names returns the name of each arm: its variant, and its executor if others have the same variant.
func (a *arms) names() []string {
	var names []string
	for _, one := range a.list {
		var parts []string
		if one.variant != "" {
			parts = append(parts, one.variant)
		}
		if len(parts) == 0 || slices.ContainsFunc(a.list, func(other *arm) bool { return other.variant == one.variant && other != one }) {
			parts = append(parts, "executor "+either(one.executor == "", "of the run", one.executor))
		}
		names = append(names, strings.Join(parts, ", "))
	}
	return names
}
