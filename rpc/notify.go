package rpc

import (
	"reflect"

	"waza/rpc/dispatch"
	"waza/runner/record"
)

// notifications are all that the server sends of itself, in the order of the reference documents.
var notifications = []dispatch.Entry{
	{Name: "eval.progress", Doc: "Something happened in a run. The events of one task come in the order in which they happened.", Params: reflect.TypeFor[progressParams]()},
	{Name: "eval.log", Doc: "A run has something to tell to people.", Params: reflect.TypeFor[logParams]()},
	{Name: "eval.changed", Doc: "A suite that is watched was read, at first and after each change. The notifications of its run follow, if there is one.", Params: reflect.TypeFor[changedParams]()},
	{Name: "agent.changed", Doc: "An agent has connected, gone, or has more or less to do; or the server has gone. Only for clients that have asked for it by agent.list.", Params: reflect.TypeFor[agentChangedParams]()},
	{Name: "eval.complete", Doc: "A run has ended: the last notification of every run, sent exactly once, also for runs that failed or were cancelled.", Params: reflect.TypeFor[completeParams]()},
}

// progressParams are what eval.progress tells. What does not apply to an event is absent.
type progressParams struct {
	RunID       string                 `json:"runId"`
	Seq         int64                  `json:"seq" doc:"Number of the event in its run, from 1 without gaps."`
	Event       record.EventType       `json:"event" doc:"run_start, task_start, trial_start, trial_complete, task_complete, run_complete; compare_start, compare_complete and judge_complete of a run of the kind judge, whose judge compares models and sums up the verdicts; or run_resumed: the run is taken up again, and what was told of trials that are not kept, and of its end, counts no more."`
	TaskID      string                 `json:"taskId,omitempty"`
	TaskName    string                 `json:"taskName,omitempty"`
	TaskNum     int                    `json:"taskNum,omitempty" doc:"Number of the task, from 1."`
	TotalTasks  int                    `json:"totalTasks,omitempty"`
	Role        record.Role            `json:"role,omitempty" doc:"baseline for a task of the suite as an agent without skills does it, trigger for a prompt of the trigger tests; absent for a task of the suite."`
	TrialNum    int                    `json:"trialNum,omitempty" doc:"Number of the trial in its task, from 1."`
	TotalTrials int                    `json:"totalTrials,omitempty" doc:"Trials of the task; of the run in run_start and run_resumed."`
	KeptTrials  *int                   `json:"keptTrials,omitempty" doc:"In run_resumed: how many trials keep their results."`
	Status      string                 `json:"status,omitempty" doc:"Verdict of the trial or task that completed: passed, failed, error, timeout, cancelled, skipped or needs_review; status of the run in run_complete."`
	Score       *float64               `json:"score,omitempty" doc:"Score of the trial, or mean score of the task, 0 to 1; absent when nothing was graded, or a person has yet to."`
	DurationMS  *int64                 `json:"durationMs,omitempty" doc:"How long what completed has taken, in milliseconds."`
	Error       string                 `json:"error,omitempty" doc:"Why the trial that completed is in error, took too long or was cancelled, cut to some KiB; absent for others."`
	Cached      bool                   `json:"cached,omitempty" doc:"Whether the trial that completed was taken over from an earlier run; absent when not."`
	Comparing   *record.Comparing      `json:"comparing,omitempty" doc:"In compare_start and compare_complete: how many comparisons the run makes, and has made."`
	Comparison  *record.CaseComparison `json:"comparison,omitempty" doc:"In compare_complete: the comparison that was made."`
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
	Summary *record.Summary `json:"summary,omitempty" doc:"What came out, when the run completed."`
	Error   string          `json:"error,omitempty" doc:"Why it did not, otherwise."`
}

// notificationOf gives the notification that tells of an event.
func notificationOf(runID string, e *record.Event) (method string, params any) {
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
	p := &progressParams{
		RunID: runID, Seq: e.Seq, Event: e.Type,
		TaskID: e.TaskID, TaskName: e.TaskName, TaskNum: e.TaskNum, TotalTasks: e.TotalTasks, Role: e.Role,
		TrialNum: e.TrialNum, TotalTrials: e.TotalTrials, Status: string(e.Verdict), Score: e.Score, Cached: e.Cached, Comparing: e.Comparing, Comparison: e.Comparison,
	}
	switch e.Type {
	case record.RunResumed:
		p.KeptTrials = &e.KeptTrials
	case record.RunComplete:
		p.Status, p.DurationMS = string(e.Status), &e.DurationMS
	case record.TaskComplete, record.TrialComplete: // of which only trials have an error
		p.DurationMS, p.Error = &e.DurationMS, e.Error
	}
	return "eval.progress", p
}

// failure is the sentence that tells why a run did not complete; empty for one
// that did, or that still runs.
func failure(status record.Status, reason string) string {
	switch status {
	case record.StatusFailed:
		return "Eval execution failed: " + reason
	case record.StatusCancelled:
		if reason != "" { // nobody cancelled it: its budget is spent
			return "Eval execution cancelled: " + reason
		}
		return "Eval execution cancelled"
	case record.StatusInterrupted:
		return "Eval execution failed: interrupted, its process ended before it did"
	}
	return ""
}
