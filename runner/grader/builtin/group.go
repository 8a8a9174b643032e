package builtin

import (
	"waza/eval"
	"waza/runner/grader"
)

// Group is the kind of graders that decide by other graders. Package eval puts these in its place, so
// no group is ever built.
var Group = grader.Kind{Kind: eval.Kind{
	Name:    "group",
	Summary: "Counts as one grader: passes when all of its graders pass or, with a threshold, when their score reaches it.",
	Options: func() any { return new(eval.GroupOptions) },
}}
