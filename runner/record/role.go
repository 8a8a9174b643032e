package record

// Role is what a task of a run is there for. Only those of the suite itself
// count in the run's pass rates and scores.
type Role string

// The roles of tasks.
const (
	// RoleTask is a task of the suite.
	RoleTask Role = ""
	// RoleBaseline is a task of the suite as an agent without skills does it.
	RoleBaseline Role = "baseline"
	// RoleTrigger is a prompt of the trigger tests.
	RoleTrigger Role = "trigger"
)

// TriggerRef is a prompt of the trigger tests.
type TriggerRef struct {
	Prompt string `json:"prompt"`
	// Skill under test; empty means any.
	Skill         string `json:"skill,omitempty"`
	ShouldTrigger bool   `json:"shouldTrigger"`
	// Reason says why it should or should not.
	Reason string `json:"reason,omitempty"`
	// Confidence is high or medium, which weighs half.
	Confidence string `json:"confidence"`
}

// The values of TriggerRef.Confidence.
const (
	ConfidenceHigh   = "high"
	confidenceMedium = "medium"
)

// Weight is what the prompt counts.
func (t *TriggerRef) Weight() float64 {
	if t.Confidence == confidenceMedium {
		return 0.5
	}
	return 1
}
