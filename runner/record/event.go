package record

import (
	"fmt"
	"slices"
	"time"
)

// Cacheable reports whether later runs can reuse a trial that ended with the verdict, see
// [Trial.Reusable].
func (v Verdict) Cacheable() bool { return v == Passed || v == Failed || v == NeedsReview }

// Known reports whether v is one of the verdicts of trials.
func (v Verdict) Known() bool {
	switch v {
	case Passed, Failed, Errored, TimedOut, Cancelled, Skipped, NeedsReview:
		return true
	}
	return false
}

// Known reports whether s is one of the states of a run.
func (s Status) Known() bool {
	switch s {
	case StatusRunning, StatusCompleted, StatusFailed, StatusCancelled, StatusInterrupted:
		return true
	}
	return false
}

// Verdict is the outcome of a trial or task.
type Verdict string

// The verdicts of trials and tasks. An error never counts as a pass, nor as a failure of the
// agent.
const (
	Passed    Verdict = "passed"
	Failed    Verdict = "failed"    // the agent did not pass the graders
	Errored   Verdict = "error"     // the harness, the network or the provider failed
	TimedOut  Verdict = "timeout"   // the trial exceeded its time limit
	Cancelled Verdict = "cancelled" // the run was cancelled before the trial ended
	Skipped   Verdict = "skipped"   // the trial never started, because of fail_fast or because the run stopped
	// NeedsReview is a provisional verdict: all automatic graders passed, and a person's score
	// is still missing.
	NeedsReview Verdict = "needs_review"
)

// Counted reports whether the verdict measures the agent.
func (v Verdict) Counted() bool { return v == Passed || v == Failed || v == TimedOut }

// Status is the state of a run.
type Status string

// The states of a run.
const (
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed" // every trial has a verdict, of any kind
	StatusFailed    Status = "failed"    // the run itself could not continue
	StatusCancelled Status = "cancelled"
	// StatusInterrupted means that the process of the run ended before the run did.
	StatusInterrupted Status = "interrupted"
)

// EndStatuses returns the states of runs that have ended.
func EndStatuses() []Status {
	return []Status{StatusCompleted, StatusFailed, StatusCancelled, StatusInterrupted}
}

// EventType is the kind of an [Event].
type EventType string

// The types of events, in the order in which they occur in a run. eval.progress reports the
// types up to run_complete.
const (
	RunStart      EventType = "run_start"
	TaskStart     EventType = "task_start"
	TrialStart    EventType = "trial_start"
	TrialComplete EventType = "trial_complete"
	TaskComplete  EventType = "task_complete"
	// Runs of kind judge have these events between their last trial and run_complete: the number
	// of comparisons that follow, each comparison, and the findings.
	CompareStart    EventType = "compare_start"
	CompareComplete EventType = "compare_complete"
	JudgeComplete   EventType = "judge_complete"
	// DecideProgress reports how far a run is with its question, after a batch of pairs.
	DecideProgress EventType = "decide_progress"
	RunComplete    EventType = "run_complete"
	// Log is a message for people. It can occur anywhere before End.
	Log EventType = "log"
	// PromptProposed reports that a model proposed a system prompt. Clients receive it as a log
	// event.
	PromptProposed EventType = "prompt_proposed"
	// End is the last event of a run. Each run has exactly one. Subscriptions deliver no event
	// after it, and none of the types below.
	End EventType = "end"

	// Amendments change the record of a run that has ended. They follow the events of the run.
	// An amendment is any number of trial and task events, then one run_graded event, with which
	// all of them take effect. An amendment without run_graded was interrupted; the next
	// amendment reuses its events.
	TrialGraded EventType = "trial_graded"
	TaskGraded  EventType = "task_graded"
	RunGraded   EventType = "run_graded"

	// RunResumed reports that the run was resumed, and which trials are kept. Everything else
	// that was recorded before is void. It can follow any event, and the events of the run
	// follow it as they follow run_start. Subscriptions deliver a superseded end or amendment as
	// a log event.
	RunResumed EventType = "run_resumed"
)

// Amends reports whether events of the type belong to an amendment.
func (t EventType) Amends() bool { return t == TrialGraded || t == TaskGraded || t == RunGraded }

// ChangesState reports whether events of the type change the state of a run.
func (t EventType) ChangesState() bool {
	switch t {
	case TrialComplete, TaskComplete, CompareStart, CompareComplete, JudgeComplete, DecideProgress, RunComplete, RunResumed, PromptProposed, End:
		return true
	}
	return t.Amends()
}

// IsLog reports whether events of the type consist of a level and a message for people, and
// contain nothing else that clients need.
func (t EventType) IsLog() bool { return t == Log || t == PromptProposed }

// Event is something that happened in a run. Events are numbered from 1 without gaps and never
// change once emitted. All other information about a run is derived from its events.
type Event struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Type EventType `json:"type"`

	// TaskID and TaskName name the task of task and trial events. TaskNum counts from 1 to
	// TotalTasks, in the order of the suite, and counts the tasks of all roles.
	TaskID     string `json:"taskId,omitempty"`
	TaskName   string `json:"taskName,omitempty"`
	TaskNum    int    `json:"taskNum,omitempty"`
	TotalTasks int    `json:"totalTasks,omitempty"`
	// Role is absent for a task of the suite.
	Role Role `json:"role,omitempty"`
	// TrialNum counts from 1 within the task, which has TotalTrials trials. A trial that was
	// requested alone keeps its number.
	TrialNum    int `json:"trialNum,omitempty"`
	TotalTrials int `json:"totalTrials,omitempty"`

	// Verdict, Score and DurationMS describe a completed trial or task.
	Verdict    Verdict  `json:"verdict,omitempty"`
	Score      *float64 `json:"score,omitempty"`
	DurationMS int64    `json:"durationMs,omitempty"`
	// Cached reports whether the trial was reused from an earlier run.
	Cached bool `json:"cached,omitempty"`
	// Was is the previous verdict, in trial_graded.
	Was Verdict `json:"was,omitempty"`

	// Level and Message belong to log events. Level is debug, info, warning or error.
	// run_resumed has a Message, too.
	Level   string `json:"level,omitempty"`
	Message string `json:"message,omitempty"`
	// Attempt is set in a log event that reports a retry of trial TrialNum. It is the number of
	// the next attempt.
	Attempt int `json:"attempt,omitempty"`

	// Prompt is the proposed prompt, in prompt_proposed.
	Prompt *Prompt `json:"prompt,omitempty"`

	// Status, Summary and Error belong to run_complete and end. run_graded has a Summary, too.
	// In trial_complete, Error is the reason for an error, timeout or cancellation, cut to a few
	// KiB. A log event with a Verdict has the reason why trial TrialNum ended in error.
	Status  Status   `json:"status,omitempty"`
	Summary *Summary `json:"summary,omitempty"`
	Error   string   `json:"error,omitempty"`
	// Criteria are the criteria by which the summary of run_graded was computed.
	Criteria *Criteria `json:"criteria,omitempty"`

	// Kept, in run_resumed, maps the id of a task to its trials whose results remain valid.
	// KeptTrials is the number of these trials.
	Kept       map[string][]TrialRange `json:"kept,omitempty"`
	KeptTrials int                     `json:"keptTrials,omitempty"`

	// Record is the record of the run, in the run_start or run_resumed event of the journal.
	// waza can restore run.json from it. Subscriptions do not deliver it.
	Record *Run `json:"record,omitempty"`

	// Comparing belongs to compare_start and compare_complete, Comparison to compare_complete,
	// and Findings to judge_complete.
	Comparing  *Comparing      `json:"comparing,omitempty"`
	Comparison *CaseComparison `json:"comparison,omitempty"`
	Findings   *Findings       `json:"findings,omitempty"`

	// Deciding belongs to decide_progress.
	Deciding *DecisionProgress `json:"deciding,omitempty"`

	// Task is the result of the task, in task_complete and task_graded.
	Task *Task `json:"task,omitempty"`
	// Trial is the full record of a completed trial. It is the last field, so that readers can
	// extract its bytes from a journal line.
	Trial *Trial `json:"trial,omitempty"`
}

// Delivered returns the event as subscriptions deliver it.
func (e *Event) Delivered() *Event {
	if e.Record == nil {
		return e
	}
	lean := *e
	lean.Record = nil
	return &lean
}

// TrialRange is a range of trials of a task: the first and the last number, both included.
type TrialRange [2]int

// Criteria are the criteria by which trials are summarized.
type Criteria struct {
	// Thresholds holds, for each task of the run, the share of its counted trials that must
	// pass.
	Thresholds []float64   `json:"thresholds"`
	Metrics    []MetricRef `json:"metrics,omitempty"`
}

// Trial is the full record of a completed trial.
type Trial struct {
	TaskID   string `json:"taskId"`
	TrialNum int    `json:"trialNum"`
	// Hash identifies the trial by its content.
	Hash    string  `json:"hash"`
	Verdict Verdict `json:"verdict"`
	// Score is the mean of the graders' scores, 0 to 1, weighted, over the graders that gave a
	// score. It is 0 for a timeout, so that each counted trial has a score. It is nil for other
	// trials that no grader scored.
	Score *float64 `json:"score"`
	// ScoreThreshold is the least score with which the trial passes, whichever graders passed. It is
	// nil where all graders must pass.
	ScoreThreshold *float64 `json:"scoreThreshold,omitempty"`
	// Error is the reason why the verdict is error, timeout or cancelled, or why the agent
	// failed where nothing was graded.
	Error string `json:"error,omitempty"`
	// StartedAt is zero for a trial that never started.
	StartedAt  time.Time `json:"startedAt,omitzero"`
	DurationMS int64     `json:"durationMs"`
	// ExecutorMS is the time from prompt to answer in the counted attempt. StartupMS is the time
	// before that until the agent was ready.
	ExecutorMS int64 `json:"executorMs"`
	StartupMS  int64 `json:"startupMs,omitempty"`
	// Untimed reports whether the times are unknown, because imported results do not state them.
	Untimed bool `json:"untimed,omitempty"`
	// EndedEarly reports whether waza ended the agent because its verdict was decided: by the first tool call,
	// or by the use of a skill. It is neither an error nor a timeout. The times and the usage are those until
	// then. The usage is nil if the agent had reported none.
	EndedEarly bool   `json:"endedEarly,omitempty"`
	Prompt     string `json:"prompt,omitempty"`
	Output     string `json:"output"`
	// OutputDropped is the number of bytes of the output beyond the limit. They are not
	// recorded.
	OutputDropped int64 `json:"outputDropped,omitempty"`
	// Graders, Transcript and Usage are those of the counted attempt. Ungraded lists the graders
	// that gave no score because the agent did not finish; metrics count them as 0. It is absent
	// from older records.
	Graders    []Grade     `json:"graders"`
	Ungraded   []GraderRef `json:"ungraded,omitempty"`
	Transcript []Entry     `json:"transcript"`
	Usage      *Usage      `json:"usage,omitempty"`
	// Spent is the cost of all attempts, agents and judges. It is absent when no cost is known,
	// and from older records.
	Spent *Ledger `json:"spent,omitempty"`
	// Speed is nil when the executor does not measure it.
	Speed *Speed `json:"speed,omitempty"`
	// Tools holds the tool scores of the trial. It is nil where no tool calls are expected, and
	// where they were not graded. The tool scores of a timeout are 0, like its score.
	Tools *TrialTools `json:"tools,omitempty"`
	// Routing describes how clients handled the prompts in the counted attempt. It is nil where
	// the executor gives prompts to no clients.
	Routing *Routing `json:"routing,omitempty"`
	// Conditions describe what happened around the counted attempt. They are nil where nothing is
	// known, and in older records. Those of a reused trial are from the earlier run.
	Conditions *Conditions `json:"conditions,omitempty"`
	// Workspace is the workspace after the counted attempt, kept so that waza can grade it
	// again. It is nil when the executor requested none, or did not end normally.
	Workspace *Snapshot `json:"workspace,omitempty"`
	// Checkpoints are the checkpoints that the counted attempt reached, in the order of its
	// turns.
	Checkpoints []Checkpoint `json:"checkpoints,omitempty"`
	// Responder describes the model that replied to the agent in the counted attempt; nil
	// without one.
	Responder *Responded `json:"responder,omitempty"`
	// Suspicions are suspicious moves of the agent in the counted attempt, whatever its verdict. They
	// are found when the attempt ends, and again when it is graded again. It is empty in older records.
	Suspicions []Suspicion `json:"suspicions,omitempty"`
	// Tier is the protection that the programs of the trial had, if the worker of a fleet chose it:
	// the tier of the run is then [TierWorkers]. It is empty for other trials, which have the tier
	// of their run, and for those that ended before the worker had opened its sandbox.
	Tier Tier `json:"tier,omitempty"`
	// Attempts are the earlier attempts, oldest first.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Cached is nil for a trial that its own run executed. In a reused trial, only the graders,
	// the score and the verdict are of this run; all else is from the earlier run.
	Cached *CachedFrom `json:"cached,omitempty"`
}

// BelowThreshold returns the reason why a failed trial with a score threshold failed, without the
// score, so that all such trials of a task have the same reason; empty for other trials.
func (res *Trial) BelowThreshold() string {
	if res.Verdict != Failed || res.ScoreThreshold == nil || res.Score == nil || res.Error != "" {
		return ""
	}
	return fmt.Sprintf("the score is below score_threshold %v", *res.ScoreThreshold)
}

// CountedScore returns the score of a counted trial; nil when the trial does not count. Older
// records have no score for a timeout; its score is 0.
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

// ChangedFiles lists the files of graders that changed during the run, see [Grade.ChangedFiles].
// An agent can have changed them.
func (res *Trial) ChangedFiles() []string {
	var files []string
	for i := range res.Graders {
		for _, f := range res.Graders[i].ChangedFiles {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// Reusable reports whether later runs can reuse the trial.
func (res *Trial) Reusable() bool {
	unchecked := func(g Grade) bool { return g.Unchecked != "" }
	return res.Verdict.Cacheable() && res.ChangedFiles() == nil && !slices.ContainsFunc(res.Graders, unchecked)
}

// ExecutorTook returns how long the executor worked.
func (res *Trial) ExecutorTook() time.Duration {
	return time.Duration(res.ExecutorMS) * time.Millisecond
}

// CachedFrom names the origin of a reused trial.
type CachedFrom struct {
	// RunID is the run whose executor executed the trial. It may no longer exist.
	RunID string `json:"runId"`
	// Spent is the cost of the trial before it was reused.
	Spent *Ledger `json:"spent,omitempty"`
}

// Attempt is an attempt that was followed by another.
type Attempt struct {
	Verdict    Verdict  `json:"verdict"`
	Score      *float64 `json:"score"`
	Error      string   `json:"error,omitempty"`
	DurationMS int64    `json:"durationMs"`
	Output     string   `json:"output"`
	// OutputDropped is the number of bytes of the output beyond the limit. They are not
	// recorded.
	OutputDropped int64   `json:"outputDropped,omitempty"`
	Graders       []Grade `json:"graders"`
	Transcript    []Entry `json:"transcript"`
	Usage         *Usage  `json:"usage,omitempty"`
	// Checkpoints, Responder and Conditions are like those of a [Trial].
	Checkpoints []Checkpoint `json:"checkpoints,omitempty"`
	Responder   *Responded   `json:"responder,omitempty"`
	Conditions  *Conditions  `json:"conditions,omitempty"`
}

// Weight returns about how many bytes the event takes in memory and in the journal. It counts
// only the parts that an agent, a grader or a log can make large.
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

// Ledger returns the cost of the trial; nil when it is unknown. The caller must not change it.
func (res *Trial) Ledger() *Ledger {
	if res.Spent != nil {
		return res.Spent
	}
	// Older records contain only the usage of each attempt and the details of the judges.
	sum := (*Ledger)(nil).Plus(&Ledger{Agent: res.Usage, Judges: judgesUsage(res.Graders)})
	for _, a := range res.Attempts {
		sum = sum.Plus(&Ledger{Agent: a.Usage, Judges: judgesUsage(a.Graders)})
	}
	return sum
}

// SpentBefore returns the part of the ledger that an earlier run spent on a reused trial; nil
// for other trials.
func (res *Trial) SpentBefore() *Ledger {
	switch {
	case res.Cached == nil:
		return nil
	case res.Cached.Spent != nil || res.Spent != nil:
		return res.Cached.Spent
	}
	return res.Ledger()
}

// SpentHere returns the cost of the trial in its own run. For a reused trial, this is what
// judges spent since. It is nil when that is nothing.
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

// A resumed run continues the numbers of its events. Events that ended it before, and amendments
// of that time, keep their numbers and are delivered as log events. A subscriber therefore
// receives every number once, and one end.
//
//	… trial_complete  run_complete  end  trial_graded  run_graded  run_resumed  trial_start … end
//	                  └──────────────── as log events ────────────┘

// Supersedable reports whether a later resume of the run makes events of the type void.
func (t EventType) Supersedable() bool { return t == RunComplete || t == End || t.Amends() }

// Keepable reports whether the verdict is final, so that a resumed run need not repeat the
// trial.
func (v Verdict) Keepable() bool { return v.Counted() || v == NeedsReview }

// Graded reports whether graders determined the verdict. A person's score cannot change the
// verdict of a trial that was interrupted or failed.
func (v Verdict) Graded() bool { return v == Passed || v == Failed || v == NeedsReview }
