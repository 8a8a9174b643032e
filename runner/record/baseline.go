package record

// BaselineResult compares the agent with its skills to the same agent without them, or with those of
// an earlier revision. Graders that say nothing about the agent of the baseline, such as
// skill_invocation about one without skills, are left out on both sides. The verdict of a task can
// therefore differ here from its own verdict.
type BaselineResult struct {
	// Arm names the side of the baseline; absent for an agent without skills.
	Arm Arm `json:"arm,omitempty"`
	// Against is the revision of the skills on that side; nil for an agent without skills.
	Against *Revision `json:"against,omitempty"`
	// Measured reports whether at least one task can be compared. If not, Note gives the reason.
	Measured bool   `json:"measured"`
	Note     string `json:"note,omitempty"`
	// Pairs is the number of compared tasks: tasks with counted trials on both sides.
	Pairs int `json:"pairs"`
	// PassRate and Score are means over the pairs, with the intervals of the question About; nil
	// without pairs.
	PassRate *Gain `json:"passRate"`
	Score    *Gain `json:"score"`
	// About is the question of Outcome and P. It is empty without pairs, and in records of versions
	// that answered only about these tasks.
	About Question `json:"about,omitempty"`
	// Outcome states what the tests of that question show: better means that the skills help,
	// worse that they harm. It is empty without pairs. P is its p-value.
	Outcome Outcome `json:"outcome,omitempty"`
	P       float64 `json:"p,omitempty"`
	// TheseTasks and TasksLikeThese are the answers to both questions, with the baseline as the
	// reference. They are nil without pairs, and in records of earlier versions.
	TheseTasks     *Answer     `json:"theseTasks,omitempty"`
	TasksLikeThese *LikeAnswer `json:"tasksLikeThese,omitempty"`
	// Needed is how many trials of each task on each side would decide about these tasks; nil
	// unless that is undecided.
	Needed *Needed `json:"needed,omitempty"`
	// ClassCounts classifies the pairs like a comparison of two runs; the baseline is the
	// reference.
	ClassCounts
	// Trials counts the trials of the baseline.
	Trials Counts `json:"trials"`
	// Errors counts the trials of the baseline that ended in error, and the tasks whose hooks
	// failed.
	Errors int            `json:"errors"`
	Tasks  []TaskBaseline `json:"tasks,omitempty"`
}

// Gain compares a number with skills to the same number of the baseline.
type Gain struct {
	With    float64 `json:"with"`
	Without float64 `json:"without"`
	// Gain is With minus Without.
	Gain float64 `json:"gain"`
	// Interval is the 95 % interval of Gain, computed like that of [Contrast].
	Interval *Interval `json:"interval,omitempty"`
}

// TaskBaseline compares one task with skills and in the baseline. Its numbers are nil when one side has
// no counted trial, and while a trial waits for a person's score.
type TaskBaseline struct {
	ID string `json:"id"`
	// Class is empty when the task cannot be compared. P is the smallest p-value of the task's
	// tests, corrected for the number of tests of all tasks.
	Class    Class   `json:"class,omitempty"`
	P        float64 `json:"p,omitempty"`
	PassRate *Gain   `json:"passRate"`
	Score    *Gain   `json:"score"`
	// With and Without are the numbers of counted trials on each side.
	With    int `json:"withTrials"`
	Without int `json:"withoutTrials"`
}
