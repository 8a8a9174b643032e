// Package vally writes a run as results.jsonl of microsoft/vally, with a record per trial. Call [Write]
// for the file.
package vally

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"waza/runner/internal/trajectory"
	"waza/runner/record"
	"waza/runner/report"
)

// Write writes the records of the trials, and the summary as the last record. Trigger tests are left
// out.
func Write(w io.Writer, h record.Handle) error {
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	rec := h.Record()
	last := runSummary{
		Type: "run-summary", EvalName: rec.Suite.Name, RunID: h.ID(), Status: string(progress.Status),
		Passed: damage == nil && record.EndingOf(progress.Status, progress.Error, progress.Summary) == record.EndingPassed,
	}
	if damage != nil {
		last.Damage = damage.String()
	}
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(report.JSONWriter(buffered))
	err = h.Trials(func(task int, t *record.Trial) error {
		ref := &rec.Tasks[task]
		if ref.Role == record.RoleTrigger {
			return nil
		}
		last.Trials++
		if t.Verdict == record.Passed {
			last.Succeeds++
		}
		return lines.Encode(resultOf(rec, ref, t))
	})
	if err != nil {
		return err
	}
	if err := lines.Encode(last); err != nil {
		return err
	}
	return buffered.Flush()
}

func resultOf(rec *record.Run, ref *record.TaskRef, t *record.Trial) trialResult {
	r := trialResult{
		Type: "trial-result", ItemID: fmt.Sprintf("%s/%d", ref.ID, t.TrialNum), EvalName: rec.Suite.Name,
		Stimulus: cmp.Or(ref.Task, ref.ID), Model: modelOf(rec, ref), Trial: t.TrialNum,
		Status: statusOf(t.Verdict), Error: t.Error, Grade: gradeOf(t),
	}
	switch {
	case ref.Role == record.RoleBaseline:
		r.Variant, r.Stimulus = "baseline", cmp.Or(ref.Task, ref.Of, ref.ID)
	case ref.Cell != nil:
		r.Variant = ref.Cell.Name
	}
	if !t.Untimed && !t.StartedAt.IsZero() {
		r.DurationMS = &t.DurationMS
	}
	r.Trajectory = trajectory.Of(t)
	r.Trajectory.ID, r.Trajectory.Stimulus.Name = r.ItemID, r.Stimulus
	r.Trajectory.Metadata = map[string]string{"model": r.Model, "verdict": string(t.Verdict), "executor": rec.Config.Executor}
	return r
}

func modelOf(rec *record.Run, ref *record.TaskRef) string {
	return cmp.Or(rec.ModelOf(ref), rec.Config.Agent, rec.Config.Executor)
}

// statusOf returns the status of a trial: success if it measures the agent, which also a timeout does.
func statusOf(v record.Verdict) string {
	switch {
	case v.Counted():
		return "success"
	case v == record.Errored:
		return "error"
	}
	return "skipped"
}

func gradeOf(t *record.Trial) gradeResult {
	g := gradeResult{Passed: t.Verdict == record.Passed, Evidence: t.Error}
	if score := t.CountedScore(); score != nil {
		g.Score = *score
	} else if g.Passed {
		g.Score = 1
	}
	for i := range t.Graders {
		one := &t.Graders[i]
		d := gradeResult{Name: one.Name, Kind: one.Type, Passed: one.Passed, Score: one.Score, Evidence: report.Evidence(one)}
		for _, s := range report.Statements(one) {
			d.Details = append(d.Details, markOf(s))
		}
		g.Details = append(g.Details, d)
	}
	if g.Evidence == "" {
		g.Evidence = string(t.Verdict)
	}
	return g
}

func markOf(s report.Statement) gradeResult {
	g := gradeResult{Name: s.Text, Passed: s.Passed, Evidence: s.Evidence}
	if s.Passed {
		g.Score = 1
	}
	return g
}
