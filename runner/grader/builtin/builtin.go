// Package builtin provides the registry of this program's graders, [Graders]. [ForExpected]
// builds the graders that follow from what a task expects.
package builtin

import (
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/judge"
	"waza/runner/grader/output"
	"waza/runner/grader/person"
	"waza/runner/grader/program"
	"waza/runner/grader/webhook"
)

// Judges reports whether graders of a type, given by any of its names, leave the score to a
// model or a person.
func Judges(typ string) bool {
	return judge.Prompt.Is(typ) || judge.AnswerRelevance.Is(typ) || person.Human.Is(typ) || person.HumanCalibration.Is(typ)
}

// Graders holds the graders of this program, in the order in which reference documents list
// them.
var Graders = grader.NewRegistry(
	output.Text,
	program.Code,
	output.File,
	output.Diff,
	output.JSONSchema,
	output.Overlap,
	program.Program,
	program.Reward,
	behavior.Behavior,
	behavior.ActionSequence,
	behavior.SkillInvocation,
	behavior.ToolConstraint,
	behavior.ToolCalls,
	behavior.Trigger,
	judge.Prompt,
	judge.Similar,
	judge.AnswerRelevance,
	webhook.Kind,
	person.Human,
	person.HumanCalibration,
	Group,
)
