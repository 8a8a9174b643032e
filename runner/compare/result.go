package compare

import (
	"time"

	"waza/runner/record"
)

// A Comparison compares runs with the first of them, or in each of several suites with the first
// run of the suite.
type Comparison struct {
	// Confidence applies to each interval, to the outcomes of all runs together, and to the classes
	// of all tasks together: if nothing changed, the probability that any outcome is better or
	// worse is at most 1 - Confidence, and so is the probability that any task is called improved or
	// regressed. Half of each is for either direction, so all wrong regressions together keep it,
	// too.
	Confidence float64 `json:"confidence"`
	// Margin is the largest difference of pass rates and scores that counts as the same.
	Margin float64 `json:"margin"`
	// OnCollapsedTasks is what a gate does about tasks that passed all trials of the reference and
	// none of the run, although they have too few trials for a test. It is a rule, not a
	// significance result.
	OnCollapsedTasks OnTasks `json:"onCollapsedTasks"`
	// Runs lists the compared runs, the reference of each suite before its further runs.
	Runs []ComparedRun `json:"runs"`
	// Comparisons holds the comparison of each further run with its reference, in that order.
	Comparisons []RunComparison `json:"comparisons"`
	// Single lists suites that are not compared, because they have too few runs. Callers that
	// choose the suites set it.
	Single []record.SuiteRef `json:"single,omitempty"`
}

// A ComparedRun is a compared run, or a cell of one.
type ComparedRun struct {
	// Name identifies the run: the run's id, with the cell in brackets.
	Name  string `json:"name"`
	RunID string `json:"runId"`
	// File is the file of the result; empty for a recorded run.
	File string       `json:"file,omitempty"`
	Cell *record.Cell `json:"cell,omitempty"`
	// Status can be running; then the ended tasks are compared.
	Status    record.Status   `json:"status"`
	Suite     record.SuiteRef `json:"suite"`
	Executor  string          `json:"executor"`
	Agent     string          `json:"agent,omitempty"`
	Model     string          `json:"model,omitempty"`
	StartedAt time.Time       `json:"startedAt"`
	// Sandbox describes the sandboxes of the trials; nil if it is unknown.
	Sandbox *record.Sandbox `json:"sandbox,omitempty"`
	// Tasks and Trials count the requested tasks of the suite and their trials, by outcome.
	Tasks  record.Counts `json:"tasks"`
	Trials record.Counts `json:"trials"`
	// Judged is the report of a run of the kind judge, without strengths and weaknesses. It is
	// nil for other runs and for cells. JudgedLeftOut is the number of tasks that its score leaves
	// out.
	Judged        *record.JudgeReport `json:"judged,omitempty"`
	JudgedLeftOut int                 `json:"judgedLeftOut,omitempty"`
	// Damage describes the damaged parts of the record; absent without damage.
	Damage *record.Damage `json:"damage,omitempty"`
}

// A RunComparison compares one run with its reference.
type RunComparison struct {
	// Reference is the name of the reference.
	Reference string `json:"reference"`
	// Run is the name of the run.
	Run string `json:"run"`
	// About is the question of the verdict: of Outcome and P, and of the intervals of PassRate and
	// Score. It is about tasks like these unless the caller asked for the other, or unless there are
	// too few tasks.
	About   record.Question `json:"about"`
	Outcome record.Outcome  `json:"outcome"`
	// P is the p-value of the outcome, corrected for the outcomes of all runs of the comparison.
	P float64 `json:"p"`
	// TheseTasks and TasksLikeThese are the answers to both questions. The one that About names has
	// Outcome, P, PassRate and Score.
	TheseTasks     record.Answer     `json:"theseTasks"`
	TasksLikeThese record.LikeAnswer `json:"tasksLikeThese"`
	// Active reports whether one of the runs is still running. Then there are figures and intervals,
	// but no tests: no outcome is better, worse or the same, and no task improved or regressed.
	Active bool `json:"active,omitempty"`
	// Comparison is the place of this comparison among those with the same baseline; nil if nothing
	// counts them, or for a run that is still active.
	Comparison *Place `json:"comparison,omitempty"`
	// Compared counts the tasks with trials that count on both sides.
	Compared int `json:"compared"`
	record.ClassCounts
	// PassRate and Score are means over tasks, with equal weights; nil without values. For
	// tasks that could stop early, they are means of unbiased estimates. The means and their
	// difference are the same for both questions, the intervals are those of About.
	PassRate *record.Contrast `json:"passRate"`
	Score    *record.Contrast `json:"score"`
	// Verdicts counts tasks by their verdict in both runs.
	Verdicts Verdicts `json:"verdicts"`
	// The means over tasks per counted trial; nil if unknown. Tokens and costs are the agents'
	// in all attempts, because judges' costs do not concern an agent.
	DurationMS *Ratio `json:"durationMs"`
	Tokens     *Ratio `json:"tokens"`
	CostUSD    *Ratio `json:"costUsd"`
	// FirstTokenMS and TokensPerSecond are the models' speed as means over tasks; nil if no
	// trial recorded it.
	FirstTokenMS    *Ratio `json:"firstTokenMs,omitempty"`
	TokensPerSecond *Ratio `json:"tokensPerSecond,omitempty"`
	// Tools holds the tool scores as means over the tasks that have them in both runs; nil if no
	// task has.
	Tools *ToolContrasts `json:"tools,omitempty"`
	// Differences lists the settings that differ between the runs.
	Differences []Difference `json:"differences"`
	// Notes states the limits of the comparison.
	Notes []ComparisonNote `json:"notes"`
	// Tasks lists the compared tasks, in the order of the reference.
	Tasks []TaskComparison `json:"tasks"`
	// Uncounted lists tasks of both runs that cannot be compared: in one of the runs no trial
	// counts, or some trials wait for a person's score.
	Uncounted []UncountedTask `json:"uncounted"`
	// OnlyReference and OnlyRun hold the ids of tasks that the other run does not have.
	OnlyReference []string `json:"onlyReference"`
	OnlyRun       []string `json:"onlyRun"`
	// Policies is nil if no policies were given.
	Policies *PolicyResult `json:"policies,omitempty"`
}

// A Place is the place of a comparison among those with the same baseline. Comparing several runs
// with it at once counts once.
type Place struct {
	// Place counts from 1.
	Place int `json:"place"`
	// Weight is the share of the level that the tests may spend; p-values are divided by it. All
	// weights of a baseline add up to at most 1.
	Weight float64 `json:"weight"`
	// Error is why this comparison could not be counted; empty if it was.
	Error string `json:"error,omitempty"`
}

// A ComparisonNote states a limit of a comparison.
type ComparisonNote struct {
	// Run is the name of the run that the note is about; empty if it is about both.
	Run string `json:"run,omitempty"`
	// Text continues a sentence that starts with Run, if Run is not empty.
	Text string `json:"text"`
}

// A Ratio compares a measure of two runs.
type Ratio struct {
	Reference float64 `json:"reference"`
	Run       float64 `json:"run"`
	// Ratio is Run divided by Reference; nil if Reference is 0.
	Ratio *float64 `json:"ratio"`
	// Interval is computed by [stats.RatioInterval]; nil if a task has a single trial.
	Interval *record.Interval `json:"interval,omitempty"`
}

// ToolContrasts holds the tool scores of two runs. Their contrasts have no intervals.
type ToolContrasts struct {
	Selection record.Contrast `json:"selection"`
	// Params is nil if no task has it in both runs.
	Params  *record.Contrast `json:"params"`
	Overall record.Contrast  `json:"overall"`
}

// Verdicts counts tasks by whether they passed in both runs.
type Verdicts struct {
	BothPassed int `json:"bothPassed"`
	// Lost tasks passed only in the reference, Won tasks only in the other run.
	Lost    int `json:"lost"`
	Won     int `json:"won"`
	Neither int `json:"neither"`
	// P is the p-value of McNemar's test of Lost against Won.
	P float64 `json:"p"`
}

// A Difference is a setting that differs between two runs.
type Difference struct {
	What      string `json:"what"`
	Reference string `json:"reference"`
	Run       string `json:"run"`
}

// The parts of a task that can change between two runs.
const (
	ChangedExecution = "execution" // prompt, files, skills, or how it is executed
	ChangedModel     = "model"     // the model, and perhaps more
	ChangedGraders   = "graders"   // only how it is scored
)

// A TaskComparison is a task in two runs.
type TaskComparison struct {
	ID    string       `json:"id"`
	Name  string       `json:"name"`
	Class record.Class `json:"class"`
	// By names the measure that improved or regressed: passRate or score.
	By string `json:"by,omitempty"`
	// P is the least p-value of the task's tests, corrected for the tests of all tasks of the
	// comparison.
	P     float64           `json:"p"`
	Tests []record.TaskTest `json:"tests"`
	// Collapsed reports whether the task passed all counted trials of the reference and none of the
	// run, in too few trials for a test to show that it regressed.
	Collapsed bool `json:"collapsed,omitempty"`
	// Equal reports whether a difference beyond the margin was ruled out, at the comparison's
	// confidence for this task alone.
	Equal bool `json:"equal"`
	// PassRate covers the counted trials.
	PassRate record.Contrast `json:"passRate"`
	// Shrunken is the difference of the pass rates, moved toward the mean difference of all tasks by
	// the part that chance explains. It is nil where [stats.Shrink] shows none.
	Shrunken *float64 `json:"shrunken,omitempty"`
	// Score is nil if no trial of one side has a score.
	Score *record.Contrast `json:"score"`
	// Reference and Run count the trials.
	Reference record.Counts `json:"reference"`
	Run       record.Counts `json:"run"`
	// Pairs counts pairs of trials with equal number.
	Pairs record.Pairs `json:"pairs"`
	// Needed is how many trials would decide. It is nil unless the task is undecided and has two
	// counted trials in both runs.
	Needed     *record.Needed `json:"needed,omitempty"`
	DurationMS *Ratio         `json:"durationMs"`
	Tokens     *Ratio         `json:"tokens"`
	CostUSD    *Ratio         `json:"costUsd"`
	// Changed names the part of the task that changed: execution, model or graders. It is empty if
	// nothing changed, or if all tasks changed.
	Changed string `json:"changed,omitempty"`
}

// An UncountedTask is a task that cannot be compared.
type UncountedTask struct {
	ID        string        `json:"id"`
	Reference record.Counts `json:"reference"`
	Run       record.Counts `json:"run"`
	// The bounds of the pass rate while trials wait for a person's score: the rate if all of
	// them fail, and if all of them pass.
	ReferenceBounds *record.Interval `json:"referenceBounds,omitempty"`
	RunBounds       *record.Interval `json:"runBounds,omitempty"`
}
