package runner

import (
	"errors"
	"io"

	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/replay"
)

// chargeEarlier charges the cost of earlier run sessions to the budget, because the budget
// covers the whole run. The error explains why no more may be spent, or why the cost is unknown.
func chargeEarlier(run *journal.Run, p *plan.Plan, rec *record.Run) error {
	if p.Pool.Budget() == nil {
		return nil
	}
	models := make(map[string]string, len(rec.Tasks))
	for i, t := range rec.Tasks {
		models[t.ID] = p.Tasks[i].Setup.Settings.Model
	}
	agents, judges := map[string]*record.Usage{}, &record.Usage{}
	err := eachSpending(run, func(task string, spent *record.Ledger) {
		model, known := models[task]
		if !known {
			model = p.Config.Model
		}
		if spent.Agent != nil {
			agents[model] = record.AddUsage(agents[model], spent.Agent)
		}
		judges = record.AddUsage(record.AddUsage(judges, spent.Judges), spent.Responder)
	})
	if err == nil {
		err = p.Pool.Budget().Spend(*judges) // their costs are known
	}
	for model, u := range agents {
		if cerr := p.Pool.Charge(model, *u); err == nil {
			err = cerr
		}
	}
	return err
}

// eachSpending visits what this run spent on each recorded trial. With an empty task, it visits
// proposals of system prompts, and questions to judges after the trials.
func eachSpending(run *journal.Run, visit func(task string, spent *record.Ledger)) error {
	r, err := run.Journal()
	if err != nil {
		return err
	}
	defer r.Close()
	var l replay.Lifter
	for {
		line, _, _, err := r.NextUndamaged()
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
		var t replay.LeanTrial
		if t.Lift(line[at.Off:at.Off+int64(at.Size)]) != nil {
			continue
		}
		if spent := t.SpentHere(); spent != nil {
			visit(e.TaskID, spent)
		}
	}
}
