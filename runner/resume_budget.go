package runner

import (
	"encoding/json"
	"errors"
	"io"

	"waza/runner/journal"
	"waza/runner/provider"
)

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
	err := eachSpending(run, func(task string, spent *Ledger) {
		model, known := models[task]
		if !known {
			model = p.config.Model
		}
		agents[model] = agents[model].Add(providerUsage(spent.Agent))
		judges = judges.Add(providerUsage(spent.Judges))
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

// eachSpending visits what this run spent on each trial that was ever recorded.
func eachSpending(run *journal.Run, visit func(task string, spent *Ledger)) error {
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
		var t tallied
		if json.Unmarshal(line[at.off:at.off+int64(at.size)], &t) != nil {
			continue
		}
		if spent := t.SpentHere(); spent != nil {
			visit(e.TaskID, spent)
		}
	}
}
