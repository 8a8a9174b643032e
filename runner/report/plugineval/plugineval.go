// Package plugineval writes a run as aggregate-result.json of `claude plugin eval`. Call [Write] for the
// file.
package plugineval

import (
	"cmp"
	"encoding/json"
	"io"
	"path"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/tally"
)

// maxExplanation is the maximum number of bytes of an explanation.
const maxExplanation = 2000

// Write writes the document. Trigger tests are left out, and so are trials without a result.
func Write(w io.Writer, h record.Handle) error {
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	results, err := h.Results()
	if err != nil {
		return err
	}
	rec := h.Record()
	doc := documentOf(rec, &progress)
	if damage != nil {
		doc.Partial, doc.Damage = true, damage.String()
	}
	cases := doc.addCases(rec)
	err = h.Outcomes(func(task int, t *record.Trial, _ int64) error {
		if c := cases[task]; c != nil {
			c.add(rec.Tasks[task].Role, t)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range cases {
		if c != nil && rec.Tasks[i].Role == record.RoleTask && i < len(results) && results[i] != nil && results[i].Verdict == record.Passed {
			doc.Aggregates.CasesPassed++
		}
	}
	doc.aggregate()
	if doc.Partial {
		doc.PartialReason = cmp.Or(doc.PartialReason, "interrupted")
	}
	encoder := json.NewEncoder(report.JSONWriter(w))
	encoder.SetIndent("", "  ")
	return encoder.Encode(doc)
}

func documentOf(rec *record.Run, progress *record.Progress) *document {
	doc := &document{
		SchemaVersion: schemaVersion, Partial: progress.Status != record.StatusCompleted, Cases: []*oneCase{},
		Suite: suite{
			Ablation: "none", Threshold: 1, JudgeModel: rec.Config.JudgeModel,
			Plugins: []plugin{{Name: rec.Suite.Name, Version: rec.Suite.Version}},
		},
	}
	if !progress.StartedAt.IsZero() {
		doc.StartedAt = progress.StartedAt.UTC().Format(time.RFC3339Nano)
	}
	if ms := progress.TookMS(); ms != nil {
		doc.DurationSeconds = seconds(*ms)
	}
	if progress.Summary != nil {
		doc.CostUSD = costOf(progress.Summary.UsageByRole.Total())
	}
	if progress.Status == record.StatusCancelled && progress.Error != "" { // see record.EndingOf
		doc.PartialReason = "cost_ceiling"
	}
	return doc
}

func seconds(ms int64) *float64 { return new(float64(ms) / 1000) }

// costOf returns a cost; nil if it is unknown.
func costOf(u *record.Usage) *float64 {
	if u == nil || u.CostUSD <= 0 {
		return nil
	}
	return &u.CostUSD
}

// addCases adds a case for each task of the suite, and returns the case of each task of the record, which
// a task and its baseline share; nil for trigger tests.
func (d *document) addCases(rec *record.Run) []*oneCase {
	cases, byID := make([]*oneCase, len(rec.Tasks)), map[string]*oneCase{}
	for i := range rec.Tasks {
		ref := &rec.Tasks[i]
		if ref.Role != record.RoleTask {
			continue
		}
		c := &oneCase{
			Name: ref.ID, Dir: path.Dir(strings.ReplaceAll(ref.File, `\`, "/")), RunsPerCase: ref.Trials,
			Graders: []graderSpec{}, Arms: arms{With: []oneRun{}}, Model: rec.ModelOf(ref),
		}
		cases[i], byID[ref.ID] = c, c
		d.Cases = append(d.Cases, c)
	}
	for i := range rec.Tasks {
		if c := byID[rec.Tasks[i].Of]; rec.Tasks[i].Role == record.RoleBaseline && c != nil {
			cases[i] = c
			c.Arms.Without = &[]oneRun{}
			d.Suite.Ablation = "with-without"
		}
	}
	d.Aggregates.CasesTotal = len(d.Cases)
	return cases
}

// add adds a trial to its arm, unless it has no result.
func (c *oneCase) add(role record.Role, t *record.Trial) {
	if !t.Verdict.Counted() && t.Verdict != record.Errored {
		return
	}
	r := runOf(t, role == record.RoleBaseline)
	if role == record.RoleBaseline {
		*c.Arms.Without = append(*c.Arms.Without, r)
		return
	}
	c.Arms.With = append(c.Arms.With, r)
	c.Prompt = cmp.Or(c.Prompt, t.Prompt)
	if len(c.Graders) == 0 {
		for _, u := range unitsOf(t) {
			c.Graders = append(c.Graders, graderSpec{u.Name, u.kind, u.Weight})
		}
	}
}

// runOf returns a trial. Its score is the weighted share of the graders that passed; 0 if none graded.
func runOf(t *record.Trial, baseline bool) oneRun {
	r := oneRun{Passed: t.Verdict == record.Passed, Graders: []grade{}}
	if !t.StartedAt.IsZero() && !t.Untimed {
		r.StartedAt = t.StartedAt.UTC().Format(time.RFC3339Nano)
		r.DurationSeconds = seconds(t.ExecutorMS)
	}
	if t.Spent != nil {
		r.CostUSD, r.JudgeCostUSD = costOf(t.Spent.Total()), costOf(t.Spent.Judges)
	}
	if why := errorOf(t); why != "" {
		r.Error = &why
	}
	var passed, all float64
	for _, u := range unitsOf(t) {
		if u.WithOnly && baseline {
			continue
		}
		r.Graders = append(r.Graders, u.grade)
		if !u.Scored {
			continue
		}
		if all += u.Weight; u.Passed {
			passed += u.Weight
		}
	}
	if all > 0 && t.Verdict.Graded() {
		r.Score = passed / all
	}
	return r
}

// errorOf returns the reason why a run ended abnormally, such as a limit that it exceeded.
func errorOf(t *record.Trial) string {
	if t.Error != "" {
		return text.Clip(t.Error, maxExplanation)
	}
	for i := range t.Graders {
		if g := &t.Graders[i]; g.AfterTurn > 0 && !g.Passed {
			return text.Clip(g.Name+": "+report.Evidence(g), maxExplanation)
		}
	}
	return ""
}

// A unit is a grader, or a group of graders that count as one.
type unit struct {
	grade
	kind    string
	members []*record.Grade
}

// unitsOf returns the graders of the finished trial.
func unitsOf(t *record.Trial) []*unit {
	var units []*unit
	groups := map[string]*unit{}
	for i := range t.Graders {
		g := &t.Graders[i]
		if g.AfterTurn > 0 {
			continue
		}
		var u *unit
		if g.Group != nil {
			u = groups[g.Group.Name]
		}
		if u == nil {
			u = &unit{kind: g.Type, grade: grade{Name: g.Name, Weight: g.Weight, WithOnly: g.Optional || g.SkillsOnly}}
			u.Scored = !u.WithOnly
			if g.Group != nil {
				u.Name, u.Weight = g.Group.Name, g.Group.Weight
				groups[g.Group.Name] = u
			}
			units = append(units, u)
		}
		u.members = append(u.members, g)
	}
	for _, u := range units {
		u.finish()
	}
	return units
}

// finish fills in the result of the members.
func (u *unit) finish() {
	first := u.members[0]
	if first.Group == nil {
		u.Passed, u.Explanation = first.Passed, text.Clip(report.Evidence(first), maxExplanation)
		return
	}
	u.Passed = tally.GroupPassed(u.members)
	words := make([]string, len(u.members))
	for i, g := range u.members {
		u.JudgeVotes = append(u.JudgeVotes, g.Passed)
		if words[i] = "FAIL"; g.Passed {
			words[i] = "PASS"
		}
	}
	u.Explanation = text.Clip("judge votes: "+strings.Join(words, " "), maxExplanation)
	for _, g := range u.members {
		if !g.Passed {
			u.Explanation = text.Clip(u.Explanation+" — note: "+report.Evidence(g), maxExplanation)
			break
		}
	}
}

// aggregate computes the means of each case, and of all.
func (d *document) aggregate() {
	var scores, rates, deltas []float64
	for _, c := range d.Cases {
		a := &c.Aggregates
		if a.Score, a.PassRate = means(c.Arms.With); a.Score != nil {
			scores, rates = append(scores, *a.Score), append(rates, *a.PassRate)
		}
		if c.Arms.Without == nil {
			continue
		}
		if a.ScoreWithout, a.PassRateWithout = means(*c.Arms.Without); a.Score != nil && a.ScoreWithout != nil {
			a.Delta = new(*a.Score - *a.ScoreWithout)
			deltas = append(deltas, *a.Delta)
		}
	}
	d.Aggregates.OverallScore, d.Aggregates.OverallPassRate, d.Aggregates.MeanDelta = mean(scores), mean(rates), mean(deltas)
}

// means returns the mean score of runs, and the share of those that passed; nil without runs.
func means(runs []oneRun) (score, rate *float64) {
	var scores, passes []float64
	for i := range runs {
		passed := 0.0
		if runs[i].Passed {
			passed = 1
		}
		scores, passes = append(scores, runs[i].Score), append(passes, passed)
	}
	return mean(scores), mean(passes)
}

// mean returns the mean of values; nil without values.
func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return new(sum / float64(len(values)))
}
