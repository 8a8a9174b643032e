package record

// BaselineResult compares the agent with its skills to the same agent without them. Graders that
// say nothing about an agent without skills, such as skill_invocation, are left out on both
// sides. The verdict of a task can therefore differ here from its own verdict.
type BaselineResult struct {
	// Measured reports whether at least one task can be compared. If not, Note gives the reason.
	Measured bool   `json:"measured"`
	Note     string `json:"note,omitempty"`
	// Pairs is the number of compared tasks: tasks with counted trials on both sides.
	Pairs int `json:"pairs"`
	// PassRate and Score are means over the pairs; nil without pairs.
	PassRate *Gain `json:"passRate"`
	Score    *Gain `json:"score"`
	// Outcome states what the tests of all pairs together show: better means that the skills help,
	// worse that they harm. It is empty without pairs. P is its p-value, corrected for all tests.
	Outcome Outcome `json:"outcome,omitempty"`
	P       float64 `json:"p,omitempty"`
	// Needed is how many trials of each task on each side would decide; nil unless Outcome is
	// undecided.
	Needed *Needed `json:"needed,omitempty"`
	// ClassCounts classifies the pairs like a comparison of two runs; the agent without skills
	// is the reference.
	ClassCounts
	// Trials counts the trials without skills.
	Trials Counts `json:"trials"`
	// Errors counts the trials without skills that ended in error, and the tasks whose hooks
	// failed.
	Errors int            `json:"errors"`
	Tasks  []TaskBaseline `json:"tasks,omitempty"`
}

// Gain compares a number with skills to the same number without.
type Gain struct {
	With    float64 `json:"with"`
	Without float64 `json:"without"`
	// Gain is With minus Without.
	Gain float64 `json:"gain"`
	// Interval is the 95 % interval of Gain, computed like that of [Contrast].
	Interval *Interval `json:"interval,omitempty"`
}

// TaskBaseline compares one task with and without skills. Its numbers are nil when one side has
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
