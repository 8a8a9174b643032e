package tally

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// triggerResult summarizes the trigger tests of one cell or, with nil, of all. It returns nil
// when the suite has none.
func (t *summing) triggerResult(cell *record.Cell) *record.TriggerResult {
	asked := t.rec.Triggers
	if asked == nil {
		return nil
	}
	r := &record.TriggerResult{Skill: asked.Skill, Prompts: asked.Prompts, Note: asked.Unmeasured}
	var parts []stats.Part
	for i := range t.rec.Tasks {
		ref := &t.rec.Tasks[i]
		if ref.Role != record.RoleTrigger || ref.Trigger == nil || t.tasks[i] == nil || !ref.Cell.In(cell) {
			continue
		}
		p := promptResult(ref, t.tasks[i])
		r.Results = append(r.Results, p)
		r.Trials.Merge(t.tasks[i].Trials.Counts)
		r.EndedEarly += t.endedEarly[i]
		if p.Answered+p.Timeouts > 0 {
			w := ref.Trigger.Weight()
			addPrompt(&r.Confusion, p, w)
			right := stats.RatePart(stats.Share{Passed: t.tasks[i].Trials.Passed, N: p.Answered + p.Timeouts})
			right.Weight = w
			parts = append(parts, right)
		}
	}
	r.Errors, r.Timeouts = r.Trials.Errors, r.Trials.Timeouts
	accuracy, measured := stats.MeanOver(parts, stats.DefaultConfidence)
	r.Measured = measured
	if r.Measured {
		addQuotients(r)
		r.AccuracyInterval = &accuracy.Interval
	} else if r.Note == "" {
		r.Note = "not measured: no prompt was answered"
	}
	return r
}

func promptResult(ref *record.TaskRef, res *record.Task) record.TriggerPrompt {
	c := res.Trials.Counts
	p := record.TriggerPrompt{
		ID: ref.ID, TriggerRef: *ref.Trigger, Verdict: res.Verdict,
		Triggered: c.Failed, Answered: c.Passed + c.Failed, Errors: c.Errors, Timeouts: c.Timeouts,
	}
	if p.ShouldTrigger {
		p.Triggered = c.Passed
	}
	return p
}

// addPrompt divides the weight of a prompt among its answers and timeouts. An agent that did not
// use the skill in time did not use it.
func addPrompt(c *record.Confusion, p record.TriggerPrompt, weight float64) {
	share := func(n int) float64 { return weight * float64(n) / float64(p.Answered+p.Timeouts) }
	if p.ShouldTrigger {
		c.TruePositives += share(p.Triggered)
		c.FalseNegatives += share(p.Answered - p.Triggered + p.Timeouts)
	} else {
		c.FalsePositives += share(p.Triggered)
		c.TrueNegatives += share(p.Answered - p.Triggered)
		c.Unanswered += share(p.Timeouts)
	}
}

func addQuotients(r *record.TriggerResult) {
	c := r.Confusion
	r.Precision = quotient(c.TruePositives, c.TruePositives+c.FalsePositives)
	r.Recall = quotient(c.TruePositives, c.TruePositives+c.FalseNegatives)
	r.F1 = quotient(2*c.TruePositives, 2*c.TruePositives+c.FalsePositives+c.FalseNegatives)
	right := c.TruePositives + c.TrueNegatives
	r.Accuracy = quotient(right, right+c.FalsePositives+c.FalseNegatives+c.Unanswered)
}

// quotient returns part/whole; nil where that is undefined.
func quotient(part, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	q := min(1, part/whole)
	return &q
}
