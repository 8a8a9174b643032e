// Package vally writes a run as results.jsonl of microsoft/vally, with a record per trial. Call [Write]
// for the file.
package vally

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

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
	r.Trajectory = trajectoryOf(t)
	r.Trajectory.ID, r.Trajectory.Stimulus.Name = r.ItemID, r.Stimulus
	r.Trajectory.Metadata = map[string]string{"model": r.Model, "verdict": string(t.Verdict), "executor": rec.Config.Executor}
	return r
}

func modelOf(rec *record.Run, ref *record.TaskRef) string {
	if ref.Cell != nil && ref.Cell.Model != "" {
		return ref.Cell.Model
	}
	return cmp.Or(rec.Config.Model, rec.Config.Agent, rec.Config.Executor)
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

func trajectoryOf(t *record.Trial) trajectory {
	r := trajectory{Stimulus: stimulus{Prompt: t.Prompt}, Events: []event{}, Output: t.Output}
	if !t.Untimed && !t.StartedAt.IsZero() {
		r.Metrics.WallTimeMS = &t.ExecutorMS
	}
	if u := t.Usage; u != nil && u.Total() > 0 {
		r.Metrics.Tokens = &tokens{Input: u.InputTokens, Output: u.OutputTokens, Total: u.Total()}
	}
	for i := range t.Transcript {
		e := &t.Transcript[i]
		at := ""
		if !t.StartedAt.IsZero() {
			at = t.StartedAt.UTC().Add(time.Duration(e.AtMS) * time.Millisecond).Format(time.RFC3339Nano)
		}
		if e.Type == record.EntryMessage && e.Role == "user" {
			r.Metrics.Turns++
		}
		if e.Tool != nil {
			r.Metrics.ToolCalls++
			r.Events = append(r.Events, callOf(e.Tool, r.Metrics.ToolCalls, at)...)
			continue
		}
		r.Events = append(r.Events, event{Type: kindOf(e), Timestamp: at, Data: dataOf(e)})
	}
	return r
}

// callOf returns the event of a tool call, and that of its result if there was one.
func callOf(c *record.ToolCall, number int, at string) []event {
	id := cmp.Or(c.ID, fmt.Sprintf("call-%d", number)) // readers connect calls and results by id
	events := []event{{Type: "tool_call", Timestamp: at, Data: map[string]any{
		"toolName": c.Name, "toolCallId": id, "arguments": valueOf(c.Arguments),
	}}}
	if len(c.Result) == 0 && c.Status == "" {
		return events
	}
	return append(events, event{Type: "tool_result", Timestamp: at, Data: map[string]any{
		"toolName": c.Name, "toolCallId": id, "result": valueOf(c.Result), "success": c.Status != "failed",
	}})
}

// valueOf returns a JSON value; null if it is absent or no JSON.
func valueOf(raw json.RawMessage) any {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}

// kindOf returns the type of an event other than a tool call.
func kindOf(e *record.Entry) string {
	switch e.Type {
	case record.EntryMessage:
		return cmp.Or(e.Role, "assistant") + "_message"
	case record.EntryThought:
		return "reasoning"
	case record.EntrySkill:
		return "skill_activation"
	}
	return string(e.Type)
}

func dataOf(e *record.Entry) map[string]any {
	switch {
	case e.Type == record.EntrySkill:
		return map[string]any{"skillName": e.Text}
	case e.Type == record.EntryError:
		return map[string]any{"message": e.Text}
	case e.Plan != nil:
		return map[string]any{"plan": e.Plan}
	case e.Permission != nil:
		return map[string]any{"permission": e.Permission}
	}
	return map[string]any{"content": e.Text}
}
