package tally

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// triggerResult summarizes the trigger tests of one cell or, with nil, of all. It returns nil
// when the suite has none.
func (t *Run) triggerResult(cell *record.Cell) *record.TriggerResult {
	asked := t.rec.Triggers
	if asked == nil {
		return nil
	}
	r := &record.TriggerResult{Skill: asked.Skill, Prompts: asked.Prompts, Note: asked.Unmeasured}
	weights, squares := 0.0, 0.0
	for i := range t.rec.Tasks {
		ref := &t.rec.Tasks[i]
		if ref.Role != record.RoleTrigger || ref.Trigger == nil || t.tasks[i] == nil || !ref.Cell.In(cell) {
			continue
		}
		p := promptResult(ref, t.tasks[i])
		r.Results = append(r.Results, p)
		r.Trials.Merge(t.tasks[i].Trials.Counts)
		if p.Answered > 0 {
			w := ref.Trigger.Weight()
			addPrompt(&r.Confusion, p, w)
			weights += w
			squares += float64(w * w)
		}
	}
	r.Errors, r.Timeouts = r.Trials.Errors, r.Trials.Timeouts
	r.Measured = weights > 0
	if r.Measured {
		addQuotients(r)
		i := stats.WilsonShare(*r.Accuracy, float64(weights*weights)/squares, stats.DefaultConfidence)
		r.AccuracyInterval = &i
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

// addPrompt divides the weight of a prompt among its answers.
func addPrompt(c *record.Confusion, p record.TriggerPrompt, weight float64) {
	triggered := weight * float64(p.Triggered) / float64(p.Answered)
	not := weight * float64(p.Answered-p.Triggered) / float64(p.Answered)
	if p.ShouldTrigger {
		c.TruePositives += triggered
		c.FalseNegatives += not
	} else {
		c.FalsePositives += triggered
		c.TrueNegatives += not
	}
}

func addQuotients(r *record.TriggerResult) {
	c := r.Confusion
	r.Precision = quotient(c.TruePositives, c.TruePositives+c.FalsePositives)
	r.Recall = quotient(c.TruePositives, c.TruePositives+c.FalseNegatives)
	r.F1 = quotient(2*c.TruePositives, 2*c.TruePositives+c.FalsePositives+c.FalseNegatives)
	right := c.TruePositives + c.TrueNegatives
	r.Accuracy = quotient(right, right+c.FalsePositives+c.FalseNegatives)
}

// quotient returns part/whole; nil where that is undefined.
func quotient(part, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	q := min(1, part/whole)
	return &q
}
