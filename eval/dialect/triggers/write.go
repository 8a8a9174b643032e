package triggers

import "waza/eval/dialect"

// entry is an entry of a trigger set.
type entry struct {
	Skill     string   `json:"skill,omitempty"`
	Query     string   `json:"query"`
	Should    bool     `json:"should_trigger"`
	Accept    []string `json:"acceptable,omitempty"`
	Forbidden []string `json:"should_not_trigger,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

// write returns the trigger tests of a suite: the list that run_eval.py reads or, with another
// threshold than its own, a map.
func write(d *dialect.Document) ([]dialect.File, error) {
	for _, key := range d.Settings {
		if key.Name != "config.trials_per_task" {
			d.LoseSetting(key)
		}
	}
	d.TakeUsualSkills()
	for _, key := range d.Others {
		if key.Name != "graders" {
			d.Lose(true, key.Name, "")
		}
	}
	for i := range d.Cases {
		d.Lose(true, "task "+d.Cases[i].ID, "a trigger set has no tasks")
	}
	entries := []entry{}
	t := d.Triggers
	if t == nil {
		d.Lose(true, "trigger_tests", "the suite has none")
		return dialect.JSONFile(writtenName, entries)
	}
	seen := map[key]bool{}
	for _, p := range t.Prompts {
		k := key{p.Skill, p.Prompt}
		if seen[k] {
			d.Lose(true, "trigger test "+p.Prompt, "of two entries with the same query and skill, the last one counts")
		}
		seen[k] = true
		e := entry{p.Skill, p.Prompt, p.Should, p.Acceptable, p.Forbidden, p.Reason}
		if p.Half {
			d.Lose(false, "confidence of "+p.Prompt, "all queries have the same weight")
		}
		entries = append(entries, e)
	}
	if t.Trials != defaultRuns {
		d.Lose(false, "config.trials_per_task", "a query has 3 trials")
	}
	if !t.FirstTool {
		d.Lose(false, "first_tool", "run_eval.py lets the first tool call decide; waza looks at the whole trial")
	}
	if t.Threshold == nil {
		d.Lose(true, "pass_threshold", "a query passes with half of its trials")
	} else if *t.Threshold != defaultThreshold {
		return dialect.JSONFile(writtenName, struct {
			Skill     string  `json:"skill_name,omitempty"`
			Threshold float64 `json:"pass_threshold"`
			Queries   []entry `json:"queries"`
		}{d.Skill, *t.Threshold, entries})
	}
	if d.Skill != "" {
		d.Lose(false, "skill", "the place of the file names it: skills/NAME/evals/")
	}
	return dialect.JSONFile(writtenName, entries)
}
