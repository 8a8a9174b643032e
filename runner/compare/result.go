package compare

import (
	"time"

	"waza/runner/record"
)

// Outcome says what became of a suite from one run to another.
type Outcome string

// The outcomes of a comparison.
const (
	OutcomeBetter Outcome = "better"
	OutcomeWorse  Outcome = "worse"
	// OutcomeSame: a difference beyond the margin was ruled out.
	OutcomeSame Outcome = "same"
	// OutcomeUndecided: neither was shown.
	OutcomeUndecided Outcome = "undecided"
)

// Comparison holds runs against the first of them.
type Comparison struct {
	// Confidence is that of all intervals, and of the classes of all tasks of a
	// pair of runs taken together.
	Confidence float64 `json:"confidence"`
	// Margin is by how much pass rates and scores may differ and still be the same.
	Margin float64 `json:"margin"`
	// Runs are what was compared, the reference first.
	Runs []ComparedRun `json:"runs"`
	// Comparisons are those of each further run with the reference, in that order.
	Comparisons []RunComparison `json:"comparisons"`
}

// ComparedRun is a run, or a cell of one, that was compared.
type ComparedRun struct {
	// Name tells it from the others: the run's id, with the cell in brackets.
	Name  string `json:"name"`
	RunID string `json:"runId"`
	// File is where the result was read from; empty for a recorded run.
	File string       `json:"file,omitempty"`
	Cell *record.Cell `json:"cell,omitempty"`
	// Status may be running: what had ended is compared then.
	Status    record.Status   `json:"status"`
	Suite     record.SuiteRef `json:"suite"`
	Executor  string          `json:"executor"`
	Agent     string          `json:"agent,omitempty"`
	Model     string          `json:"model,omitempty"`
	StartedAt time.Time       `json:"startedAt"`
	// Tasks and Trials count those of the suite that were asked for, by what
	// became of them.
	Tasks  record.Counts `json:"tasks"`
	Trials record.Counts `json:"trials"`
	// Judged is the report of a run of the kind judge without strengths and weaknesses; nil
	// of others, and of cells.
	Judged *record.JudgeReport `json:"judged,omitempty"`
}

// RunComparison holds one run against the reference.
type RunComparison struct {
	// Run is the name of the run.
	Run     string  `json:"run"`
	Outcome Outcome `json:"outcome"`
	// P is the p-value of the outcome: whether any task changed, all moves being
	// added up, by pass rate and score.
	P float64 `json:"p"`
	// Compared counts the tasks with trials that count on both sides.
	Compared int `json:"compared"`
	record.ClassCounts
	// PassRate and Score are means over tasks, each of which weighs the same; nil when
	// there are none. Of tasks that could stop early, they are means of estimates without
	// bias.
	PassRate *record.Contrast `json:"passRate"`
	Score    *record.Contrast `json:"score"`
	// Verdicts counts tasks by their verdict in both runs.
	Verdicts Verdicts `json:"verdicts"`
	// What a counted trial takes, as the mean over tasks; nil when not known. Tokens and
	// costs are those of agents in all attempts: judges say nothing of an agent.
	DurationMS *Ratio `json:"durationMs"`
	Tokens     *Ratio `json:"tokens"`
	CostUSD    *Ratio `json:"costUsd"`
	// FirstTokenMS and TokensPerSecond say how fast models were, as means over tasks; nil
	// when no trial knows.
	FirstTokenMS    *Ratio `json:"firstTokenMs,omitempty"`
	TokensPerSecond *Ratio `json:"tokensPerSecond,omitempty"`
	// Tools are the tool scores, as means over the tasks that have them in both runs; nil
	// when none has.
	Tools *ToolContrasts `json:"tools,omitempty"`
	// Differences are those between the runs that are no outcome.
	Differences []Difference `json:"differences"`
	// Notes say what limits the comparison.
	Notes []ComparisonNote `json:"notes"`
	// Tasks are those that were compared, in the order of the reference.
	Tasks []TaskComparison `json:"tasks"`
	// Uncounted are tasks of both runs that cannot be compared: in one of the runs no trial
	// says anything about the agent, or some wait for a person's score.
	Uncounted []UncountedTask `json:"uncounted"`
	// OnlyReference and OnlyRun are the ids of tasks that the other run does not have.
	OnlyReference []string `json:"onlyReference"`
	OnlyRun       []string `json:"onlyRun"`
}

// ComparisonNote says what limits a comparison.
type ComparisonNote struct {
	// Run is the name of the run that it is about; empty when it is about both.
	Run string `json:"run,omitempty"`
	// Text goes on where Run has named it.
	Text string `json:"text"`
}

// Ratio is what something takes in two runs.
type Ratio struct {
	Reference float64 `json:"reference"`
	Run       float64 `json:"run"`
	// Ratio is Run over Reference; nil when that is 0.
	Ratio *float64 `json:"ratio"`
	// Interval is that of [stats.RatioInterval]; nil where a task has a single trial.
	Interval *record.Interval `json:"interval,omitempty"`
}

// ToolContrasts are the tool scores of two runs. Their contrasts have no intervals.
type ToolContrasts struct {
	Selection record.Contrast `json:"selection"`
	// Params is nil when no task has it in both runs.
	Params  *record.Contrast `json:"params"`
	Overall record.Contrast  `json:"overall"`
}

// Verdicts counts tasks by whether they passed in both runs.
type Verdicts struct {
	BothPassed int `json:"bothPassed"`
	// Lost passed in the reference alone, Won in the other run alone.
	Lost    int `json:"lost"`
	Won     int `json:"won"`
	Neither int `json:"neither"`
	// P is that of McNemar's test of Lost against Won.
	P float64 `json:"p"`
}

// Difference is a setting that differs between two runs.
type Difference struct {
	What      string `json:"what"`
	Reference string `json:"reference"`
	Run       string `json:"run"`
}

// What may have changed of a task between two runs.
const (
	ChangedExecution = "execution" // prompt, files, skills, or how it is executed
	ChangedGraders   = "graders"   // only how it is scored
)

// TaskComparison is a task in two runs.
type TaskComparison struct {
	ID    string       `json:"id"`
	Name  string       `json:"name"`
	Class record.Class `json:"class"`
	// By says what showed that it improved or regressed: passRate or score.
	By string `json:"by,omitempty"`
	// P is the least p-value of the task's tests, corrected for the number of
	// all tests of all tasks.
	P     float64           `json:"p"`
	Tests []record.TaskTest `json:"tests"`
	// Equal: a difference beyond the margin was ruled out, at the comparison's
	// confidence for this task alone.
	Equal bool `json:"equal"`
	// PassRate is over the counted trials.
	PassRate record.Contrast `json:"passRate"`
	// Score is nil when no trial of one side has one.
	Score *record.Contrast `json:"score"`
	// Reference and Run count the trials.
	Reference record.Counts `json:"reference"`
	Run       record.Counts `json:"run"`
	// Pairs are of trials with equal number.
	Pairs record.Pairs `json:"pairs"`
	// Needed is how many trials would decide; nil unless the task is undecided
	// and has two counted trials in both runs.
	Needed     *Needed `json:"needed,omitempty"`
	DurationMS *Ratio  `json:"durationMs"`
	Tokens     *Ratio  `json:"tokens"`
	CostUSD    *Ratio  `json:"costUsd"`
	// Changed says what of the task itself is another: execution, graders, or
	// empty when nothing is or everything is in all tasks.
	Changed string `json:"changed,omitempty"`
}

// Needed is how many trials each run would have to have so that the difference
// seen, if it is the true one, is shown with a chance of 80 %.
type Needed struct {
	// Trials of each run in all; 0 when that is more than 10,000.
	Trials int `json:"trials"`
	// More is how many that is beyond those of the run that has fewer; 0 when
	// it is more than 10,000.
	More int `json:"more"`
}

// UncountedTask is a task that cannot be compared.
type UncountedTask struct {
	ID        string        `json:"id"`
	Reference record.Counts `json:"reference"`
	Run       record.Counts `json:"run"`
	// The bounds of the pass rate, where trials wait for a person's score: if all of them
	// failed, and if all of them passed.
	ReferenceBounds *record.Interval `json:"referenceBounds,omitempty"`
	RunBounds       *record.Interval `json:"runBounds,omitempty"`
}
