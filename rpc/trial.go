package rpc

import (
	"context"
	"fmt"

	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner/record"
	"waza/runner/report"
)

func trialMethods() []*method {
	return []*method{
		dispatch.Define("run.trial", dispatch.Heavy,
			"Give one trial of a run as people look into it: transcript, graders, and what became of the files it was given. "+
				"Texts that are very long are shortened; run.result has all of them.", getTrial),
	}
}

type trialParams struct {
	RunID  string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	TaskID string `json:"taskId" jsonschema:"required" doc:"Id of the task."`
	Trial  int    `json:"trial" alias:"trialNum" jsonschema:"required,minimum=1" doc:"Number of the trial in its task, from 1."`
}

type trialShown struct {
	RunID      string             `json:"runId"`
	Trial      *record.Trial      `json:"trial" doc:"All that is known of the trial but its workspace."`
	Files      []report.TrialFile `json:"files" doc:"The files it left, those that changed first."`
	Incomplete string             `json:"incomplete,omitempty" doc:"Why not all files are known; absent when they are."`
	Cut        int64              `json:"cut,omitempty" doc:"Bytes of texts and files that were left out; absent when none."`
}

func getTrial(ctx context.Context, c *call, p *trialParams) (*trialShown, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	trial, err := c.server.runner.Amender().Trial(p.RunID, p.TaskID, p.Trial)
	if err != nil {
		return nil, err
	}
	if trial == nil {
		return nil, noTrial(h, p)
	}
	blobs, err := h.Blobs()
	if err != nil {
		return nil, err
	}
	defer blobs.Close()
	view := report.ViewTrial(trial, blobs)
	r := &trialShown{RunID: h.ID(), Trial: view.Trial, Files: []report.TrialFile{}, Incomplete: view.Incomplete, Cut: view.Cut}
	r.Files = append(r.Files, view.Files...)
	return r, ctx.Err()
}

// noTrial tells whether the task or the trial is what the run does not have.
func noTrial(h record.Handle, p *trialParams) error {
	missing := &dispatch.TaskNotFoundError{ID: p.TaskID}
	for _, t := range h.Record().Tasks {
		if t.ID == p.TaskID {
			reason := fmt.Sprintf("trial %d of task %q has not ended, or there is none", p.Trial, p.TaskID)
			return dispatch.NewFault(wire.CodeInvalidParams, reason, map[string]any{"parameter": "trial", "reason": reason, "runId": h.ID()})
		}
		missing.Known = append(missing.Known, t.ID)
	}
	return missing
}
