package record

import (
	"encoding/json"
	"slices"
	"time"

	"waza/eval"
)

// GraderRef names a grader.
type GraderRef struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Grade is the result of one grader for one trial.
type Grade struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Score  float64 `json:"score"`
	Passed bool    `json:"passed"`
	Weight float64 `json:"weight"`
	// Feedback explains the score to a person. It is empty when everything passed, unless the
	// score depends on tool calls that the agent reported itself: then it says so.
	Feedback string `json:"feedback,omitempty"`
	// Details contains the single checks or measures, as documented for the grader.
	Details     any   `json:"details,omitempty"`
	DurationMS  int64 `json:"durationMs"`
	NeedsReview bool  `json:"needsReview,omitempty"`
	// SkillsOnly reports whether the grader says nothing about the agent of the baseline. The
	// comparison with the baseline then leaves it out.
	SkillsOnly bool `json:"skillsOnly,omitempty"`
	// SelfReported reports whether the score depends on tool calls that only the agent says it made.
	// The feedback says so, too.
	SelfReported bool `json:"selfReported,omitempty"`
	// Hash identifies the question of a grader that asks models. A later grading reuses the
	// result if it would ask the same question.
	Hash string `json:"hash,omitempty"`
	// ToolNames maps the tool names in the grader's config to the agent's names that matched
	// them. It is absent when all names are the agent's own.
	ToolNames map[string]string `json:"toolNames,omitempty"`
	// ChangedFiles lists the files of the grader that changed during the run, relative to the
	// suite's directory where they are below it. waza graded with their planned content, and
	// never reuses the trial.
	ChangedFiles []string `json:"changedFiles,omitempty"`
	// Unchecked is a directory beside the grader's program that has too many files, so waza does
	// not notice whether these changed during the run. Later runs never reuse the trial.
	Unchecked string `json:"unchecked,omitempty"`
	// Error is the reason why the grader failed. Score and Passed are then meaningless, and the
	// trial ends in error.
	Error string `json:"error,omitempty"`
	// Usage is the cost of asking models this time, also beside an error. It is nil when no
	// model was asked, and for a reused result. It is recorded as part of the cost of the trial.
	Usage *Usage `json:"-"`
	// AfterTurn is the turn after which a checkpoint of the task graded; 0 for results of the
	// finished trial. A checkpoint result does not affect the trial's score or metrics, but a
	// trial passes only if the result passed.
	AfterTurn int `json:"afterTurn,omitempty"`
	// Negated reports whether Score and Passed are the opposite of what the grader found.
	Negated bool `json:"negated,omitempty"`
	// Optional reports whether the result affects neither the verdict nor the score of the trial.
	Optional bool `json:"optional,omitempty"`
	// Group is the group of the grader. The group, in place of the grader, affects the verdict and the
	// score of the trial. It is nil for a grader in no group.
	Group *GradeGroup `json:"group,omitempty"`
	// Tools holds the tool scores that the grader computed. The trial records them.
	Tools *TrialTools `json:"-"`
}

// GradeGroup is a group of graders that counts as one in the verdict and score of a trial. It passes
// when all its members pass or, with a threshold, when its score reaches the threshold. With the rule
// majority, it passes when more than half of its members do.
type GradeGroup struct {
	Name      string   `json:"name"`
	Weight    float64  `json:"weight"`
	Threshold *float64 `json:"threshold,omitempty"`
	// Aggregate is the rule that makes the group's score of those of its members; absent for the weighted mean.
	Aggregate eval.Aggregate `json:"aggregate,omitempty"`
}

// DefaultPass is the lowest passing score of a person when the suite sets none.
const DefaultPass = 0.5

// Review holds the details of graders that leave the score to a person: the question and, once
// given, the answer.
type Review struct {
	Instructions string   `json:"instructions,omitempty"`
	Criteria     []string `json:"criteria,omitempty"`
	// Threshold is the lowest passing score.
	Threshold float64 `json:"threshold"`
	// Reviewer and ReviewedAt state who gave the score, and when; empty and nil until then. The
	// person's comment is the feedback of the result.
	Reviewer   string     `json:"reviewer,omitempty"`
	ReviewedAt *time.Time `json:"reviewedAt,omitempty"`
	// Calibrates is the name of the compared grader; set for human_calibration only.
	Calibrates string `json:"calibrates,omitempty"`
	// Comparison is nil while either score is missing.
	Comparison *Calibration `json:"comparison,omitempty"`
	// Drawn is set if waza drew the trial at random for the calibration; see [LabelDraw]. No
	// grader of the suite asks then.
	Drawn *LabelDraw `json:"drawn,omitempty"`
}

// LabelDraw describes how a trial was drawn for a person's score. All trials that a grader scored
// were divided by its verdict, and both parts were shuffled with the seed. The first trials of
// each part were drawn. Only such scores correct the pass rate of the grader, see
// [CorrectedRate].
type LabelDraw struct {
	Seed uint32 `json:"seed"`
	// Place is the trial's place in the order in which people are asked, from 1.
	Place int `json:"place"`
	// Passed is the grader's verdict about the trial when it was drawn.
	Passed bool `json:"passed"`
	// Trials is the number of trials that the grader had scored, TrialsPassed those that it had
	// passed, and MeanScore the mean of its scores.
	Trials       int     `json:"trials"`
	TrialsPassed int     `json:"trialsPassed"`
	MeanScore    float64 `json:"meanScore"`
	// Verdicts is a digest of the grader's verdicts about all trials.
	Verdicts string `json:"verdicts"`
}

// Calibration compares a person's score with that of the calibrated grader.
type Calibration struct {
	Person       float64 `json:"person"`
	PersonPassed bool    `json:"personPassed"`
	Grader       float64 `json:"grader"`
	GraderPassed bool    `json:"graderPassed"`
	// Difference is the grader's score minus the person's.
	Difference float64 `json:"difference"`
	// Agree reports whether both pass the trial, or neither does.
	Agree bool `json:"agree"`
}

// The types of graders that ask people.
const (
	TypeHuman            = "human"
	TypeHumanCalibration = "human_calibration"
)

// AsksPerson reports whether a person gives the score of this result.
func (r *Grade) AsksPerson() bool { return r.Type == TypeHuman || r.Calibrates() }

// Calibrates reports whether the result does not affect the verdict and score of its trial, but
// serves to check the score of another grader.
func (r *Grade) Calibrates() bool { return r.Type == TypeHumanCalibration }

// Counts reports whether the result affects the verdict of its trial.
func (r *Grade) Counts() bool { return !r.Optional && !r.Calibrates() }

// Drawn reports whether waza added the result to a trial that it drew at random for the
// calibration of a grader.
func (r *Grade) Drawn() bool { return r.Calibrates() && r.Review().Drawn != nil }

// Scored reports whether the result has a valid score. It has none while it waits for a person's
// score, and when the grader failed.
func (r *Grade) Scored() bool { return r.Error == "" && !r.NeedsReview }

// Review returns the question to a person and the answer. It also decodes details that were read
// from a record. The review is empty for a result that asks no person.
func (r *Grade) Review() Review {
	if review, ok := r.Details.(Review); ok || !r.AsksPerson() {
		return review
	}
	var review Review
	b, err := json.Marshal(r.Details)
	if err != nil || json.Unmarshal(b, &review) != nil {
		return Review{Threshold: DefaultPass} // someone edited the record by hand
	}
	return review
}

// Checkpoint is the progress of a trial when graders graded it between two turns. Their results
// are among the trial's graders, see [Grade.AfterTurn].
type Checkpoint struct {
	// AfterTurn counts prompts from 1.
	AfterTurn int `json:"afterTurn"`
	// Passed reports whether all graders of the checkpoint passed. Stopped reports whether one
	// failed and ended the trial.
	Passed  bool `json:"passed"`
	Stopped bool `json:"stopped,omitempty"`
	// Entries is the number of transcript entries by then. Usage is what the agent had spent,
	// and DurationMS how long it had worked.
	Entries    int    `json:"entries"`
	Usage      *Usage `json:"usage,omitempty"`
	DurationMS int64  `json:"durationMs"`
	// OutputLost reports that the answer was not the last message of the transcript. The text
	// that the graders saw is therefore no longer known.
	OutputLost bool `json:"outputLost,omitempty"`
}

// Responded describes the work of a model that replied to an agent in the role of its user.
type Responded struct {
	// Replies is the number of replies sent.
	Replies int `json:"replies"`
	// Outcome is how the responder ended the conversation; empty when something else ended it.
	Outcome RespondedOutcome `json:"outcome,omitempty"`
	// Reason is the model's reason for stopping or abstaining.
	Reason string `json:"reason,omitempty"`
}

// RespondedOutcome is how a conversation with a responder ended.
type RespondedOutcome string

// The outcomes of conversations.
const (
	ResponderStopped   RespondedOutcome = "stopped"       // it had nothing more to say
	ResponderAbstained RespondedOutcome = "abstained"     // it could not answer; the trial ends in error
	ResponderExhausted RespondedOutcome = "cap_exhausted" // it sent the maximum number of replies
)

// Finished reports whether at least the first grader of the finished trial has graded. Results
// of checkpoints do not count.
func Finished(graders []Grade) bool {
	return slices.ContainsFunc(graders, func(g Grade) bool { return g.AfterTurn == 0 })
}
