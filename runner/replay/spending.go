package replay

import "waza/runner/record"

// A Spender receives what a run spent on a trial. task is the id of the trial's task. It is empty for
// proposals of system prompts, and for questions to judges after the trials.
type Spender func(task string, spent *record.Ledger)

// visitor returns a visitor that passes what this run spent on each recorded trial, including those
// that a later run session dropped. It is nil for a nil Spender.
func (spend Spender) visitor() eventVisitor {
	if spend == nil {
		return nil
	}
	return func(e *record.Event, trial []byte) {
		for _, u := range judgesUsage(e) {
			spend("", &record.Ledger{Judges: u})
		}
		if e.Type != record.TrialComplete {
			return
		}
		var t LeanTrial
		if t.Lift(trial) != nil {
			return
		}
		if spent := t.SpentHere(); spent != nil {
			spend(e.TaskID, spent)
		}
	}
}

// judgesUsage returns what an event besides those of trials spent.
func judgesUsage(e *record.Event) (list []*record.Usage) {
	if e.Prompt != nil && e.Prompt.Usage != nil {
		list = append(list, e.Prompt.Usage)
	}
	if e.Comparison != nil {
		list = append(list, e.Comparison.Usage)
	}
	if e.Findings != nil {
		list = append(list, e.Findings.Usage)
	}
	return list
}
