// Package atif writes the transcripts of a run as trajectories in the Agent Trajectory Interchange
// Format (ATIF) of Harbor, a file per trial. Call [Write] for the files.
package atif

import (
	"cmp"
	"fmt"
	"io"
	"path"

	"waza/runner/record"
	"waza/runner/report"
)

// version is the version of the format. Its readers refuse unknown keys.
const version = "ATIF-v1.7"

// Write writes a folder per task and a file per trial.
func Write(create report.Create, h record.Handle) error {
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	rec := h.Record()
	var names report.Names
	folders := make([]string, len(rec.Tasks))
	for i := range rec.Tasks {
		folders[i] = names.Add(report.FileName(rec.Tasks[i].ID, "task"))
	}
	return h.Trials(func(task int, t *record.Trial) error {
		doc := trajectoryOf(rec, &rec.Tasks[task], t)
		if damage != nil {
			doc.Notes += "; " + damage.String()
		}
		return create(path.Join(folders[task], fmt.Sprintf("trial-%d.json", t.TrialNum)), func(w io.Writer) error {
			return report.WriteDocument(w, doc)
		})
	})
}

func trajectoryOf(rec *record.Run, ref *record.TaskRef, t *record.Trial) trajectory {
	doc := trajectory{
		SchemaVersion: version, SessionID: fmt.Sprintf("%s/%s/%d", rec.RunID, ref.ID, t.TrialNum),
		Agent: agent{
			Name: cmp.Or(rec.Config.Agent, rec.Config.Executor, "unknown"), Version: "unknown", ModelName: rec.ModelOf(ref),
		},
		Steps: stepsOf(t), Notes: "verdict: " + string(t.Verdict),
		Extra: map[string]any{"run_id": rec.RunID, "suite": rec.Suite.Name, "task_id": ref.ID, "trial": t.TrialNum, "verdict": t.Verdict},
	}
	if t.Score != nil {
		doc.Extra["score"] = *t.Score
	}
	if t.Error != "" {
		doc.Extra["error"] = t.Error
	}
	doc.FinalMetrics = &finalMetrics{TotalSteps: len(doc.Steps)}
	if u := t.Usage; u != nil {
		if u.Total() > 0 {
			doc.FinalMetrics.PromptTokens, doc.FinalMetrics.CompletionTokens = &u.InputTokens, &u.OutputTokens
		}
		if u.CostUSD > 0 {
			doc.FinalMetrics.CostUSD = &u.CostUSD
		}
	}
	return doc
}
