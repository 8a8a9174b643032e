package behavior

import (
	"strings"
	"testing"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

// Rules of other tools: patterns of JavaScript, arguments as text, order and numbers of calls.
func TestToolRules(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Calling(
		`bash {"command":"go test ./..."}`, `Edit {"file_path":"src/a.go","old":"x","new":"y"}`, `bash {"command":"git commit"}`))
	none := gradertest.Subject("")
	gradertest.RunCases(t, "tool_constraint", []gradertest.Case{
		{"a name is searched", "{syntax: javascript, expect_tools: [dit, '^(bash|powershell)$']}", nil, trial, gradertest.Passes()},
		{"in the same letter case", "{syntax: javascript, expect_tools: [edit]}", nil, trial, gradertest.Scores(0, "no call of edit")},
		{"flags", "{syntax: javascript, expect_tools: [{tool: '(?i)^EDIT$', path_pattern: '(?i)SRC'}]}", nil, trial, gradertest.Passes()},
		{"look-around", `{syntax: javascript, expect_tools: [{tool: bash, command_pattern: 'git (?!push)'}]}`, nil, trial, gradertest.Passes()},
		{"all parts hold for one call", "{syntax: javascript, expect_tools: [{tool: bash, command_pattern: go test, args_pattern: commit}]}", nil, trial,
			gradertest.Scores(0, `no call of bash, command /go test/, arguments /commit/`)},
		{"arguments", `{syntax: javascript, expect_tools: [{args: {new: {regex: '^y$'}}, args_pattern: '"old":"x"'}]}`, nil, trial, gradertest.Passes()},
		{"arguments differ", `{syntax: javascript, expect_tools: [{tool: Edit, args: {new: {regex: Y}}}]}`, nil, trial, gradertest.Scores(0, `"y" does not match /Y/`)},
		{"arguments in RE2", `{expect_tools: [{tool: edit, args_pattern: '"OLD":"x"'}]}`, nil, trial, gradertest.Passes()},
		{"rejected", `{syntax: javascript, reject_tools: [{args_pattern: com+it}]}`, nil, trial, gradertest.Scores(0, "rejected call of arguments /com+it/")},

		{"ordered", "{ordered: true, expect_tools: [bash, edit, bash]}", nil, trial, gradertest.Passes()},
		{"one call for one rule", "{ordered: true, expect_tools: [edit, bash, bash]}", nil, trial,
			gradertest.Scores(2.0/3, "no call of bash after that of bash")},
		{"out of order", "{ordered: true, expect_tools: [{tool: bash, command_pattern: commit}, edit]}", nil, trial,
			gradertest.Scores(0.5, "no call of edit after that of bash, command /commit/")},

		{"as often", "expect_tools: [{tool: bash, min: 2, max: 2}, {tool: edit, max: 1}, {tool: grep, min: 0, max: 0}]", nil, trial, gradertest.Passes()},
		{"too rarely", "expect_tools: [{tool: bash, min: 3}]", nil, trial, gradertest.Scores(0, "2 calls of bash, fewer than min 3")},
		{"too often", "expect_tools: [{tool: bash, max: 1}]", nil, trial, gradertest.Scores(0.5, "2 calls of bash, more than max 1")},
		{"never", "expect_tools: [{tool: edit, min: 0, max: 0}]", nil, trial, gradertest.Scores(0, "1 call of edit, more than max 0")},
		{"at most, and none", "expect_tools: [{tool: bash, min: 0, max: 1}]", nil, none, gradertest.Passes()},

		{"before", "order: [{before: {tool: bash, command_pattern: go test}, after: edit}]", nil, trial, gradertest.Passes()},
		{"after", "order: [{before: edit, after: bash}]", nil, trial, gradertest.Scores(0, "the first call of bash precedes that of edit")},
		{"both must be called", "order: [{before: edit, after: grep}, {before: grep, after: edit}]", nil, trial, gradertest.Scores(0, "no call of grep")},
		{"one call is not two", "order: [{before: edit, after: {path_pattern: src}}]", nil, trial, gradertest.Scores(0, "is also that of")},
		{"too slow", `{syntax: javascript, expect_tools: [{tool: bash, args: {command: {regex: '^(a+)+\1$'}}}]}`, nil,
			gradertest.Subject("", gradertest.Calling(`bash {"command":"`+strings.Repeat("a", 1001)+`!"}`)), gradertest.Errors("takes too long")},
	})
	gradertest.RunOptions(t, "tool_constraint", []gradertest.OptionCase{
		{"no calls", "expect_tools: [{tool: a, max: 0}]", "invalid-value: max 0 is less than min 1, which is 1 when absent", nil},
		{"ordered numbers", "{ordered: true, expect_tools: [{tool: a, min: 2}]}", "invalid-value: min and max apply only to expected calls without ordered", nil},
		{"rejected numbers", "reject_tools: [{tool: a, max: 2}]", "invalid-value: reject_tools[0]: min and max apply only", nil},
		{"numbers in an order", "order: [{before: a, after: {tool: b, min: 2}}]", "invalid-value: order[0].after: min and max apply only", nil},
		{"look-around in RE2", "expect_tools: [{tool: 'a(?!b)'}]", "bad-regex: tool", nil},
		{"bad pattern", "{syntax: javascript, expect_tools: [{args_pattern: '('}]}", "bad-regex: args_pattern", nil},
		{"bad argument", "{syntax: javascript, expect_tools: [{args: {a: {regex: '('}}}]}", "bad-regex: args.a.regex", nil},
	})
}

// Skills that the executor reports are calls at their place in the transcript.
func TestToolOrderOfSkills(t *testing.T) {
	t.Parallel()
	first := gradertest.Subject("", gradertest.Using("explainer"), gradertest.Calling(`edit {}`))
	last := gradertest.Subject("", gradertest.Calling(`edit {}`), gradertest.Using("explainer"))
	gradertest.RunCases(t, "tool_constraint", []gradertest.Case{
		{"first", "order: [{before: {skill_pattern: explainer}, after: edit}]", nil, first, gradertest.Passes()},
		{"last", "order: [{before: {skill_pattern: explainer}, after: edit}]", nil, last, gradertest.Scores(0, "the first call of edit precedes")},
		{"in order", "{ordered: true, expect_tools: [{skill_pattern: explainer}, edit]}", nil, first, gradertest.Passes()},
	})
}

// Limits of errors and of the cost.
func TestErrorsAndCost(t *testing.T) {
	t.Parallel()
	cost := func(usd float64) func(*grader.Subject) {
		return func(s *grader.Subject) { s.Usage = &record.Usage{InputTokens: 10, CostUSD: usd} }
	}
	failing := func(s *grader.Subject) {
		s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryError, Text: "no network"})
	}
	gradertest.RunCases(t, "behavior", []gradertest.Case{
		{"no error", "max_errors: 0", nil, gradertest.Subject(""), gradertest.Passes()},
		{"an error", "max_errors: 0", nil, gradertest.Subject("", failing), gradertest.Scores(0, "1 errors, more than max_errors 0")},
		{"allowed errors", "max_errors: 2", nil, gradertest.Subject("", failing, failing), gradertest.Passes()},
		{"cheap", "max_cost_usd: 0.5", nil, gradertest.Subject("", cost(0.5)), gradertest.Passes()},
		{"dear", "max_cost_usd: 0.5", nil, gradertest.Subject("", cost(0.51)), gradertest.Scores(0, "$0.51, more than max_cost_usd 0.5")},
		{"unknown cost", "max_cost_usd: 0.5", nil, gradertest.Subject("", cost(0)), gradertest.Errors("the executor reported no cost")},
		{"unknown usage", "max_cost_usd: 0.5", nil, gradertest.Subject(""), gradertest.Errors("the executor reported no cost")},
	})
}
