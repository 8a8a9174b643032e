package record

// Role is the purpose of a task in a run. Only tasks of the suite itself count in the run's pass
// rates and scores.
type Role string

// The roles of tasks.
const (
	// RoleTask marks a task of the suite.
	RoleTask Role = ""
	// RoleBaseline marks a task of the suite that an agent without skills, or with earlier ones, does.
	RoleBaseline Role = "baseline"
	// RoleTrigger marks a prompt of the trigger tests.
	RoleTrigger Role = "trigger"
)

// TriggerRef is a prompt of the trigger tests.
type TriggerRef struct {
	Prompt string `json:"prompt"`
	// Skill is the skill under test; empty means any.
	Skill         string `json:"skill,omitempty"`
	ShouldTrigger bool   `json:"shouldTrigger"`
	// AcceptableSkills count like Skill if the agent should use it. The agent must use none of
	// ForbiddenSkills; without a Skill, a prompt that should not trigger is about these alone.
	AcceptableSkills []string `json:"acceptableSkills,omitempty"`
	ForbiddenSkills  []string `json:"forbiddenSkills,omitempty"`
	// FirstTool means that the first tool call alone decides a trial.
	FirstTool bool `json:"firstTool,omitempty"`
	// Reason explains why the prompt should or should not use the skill.
	Reason string `json:"reason,omitempty"`
	// Confidence is high or medium. Medium counts half.
	Confidence string `json:"confidence"`
}

// The values of TriggerRef.Confidence.
const (
	ConfidenceHigh   = "high"
	confidenceMedium = "medium"
)

// Weight returns the weight of the prompt.
func (t *TriggerRef) Weight() float64 {
	if t.Confidence == confidenceMedium {
		return 0.5
	}
	return 1
}
