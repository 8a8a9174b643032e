package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner/record"
	"waza/runner/report/page"
)

func pageMethods() []*method {
	return []*method{
		dispatch.Define("run.page", dispatch.Heavy,
			"Give what the HTML report shows of a run, as far as it has come, without transcripts: for clients that show the page themselves, and newer data in it while the run goes on. run.trial gives one trial with its transcript.", getPage),
	}
}

type pageParams struct {
	RunID   string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Against string `json:"against" doc:"Earlier run to compare with: the page tells what has changed since."`
	Page    bool   `json:"page" doc:"Give also the parts of the page, which are the same for all runs."`
}

type runPage struct {
	RunID  string          `json:"runId"`
	Status record.Status   `json:"status"`
	Data   json.RawMessage `json:"data" doc:"What the script of the page shows: the run, its tasks, and columns of numbers of its trials."`
	Page   *page.Page      `json:"page,omitempty" doc:"Style, body and script; absent unless they were asked for. The script declares wazaReport(DATA, HOST), which shows the data in the body and may be called again."`
}

// runPage makes one page at a time, as run.result does.
func getPage(ctx context.Context, c *call, p *pageParams) (*runPage, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	against, err := findAgainst(c, p.Against)
	if err != nil {
		return nil, err
	}
	if err := c.Alone(ctx); err != nil {
		return nil, err
	}
	progress, err := h.Progress() // before the data, which may then only be newer
	if err != nil {
		return nil, err
	}
	out := limitedBuffer{limit: maxResult}
	err = page.WriteData(&exportWriter{ctx: ctx, w: &out}, h, against)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.full:
		return nil, dispatch.NewFault(wire.CodeBusy, "too large for one message", map[string]any{"limit": "bytes of a page", "value": maxResult, "runId": h.ID()})
	case err != nil:
		return nil, &dispatch.RunFailedError{Err: err}
	}
	r := &runPage{RunID: h.ID(), Status: statusOf(h, progress.Status), Data: bytes.TrimSpace(out.Bytes())}
	if p.Page {
		parts := page.Parts()
		r.Page = &parts
	}
	return r, nil
}

// findAgainst finds the run to compare with; nil without one.
func findAgainst(c *call, id string) (record.Handle, error) {
	if id == "" {
		return nil, nil
	}
	return find(c, id)
}

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
	RunID      string           `json:"runId"`
	Trial      *record.Trial    `json:"trial" doc:"All that is known of the trial but its workspace."`
	Files      []page.TrialFile `json:"files" doc:"The files it left, those that changed first."`
	Incomplete string           `json:"incomplete,omitempty" doc:"Why not all files are known; absent when they are."`
	Cut        int64            `json:"cut,omitempty" doc:"Bytes of texts and files that were left out; absent when none."`
}

func getTrial(ctx context.Context, c *call, p *trialParams) (*trialShown, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	trial, err := c.conn.runner.Amender().Trial(p.RunID, p.TaskID, p.Trial)
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
	view := page.ViewTrial(trial, blobs)
	r := &trialShown{RunID: h.ID(), Trial: view.Trial, Files: []page.TrialFile{}, Incomplete: view.Incomplete, Cut: view.Cut}
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
