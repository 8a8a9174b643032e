package plan

import (
	"sync"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/grader/judge"
	"waza/runner/record"
)

// needs caches what executors and graders of a plan need, because tasks share most of it. It is safe
// for concurrent use.
type needs struct {
	registry *grader.Registry
	env      *grader.Env

	mu      sync.Mutex    // guards the fields below
	sandbox []record.Need // of all trials; set once
	cells   map[*Setup][]record.Need
	graders map[*eval.Grader][]record.Need
	askers  map[string][]record.Need // of responders, by model
}

// once returns the cached needs of a key, or finds and caches them.
func once[K comparable](known *map[K][]record.Need, key K, find func() []record.Need) []record.Need {
	list, ok := (*known)[key]
	if !ok {
		if *known == nil {
			*known = map[K][]record.Need{}
		}
		list = find()
		(*known)[key] = list
	}
	return list
}

// of lists what a machine needs to execute trials of a task, see [record.Order]. It
// excludes files of the suite and built-in executors and graders.
func (n *needs) of(t *Task) []record.Need {
	n.mu.Lock()
	defer n.mu.Unlock()
	lists := [][]record.Need{n.sandbox, once(&n.cells, t.Setup, func() []record.Need { return t.Setup.needs() })}
	if len(t.repos) > 0 {
		lists = append(lists, executor.ProgramNeeds("git", false))
	}
	if t.Grades() {
		for _, g := range t.AllGraders() {
			lists = append(lists, once(&n.graders, g, func() []record.Need { return n.ofGrader(g) }))
		}
	}
	if r := t.Inputs.Responder; r != nil && t.Role != record.RoleTrigger {
		lists = append(lists, once(&n.askers, r.Model, func() []record.Need { return judge.AskerNeeds(n.env, r.Model) }))
	}
	return record.JoinNeeds(lists...)
}

func (c *Setup) needs() (list []record.Need) {
	if _, ok := Executors.Lookup(c.Executor.Name); !ok {
		list = append(list, record.Need{Kind: record.NeedExecutor, Name: c.Executor.Name})
	}
	if c.Executor.Needs != nil {
		list = append(list, c.Executor.Needs(c.Settings)...)
	}
	return list
}

func (n *needs) ofGrader(g *eval.Grader) (list []record.Need) {
	if _, ok := builtin.Graders.Lookup(g.Type); !ok {
		list = append(list, record.Need{Kind: record.NeedGrader, Name: g.Type})
	}
	if kind, ok := n.registry.Lookup(g.Type); ok && kind.Needs != nil {
		list = append(list, kind.Needs(g, n.env)...)
	}
	return list
}
