package tally_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/runnertest"
	"waza/runner/stats"
)

// obedient is an agent that follows prompts: "use" the skill, then "hang", or "fail". Words that
// end in a number apply only to the trial with that number.
func obedient(ctx context.Context, t *executor.Trial) (string, error) {
	for word := range strings.FieldsSeq(t.Prompt) {
		word, num, only := strings.Cut(word, "@")
		if only && num != string(rune('0'+t.Num)) {
			continue
		}
		switch word {
		case "use":
			t.Transcript.Skill("explainer")
		case "other":
			t.Transcript.Skill("other")
		case "hang":
			<-ctx.Done()
			return "", context.Cause(ctx)
		case "fail":
			return "", errors.New("no network")
		}
	}
	return "done: " + t.Prompt, nil
}

// The confusion matrix and all that follows from it, worked out by hand:
//
//	should      use            1    TP 1
//	            use@1          0.5  TP 0.25, FN 0.25   (2 trials)
//	            -              1    FN 1
//	should not  use            0.5  FP 0.5
//	            other          1    TN 1
//	            fail@1         1    TN 1               (one trial in error)
//	            fail           1    not counted
//
// Σw = 5, Σw² = 4.5, n = 25/4.5.
func TestTriggers(t *testing.T) {
	t.Parallel()
	res, events := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
skill: explainer
inputs: {name: Ada}
config: {executor: agent, trials_per_task: 2, retry_errors: 0, fail_fast: true}
hooks: {before_task: [{command: "exit 1", error_on_fail: true}]}
metrics: [{name: trigger_accuracy, threshold: 0.7}]
-- trigger_tests.yaml --
should_trigger_prompts:
  - {prompt: "use {{name}}", reason: asks for it}
  - {prompt: use@1, confidence: medium}
  - nothing
should_not_trigger_prompts:
  - {prompt: use, confidence: medium}
  - {prompt: other, confidence: high}
  - {prompt: fail@1}
  - {prompt: fail}
`, record.Request{}, obedient)
	tr := res.Summary.Triggers
	require.True(t, tr.Measured)
	require.Equal(t, "explainer", tr.Skill)
	require.Equal(t, 7, tr.Prompts)
	require.Equal(t, record.Confusion{TruePositives: 1.25, FalsePositives: 0.5, TrueNegatives: 2, FalseNegatives: 1.25}, tr.Confusion)
	require.InDelta(t, 1.25/1.75, *tr.Precision, 1e-12)
	require.InDelta(t, 0.5, *tr.Recall, 1e-12)
	require.InDelta(t, 2.5/4.25, *tr.F1, 1e-12)
	require.InDelta(t, 3.25/5, *tr.Accuracy, 1e-12)
	var parts []stats.Part
	for _, p := range tr.Results {
		right := stats.Share{Passed: p.Triggered, N: p.Answered}
		if !p.ShouldTrigger {
			right.Passed = p.Answered - p.Triggered
		}
		part := stats.RatePart(right)
		part.Weight = p.Weight()
		parts = append(parts, part)
	}
	accuracy, ok := stats.MeanOver(parts, stats.DefaultConfidence)
	require.True(t, ok)
	require.InDelta(t, accuracy.Value, *tr.Accuracy, 1e-12)
	require.Equal(t, accuracy.Interval, *tr.AccuracyInterval)
	require.Equal(t, record.Counts{Total: 14, Passed: 6, Failed: 5, Errors: 3}, tr.Trials)
	require.Equal(t, 3, tr.Errors)

	require.Equal(t, record.TriggerPrompt{
		ID: "should_trigger#1", Verdict: record.Passed, Triggered: 2, Answered: 2,
		TriggerRef: record.TriggerRef{Prompt: "use {{name}}", Skill: "explainer", ShouldTrigger: true, Reason: "asks for it", Confidence: "high"},
	}, recordtest.ByID(t, tr.Results, "should_trigger#1"))
	require.Equal(t, "done: use {{name}}", res.Trial(t, "should_trigger#1", 1).Output, "prompts are sent as they are written")
	require.Equal(t, []int{1, 2},
		[]int{recordtest.ByID(t, tr.Results, "should_trigger#2").Triggered, recordtest.ByID(t, tr.Results, "should_trigger#2").Answered})
	require.Equal(t, record.Failed, recordtest.ByID(t, tr.Results, "should_trigger#2").Verdict)
	require.Equal(t, []int{0, 1, 1},
		[]int{
			recordtest.ByID(t, tr.Results, "should_not_trigger#3").Triggered,
			recordtest.ByID(t, tr.Results, "should_not_trigger#3").Answered,
			recordtest.ByID(t, tr.Results, "should_not_trigger#3").Errors,
		})
	require.Equal(t, record.Errored, recordtest.ByID(t, tr.Results, "should_not_trigger#4").Verdict)

	require.Zero(t, res.Summary.Total, "prompts are no tasks of the suite")
	require.Zero(t, res.Summary.Trials.Total)
	require.Nil(t, res.Summary.PassRate)
	require.EqualValues(t, 14, res.Summary.Usage.InputTokens, "but they cost")
	require.Equal(t, *tr.Accuracy, *res.Summary.Metrics[0].Value)
	require.Equal(t, []string{"trigger_accuracy"}, res.Summary.Missed)
	require.Equal(t, 14, events[0].TotalTrials)
	runnertest.OneVerdictEach(t, res, events, false)
}

// Wrong answers used to be retried max_attempts times, so that a guessing agent looked like a
// good one.
func TestTriggersAreAskedOnce(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
skill: explainer
config: {executor: agent, trials_per_task: 2, max_attempts: 5, retry_errors: 1}
-- trigger_tests.yaml --
should_trigger_prompts: [nothing, fail@1]
`, record.Request{}, obedient)
	require.Equal(t, record.Counts{Total: 4, Failed: 3, Errors: 1}, res.Summary.Triggers.Trials)
	require.Empty(t, res.Trial(t, "should_trigger#1", 1).Attempts)
	require.Len(t, res.Trial(t, "should_trigger#2", 1).Attempts, 1, "errors are no answers")
}

// Where nothing used the skill, precision is undefined. Where nothing should, recall is
// undefined.
func TestTriggerQuotientsUndefined(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
skill: explainer
config: {executor: agent}
-- trigger_tests.yaml --
should_not_trigger_prompts: [nothing, more]
`, record.Request{}, obedient)
	tr := res.Summary.Triggers
	require.Nil(t, tr.Precision)
	require.Nil(t, tr.Recall)
	require.Nil(t, tr.F1)
	require.Equal(t, 1.0, *tr.Accuracy)
	require.Equal(t, stats.ClopperPearson(2, 2, stats.DefaultConfidence), *tr.AccuracyInterval)
}

// A prompt is answered once the agent has used the skill, even if the trial then times out. A
// trial that times out before is wrong: once it did not count, so the accuracy of an agent that
// hangs was perfect.
func TestTriggerTimeouts(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
skill: explainer
config: {executor: agent, timeout_seconds: 0.05, parallel: true}
metrics: [{name: trigger_accuracy, threshold: 0}]
-- trigger_tests.yaml --
should_trigger_prompts: [use hang, hang]
should_not_trigger_prompts: [use hang, hang, other hang]
`, record.Request{}, obedient)
	tr := res.Summary.Triggers
	verdicts := make([]record.Verdict, 0, 5)
	for _, p := range tr.Results {
		verdicts = append(verdicts, p.Verdict)
	}
	require.Equal(t, []record.Verdict{record.Passed, record.TimedOut, record.Failed, record.TimedOut, record.TimedOut}, verdicts)
	require.Equal(t, 3, tr.Timeouts)
	require.Equal(t, record.Confusion{TruePositives: 1, FalsePositives: 1, FalseNegatives: 1, Unanswered: 2}, tr.Confusion)
	require.InDelta(t, 1.0/5, *tr.Accuracy, 1e-12)
	require.InDelta(t, 1.0/2, *tr.Recall, 1e-12)
	require.Equal(t, stats.ClopperPearson(1, 5, stats.DefaultConfidence), *tr.AccuracyInterval)
	require.Empty(t, res.Trial(t, "should_trigger#1", 1).Error)
	require.Contains(t, res.Trial(t, "should_trigger#2", 1).Error, "(config.timeout_seconds)")
}

// Without any answer nothing is measured, and there is no perfect score.
func TestTriggersUnanswered(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
config: {executor: agent, retry_errors: 0}
metrics: [{name: trigger_accuracy, threshold: 0}]
-- trigger_tests.yaml --
should_trigger_prompts: [fail]
`, record.Request{}, obedient)
	tr := res.Summary.Triggers
	require.False(t, tr.Measured)
	require.Equal(t, "not measured: no prompt was answered", tr.Note)
	require.Nil(t, tr.Accuracy)
	require.Nil(t, res.Summary.Metrics[0].Value)
	require.Nil(t, res.Summary.Metrics[0].Passed)
}

const taskAndTriggers = `
-- eval.yaml --
name: s
skill: explainer
config:
  skill_directories: [skills]
  trials_per_task: 2
metrics: [{name: trigger_accuracy, threshold: 0}]
tasks: [{id: a, prompt: x, tags: [warm], graders: [{type: text, config: {contains: [x]}}]}]
-- trigger_tests.yaml --
should_trigger_prompts: [use]
should_not_trigger_prompts: [nothing, more]
` + runnertest.Skill

// Executors that could only invent answers run no trigger tests.
func TestTriggersNotMeasured(t *testing.T) {
	t.Parallel()
	scripted := strings.Replace(taskAndTriggers, "  trials", "  mock: {replies: [{output: x, skills: [explainer]}]}\n  trials", 1)
	for _, c := range []struct{ name, files, executor, note string }{
		{"canned", taskAndTriggers, "mock", "not measured: executor mock makes its replies up"},
		{"scripted", scripted, "mock", "not measured: executor mock follows a script of the suite"},
		{"model", taskAndTriggers, "openai", "not measured: executor openai does not report which skills are invoked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := runnertest.NewRunner(t)
			live := runnertest.Start(t, r, c.files, record.Request{Executor: c.executor})
			if c.executor != "mock" {
				live.Cancel()
			}
			<-live.Done()
			res := runnertest.ResultOf(t, live)
			require.Len(t, res.Tasks, 1)
			require.Equal(t, &record.TriggerResult{Skill: "explainer", Prompts: 3, Note: c.note}, res.Summary.Triggers)
			require.Nil(t, res.Summary.Metrics[0].Value)
			require.Equal(t, c.note, res.Summary.Metrics[0].Note)
		})
	}
}

func TestTriggerSelection(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), obedient)
	suite := runnertest.Load(t, r, strings.Replace(taskAndTriggers, "config:", "config:\n  executor: agent", 1))
	mock := runnertest.NewRunner(t)
	alone := runnertest.Load(t, mock, "-- eval.yaml --\nname: s\n-- trigger_tests.yaml --\nshould_trigger_prompts: [use]\n")
	for _, c := range []struct {
		req  record.Request
		want string
	}{
		{record.Request{}, "a should_trigger#1 should_not_trigger#1 should_not_trigger#2"},
		{record.Request{Tasks: []string{"a"}}, "a"},
		{record.Request{Tasks: []string{"should_*"}}, "should_trigger#1 should_not_trigger#1 should_not_trigger#2"},
		{record.Request{Tasks: []string{"should_not_trigger#2", "a"}}, "a should_not_trigger#2"},
		{record.Request{Tasks: []string{"should_trigger*"}, Trial: 2}, "should_trigger#1"},
		{record.Request{Trial: 2}, "a"},
		{record.Request{Task: "a"}, "a"},
		{record.Request{Tags: []string{"warm"}}, "a"},
		{
			record.Request{Tags: []string{"warm"}, Tasks: []string{"should_*"}},
			`no task of the suite matches both task and tag "should_*", "warm"`,
		},
		{record.Request{Tasks: []string{"shold_*"}}, `no task of the suite matches task "shold_*"; the suite has a`},
		{record.Request{Task: "should_trigger#1"}, `no task of the suite matches task "should_trigger#1"; the suite has a`},
		{
			record.Request{Trials: 1 << 62},
			"4611686018427387904 trials of each of 4 tasks exceed the limit of 250000: a run has at most 1000000 trials",
		},
	} {
		require.Equal(t, c.want, runnertest.PlannedIDs(r.Planner().Plan(t.Context(), suite, c.req)))
	}
	require.Equal(t, "nothing to run except trigger tests: not measured: executor mock makes its replies up",
		runnertest.PlannedIDs(mock.Planner().Plan(t.Context(), alone, record.Request{})))
}

// Trigger tests that were not chosen are reported as not measured.
func TestTriggersLeftOut(t *testing.T) {
	t.Parallel()
	files := strings.Replace(taskAndTriggers, "config:", "config:\n  executor: agent", 1)
	res, _ := runnertest.RunAgent(t, files, record.Request{Task: "a"}, obedient)
	require.Equal(t, 1, res.Summary.Total)
	require.False(t, res.Summary.Triggers.Measured)
	require.Contains(t, res.Summary.Triggers.Note, "the chosen tasks include no trigger test")
	res, _ = runnertest.RunAgent(t, files, record.Request{Tasks: []string{"should_trigger*"}}, obedient)
	require.Equal(t, 3, res.Summary.Triggers.Prompts)
	require.Len(t, res.Summary.Triggers.Results, 1)
	require.Equal(t, 1.0, *res.Summary.Triggers.Accuracy)
}

// The agent of trigger tests has the suite's skills, even in a suite without tasks, and no
// baseline.
func TestTriggersHaveSkills(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
skill: explainer
baseline: true
config: {executor: agent, skill_directories: [skills]}
-- trigger_tests.yaml --
should_trigger_prompts: [explain]
`+runnertest.Skill, record.Request{}, func(_ context.Context, t *executor.Trial) (string, error) {
		if runnertest.Skilled(t) {
			t.Transcript.Skill("explainer")
		}
		return "", nil
	})
	require.Len(t, res.Tasks, 1)
	require.Equal(t, 1.0, *res.Summary.Triggers.Accuracy)
	require.False(t, res.Summary.Baseline.Measured)
}

// Agents call a skill by the name of its directory or by that in its SKILL.md. The tests accept
// both.
func TestTriggersByAnyName(t *testing.T) {
	t.Parallel()
	for _, under := range []string{"explainer", "explain-code"} {
		res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
config: {executor: agent, skill_directories: [skills]}
-- trigger_tests.yaml --
skill: `+under+`
should_trigger_prompts: [use explainer, use explain-code]
should_not_trigger_prompts: [use explain]
`+strings.Replace(runnertest.Skill, "skills/explainer", "skills/explain-code", 1), record.Request{},
			func(_ context.Context, t *executor.Trial) (string, error) {
				t.Transcript.Skill(strings.TrimPrefix(t.Prompt, "use "))
				return "", nil
			})
		require.Equal(t, 1.0, *res.Summary.Triggers.Accuracy, under)
	}
}

// The hash of a trigger test covers its prompt, the expected answer and the skill.
func TestTriggerHashes(t *testing.T) {
	t.Parallel()
	name := func(change ...string) string {
		r := runnertest.AgentRunner(t, t.TempDir(), obedient)
		files := strings.NewReplacer(append(change, "config:\n", "config:\n  executor: agent\n")...).Replace(taskAndTriggers)
		p, err := r.Planner().Plan(t.Context(), runnertest.Load(t, r, files), record.Request{})
		require.NoError(t, err)
		defer p.Close()
		first := slices.IndexFunc(p.Tasks, func(task *plan.Task) bool { return task.Trigger != nil })
		return p.Tasks[first].Hash // of the first prompt
	}
	first := name()
	require.Equal(t, first, name("nothing", "something"))
	require.NotEqual(t, first, name("[use]", "[use it]"))
	require.Equal(t, first, name("[use]", "[{prompt: use, confidence: medium}]"), "what it weighs changes no trial")
	require.NotEqual(t, first, name("should_trigger_prompts: [use]", "", "[nothing, more]", "[use]"))
	require.NotEqual(t, first, name("Explain.\n", "Explain all.\n"))
}
