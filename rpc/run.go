package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

func runMethods() []*method {
	return []*method{
		dispatch.Define("run.status", dispatch.Long, "Tell how a run stands.", getStatus),
		dispatch.Define("run.cancel", dispatch.Long,
			"Cancel a run, whichever process of this user carries it out. The reply does not wait until all is cleaned up; eval.complete tells when it is. A run that is over keeps its status. "+
				"A process that does not answer within 5 seconds is an error that names it; what it was asked for stands.", cancelRun),
		dispatch.Define("run.list", dispatch.Heavy, "List runs, newest first: those that go on and those of the past.", listRuns),
		dispatch.Define("run.result", dispatch.Long,
			"Give all that is known of a run: summary, config, and every trial of every task. A run that goes on is told as far as it has come.", getResult),
		dispatch.Define("run.subscribe", dispatch.Quick,
			"Receive the notifications of a run from event fromSeq on, each once, up to eval.complete. They follow the reply. "+
				"A connection receives a run once: where it does so already, because it started or subscribed to the run, nothing it was sent is sent again until eval.complete; "+
				"after run.unsubscribe or eval.complete, subscribing sends again what is asked for. "+
				"Where fromSeq is greater than the number of the run's last event, nothing follows, also not eval.complete; run.status tells whether a run is over.", subscribe),
		dispatch.Define("run.unsubscribe", dispatch.Quick, "Receive no more of a run: nothing of it follows the reply, also not eval.complete.", unsubscribe),
	}
}

type runParams struct {
	RunID string `json:"runId" jsonschema:"required" doc:"Id of the run."`
}

// find gives the run, or an error that names it.
func find(c *call, id string) (record.Handle, error) {
	h, err := c.conn.runner.Catalog().Run(id)
	if errors.Is(err, record.ErrRunNotFound) {
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "", map[string]any{"runId": dispatch.Clip(id)})
	}
	return h, err
}

// statusOf is the status of a run as the client is told: one that was cancelled
// is, from then on, even while its processes are being ended.
func statusOf(h record.Handle, status record.Status) record.Status {
	if run, ok := h.(*runner.Run); ok && status == record.StatusRunning && run.Cancelled() {
		return record.StatusCancelled
	}
	return status
}

type runStatus struct {
	RunID  string          `json:"runId"`
	Status record.Status   `json:"status" doc:"running, completed, failed, cancelled or interrupted."`
	Result *record.Summary `json:"result" doc:"The summary, when the run completed; else null."`
	Error  *string         `json:"error" doc:"Why the run failed, or ended early by itself; else null."`
	Damage *record.Damage  `json:"damage,omitempty" doc:"What is lost of the record of a run that this process does not carry out; absent when all is there."`
}

func getStatus(_ context.Context, c *call, p *runParams) (*runStatus, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	progress, err := h.Progress()
	if err != nil {
		return nil, err
	}
	s := &runStatus{RunID: h.ID(), Status: statusOf(h, progress.Status)}
	if _, live := h.(*runner.Run); !live {
		if s.Damage, err = h.Damage(); err != nil {
			return nil, err
		}
	}
	switch s.Status {
	case record.StatusCompleted:
		s.Result = progress.Summary
	case record.StatusCancelled:
		if progress.Error == "" {
			break
		}
		fallthrough
	case record.StatusFailed, record.StatusInterrupted:
		text := failure(s.Status, progress.Error)
		s.Error = &text
	}
	return s, nil
}

type runState struct {
	RunID  string        `json:"runId"`
	Status record.Status `json:"status"`
}

type runCancelParams struct {
	RunID         string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	FinishRunning bool   `json:"finishRunning" doc:"Start no more trials, but let those that run end: the run is cancelled when they have, and running until then."`
}

func cancelRun(ctx context.Context, c *call, p *runCancelParams) (*runState, error) {
	end := c.conn.runner.Cancel
	if p.FinishRunning {
		end = c.conn.runner.Stop
	}
	status, err := end(ctx, p.RunID)
	switch {
	case errors.Is(err, record.ErrRunNotFound):
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "", map[string]any{"runId": dispatch.Clip(p.RunID)})
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &dispatch.RunFailedError{Err: err}
	}
	return &runState{p.RunID, status}, nil
}

type runListParams struct {
	Limit  int           `json:"limit" jsonschema:"minimum=1,maximum=10000" doc:"Most runs to list; 100 when absent."`
	Status record.Status `json:"status" doc:"List only runs of this status."`
	Path   string        `json:"path" doc:"List only runs of this suite file."`
}

type runListResult struct {
	Runs []catalog.Info `json:"runs"`
}

// statuses are what runs can be.
type statuses []record.Status

func (list statuses) String() string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

var (
	// overStatuses are those of runs that are over.
	overStatuses = statuses(record.EndStatuses())
	allStatuses  = append(statuses{record.StatusRunning}, overStatuses...)
)

func listRuns(ctx context.Context, c *call, p *runListParams) (*runListResult, error) {
	if p.Status != "" && !slices.Contains(allStatuses, p.Status) {
		return nil, &dispatch.ParamError{Parameter: "status", Message: "parameter \"status\" must be one of " + allStatuses.String(), Data: map[string]any{"known": allStatuses}}
	}
	f := catalog.Filter{Status: p.Status, Limit: cmp.Or(p.Limit, 100)}
	if p.Path != "" {
		var err error
		if f.Path, err = c.conn.resolve("path", p.Path); err != nil {
			return nil, err
		}
	}
	infos, err := c.conn.runner.Catalog().ListBy(f)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(infos, func(a, b catalog.Info) int {
		switch {
		case a.Ahead && !b.Ahead:
			return 1
		case b.Ahead && !a.Ahead:
			return -1
		}
		return b.StartedAt.Compare(a.StartedAt)
	})
	return &runListResult{Runs: infos}, ctx.Err()
}

// runResult is a whole result. The members are there for documents; what is
// sent are the bytes that the runner writes.
type runResult struct {
	RunID     string           `json:"runId"`
	Status    record.Status    `json:"status"`
	Error     string           `json:"error,omitempty"`
	Suite     record.SuiteRef  `json:"suite"`
	StartedAt time.Time        `json:"startedAt"`
	EndedAt   *time.Time       `json:"endedAt"`
	AmendedAt *time.Time       `json:"amendedAt,omitempty" doc:"When the record was last changed after the run, by grading it anew or by a review."`
	Summary   *record.Summary  `json:"summary"`
	Config    record.Config    `json:"config"`
	Damage    *record.Damage   `json:"damage,omitempty" doc:"What is lost of the run's journal; absent when all is there."`
	Tasks     []taskWithTrials `json:"tasks"`
	written   *dispatch.Spill
}

type taskWithTrials struct {
	record.TaskRef
	record.Task
	Trials []record.Trial `json:"trials"`
}

// Encoded gives the bytes that the runner wrote.
func (r *runResult) Encoded() (json.RawMessage, *wire.Body) { return r.written.Encoded() }

// maxResult bounds a result that is sent in one message.
const maxResult = 64 << 20

// runResult makes one result at a time, and none while much output waits: a
// client that does not read cannot pile up results in memory.
func getResult(ctx context.Context, c *call, p *runParams) (*runResult, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	if err := c.Alone(ctx); err != nil {
		return nil, err
	}
	out := c.Spill(maxResult)
	err = h.WriteResult(&exportWriter{ctx: ctx, w: out})
	if err == nil {
		return &runResult{written: out}, nil
	}
	out.Discard()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, dispatch.ErrTooLarge):
		return nil, dispatch.NewFault(wire.CodeBusy, "the result is too large for one message", map[string]any{"limit": "bytes of a result", "value": maxResult, "runId": h.ID()})
	}
	return nil, err
}

// limitedBuffer takes no more than limit bytes.
type limitedBuffer struct {
	bytes.Buffer
	limit int
	full  bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		b.full = true
		return 0, dispatch.ErrTooLarge
	}
	return b.Buffer.Write(p)
}

type subscribeParams struct {
	RunID   string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	FromSeq int64  `json:"fromSeq" jsonschema:"minimum=0,maximum=9007199254740991" doc:"Number of the first event to receive; 0, 1 or absent for all."`
}

type subscribed struct {
	RunID   string `json:"runId"`
	FromSeq int64  `json:"fromSeq" doc:"Number of the first event that follows: greater than asked for where the connection was sent the ones before already."`
}

func subscribe(_ context.Context, c *call, p *subscribeParams) (*subscribed, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	return &subscribed{h.ID(), c.conn.subscriptions.follow(h, p.FromSeq, c.Replied())}, nil
}

type unsubscribed struct {
	RunID      string `json:"runId"`
	Subscribed bool   `json:"subscribed" doc:"Whether the connection was receiving the run before."`
}

func unsubscribe(_ context.Context, c *call, p *runParams) (*unsubscribed, error) {
	if _, err := find(c, p.RunID); err != nil {
		return nil, err
	}
	return &unsubscribed{p.RunID, c.conn.subscriptions.unfollow(p.RunID)}, nil
}
