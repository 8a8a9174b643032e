package record

// Class describes how a task changed between two runs.
type Class string

// The classes of tasks.
const (
	// Improved and Regressed are significant changes. The probability that chance alone produces
	// such a change in any task of any compared run is at most 1 minus the confidence of the
	// comparison.
	Improved  Class = "improved"
	Regressed Class = "regressed"
	// Unchanged means that the interval of the difference lies within the margin.
	Unchanged Class = "unchanged"
	// NoDifference means that both sides agree, but a difference beyond the margin is not ruled
	// out.
	NoDifference Class = "no_difference"
	// Undecided means that the sides differ, but the difference could be chance.
	Undecided Class = "undecided"
)

// Question is what a comparison of two runs is about.
type Question string

// The questions of a comparison.
const (
	// TheseTasks asks whether anything changed on exactly the compared tasks.
	TheseTasks Question = "these_tasks"
	// TasksLikeThese asks whether the mean over all tasks of this kind changed, of which the
	// compared ones are a sample. The effect may differ from task to task.
	TasksLikeThese Question = "tasks_like_these"
)

// Questions returns all questions.
func Questions() []Question { return []Question{TheseTasks, TasksLikeThese} }

// String returns the name of the question in sentences.
func (q Question) String() string {
	if q == TasksLikeThese {
		return "tasks like these"
	}
	return "these tasks"
}

// Answer is the answer of a comparison to one question.
type Answer struct {
	Outcome Outcome `json:"outcome"`
	// P is the least p-value of the tests of this question, corrected for those of all runs that
	// are compared together, and for earlier comparisons with the same baseline.
	P float64 `json:"p"`
	// PassRate and Score are means over tasks, with equal weights, and the intervals of this
	// question; nil without values. For tasks that could stop early, the differences are means of
	// unbiased estimates.
	PassRate *Contrast `json:"passRate"`
	Score    *Contrast `json:"score"`
}

// LikeAnswer is the answer about tasks like these.
type LikeAnswer struct {
	Answer
	// Clusters counts the clusters of the compared tasks. A task without a cluster is one by
	// itself.
	Clusters int `json:"clusters"`
	// AtLeast is the number of clusters that the test needs at least to show anything.
	AtLeast int `json:"atLeast"`
	// TooFew reports whether there are fewer clusters than AtLeast.
	TooFew bool `json:"tooFew,omitempty"`
	// TasksNeeded is how many tasks with as many trials would show the observed difference with a
	// probability of 80 %. It is nil if the difference is shown, and 0 if it is more than 10,000
	// or cannot be estimated.
	TasksNeeded *int `json:"tasksNeeded,omitempty"`
	// Variance splits the variance of the tasks' changes in pass rate; nil if it is unknown or 0.
	Variance *Variance `json:"variance,omitempty"`
}

// Variance splits the variance of the changes of tasks.
type Variance struct {
	// Between is the variance of the true changes between tasks, Within the part of a task's
	// observed change that comes from its trials.
	Between float64 `json:"between"`
	Within  float64 `json:"within"`
	// Share is the share of Between in both.
	Share float64 `json:"share"`
	// MoreTrials is the share by which the interval would at most narrow with any number of
	// further trials of the same tasks. Only more tasks narrow it further.
	MoreTrials float64 `json:"moreTrials"`
}

// Outcome describes how a suite changed between two runs.
type Outcome string

// The outcomes of a comparison.
const (
	OutcomeBetter Outcome = "better"
	OutcomeWorse  Outcome = "worse"
	// OutcomeSame means that a difference beyond the margin was ruled out.
	OutcomeSame Outcome = "same"
	// OutcomeUndecided means that neither a difference nor sameness was shown.
	OutcomeUndecided Outcome = "undecided"
)

// ClassCounts counts tasks by class.
type ClassCounts struct {
	Improved     int `json:"improved"`
	Regressed    int `json:"regressed"`
	Unchanged    int `json:"unchanged"`
	NoDifference int `json:"noDifference"`
	Undecided    int `json:"undecided"`
}

// Add counts one task of class c.
func (n *ClassCounts) Add(c Class) {
	switch c {
	case Improved:
		n.Improved++
	case Regressed:
		n.Regressed++
	case Unchanged:
		n.Unchanged++
	case NoDifference:
		n.NoDifference++
	case Undecided:
		n.Undecided++
	}
}

// Needed is the number of trials with which a difference as large as the observed one is shown
// with a probability of 80 %.
type Needed struct {
	// Trials is the total per run; 0 if it is more than 10,000.
	Trials int `json:"trials"`
	// More is the number of further trials for the run that has fewer; 0 if Trials is more than
	// 10,000.
	More int `json:"more"`
}

// Contrast is a number of a run beside the same number of the reference run.
type Contrast struct {
	Reference float64 `json:"reference"`
	Run       float64 `json:"run"`
	// Difference is Run minus Reference.
	Difference float64 `json:"difference"`
	// Interval is the interval of Difference at the confidence of the comparison, see
	// [stats.Difference]. It applies to these tasks only, except in a [LikeAnswer]. It is nil where
	// trials that stopped early allow no interval.
	Interval *Interval `json:"interval"`
}

// The tests of tasks.
const (
	TestFisher      = "fisher"      // compares pass rates of independent trials
	TestMcNemar     = "mcnemar"     // compares pairs of trials with the same number
	TestPermutation = "permutation" // compares scores, where they carry more information than verdicts
	TestStopped     = "stopped"     // compares pass rates where trials could stop early
)

// TaskTest is a test of one task.
type TaskTest struct {
	Name string `json:"name"`
	// P is two-sided: twice the smaller tail, at most 1. Programs that add the probabilities of
	// all less likely tables print smaller values for Fisher's test.
	P float64 `json:"p"`
	// Corrected is P corrected for the number of tests of all tasks, and for earlier comparisons
	// with the same baseline.
	Corrected float64 `json:"corrected"`
}

// Pairs counts pairs of counted trials with the same number.
type Pairs struct {
	Same   int `json:"same"`
	Worse  int `json:"worse"`
	Better int `json:"better"`
}
