package plugineval

// schemaVersion is the version of the format.
const schemaVersion = 1

// These types are those of aggregate-result.json. Numbers that nobody knows are left out.

type document struct {
	SchemaVersion   int        `json:"schemaVersion"`
	StartedAt       string     `json:"startedAt,omitempty"`
	DurationSeconds *float64   `json:"durationSeconds,omitempty"`
	CostUSD         *float64   `json:"costUsd,omitempty"`
	Partial         bool       `json:"partial"`
	PartialReason   string     `json:"partialReason,omitempty"` // cost_ceiling or interrupted
	Damage          string     `json:"damage,omitempty"`        // of the journal
	Suite           suite      `json:"suite"`
	Cases           []*oneCase `json:"cases"`
	Aggregates      totals     `json:"aggregates"`
}

type suite struct {
	Ablation   string   `json:"ablation"` // with-without or none
	Threshold  float64  `json:"threshold"`
	JudgeModel string   `json:"judgeModel,omitempty"`
	Plugins    []plugin `json:"plugins"`
}

type plugin struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type totals struct {
	CasesTotal      int      `json:"casesTotal"`
	CasesPassed     int      `json:"casesPassed"`
	OverallScore    *float64 `json:"overallScore,omitempty"`
	OverallPassRate *float64 `json:"overallPassRate,omitempty"`
	MeanDelta       *float64 `json:"meanDelta,omitempty"`
}

type oneCase struct {
	Name        string        `json:"name"`
	Dir         string        `json:"dir"`
	Prompt      string        `json:"promptMarkdown,omitempty"`
	Model       string        `json:"model,omitempty"`
	RunsPerCase int           `json:"runsPerCase"`
	Graders     []graderSpec  `json:"graders"`
	Arms        arms          `json:"arms"`
	Aggregates  caseAggregate `json:"aggregates"`
}

type graderSpec struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Weight float64 `json:"weight"`
}

type arms struct {
	With    []oneRun  `json:"with"`
	Without *[]oneRun `json:"without,omitempty"` // absent without a baseline
}

type caseAggregate struct {
	Score           *float64 `json:"score,omitempty"`
	PassRate        *float64 `json:"passRate,omitempty"`
	ScoreWithout    *float64 `json:"scoreWithout,omitempty"`
	PassRateWithout *float64 `json:"passRateWithout,omitempty"`
	Delta           *float64 `json:"delta,omitempty"`
}

type oneRun struct {
	Score           float64  `json:"score"`
	Passed          bool     `json:"passed"`
	CostUSD         *float64 `json:"costUsd,omitempty"`
	JudgeCostUSD    *float64 `json:"judgeCostUsd,omitempty"`
	DurationSeconds *float64 `json:"durationSeconds,omitempty"`
	StartedAt       string   `json:"startedAt,omitempty"`
	Error           *string  `json:"error"`
	SkippedPaid     bool     `json:"skippedPaidGraders"`
	Graders         []grade  `json:"graders"`
}

type grade struct {
	Name        string  `json:"name"`
	Passed      bool    `json:"passed"`
	Weight      float64 `json:"weight"`
	Explanation string  `json:"explanation"`
	WithOnly    bool    `json:"withOnly"`
	Scored      bool    `json:"scored"`
	JudgeVotes  []bool  `json:"judgeVotes,omitempty"`
}
