package runner

import "waza/runner/stats"

// TriggerResult tells how well the agent knew when to use the skill under test.
// Each prompt weighs 1, or 0.5 where its confidence is medium, shared by those of
// its trials that gave an answer; errors and timeouts gave none. Quotients are
// nil where they are not defined.
type TriggerResult struct {
	Skill string `json:"skill,omitempty"`
	// Prompts is how many the suite has, run or not.
	Prompts int `json:"prompts"`
	// Measured: at least one prompt was answered. Note says why none was.
	Measured bool   `json:"measured"`
	Note     string `json:"note,omitempty"`
	// Precision is the share of uses of the skill that were right, Recall that
	// of prompts for it which led to its use, F1 their harmonic mean.
	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
	F1        *float64 `json:"f1"`
	// Accuracy is the share of right answers, with its Wilson 95 % interval over
	// as many prompts as the weights are worth.
	Accuracy         *float64        `json:"accuracy"`
	AccuracyInterval *stats.Interval `json:"accuracyInterval"`
	Confusion        Confusion       `json:"confusion"`
	// Trials counts those of all prompts: passed are right answers, failed wrong ones.
	Trials Counts `json:"trials"`
	// Errors counts the trials in error, Timeouts those whose time was up before
	// the agent had used the skill.
	Errors   int             `json:"errors"`
	Timeouts int             `json:"timeouts"`
	Results  []TriggerPrompt `json:"results,omitempty"`
}

// Confusion is the confusion matrix of trigger tests, in weights of prompts.
type Confusion struct {
	TruePositives  float64 `json:"truePositives"`
	FalsePositives float64 `json:"falsePositives"`
	TrueNegatives  float64 `json:"trueNegatives"`
	FalseNegatives float64 `json:"falseNegatives"`
}

// TriggerPrompt is what became of a prompt of the trigger tests.
type TriggerPrompt struct {
	ID string `json:"id"`
	TriggerRef
	// Verdict is passed when every answer was right.
	Verdict Verdict `json:"verdict"`
	// Triggered is how many of the Answered trials used the skill.
	Triggered int `json:"triggered"`
	Answered  int `json:"answered"`
	Errors    int `json:"errors,omitempty"`
	Timeouts  int `json:"timeouts,omitempty"`
}

// triggerResult sums up the trigger tests, in one cell or, with nil, in all; nil when
// the suite has none.
func (t *runTally) triggerResult(cell *CellRef) *TriggerResult {
	asked := t.rec.Triggers
	if asked == nil {
		return nil
	}
	r := &TriggerResult{Skill: asked.Skill, Prompts: asked.Prompts, Note: asked.Unmeasured}
	weights, squares := 0.0, 0.0
	for i := range t.rec.Tasks {
		ref := &t.rec.Tasks[i]
		if ref.Role != RoleTrigger || ref.Trigger == nil || t.tasks[i] == nil || !ref.Cell.in(cell) {
			continue
		}
		p := promptResult(ref, t.tasks[i])
		r.Results = append(r.Results, p)
		r.Trials.add(t.tasks[i].Trials.Counts)
		if p.Answered > 0 {
			w := ref.Trigger.weight()
			r.Confusion.add(p, w)
			weights += w
			squares += float64(w * w)
		}
	}
	r.Errors, r.Timeouts = r.Trials.Errors, r.Trials.Timeouts
	r.Measured = weights > 0
	if r.Measured {
		r.quotients()
		i := stats.WilsonShare(*r.Accuracy, float64(weights*weights)/squares, stats.DefaultConfidence)
		r.AccuracyInterval = &i
	} else if r.Note == "" {
		r.Note = "not measured: no prompt was answered"
	}
	return r
}

func promptResult(ref *TaskRef, res *TaskResult) TriggerPrompt {
	c := res.Trials.Counts
	p := TriggerPrompt{
		ID: ref.ID, TriggerRef: *ref.Trigger, Verdict: res.Verdict,
		Triggered: c.Failed, Answered: c.Passed + c.Failed, Errors: c.Errors, Timeouts: c.Timeouts,
	}
	if p.ShouldTrigger {
		p.Triggered = c.Passed
	}
	return p
}

// add shares the weight of a prompt among its answers.
func (c *Confusion) add(p TriggerPrompt, weight float64) {
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

func (r *TriggerResult) quotients() {
	c := r.Confusion
	r.Precision = quotient(c.TruePositives, c.TruePositives+c.FalsePositives)
	r.Recall = quotient(c.TruePositives, c.TruePositives+c.FalseNegatives)
	r.F1 = quotient(2*c.TruePositives, 2*c.TruePositives+c.FalsePositives+c.FalseNegatives)
	right := c.TruePositives + c.TrueNegatives
	r.Accuracy = quotient(right, right+c.FalsePositives+c.FalseNegatives)
}

// quotient is nil where it is not defined.
func quotient(part, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	q := min(1, part/whole)
	return &q
}
