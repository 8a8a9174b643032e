package results

import (
	"time"
)

//
// These types are the documents of results.json, with the member names of other tools for these
// suites. Facts without a member are omitted, because those tools reject unknown members.

// resultsVersion is the version of the format that waza writes. Readers check the major version.
const resultsVersion = "1.4"

// A resultsHead is the part of a document before its tasks.
type resultsHead struct {
	SchemaVersion string        `json:"schemaVersion"`
	EvalID        string        `json:"eval_id"`
	Skill         string        `json:"skill"`
	EvalName      string        `json:"eval_name"`
	Timestamp     time.Time     `json:"timestamp"`
	Config        resultsConfig `json:"config"`
	IsBaseline    bool          `json:"is_baseline,omitempty"`
}

type resultsConfig struct {
	RunsPerTest int    `json:"runs_per_test"`
	ModelID     string `json:"model_id"`
	EngineType  string `json:"engine_type"`
	TimeoutSec  int    `json:"timeout_sec"`
	JudgeModel  string `json:"judge_model,omitempty"`
	Effort      string `json:"reasoning_effort,omitempty"`
}

// A resultsTail is the part of a document after its tasks.
type resultsTail struct {
	Summary        resultsSummary           `json:"summary"`
	Metrics        map[string]resultsMetric `json:"metrics"`
	TriggerMetrics *resultsTriggers         `json:"trigger_metrics,omitempty"`
	Metadata       map[string]any           `json:"metadata,omitempty"`
}

type resultsSummary struct {
	TotalTests     int                `json:"total_tests"`
	Succeeded      int                `json:"succeeded"`
	Failed         int                `json:"failed"`
	Errors         int                `json:"errors"`
	Skipped        int                `json:"skipped"`
	SuccessRate    float64            `json:"success_rate"`
	AggregateScore float64            `json:"aggregate_score"`
	WeightedScore  float64            `json:"weighted_score"`
	MinScore       float64            `json:"min_score"`
	MaxScore       float64            `json:"max_score"`
	StdDev         float64            `json:"std_dev"`
	DurationMS     int64              `json:"duration_ms"`
	Groups         []resultsGroup     `json:"groups,omitempty"`
	Usage          *resultsUsage      `json:"usage,omitempty"`
	Statistics     *resultsStatistics `json:"statistics,omitempty"`
}

type resultsGroup struct {
	Name     string  `json:"name"`
	Passed   int     `json:"passed"`
	Total    int     `json:"total"`
	AvgScore float64 `json:"avg_score"`
}

type resultsUsage struct {
	Turns            int     `json:"turns"`
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	PremiumRequests  float64 `json:"premium_requests"`
}

type resultsStatistics struct {
	BootstrapCI   resultsInterval `json:"bootstrap_ci"`
	IsSignificant bool            `json:"is_significant"`
}

type resultsInterval struct {
	Lower           float64 `json:"lower"`
	Upper           float64 `json:"upper"`
	Mean            float64 `json:"mean"`
	ConfidenceLevel float64 `json:"confidence_level"`
	NumBootstraps   int     `json:"num_bootstraps,omitempty"`
}

type resultsMetric struct {
	Identifier string  `json:"identifier"`
	Value      float64 `json:"value"`
	Threshold  float64 `json:"threshold"`
	Passed     bool    `json:"passed"`
	Weight     float64 `json:"weight"`
}

// A resultsTask is a task without its runs, which waza calls trials.
type resultsTask struct {
	TestID      string `json:"test_id"`
	DisplayName string `json:"display_name"`
	Group       string `json:"group,omitempty"`
	Golden      bool   `json:"golden,omitempty"`
	Cluster     string `json:"cluster,omitempty"` // only waza has it
	Status      string `json:"status"`
}

// A resultsTaskTail follows the runs of a task.
type resultsTaskTail struct {
	Stats       *resultsStats  `json:"stats,omitempty"`
	SkillImpact *resultsImpact `json:"skill_impact,omitempty"`
}

type resultsStats struct {
	PassRate         float64          `json:"pass_rate"`
	FlakinessPercent float64          `json:"flakiness_percent"`
	PassedRuns       int              `json:"passed_runs"`
	FailedRuns       int              `json:"failed_runs"`
	ErrorRuns        int              `json:"error_runs"`
	TotalRuns        int              `json:"total_runs"`
	AvgScore         float64          `json:"avg_score"`
	AvgWeightedScore float64          `json:"avg_weighted_score"`
	MinScore         float64          `json:"min_score"`
	MaxScore         float64          `json:"max_score"`
	StdDevScore      float64          `json:"std_dev_score"`
	ScoreVariance    float64          `json:"score_variance"`
	CI95Lo           float64          `json:"ci95_lo"`
	CI95Hi           float64          `json:"ci95_hi"`
	Flaky            bool             `json:"flaky"`
	AvgDurationMS    int64            `json:"avg_duration_ms"`
	BootstrapCI      *resultsInterval `json:"bootstrap_ci,omitempty"`
	IsSignificant    *bool            `json:"is_significant,omitempty"`
}

type resultsImpact struct {
	WithSkills    float64 `json:"pass_rate_with_skills"`
	Baseline      float64 `json:"pass_rate_baseline"`
	Delta         float64 `json:"delta"`
	PercentChange float64 `json:"percent_change"`
}

// A resultsRun is a trial with the member names of other tools.
type resultsRun struct {
	RunNumber        int                      `json:"run_number"`
	Attempts         int                      `json:"attempts"`
	Prompt           string                   `json:"prompt,omitempty"`
	Status           string                   `json:"status"`
	DurationMS       *int64                   `json:"duration_ms,omitempty"` // nil means unknown
	Validations      map[string]resultsGrader `json:"validations"`
	SessionDigest    resultsDigest            `json:"session_digest"`
	Transcript       []resultsEvent           `json:"transcript,omitempty"`
	FinalOutput      string                   `json:"final_output"`
	ErrorMsg         string                   `json:"error_msg,omitempty"`
	SkillInvocations []resultsSkill           `json:"skill_invocations,omitempty"`
	ToolEvents       []resultsToolEvent       `json:"tool_events,omitempty"`
	Checkpoints      []resultsCheckpoint      `json:"checkpoints,omitempty"`
	Responder        *resultsResponder        `json:"responder,omitempty"`
}

type resultsCheckpoint struct {
	AfterTurn   int                      `json:"after_turn"`
	Status      string                   `json:"status"` // passed or failed
	Validations map[string]resultsGrader `json:"validations"`
	Stopped     bool                     `json:"stopped"`
}

type resultsResponder struct {
	FollowupsSent int    `json:"followups_sent"`
	Outcome       string `json:"outcome"`
	Reason        string `json:"reason,omitempty"`
}

type resultsGrader struct {
	Identifier string         `json:"identifier"`
	Type       string         `json:"type"`
	Score      float64        `json:"score"`
	Weight     float64        `json:"weight"`
	Passed     bool           `json:"passed"`
	Feedback   string         `json:"feedback"`
	Details    map[string]any `json:"details,omitempty"`
	DurationMS int64          `json:"duration_ms"`
}

type resultsDigest struct {
	ToolCallCount int               `json:"tool_call_count"`
	ToolsUsed     []string          `json:"tools_used"`
	ToolCalls     []resultsToolCall `json:"tool_calls,omitempty"`
	Errors        []string          `json:"errors"`
	Usage         *resultsUsage     `json:"usage,omitempty"`
}

type resultsToolCall struct {
	ID        string            `json:"id,omitempty"`
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitempty"`
	Success   bool              `json:"success"`
}

type resultsSkill struct {
	Name string `json:"name"`
}

type resultsToolEvent struct {
	Turn       int    `json:"turn"`
	Sequence   int    `json:"sequence"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	ToolName   string `json:"tool_name"`
	Args       any    `json:"args,omitempty"`
	Result     any    `json:"result,omitempty"`
	Success    bool   `json:"success"`
	Error      string `json:"error,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
}

// A resultsEvent is an entry of a transcript.
type resultsEvent struct {
	Type       string             `json:"type"`
	Content    *string            `json:"content,omitempty"`
	Message    *string            `json:"message,omitempty"`
	Arguments  any                `json:"arguments,omitempty"`
	Success    *bool              `json:"success,omitempty"`
	ToolCallID *string            `json:"tool_call_id,omitempty"`
	ToolName   *string            `json:"tool_name,omitempty"`
	ToolResult *resultsToolResult `json:"tool_result,omitempty"`
}

type resultsToolResult struct {
	Content string `json:"content"`
}

type resultsTriggers struct {
	TruePositives  int     `json:"true_positives"`
	FalsePositives int     `json:"false_positives"`
	TrueNegatives  int     `json:"true_negatives"`
	FalseNegatives int     `json:"false_negatives"`
	Errors         int     `json:"errors,omitempty"`
	Precision      float64 `json:"precision"`
	Recall         float64 `json:"recall"`
	F1             float64 `json:"f1"`
	Accuracy       float64 `json:"accuracy"`
}

type resultsTrigger struct {
	Prompt        string `json:"prompt"`
	Confidence    string `json:"confidence,omitempty"`
	ShouldTrigger bool   `json:"should_trigger"`
	DidTrigger    bool   `json:"did_trigger"`
	ErrorMsg      string `json:"error_msg,omitempty"`
	FinalOutput   string `json:"final_output,omitempty"`
}
