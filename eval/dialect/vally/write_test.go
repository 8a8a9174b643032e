package vally_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect/vally"
)

// writtenAs writes an eval.yaml as a file in the folder out. It returns the file and the losses of verdicts.
func writtenAs(t *testing.T, text string) (written string, lost []string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "check.sh"), []byte("exit 0\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(text), 0o600))
	suite, _, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
	require.NoError(t, err)
	d := suite.Document(filepath.Join(dir, "out", "eval.yaml"))
	files, err := vally.Dialect().Write(d)
	require.NoError(t, err)
	for _, l := range d.Losses {
		if l.Verdict {
			lost = append(lost, l.String())
		}
	}
	return *files[0].Content, lost
}

// A program beside the suite keeps its place in a file elsewhere.
func TestWritesProgramElsewhere(t *testing.T) {
	t.Parallel()
	text, lost := writtenAs(t, `tasks: [{id: a, inputs: {prompt: a}, graders: [
 {type: program, config: {command: ./check.sh, trust_workspace: true, network: true, strict: true}}]}]`)
	require.Contains(t, text, "program: ../check.sh")
	require.Empty(t, lost)
}

// Limits of one prompt are graders, because constraints apply to all prompts.
func TestWritesLimitsOfTurns(t *testing.T) {
	t.Parallel()
	text, lost := writtenAs(t, `tasks: [{id: a, inputs: {prompt: a, follow_up_prompts: [b]}, graders: [
 {type: behavior, name: steps, turn: 1, config: {max_iterations: 1}}, {type: behavior, name: size, turn: 2, config: {max_tokens: 5}},
 {type: behavior, name: both, turn: 1, config: {max_iterations: 1, max_tokens: 5}}]}]`)
	require.Contains(t, text, "type: turn-count\n        name: steps\n        config:\n          max: 1\n        turn: 0\n")
	require.Contains(t, text, "type: token-budget\n        name: size\n        config:\n          max: 5\n        turn: 1\n")
	require.NotContains(t, text, "constraints:")
	require.Equal(t, []string{`not written: task a: grader "both" (behavior) max_iterations`, `not written: task a: grader "both" (behavior) max_tokens`}, lost)
}

// The effort of one judge is no setting of the others.
func TestWritesEffortOfAllJudges(t *testing.T) {
	t.Parallel()
	const judges = `tasks: [{id: a, inputs: {prompt: a}, graders: [
 {type: prompt, name: x, config: {prompt: p, reasoning_effort: high}}, {type: prompt, name: y, config: {prompt: p, reasoning_effort: `
	text, lost := writtenAs(t, judges+"high}}]}]")
	require.Contains(t, text, "judge_reasoning_effort: high")
	require.Empty(t, lost)
	text, lost = writtenAs(t, judges+"low}}]}]")
	require.NotContains(t, text, "judge_reasoning_effort")
	require.Len(t, lost, 2)
}

// Variables and expected tools are in the file, but no variable that Vally would expand.
func TestWritesVariablesAndTools(t *testing.T) {
	t.Parallel()
	text, lost := writtenAs(t, `tasks: [{id: a, inputs: {prompt: a, environment: {A: b}, checkpoints: [{after_turn: 1, graders: [
 {type: tool_constraint, name: t, config: {expect_tools: [{tool: ^a\.b$}]}}]}]}}, {id: b, inputs: {prompt: a, environment: {A: "${B}"}}}]`)
	require.Contains(t, text, "env:\n        A: b\n")
	require.Contains(t, text, "expect_tools:\n        - a.b\n")
	require.Equal(t, []string{"not written: task b: inputs.environment"}, lost)
}

// A group of judges that differ only in their models is a panel. Others are losses.
func TestWritesPanels(t *testing.T) {
	t.Parallel()
	const judges = `tasks: [{id: a, model: own, inputs: {prompt: a}, graders: [{type: group, name: g, config: {RULE graders: [
 {type: prompt, name: x, config: {prompt: p, model: m, threshold: 0.4}}, {type: prompt, name: y, config: {prompt: p, model: n, threshold: 0.4}}]}}]}]`
	panel := func(rule string) (string, []string) { return writtenAs(t, strings.Replace(judges, "RULE", rule, 1)) }
	for rule, want := range map[string]string{
		"threshold: 0.75,":                    "threshold: 0.75\n          models:\n            - m\n            - n\n",
		"aggregate: median, threshold: 0.75,": "aggregation: median\n",
		"aggregate: min, threshold: 0.5,":     "aggregation: min\n",
		"aggregate: majority,":                "threshold: 0.4\n          models:\n            - m\n            - n\n          aggregation: majority\n",
	} {
		text, lost := panel(rule)
		require.Empty(t, lost, rule)
		require.Contains(t, text, "type: panel\n        name: g\n", rule)
		require.Contains(t, text, want, rule)
		require.Contains(t, text, "config:\n      model: own\n", rule)
	}
	for _, other := range []string{ // all must pass; another question; a weight; a judge without a model
		strings.Replace(judges, "RULE", "", 1), strings.Replace(strings.Replace(judges, "RULE", "threshold: 1,", 1), "prompt: p, model: n", "prompt: q, model: n", 1),
		strings.Replace(strings.Replace(judges, "RULE", "threshold: 1,", 1), "name: y", "name: y, weight: 2", 1),
		strings.Replace(strings.Replace(judges, "RULE", "threshold: 1,", 1), "model: n, ", "", 1),
	} {
		text, lost := writtenAs(t, other)
		require.NotContains(t, text, "panel")
		require.Contains(t, lost, `not written: task a: grader "x" group`)
	}
}
