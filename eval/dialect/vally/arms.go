package vally

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// An arm does some of the stimuli: in a variant of an experiment, with a model and an executor. It becomes a
// cell if there are several.
type arm struct {
	variant, model, executor string // each can be empty
	stimuli                  []*stimulus
}

// arms are the arms of a run, in the order of their first stimuli.
type arms struct{ list []*arm }

// add adds a stimulus to its arm.
func (a *arms) add(s *stimulus) {
	variant := ""
	if s.variant != nil {
		variant = s.variant.name
	}
	i := slices.IndexFunc(a.list, func(other *arm) bool {
		return other.variant == variant && other.model == s.model && other.executor == s.executor
	})
	if i < 0 {
		i = len(a.list)
		a.list = append(a.list, &arm{variant: variant, model: s.model, executor: s.executor})
	}
	a.list[i].stimuli = append(a.list[i].stimuli, s)
}

// setConfig sets the model and the executor of the suite or, if there are several arms, its cells. Each
// task then names its cell.
func (a *arms) setConfig(config dialect.Map) {
	a.requireModels()
	executors := map[string]bool{}
	for _, one := range a.list {
		executors[one.executor] = true
	}
	if len(executors) == 1 && a.list[0].executor != "" {
		config.Set("executor", dialect.Scalar(a.list[0].stimuli[0].executorNode, a.list[0].executor))
	}
	if len(a.list) == 1 && a.list[0].variant == "" {
		if model := a.list[0].model; model != "" {
			config.Set("model", dialect.Scalar(a.list[0].stimuli[0].modelNode, model))
		}
		return
	}
	names := a.names()
	cells := dialect.List(nil)
	for i, one := range a.list {
		cell := dialect.NewMap(nil)
		cell.Set("name", dialect.Scalar(nil, names[i]))
		if one.model != "" {
			cell.Set("model", dialect.Scalar(nil, one.model))
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

// requireModels blocks the stimuli with a model of their own if others have none, because only a run
// without any model lets the executor choose one.
func (a *arms) requireModels() {
	if !slices.ContainsFunc(a.list, func(one *arm) bool { return one.model == "" }) {
		return
	}
	all := a.list
	a.list = nil
	for _, one := range all {
		for _, s := range one.stimuli {
			if s.model != "" {
				s.block(s.modelNode, decode.CodeUnavailable, "this stimulus has a model, and others of the run have none; set defaults.model")
				s.model = ""
				_, s.executor = s.executorOf(s.settings.get("executor"))
				s.setBlocked()
			}
			a.add(s)
		}
	}
}

// names returns the name of each arm: its variant, and its model and executor if others have the same.
func (a *arms) names() []string {
	var names []string
	for _, one := range a.list {
		same := func(differs func(other *arm) bool) bool {
			return slices.ContainsFunc(a.list, func(other *arm) bool { return other.variant == one.variant && differs(other) })
		}
		var parts []string
		if one.variant != "" {
			parts = append(parts, one.variant)
		}
		if one.model != "" && (one.variant == "" || same(func(other *arm) bool { return other.model != one.model })) {
			parts = append(parts, one.model)
		}
		if len(parts) == 0 || same(func(other *arm) bool { return other.model == one.model && other.executor != one.executor }) {
			parts = append(parts, "executor "+either(one.executor == "", "of the run", one.executor))
		}
		name := strings.Join(parts, ", ")
		for k := 2; slices.Contains(names, name); k++ {
			name = fmt.Sprintf("%s, %d", strings.Join(parts, ", "), k)
		}
		names = append(names, name)
	}
	return names
}
