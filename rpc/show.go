package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner/baselines"
	"waza/runner/record"
	"waza/runner/report/page"
)

func pageMethods() []*method {
	return []*method{
		dispatch.Define("run.page", dispatch.Heavy,
			"Return the data of a run's HTML report, for clients that show the page themselves and refresh it during the "+
				"run. It contains no transcripts; run.trial returns one trial with its transcript.",
			getPage),
	}
}

type pageParams struct {
	RunID   string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Against string `json:"against" doc:"Earlier run to compare with: the page shows the changes since then."`
	Page    bool   `json:"page" doc:"Also return the parts of the page, which are the same for all runs."`
}

type runPage struct {
	RunID  string          `json:"runId"`
	Status record.Status   `json:"status"`
	Data   json.RawMessage `json:"data" doc:"Data for the script of the page: the run, its tasks, and columns of numbers of its trials."`
	Page   *page.Page      `json:"page,omitempty" doc:"Style, body and script; absent unless requested. The script declares wazaReport(DATA, HOST), which shows the data in the body and can be called again."`
}

// getPage makes one page at a time, like run.result.
func getPage(ctx context.Context, c *call, p *pageParams) (*runPage, error) {
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	against, err := c.findAgainst(p.Against)
	if err != nil {
		return nil, err
	}
	if err := c.Alone(ctx); err != nil {
		return nil, err
	}
	progress, err := h.Progress() // read before the data, so that the data is never older
	if err != nil {
		return nil, err
	}
	data, err := buffered(ctx, h.ID(), maxResult, "a page", "the page is too large for one message",
		func(w io.Writer) error {
			return page.WriteData(w, h, page.Options{Against: against, Ledger: baselines.In(c.conn.runner.Catalog().StateDir())})
		})
	if err != nil {
		return nil, err
	}
	r := &runPage{RunID: h.ID(), Status: statusOf(h, progress.Status), Data: bytes.TrimSpace(data)}
	if p.Page {
		parts := page.Parts()
		r.Page = &parts
	}
	return r, nil
}

// findAgainst returns the run to compare with, or nil if id is empty.
func (c *call) findAgainst(id string) (record.Handle, error) {
	if id == "" {
		return nil, nil
	}
	return c.find(id)
}

func trialMethods() []*method {
	return []*method{
		dispatch.Define("run.trial", dispatch.Heavy,
			"Return one trial of a run in detail: transcript, graders, and the changes to its files. "+
				"Very long texts are shortened; run.result has the full texts.", getTrial),
	}
}

type trialParams struct {
	RunID  string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	TaskID string `json:"taskId" jsonschema:"required" doc:"Id of the task."`
	Trial  int    `json:"trial" alias:"trialNum" jsonschema:"required,minimum=1" doc:"Number of the trial in its task, from 1."`
}

type trialShown struct {
	RunID      string           `json:"runId"`
	Trial      *record.Trial    `json:"trial" doc:"Everything recorded of the trial except its workspace."`
	Files      []page.TrialFile `json:"files" doc:"The files of the trial's workspace, changed files first."`
	Incomplete string           `json:"incomplete,omitempty" doc:"Why the list of files is incomplete; absent when it is complete."`
	Cut        int64            `json:"cut,omitempty" doc:"Number of bytes of texts and files that were left out; absent when none were."`
}

func getTrial(ctx context.Context, c *call, p *trialParams) (*trialShown, error) {
	h, err := c.find(p.RunID)
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

// noTrial returns an error that names the missing task or trial.
func noTrial(h record.Handle, p *trialParams) error {
	missing := &dispatch.TaskNotFoundError{ID: p.TaskID}
	for _, t := range h.Record().Tasks {
		if t.ID == p.TaskID {
			reason := fmt.Sprintf("trial %d of task %q does not exist or has not ended", p.Trial, p.TaskID)
			return dispatch.NewFault(wire.CodeInvalidParams, reason, map[string]any{"parameter": "trial", "reason": reason, "runId": h.ID()})
		}
		missing.Known = append(missing.Known, t.ID)
	}
	return missing
}
