package runner

import (
	"errors"
	"io"

	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/trial"
)

// chargeEarlier counts what earlier sessions spent, kept or not, for the budget is
// the run's. The error says why no more should be spent, or why it cannot be known.
func chargeEarlier(run *journal.Run, p *plan.Plan, rec *record.Run) error {
	if p.Pool.Budget() == nil {
		return nil
	}
	models := make(map[string]string, len(rec.Tasks))
	for i, t := range rec.Tasks {
		models[t.ID] = p.Tasks[i].Setup.Settings.Model
	}
	agents, judges := map[string]provider.Usage{}, provider.Usage{}
	err := eachSpending(run, func(task string, spent *record.Ledger) {
		model, known := models[task]
		if !known {
			model = p.Config.Model
		}
		if spent.Agent != nil {
			agents[model] = agents[model].Add(trial.ProviderUsage(spent.Agent))
		}
		judges = judges.Add(trial.ProviderUsage(spent.Judges))
	})
	if err == nil {
		err = p.Pool.Budget().Spend(judges) // whose costs are known
	}
	for model, u := range agents {
		if cerr := p.Pool.Charge(model, u); err == nil {
			err = cerr
		}
	}
	return err
}

// eachSpending visits what this run spent on each trial that was ever recorded and, without
// a task, on proposals for system prompts and on questions to judges after the trials.
func eachSpending(run *journal.Run, visit func(task string, spent *record.Ledger)) error {
	r, err := run.Journal()
	if err != nil {
		return err
	}
	defer r.Close()
	var l replay.Lifter
	for {
		line, _, _, err := r.NextWhole()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, at, err := l.Lift(line)
		if err == nil && e.Prompt != nil && e.Prompt.Usage != nil {
			visit("", &record.Ledger{Judges: e.Prompt.Usage})
		}
		if err == nil && e.Comparison != nil {
			visit("", &record.Ledger{Judges: e.Comparison.Usage})
		}
		if err == nil && e.Findings != nil {
			visit("", &record.Ledger{Judges: e.Findings.Usage})
		}
		if err != nil || e.Type != record.TrialComplete {
			continue
		}
		var t replay.Lean
		if t.Lift(line[at.Off:at.Off+int64(at.Size)]) != nil {
			continue
		}
		if spent := t.SpentHere(); spent != nil {
			visit(e.TaskID, spent)
		}
	}
}
