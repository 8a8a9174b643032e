package rpc

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"waza/eval/jsonwalk"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/doors"
	"waza/runner/record"
)

// notifications lists all notifications of the server, in the order of the reference documents.
var notifications = slices.Concat([]dispatch.Entry{
	{
		Name:   "eval.progress",
		Doc:    "Something happened in a run. The events of one task come in the order in which they happened.",
		Params: reflect.TypeFor[progressParams](),
	},
	{Name: "eval.log", Doc: "A message of a run for people.", Params: reflect.TypeFor[logParams]()},
	{
		Name:   "eval.changed",
		Doc:    "waza read a watched suite, for the first time or after a change. If a run follows, so do its notifications.",
		Params: reflect.TypeFor[changedParams](),
	},
	{Name: "eval.attacked", Doc: "A trial of eval.attack has ended.", Params: reflect.TypeFor[attackedParams]()},
}, doors.Notifications(), []dispatch.Entry{
	{
		Name:   "eval.complete",
		Doc:    "A run has ended: the last notification of every run, sent exactly once, also for runs that failed or were cancelled.",
		Params: reflect.TypeFor[completeParams](),
	},
})

// progressParams are the parameters of eval.progress. Members that do not apply to an event are
// absent.
type progressParams struct {
	RunID       string                   `json:"runId"`
	Seq         int64                    `json:"seq" doc:"Number of the event in its run, from 1 without gaps."`
	Event       record.EventType         `json:"event" doc:"run_start, task_start, trial_start, trial_complete, task_complete, run_complete; compare_start, compare_complete and judge_complete of a run of the kind judge, whose judge compares models and sums up the verdicts; decide_progress of a run that decides a question, after a batch of pairs; or run_resumed: the run is resumed, and earlier events about its end, and about trials whose results are not kept, no longer count."`
	TaskID      string                   `json:"taskId,omitempty"`
	TaskName    string                   `json:"taskName,omitempty"`
	TaskNum     int                      `json:"taskNum,omitempty" doc:"Number of the task, from 1."`
	TotalTasks  int                      `json:"totalTasks,omitempty"`
	Role        record.Role              `json:"role,omitempty" doc:"baseline if an agent without skills, or with earlier ones, runs a task of the suite, trigger for a prompt of the trigger tests; absent otherwise."`
	TrialNum    int                      `json:"trialNum,omitempty" doc:"Number of the trial in its task, from 1."`
	TotalTrials int                      `json:"totalTrials,omitempty" doc:"Trials of the task; of the run in run_start and run_resumed."`
	KeptTrials  *int                     `json:"keptTrials,omitempty" doc:"In run_resumed: how many trials keep their results."`
	Status      string                   `json:"status,omitempty" doc:"Verdict of the trial or task that completed: passed, failed, error, timeout, cancelled, skipped or needs_review; status of the run in run_complete."`
	Score       *float64                 `json:"score,omitempty" doc:"Score of the trial, or mean score of the task, 0 to 1; absent when nothing was graded or a person has yet to score it."`
	DurationMS  *int64                   `json:"durationMs,omitempty" doc:"Duration of the run, task or trial that completed, in milliseconds."`
	Error       string                   `json:"error,omitempty" doc:"Why the trial ended with the verdict error, timeout or cancelled, cut to a few KiB; absent for other verdicts."`
	Cached      bool                     `json:"cached,omitempty" doc:"Whether the trial that completed was reused from an earlier run; absent when not."`
	Suspicious  int                      `json:"suspicious,omitempty" doc:"In task_complete: the number of trials that passed with suspicious moves. They count as passed."`
	Suspicions  []record.TrialSuspicion  `json:"suspicions,omitempty" doc:"In task_complete: such moves, at most 5, in the order of the trials."`
	Sandbox     string                   `json:"sandbox,omitempty" doc:"In run_start: the sandboxes of the trials in one line, such as namespaces, network open, 1024 processes, 10 GiB disk; absent without sandboxes. run.status returns their parts."`
	Comparing   *record.Comparing        `json:"comparing,omitempty" doc:"In compare_start and compare_complete: the number of comparisons that the run makes, and has made."`
	Comparison  *record.CaseComparison   `json:"comparison,omitempty" doc:"In compare_complete: the comparison that was made."`
	Deciding    *record.DecisionProgress `json:"deciding,omitempty" doc:"In decide_progress: how far the run is with its question."`
}

type logParams struct {
	RunID    string `json:"runId"`
	Seq      int64  `json:"seq" doc:"Number of the event in its run, from 1 without gaps."`
	Level    string `json:"level" doc:"debug, info, warning or error."`
	Message  string `json:"message"`
	TaskID   string `json:"taskId,omitempty"`
	TaskName string `json:"taskName,omitempty"`
}

type completeParams struct {
	RunID   string          `json:"runId"`
	Seq     int64           `json:"seq" doc:"Number of the event in its run: the last."`
	Status  record.Status   `json:"status" doc:"completed, failed, cancelled or interrupted."`
	Summary *record.Summary `json:"summary,omitempty" doc:"The summary, if the run completed."`
	Error   string          `json:"error,omitempty" doc:"Why the run did not complete; absent when it did."`
}

// AppendJSON implements [wire.Appender]: a run sends two of these for each trial.
func (p *progressParams) AppendJSON(b []byte) ([]byte, error) {
	b = jsonwalk.AppendString(append(b, `{"runId":`...), p.RunID)
	b = strconv.AppendInt(append(b, `,"seq":`...), p.Seq, 10)
	b = jsonwalk.AppendString(append(b, `,"event":`...), p.Event)
	b = jsonwalk.AppendText(b, `,"taskId":`, p.TaskID)
	b = jsonwalk.AppendText(b, `,"taskName":`, p.TaskName)
	b = jsonwalk.AppendInt(b, `,"taskNum":`, p.TaskNum)
	b = jsonwalk.AppendInt(b, `,"totalTasks":`, p.TotalTasks)
	b = jsonwalk.AppendText(b, `,"role":`, p.Role)
	b = jsonwalk.AppendInt(b, `,"trialNum":`, p.TrialNum)
	b = jsonwalk.AppendInt(b, `,"totalTrials":`, p.TotalTrials)
	if p.KeptTrials != nil {
		b = strconv.AppendInt(append(b, `,"keptTrials":`...), int64(*p.KeptTrials), 10)
	}
	b = jsonwalk.AppendText(b, `,"status":`, p.Status)
	var errs [5]error
	if p.Score != nil {
		b, errs[0] = jsonwalk.AppendFloat(append(b, `,"score":`...), *p.Score)
	}
	if p.DurationMS != nil {
		b = strconv.AppendInt(append(b, `,"durationMs":`...), *p.DurationMS, 10)
	}
	b = jsonwalk.AppendText(b, `,"error":`, p.Error)
	b = jsonwalk.AppendTrue(b, `,"cached":`, p.Cached)
	b = jsonwalk.AppendInt(b, `,"suspicious":`, p.Suspicious)
	if len(p.Suspicions) > 0 {
		b, errs[3] = jsonwalk.Append(append(b, `,"suspicions":`...), p.Suspicions)
	}
	b = jsonwalk.AppendText(b, `,"sandbox":`, p.Sandbox)
	if p.Comparing != nil {
		b, errs[1] = jsonwalk.Append(append(b, `,"comparing":`...), p.Comparing)
	}
	if p.Comparison != nil {
		b, errs[2] = jsonwalk.Append(append(b, `,"comparison":`...), p.Comparison)
	}
	if p.Deciding != nil {
		b, errs[4] = jsonwalk.Append(append(b, `,"deciding":`...), p.Deciding)
	}
	return append(b, '}'), cmp.Or(errs[:]...)
}

// notification holds the notification for an event. Its memory is used again for the next event.
type notification struct{ progress progressParams }

// of returns the notification for an event. The params are valid until the next call.
func (n *notification) of(runID string, e *record.Event) (method string, params any) {
	switch e.Type {
	case record.Log, record.PromptProposed:
		return "eval.log", &logParams{RunID: runID, Seq: e.Seq, Level: e.Level, Message: e.Message, TaskID: e.TaskID, TaskName: e.TaskName}
	case record.End:
		p := &completeParams{RunID: runID, Seq: e.Seq, Status: e.Status, Error: failure(e.Status, e.Error)}
		if e.Status == record.StatusCompleted {
			p.Summary = e.Summary
		}
		return "eval.complete", p
	}
	p := &n.progress
	*p = progressParams{
		RunID: runID, Seq: e.Seq, Event: e.Type,
		TaskID: e.TaskID, TaskName: e.TaskName, TaskNum: e.TaskNum, TotalTasks: e.TotalTasks, Role: e.Role,
		TrialNum: e.TrialNum, TotalTrials: e.TotalTrials, Status: string(e.Verdict), Score: e.Score, Cached: e.Cached,
		Comparing: e.Comparing, Comparison: e.Comparison, Deciding: e.Deciding,
	}
	switch e.Type {
	case record.RunStart:
		if e.Record != nil && e.Record.Sandbox != nil {
			p.Sandbox = e.Record.Sandbox.String()
		}
	case record.RunResumed:
		p.KeptTrials = &e.KeptTrials
	case record.RunComplete:
		p.Status, p.DurationMS = string(e.Status), &e.DurationMS
	case record.TaskComplete, record.TrialComplete: // only trials have an error
		p.DurationMS, p.Error = &e.DurationMS, e.Error
		if e.Task != nil {
			p.Suspicious, p.Suspicions = e.Task.Suspicious, e.Task.Suspicions
		}
	}
	return "eval.progress", p
}

// failure explains in a sentence why a run did not complete. It is empty for a run that
// completed or is still running.
func failure(status record.Status, reason string) string {
	switch status {
	case record.StatusFailed:
		return "Eval execution failed: " + reason
	case record.StatusCancelled:
		if reason != "" { // nobody cancelled it: its budget was exhausted
			return "Eval execution cancelled: " + reason
		}
		return "Eval execution cancelled"
	case record.StatusInterrupted:
		return "Eval execution failed: interrupted because its process ended early"
	}
	return ""
}
