package runner

import (
	"waza/runner/plan"
	"waza/runner/record"
)

// spending is what earlier run sessions spent. The budget covers the whole run, so the next
// session charges it.
type spending struct {
	plan   *plan.Plan
	models map[string]string // of tasks, by id
	agents map[string]*record.Usage
	judges *record.Usage
}

func newSpending(p *plan.Plan, rec *record.Run) *spending {
	s := &spending{plan: p, models: make(map[string]string, len(rec.Tasks)), agents: map[string]*record.Usage{}, judges: &record.Usage{}}
	for i, t := range rec.Tasks {
		s.models[t.ID] = p.Tasks[i].Setup.Settings.Model
	}
	return s
}

// add adds what a trial of a task spent; an empty task means no single one.
func (s *spending) add(task string, spent *record.Ledger) {
	model, known := s.models[task]
	if !known {
		model = s.plan.Config.Model
	}
	if spent.Agent != nil {
		s.agents[model] = record.AddUsage(s.agents[model], spent.Agent)
	}
	s.judges = record.AddUsage(record.AddUsage(s.judges, spent.Judges), spent.Responder)
}

// charge charges everything to the budget, if there is one. The error explains why no more may be
// spent.
func (s *spending) charge() error {
	if s.plan.Pool.Budget() == nil {
		return nil
	}
	err := s.plan.Pool.Budget().Spend(*s.judges) // their costs are known
	for model, u := range s.agents {
		if cerr := s.plan.Pool.Charge(model, *u); err == nil {
			err = cerr
		}
	}
	return err
}
