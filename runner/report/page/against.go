package page

import (
	"context"
	"strings"
	"time"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report"
)

// htmlAgainst is the earlier run to compare with.
type htmlAgainst struct {
	RunID     string          `json:"runId"`
	StartedAt time.Time       `json:"startedAt"`
	Agent     string          `json:"agent,omitempty"`
	Model     string          `json:"model,omitempty"`
	Summary   *record.Summary `json:"summary,omitempty"`
	// Gone lists the tasks that this run does not have.
	Gone []string `json:"gone,omitempty"`
	// Sections is what waza compare prints about the two runs, in its words. Uncompared is why they
	// are missing.
	Sections   []report.Section `json:"sections,omitempty"`
	Uncompared string           `json:"uncompared,omitempty"`
}

// htmlWas is the result of a task in the earlier run.
type htmlWas struct {
	Verdict record.Verdict `json:"verdict,omitempty"`
	Rate    *float64       `json:"rate"`
	Score   *float64       `json:"score"`
	New     bool           `json:"new,omitempty"`
}

// compare adds the results of tasks and trials in an earlier run.
func (d *htmlData) compare(h record.Handle, o Options) error {
	rec, against := h.Record(), o.Against
	rep, err := report.OfResults(against)
	if err != nil {
		return err
	}
	before := rep.Record
	d.page.Against = &htmlAgainst{
		RunID: before.RunID, StartedAt: rep.StartedAt, Agent: before.Config.Agent, Model: before.ModelText(nil), Summary: rep.Summary,
	}
	d.conclude(h, o)
	now := map[string]int{}
	for i, t := range rec.Tasks {
		now[t.ID] = i
		d.tasks[i].Was = &htmlWas{New: true}
	}
	for i, ref := range before.Tasks {
		if n, ok := now[ref.ID]; ok {
			was := htmlTaskOf(ref, rep.Tasks[i].Result)
			d.tasks[n].Was = &htmlWas{Verdict: was.Verdict, Rate: was.Rate, Score: was.Score}
		} else {
			d.page.Against.Gone = append(d.page.Against.Gone, ref.ID)
		}
	}
	return d.compareTrials(before, against, now)
}

// conclude adds the tests of waza compare, or why they are missing, because the report of the run can
// be read without them.
func (d *htmlData) conclude(h record.Handle, o Options) {
	c, err := compare.Compare(context.Background(), []compare.Source{compare.FromRun(o.Against), compare.FromRun(h)},
		compare.Options{Ledger: o.Ledger})
	if err != nil {
		d.page.Against.Uncompared = err.Error()
		return
	}
	d.page.Against.Sections = report.Sections(c)
}

// compareTrials adds the earlier verdict of each trial with the same task and number.
func (d *htmlData) compareTrials(before *record.Run, against record.Handle, now map[string]int) error {
	was := []byte(strings.Repeat(" ", len(d.columns.num)))
	err := against.Outcomes(func(task int, t *record.Trial, _ int64) error {
		n, ok := now[before.Tasks[task].ID]
		if !ok {
			return nil
		}
		if at, ok := d.find(n, t.TrialNum); ok {
			was[at] = letterOf(t.Verdict)
		}
		return nil
	})
	d.columns.was = string(was)
	return err
}
