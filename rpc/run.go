package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

func runMethods() []*method {
	return []*method{
		dispatch.Define("run.status", dispatch.Long, "Return the status of a run.", getStatus),
		dispatch.Define("run.cancel", dispatch.Long,
			"Cancel a run, no matter which process of this user executes it. The reply does not wait for the cleanup; "+
				"eval.complete reports its end. A run that is over keeps its status. "+
				"If the process does not answer within 5 seconds, the reply is an error that names the process; the request "+
				"to cancel remains in effect.",
			cancelRun),
		dispatch.Define("run.list", dispatch.Heavy, "List active and past runs, newest first.", listRuns),
		dispatch.Define("run.result", dispatch.Long,
			"Return the whole result of a run: summary, config, and every trial of every task. For an active run, the "+
				"result contains the trials that have ended.",
			getResult),
		dispatch.Define("run.subscribe", dispatch.Quick,
			"Receive the notifications of a run from event fromSeq on, each once, up to eval.complete. They follow the reply. "+
				"A connection receives each run once. If it already does, because it started or subscribed to the run, "+
				"nothing is sent twice until eval.complete. "+
				"After run.unsubscribe or eval.complete, subscribing sends the requested events again. "+
				"If fromSeq is greater than the number of the run's last event, nothing follows, not even eval.complete; "+
				"run.status reports whether a run is over.",
			subscribe),
		dispatch.Define("run.unsubscribe", dispatch.Quick,
			"Stop receiving a run: no notification of it follows the reply, not even eval.complete.", unsubscribe),
	}
}

type runParams struct {
	RunID string `json:"runId" jsonschema:"required" doc:"Id of the run."`
}

// find returns the run, or an error with its id.
func (c *call) find(id string) (record.Handle, error) {
	h, err := c.conn.runner.Catalog().Run(id)
	if errors.Is(err, record.ErrRunNotFound) {
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "", map[string]any{"runId": dispatch.Clip(id)})
	}
	return h, err
}

// statusOf returns the status for the client. A cancelled run has the status cancelled at once,
// even while its processes are being ended.
func statusOf(h record.Handle, status record.Status) record.Status {
	if run, ok := h.(*runner.Run); ok && status == record.StatusRunning && run.Cancelled() {
		return record.StatusCancelled
	}
	return status
}

type runStatus struct {
	RunID    string                   `json:"runId"`
	Status   record.Status            `json:"status" doc:"running, completed, failed, cancelled or interrupted."`
	Trials   record.Counts            `json:"trials" doc:"Verdicts of the trials of the suite's tasks that have ended so far."`
	Deciding *record.DecisionProgress `json:"deciding,omitempty" doc:"How far a running run is with its question; absent before its first pairs, and for other runs."`
	Question *record.DecideQuestion   `json:"question,omitempty" doc:"The question that the run decides; absent for other runs."`
	Decide   *DecideOptions           `json:"decide,omitempty" doc:"That question as the parameter decide of eval.run; absent if the suite asks it. The sides replace the model."`
	Tasks    []string                 `json:"tasks,omitempty" doc:"Globs of ids or names that chose the tasks of the run; absent without any."`
	Tags     []string                 `json:"tags,omitempty" doc:"Globs of tags that chose the tasks of the run; absent without any."`
	Seq      int64                    `json:"seq,omitempty" doc:"Number of the last event so far; absent when the run is over."`
	Result   *record.Summary          `json:"result" doc:"The summary, if the run completed; otherwise null."`
	Error    *string                  `json:"error" doc:"Why the run failed, or why waza ended it early; otherwise null."`
	Sandbox  *record.Sandbox          `json:"sandbox,omitempty" doc:"The sandboxes of the trials; absent in records of versions without them."`
	Damage   *record.Damage           `json:"damage,omitempty" doc:"Lost parts of the record of a run of another process; absent when the record is complete."`
}

func getStatus(_ context.Context, c *call, p *runParams) (*runStatus, error) {
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	progress, err := h.Progress()
	if err != nil {
		return nil, err
	}
	s := &runStatus{RunID: h.ID(), Status: statusOf(h, progress.Status), Trials: progress.Trials, Deciding: progress.Deciding, Question: h.Record().Question, Decide: decideOptionsOf(h.Record()),
		Tasks: h.Record().Config.TaskFilters, Tags: h.Record().Config.TagFilters, Sandbox: h.Record().Sandbox.After(progress.Summary)}
	if s.Status == record.StatusRunning {
		s.Seq = progress.Seq
	}
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
	FinishRunning bool   `json:"finishRunning" doc:"Start no more trials, but let running trials finish. The run stays running until they have, and is then cancelled."`
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
	Limit  int           `json:"limit" jsonschema:"minimum=1,maximum=10000" doc:"Maximum number of runs; 100 when absent."`
	Status record.Status `json:"status" doc:"List only runs with this status."`
	Path   string        `json:"path" doc:"List only runs of this suite file."`
}

type runListResult struct {
	Runs []catalog.Info `json:"runs"`
}

// statuses is a set of run statuses.
type statuses []record.Status

func (list statuses) String() string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

var (
	// overStatuses are the statuses of runs that are over.
	overStatuses = statuses(record.EndStatuses())
	allStatuses  = append(statuses{record.StatusRunning}, overStatuses...)
)

func listRuns(ctx context.Context, c *call, p *runListParams) (*runListResult, error) {
	if p.Status != "" && !slices.Contains(allStatuses, p.Status) {
		return nil, dispatch.WrongParam("status", map[string]any{"known": allStatuses}, " must be one of %v", allStatuses)
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

// runResult is a whole result. Its members only document the reply, which consists of the bytes
// that the runner writes.
type runResult struct {
	RunID     string           `json:"runId"`
	Status    record.Status    `json:"status"`
	Error     string           `json:"error,omitempty"`
	Suite     record.SuiteRef  `json:"suite"`
	StartedAt time.Time        `json:"startedAt"`
	EndedAt   *time.Time       `json:"endedAt"`
	AmendedAt *time.Time       `json:"amendedAt,omitempty" doc:"When grading the run again, or a review, last changed the record after the run."`
	Summary   *record.Summary  `json:"summary"`
	Config    record.Config    `json:"config"`
	Sandbox   *record.Sandbox  `json:"sandbox,omitempty" doc:"The sandboxes of the trials; absent in records of versions without them."`
	Damage    *record.Damage   `json:"damage,omitempty" doc:"Lost parts of the run's journal; absent when the journal is complete."`
	Tasks     []taskWithTrials `json:"tasks"`
	written   *dispatch.Spill
}

type taskWithTrials struct {
	record.TaskRef
	record.Task
	Trials []record.Trial `json:"trials"`
}

// Encoded returns the bytes that the runner wrote.
func (r *runResult) Encoded() (json.RawMessage, *wire.Body) { return r.written.Encoded() }

// maxResult limits the size of a result in one message.
const maxResult = 64 << 20

// getResult makes one result at a time, and none while much output is unread: a client that does
// not read cannot accumulate results in memory.
func getResult(ctx context.Context, c *call, p *runParams) (*runResult, error) {
	h, err := c.find(p.RunID)
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
		return nil, dispatch.NewFault(wire.CodeBusy, "the result is too large for one message",
			map[string]any{"limit": "bytes of a result", "value": maxResult, "runId": h.ID()})
	}
	return nil, err
}

// buffered returns what write writes, if that is at most limit bytes. what names it in the error for
// more, which advises advice.
func buffered(ctx context.Context, runID string, limit int, what, advice string, write func(io.Writer) error) ([]byte, error) {
	out := limitedBuffer{limit: limit}
	err := write(&exportWriter{ctx: ctx, w: &out})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.full:
		return nil, dispatch.NewFault(wire.CodeBusy, advice, map[string]any{"limit": "bytes of " + what, "value": limit, "runId": runID})
	case err != nil:
		return nil, &dispatch.RunFailedError{Err: err}
	}
	return out.Bytes(), nil
}

// limitedBuffer stores at most limit bytes.
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
	FromSeq int64  `json:"fromSeq" doc:"Number of the first event that follows: greater than fromSeq if the connection already received the events before it."`
}

func subscribe(_ context.Context, c *call, p *subscribeParams) (*subscribed, error) {
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	return &subscribed{h.ID(), c.conn.subscriptions.follow(h, p.FromSeq, c.Replied())}, nil
}

type unsubscribed struct {
	RunID      string `json:"runId"`
	Subscribed bool   `json:"subscribed" doc:"Whether the connection was receiving the run."`
}

func unsubscribe(_ context.Context, c *call, p *runParams) (*unsubscribed, error) {
	if _, err := c.find(p.RunID); err != nil {
		return nil, err
	}
	return &unsubscribed{p.RunID, c.conn.subscriptions.unfollow(p.RunID)}, nil
}
