package runner

import (
	"encoding/json"
	"errors"
	"io"

	"waza/runner/executor"
	"waza/runner/journal"
	"waza/runner/provider"
)

// spending is what a recorded trial cost: of it, and of each attempt before.
type spending struct {
	Usage   *executor.Usage `json:"usage"`
	Graders []struct {
		Details json.RawMessage `json:"details"`
	} `json:"graders"`
	Attempts []spending  `json:"attempts"`
	Cached   *CachedFrom `json:"cached"`
}

// chargeEarlier counts what earlier sessions spent, kept or not, for the budget is
// the run's. The error says why no more should be spent, or why it cannot be known.
func chargeEarlier(run *journal.Run, p *Plan, rec *Record) error {
	if p.pool.Budget() == nil {
		return nil
	}
	models := make(map[string]string, len(rec.Tasks))
	for i, t := range rec.Tasks {
		models[t.ID] = p.Tasks[i].cell.settings.Model
	}
	agents, judges := map[string]provider.Usage{}, provider.Usage{}
	err := eachSpending(run, func(task string, s *spending) {
		model, known := models[task]
		if !known {
			model = p.config.Model
		}
		agents[model] = agents[model].Add(s.agent())
		judges = judges.Add(s.judges())
	})
	if err == nil {
		err = p.pool.Budget().Spend(judges) // whose costs are known
	}
	for model, u := range agents {
		if cerr := p.pool.Charge(model, u); err == nil {
			err = cerr
		}
	}
	return err
}

// eachSpending visits what each trial cost that was ever recorded, but for those
// that were taken over from another run.
func eachSpending(run *journal.Run, visit func(task string, s *spending)) error {
	r, err := run.Journal()
	if err != nil {
		return err
	}
	defer r.Close()
	var l lifter
	for {
		line, _, _, err := r.NextWhole()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, at, err := l.lift(line)
		if err != nil || e.Type != TrialComplete {
			continue
		}
		var s spending
		if json.Unmarshal(line[at.off:at.off+int64(at.size)], &s) == nil && s.Cached == nil {
			visit(e.TaskID, &s)
		}
	}
}

func (s *spending) agent() provider.Usage {
	sum := providerUsage(s.Usage)
	for i := range s.Attempts {
		sum = sum.Add(s.Attempts[i].agent())
	}
	return sum
}

func (s *spending) judges() provider.Usage {
	var sum provider.Usage
	for _, g := range s.Graders {
		var d struct {
			Usage *executor.Usage `json:"usage"`
		}
		if json.Unmarshal(g.Details, &d) == nil {
			sum = sum.Add(providerUsage(d.Usage))
		}
	}
	for i := range s.Attempts {
		sum = sum.Add(s.Attempts[i].judges())
	}
	return sum
}

// providerUsage is an agent's usage as budgets count it.
func providerUsage(u *executor.Usage) provider.Usage {
	if u == nil {
		return provider.Usage{}
	}
	return provider.Usage{InputTokens: u.InputTokens, OutputTokens: max(u.OutputTokens, u.Total()-u.InputTokens), CostUSD: u.CostUSD}
}
