package record

import (
	"time"
)

// Cacheable reports whether a trial that ended so may be taken over by later runs.
func (v Verdict) Cacheable() bool { return v == Passed || v == Failed || v == NeedsReview }

// Known reports whether trials can have the verdict.
func (v Verdict) Known() bool {
	switch v {
	case Passed, Failed, Errored, TimedOut, Cancelled, Skipped, NeedsReview:
		return true
	}
	return false
}

// Known reports whether s is one of the statuses above.
func (s Status) Known() bool {
	switch s {
	case StatusRunning, StatusCompleted, StatusFailed, StatusCancelled, StatusInterrupted:
		return true
	}
	return false
}

// Verdict is how a trial or task ended.
type Verdict string

// The verdicts of trials and tasks. An error is never counted as a failure of
// the agent, nor as a pass.
const (
	Passed    Verdict = "passed"
	Failed    Verdict = "failed"    // the agent fell short
	Errored   Verdict = "error"     // the harness, network or provider fell short
	TimedOut  Verdict = "timeout"   // the trial's time was up
	Cancelled Verdict = "cancelled" // the run was cancelled before the trial ended
	Skipped   Verdict = "skipped"   // the trial was never started, by fail_fast or a run that was stopped
	// NeedsReview is not the last word: all that could be graded passed, and a
	// person has yet to give a score.
	NeedsReview Verdict = "needs_review"
)

// Counted reports whether the verdict says something about the agent.
func (v Verdict) Counted() bool { return v == Passed || v == Failed || v == TimedOut }

// Status is the state of a run.
type Status string

// The states of a run.
const (
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed" // every trial has its verdict, whatever it is
	StatusFailed    Status = "failed"    // the run itself could not go on
	StatusCancelled Status = "cancelled"
	// StatusInterrupted is a run whose process ended before the run did.
	StatusInterrupted Status = "interrupted"
)

// EndStatuses are those of runs that are over.
func EndStatuses() []Status {
	return []Status{StatusCompleted, StatusFailed, StatusCancelled, StatusInterrupted}
}

// EventType says what happened.
type EventType string

// The types of events, in the order a run has them. Those up to run_complete
// are what eval.progress reports.
const (
	RunStart      EventType = "run_start"
	TaskStart     EventType = "task_start"
	TrialStart    EventType = "trial_start"
	TrialComplete EventType = "trial_complete"
	TaskComplete  EventType = "task_complete"
	// Runs of the kind judge have these between their last trial and run_complete: how
	// many comparisons follow, each comparison, and the findings.
	CompareStart    EventType = "compare_start"
	CompareComplete EventType = "compare_complete"
	JudgeComplete   EventType = "judge_complete"
	RunComplete     EventType = "run_complete"
	// Log is something to tell a person; it may come anywhere before End.
	Log EventType = "log"
	// PromptProposed says that a model proposed a system prompt. Clients get it as a log
	// event.
	PromptProposed EventType = "prompt_proposed"
	// End is the last event of a run, exactly one: subscriptions deliver none
	// after it, and never one of those below.
	End EventType = "end"

	// The record of a run that is over is changed by amendments, which follow
	// all that the run itself recorded: any number of trials and tasks, then
	// one run_graded, with which all of them take effect. One without it was
	// cut short; the next takes up what it did.
	TrialGraded EventType = "trial_graded"
	TaskGraded  EventType = "task_graded"
	RunGraded   EventType = "run_graded"

	// RunResumed says that the run is taken up again, and what is kept of it:
	// all else that was recorded before counts no more. It may follow any event.
	// Those of the run follow it as they do run_start; what it superseded,
	// an end or an amendment, subscriptions deliver as a log event.
	RunResumed EventType = "run_resumed"
)

// Amends reports whether events of the type belong to an amendment.
func (t EventType) Amends() bool { return t == TrialGraded || t == TaskGraded || t == RunGraded }

// TellsState reports whether the state of a run changes with events of the type.
func (t EventType) TellsState() bool {
	switch t {
	case TrialComplete, TaskComplete, CompareStart, CompareComplete, JudgeComplete, RunComplete, RunResumed, PromptProposed, End:
		return true
	}
	return t.Amends()
}

// IsLog reports whether events of the type have a level and a message for people, and
// nothing else that clients need.
func (t EventType) IsLog() bool { return t == Log || t == PromptProposed }

// Event is one thing that happened in a run. Events are numbered from 1 without
// gaps; they are immutable once emitted. Everything anyone sees of a run is
// derived from them.
type Event struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Type EventType `json:"type"`

	// TaskID and TaskName name the task of task and trial events; TaskNum
	// counts from 1 up to TotalTasks, in the order of the suite.
	TaskID   string `json:"taskId,omitempty"`
	TaskName string `json:"taskName,omitempty"`
	// and counts those of all roles.
	TaskNum    int `json:"taskNum,omitempty"`
	TotalTasks int `json:"totalTasks,omitempty"`
	// Role is absent for a task of the suite.
	Role Role `json:"role,omitempty"`
	// TrialNum counts from 1 within the task, of which TotalTrials are run. (A
	// single trial that was asked for keeps its number.)
	TrialNum    int `json:"trialNum,omitempty"`
	TotalTrials int `json:"totalTrials,omitempty"`

	// Verdict, Score and DurationMS are those of a completed trial or task.
	Verdict    Verdict  `json:"verdict,omitempty"`
	Score      *float64 `json:"score,omitempty"`
	DurationMS int64    `json:"durationMs,omitempty"`
	// Cached: the trial was taken over from an earlier run.
	Cached bool `json:"cached,omitempty"`
	// Was is the verdict before, in trial_graded.
	Was Verdict `json:"was,omitempty"`

	// Level and Message belong to log events; Level is debug, info, warning or
	// error. Message belongs to run_resumed, too.
	Level   string `json:"level,omitempty"`
	Message string `json:"message,omitempty"`
	// Attempt is there when a log event tells that the trial TrialNum is tried
	// again: the number of the attempt that follows.
	Attempt int `json:"attempt,omitempty"`

	// Prompt is what prompt_proposed is about.
	Prompt *Prompt `json:"prompt,omitempty"`

	// Status, Summary and Error belong to run_complete and end; Summary to
	// run_graded, too. In trial_complete, Error is why the trial is in error, took too
	// long or was cancelled, cut to some KiB. A log event that has a Verdict has the reason why
	// the trial TrialNum is in error.
	Status  Status   `json:"status,omitempty"`
	Summary *Summary `json:"summary,omitempty"`
	Error   string   `json:"error,omitempty"`
	// Criteria are what the summary of run_graded was made by.
	Criteria *Criteria `json:"criteria,omitempty"`

	// Kept are, in run_resumed, the trials whose results stand, by the id of
	// their task; KeptTrials is how many they are.
	Kept       map[string][]TrialRange `json:"kept,omitempty"`
	KeptTrials int                     `json:"keptTrials,omitempty"`

	// Record is what was asked of the run, in the run_start or run_resumed of the
	// journal: run.json can be made of it again. Subscriptions do not deliver it.
	Record *Run `json:"record,omitempty"`

	// Comparing belongs to compare_start and compare_complete, Comparison to
	// compare_complete, Findings to judge_complete.
	Comparing  *Comparing      `json:"comparing,omitempty"`
	Comparison *CaseComparison `json:"comparison,omitempty"`
	Findings   *Findings       `json:"findings,omitempty"`

	// Task is the task's result, in task_complete and task_graded.
	Task *Task `json:"task,omitempty"`
	// Trial is all that is known of a completed trial. It is the last field,
	// so that its bytes can be lifted out of a journal line.
	Trial *Trial `json:"trial,omitempty"`
}

// Delivered is the event as subscriptions deliver it.
func (e *Event) Delivered() *Event {
	if e.Record == nil {
		return e
	}
	lean := *e
	lean.Record = nil
	return &lean
}

// TrialRange are the trials of a task from one number up to another, which is one
// of them.
type TrialRange [2]int

// Criteria are what trials are summed up by.
type Criteria struct {
	// Thresholds are, for each task of the run, the share of its counted
	// trials that must pass.
	Thresholds []float64   `json:"thresholds"`
	Metrics    []MetricRef `json:"metrics,omitempty"`
}

// Trial is all that is known of a completed trial.
type Trial struct {
	TaskID   string `json:"taskId"`
	TrialNum int    `json:"trialNum"`
	// Hash names the trial by its content.
	Hash    string  `json:"hash"`
	Verdict Verdict `json:"verdict"`
	// Score is the weighted mean of the graders' scores, 0 to 1, of those that
	// gave one; 0 for a timeout, so that each trial that counts has a score. It is nil
	// for other trials that no grader scored.
	Score *float64 `json:"score"`
	// Error says why the verdict is error, timeout or cancelled, or why the agent
	// failed where nothing was graded.
	Error string `json:"error,omitempty"`
	// StartedAt is zero for a trial that never began.
	StartedAt  time.Time `json:"startedAt,omitzero"`
	DurationMS int64     `json:"durationMs"`
	// ExecutorMS is how long the executor took in the attempt that counts, from
	// prompt to answer; StartupMS how long before that until the agent was ready.
	ExecutorMS int64  `json:"executorMs"`
	StartupMS  int64  `json:"startupMs,omitempty"`
	Prompt     string `json:"prompt,omitempty"`
	Output     string `json:"output"`
	// OutputDropped is how many bytes of the output were beyond the limit and are
	// not recorded.
	OutputDropped int64 `json:"outputDropped,omitempty"`
	// Graders, Transcript and Usage are those of the attempt that counts.
	Graders    []Grade `json:"graders"`
	Transcript []Entry `json:"transcript"`
	Usage      *Usage  `json:"usage,omitempty"`
	// Spent is what all attempts cost, agents and judges; absent when nothing is known
	// of that, and from older records.
	Spent *Ledger `json:"spent,omitempty"`
	// Speed is nil when the executor does not measure it.
	Speed *Speed `json:"speed,omitempty"`
	// Tools are the trial's tool scores; nil where no tool calls are expected, and where
	// they were not graded. Those of a timeout are 0, as its score is.
	Tools *TrialTools `json:"tools,omitempty"`
	// Workspace is what the attempt that counts left there, for grading it
	// anew; nil when the executor asked for none, or did not end normally.
	Workspace *Snapshot `json:"workspace,omitempty"`
	// Attempts are the earlier attempts, oldest first.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Cached is nil for a trial that was executed by its own run. Of one that was
	// taken over, all but its graders, score and verdict are of the run it is from.
	Cached *CachedFrom `json:"cached,omitempty"`
}

// CountedScore is the score of a trial that counts; nil when the trial does not count.
// Older records have no score for a timeout: it is 0.
func (res *Trial) CountedScore() *float64 { return CountedScore(res.Verdict, res.Score) }

// CountedScore returns the score of a trial if its verdict counts, and otherwise nil.
func CountedScore(v Verdict, score *float64) *float64 {
	switch {
	case !v.Counted():
		return nil
	case v == TimedOut:
		return new(float64)
	}
	return score
}

// ExecutorTook returns how long the executor worked.
func (res *Trial) ExecutorTook() time.Duration {
	return time.Duration(res.ExecutorMS) * time.Millisecond
}

// CachedFrom says where a trial was taken over from.
type CachedFrom struct {
	// RunID is the run whose executor did the trial. It may be gone.
	RunID string `json:"runId"`
	// Spent is what was spent on the trial before it was taken over.
	Spent *Ledger `json:"spent,omitempty"`
}

// Attempt is an attempt that was followed by another.
type Attempt struct {
	Verdict    Verdict  `json:"verdict"`
	Score      *float64 `json:"score"`
	Error      string   `json:"error,omitempty"`
	DurationMS int64    `json:"durationMs"`
	Output     string   `json:"output"`
	// OutputDropped is how many bytes of the output were beyond the limit and are
	// not recorded.
	OutputDropped int64   `json:"outputDropped,omitempty"`
	Graders       []Grade `json:"graders"`
	Transcript    []Entry `json:"transcript"`
	Usage         *Usage  `json:"usage,omitempty"`
}

// Weight is about how many bytes an event takes in memory and in the journal, as far
// as an agent, a grader or a log can make it large.
func (e *Event) Weight() int {
	n := 512 + len(e.Message) + len(e.Error)
	if e.Trial != nil {
		n += e.Trial.weight()
	}
	return n
}

func (res *Trial) weight() int {
	n := len(res.Prompt) + len(res.Error) + contentWeight(res.Output, res.Graders, res.Transcript)
	for i := range res.Attempts {
		a := &res.Attempts[i]
		n += len(a.Error) + contentWeight(a.Output, a.Graders, a.Transcript)
	}
	return n
}

func contentWeight(output string, graders []Grade, transcript []Entry) int {
	n := len(output)
	for i := range graders {
		n += len(graders[i].Feedback)
	}
	for i := range transcript {
		n += 64 + transcript[i].Size()
	}
	return n
}

// Ledger is what the trial cost; nil when that is not known. It must not be changed.
func (res *Trial) Ledger() *Ledger {
	if res.Spent != nil {
		return res.Spent
	}
	// Older records hold the usage of each attempt and the judges' details alone.
	sum := (*Ledger)(nil).Plus(&Ledger{res.Usage, judgesUsage(res.Graders)})
	for _, a := range res.Attempts {
		sum = sum.Plus(&Ledger{a.Usage, judgesUsage(a.Graders)})
	}
	return sum
}

// SpentBefore is what of the ledger an earlier run spent, from which the trial was
// taken over; nil when it was not.
func (res *Trial) SpentBefore() *Ledger {
	switch {
	case res.Cached == nil:
		return nil
	case res.Cached.Spent != nil || res.Spent != nil:
		return res.Cached.Spent
	}
	return res.Ledger()
}

// SpentHere is what the trial cost its own run: of one that was taken over from an
// earlier run, what judges spent since. It is nil when that is nothing.
func (res *Trial) SpentHere() *Ledger {
	if res.Cached == nil {
		return res.Ledger()
	}
	all, before := res.Ledger().Total(), res.SpentBefore().Total()
	switch {
	case all == nil:
		return nil
	case before == nil:
		return res.Ledger()
	case *all == *before:
		return nil
	}
	judges, earlier := res.Ledger().Judges, res.SpentBefore().Judges
	if judges == nil {
		return nil
	}
	since := *judges
	if earlier != nil {
		since.InputTokens = max(0, since.InputTokens-earlier.InputTokens)
		since.OutputTokens = max(0, since.OutputTokens-earlier.OutputTokens)
		since.TotalTokens = max(0, since.TotalTokens-earlier.TotalTokens)
		since.CostUSD = max(0, since.CostUSD-earlier.CostUSD)
	}
	return &Ledger{Judges: &since}
}

// A run that is taken up again goes on with the numbers of its events. What ended
// it before, and what amended it then, keeps its number, and is delivered as
// something to tell a person: a subscriber gets every number once, and one end.
//
//	… trial_complete  run_complete  end  trial_graded  run_graded  run_resumed  trial_start … end
//	                  └──────────────── as log events ────────────┘

// Supersedable reports whether events of the type count no more when the run is
// taken up again after them.
func (t EventType) Supersedable() bool { return t == RunComplete || t == End || t.Amends() }

// Keepable reports whether a verdict says what became of a trial, so that doing it
// again would be asking twice.
func (v Verdict) Keepable() bool { return v.Counted() || v == NeedsReview }

// Graded reports whether the verdict is what graders made of the trial. What was
// cut short or broke is not mended by a person's score.
func (v Verdict) Graded() bool { return v == Passed || v == Failed || v == NeedsReview }
