package record

// BaselineResult compares what the agent did with its skills and without. What
// says nothing of an agent without skills, such as skill_invocation, is left out
// on both sides: a task may count here otherwise than in its own verdict.
type BaselineResult struct {
	// Measured: at least one task can be compared. Note says why none can.
	Measured bool   `json:"measured"`
	Note     string `json:"note,omitempty"`
	// Pairs is how many tasks were compared: those with trials that count on
	// both sides.
	Pairs int `json:"pairs"`
	// PassRate and Score are means over the pairs; nil when there are none.
	PassRate *Gain `json:"passRate"`
	Score    *Gain `json:"score"`
	// The classes of the pairs mean what they do when runs are compared; the agent
	// without skills is the reference.
	ClassCounts
	// Trials counts those without skills.
	Trials Counts `json:"trials"`
	// Errors counts the trials without skills in error, and the tasks whose
	// hooks were.
	Errors int            `json:"errors"`
	Tasks  []TaskBaseline `json:"tasks,omitempty"`
}

// Gain is a number with skills and without.
type Gain struct {
	With    float64 `json:"with"`
	Without float64 `json:"without"`
	// Gain is With less Without.
	Gain float64 `json:"gain"`
	// Interval is its 95 % interval, as that of [Contrast] is.
	Interval *Interval `json:"interval,omitempty"`
}

// TaskBaseline compares one task. Its numbers are nil when one side has no trial
// that counts, and while a trial waits for a person's score.
type TaskBaseline struct {
	ID string `json:"id"`
	// Class is empty when the task cannot be compared. P is the least p-value of its
	// tests, corrected for the number of all tests of all tasks.
	Class    Class   `json:"class,omitempty"`
	P        float64 `json:"p,omitempty"`
	PassRate *Gain   `json:"passRate"`
	Score    *Gain   `json:"score"`
	// With and Without are how many trials count on each side.
	With    int `json:"withTrials"`
	Without int `json:"withoutTrials"`
}
