package tally_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/runnertest"
	"waza/runner/stats"
)

// withSkills is a suite of three tasks: one that the skill helps, one that it does not affect,
// and one that it spoils.
const withSkills = `
-- eval.yaml --
name: compared
baseline: true
config:
  executor: command
  command: [sh, agent.sh]
  trials_per_task: 2
  skill_directories: [skills]
graders:
  - {name: used, type: skill_invocation, config: {required_skills: [explainer]}}
tasks:
  - {id: helped, prompt: helped, graders: [{name: says, type: text, config: {contains: [hello, polite]}}]}
  - {id: same, prompt: same, graders: [{name: says, type: text, config: {contains: [hello]}}]}
  - {id: spoilt, prompt: spoilt, graders: [{name: says, type: text, config: {contains: [hello]}}], expected: {should_trigger: true}}
-- agent.sh --
prompt=$(cat)
if [ -n "$WAZA_SKILLS" ]; then
	echo '{"type":"skill","name":"explainer"}' >&3
	case $prompt in
	helped) echo "hello, polite one; $WAZA_TASK_ID" ;;
	same) echo "hello" ;;
	spoilt) echo "bye" ;;
	esac
else
	echo "hello; $WAZA_TASK_ID"
fi
` + runnertest.Skill

// The numbers of the comparison, computed by hand.
func TestBaseline(t *testing.T) {
	t.Parallel()
	res, events := runnertest.Run(t, withSkills, record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status)
	require.True(t, strings.HasPrefix(runnertest.Outline(events), `run_start
task_start helped#baseline
trial_start helped#baseline 1/2
trial_complete helped#baseline 1/2 failed
trial_start helped#baseline 2/2
trial_complete helped#baseline 2/2 failed
task_complete helped#baseline failed
task_start helped
trial_start helped 1/2
`), runnertest.Outline(events))
	require.Equal(t, 6, events[0].TotalTasks)
	require.Equal(t, 12, events[0].TotalTrials)
	require.Equal(t, record.RoleBaseline, res.Task(t, "helped#baseline").Role)
	require.Equal(t, "helped", res.Task(t, "helped#baseline").Of)
	require.Equal(t, "hello; helped", res.Trial(t, "helped#baseline", 1).Output, "programs see the suite's own id")
	require.Len(t, res.Trial(t, "helped#baseline", 1).Graders, 1, "skill_invocation says nothing without skills")
	require.Len(t, res.Trial(t, "spoilt#baseline", 1).Graders, 1, "nor does should_trigger")
	require.Len(t, res.Trial(t, "spoilt", 1).Graders, 3)

	sum := res.Summary
	require.Equal(t, 3, sum.Total, "baselines are no tasks of the suite")
	require.Equal(t, 2, sum.Passed)
	require.Equal(t, 6, sum.Trials.Total)
	b := sum.Baseline
	require.True(t, b.Measured)
	require.Equal(t, 3, b.Pairs)
	require.Equal(t, record.ClassCounts{NoDifference: 1, Undecided: 2}, b.ClassCounts, "two trials show nothing")
	require.Zero(t, b.Errors)
	require.Equal(t, record.Counts{Total: 6, Passed: 4, Failed: 2}, b.Trials)
	require.InDelta(t, 2.0/3, b.PassRate.With, 1e-12)
	require.InDelta(t, 2.0/3, b.PassRate.Without, 1e-12)
	require.InDelta(t, 0, b.PassRate.Gain, 1e-12)
	// Each side passed 4 of 6 trials. So few trials do not show that they vary less than trials of
	// one task, and the interval is that of 4 of 6 and 4 of 6, computed independently.
	require.InDelta(t, -0.59148, b.PassRate.Interval.Low, 5e-4)
	require.InDelta(t, 0.59148, b.PassRate.Interval.High, 5e-4)
	require.InDelta(t, 2.0/3, b.Score.With, 1e-12)
	require.InDelta(t, 2.5/3, b.Score.Without, 1e-12)
	require.InDelta(t, -0.5/3, b.Score.Gain, 1e-12)
	of := func(x float64) stats.Part { return stats.PartOf([]float64{x, x}) }
	mean, ok := stats.Difference([]stats.PartPair{{A: of(0.5), B: of(1)}, {A: of(1), B: of(1)}, {A: of(1), B: of(0)}}, 0.95)
	require.True(t, ok)
	require.Equal(t, mean.Interval, *b.Score.Interval)
	helped := recordtest.ByID(t, b.Tasks, "helped")
	require.Equal(t, "helped", helped.ID)
	require.Equal(t, []int{2, 2}, []int{helped.With, helped.Without})
	require.Equal(t, []float64{1, 0, 1}, []float64{helped.PassRate.With, helped.PassRate.Without, helped.PassRate.Gain})
	require.Equal(t, []float64{1, 0.5, 0.5}, []float64{helped.Score.With, helped.Score.Without, helped.Score.Gain})
	require.Equal(t, record.Undecided, helped.Class)

	require.Len(t, slices.Compact(runnertest.Hashes(res)), 12, "the trial without skills has another hash")
}

// A task that only skills can pass is compared by the graders that both sides have. Here there
// do not exist.
func TestBaselineNothingInCommon(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
baseline: true
config: {executor: agent, skill_directories: [skills]}
tasks:
  - {id: a, prompt: x, graders: [{type: skill_invocation, config: {required_skills: [explainer]}}]}
`+runnertest.Skill, record.Request{}, runnertest.Says)
	b := res.Summary.Baseline
	require.False(t, b.Measured)
	require.Contains(t, b.Note, "no task has graded trials on both sides")
	require.Nil(t, b.PassRate)
	require.Nil(t, b.Score)
}

// The suite's gain over a single task is that of the task.
func TestBaselineOfOneTask(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, withSkills, record.Request{Tasks: []string{"helped"}})
	b := res.Summary.Baseline
	require.Equal(t, 1, b.Pairs)
	require.Equal(t, 1.0, b.PassRate.Gain)
	require.InDelta(t, recordtest.ByID(t, b.Tasks, "helped").PassRate.Interval.Low, b.PassRate.Interval.Low, 1e-12)
	require.InDelta(t, recordtest.ByID(t, b.Tasks, "helped").PassRate.Interval.High, b.PassRate.Interval.High, 1e-12)
}

// Two lucky trials made a task "improved" by the sign of the difference alone. The classes have
// the same meaning as in a comparison: a test decides.
func TestBaselineClassifiesByTests(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, withSkills, record.Request{Trials: 10})
	b := res.Summary.Baseline
	require.Equal(t, record.ClassCounts{Improved: 1, Regressed: 1, NoDifference: 1}, b.ClassCounts)
	classes := map[string]record.Class{}
	for _, task := range b.Tasks {
		classes[task.ID] = task.Class
	}
	require.Equal(t, map[string]record.Class{"helped": record.Improved, "same": record.NoDifference, "spoilt": record.Regressed}, classes)
}

// The canned reply is the same with and without skills.
func TestBaselineOfMock(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, withSkills, record.Request{Executor: "mock"})
	require.Len(t, res.Tasks, 3)
	require.Equal(t, &record.BaselineResult{Note: "not measured: executor mock makes its replies up"}, res.Summary.Baseline)
}

// pairSuite returns a suite that compares each trial with its baseline.
func pairSuite(t *testing.T, j *runnertest.PairJudge, config string, tasks int) string {
	t.Helper()
	return fmt.Sprintf(`-- eval.yaml --
name: pairs
baseline: true
config:
  executor: agent
  skill_directories: [skills]
  parallel: true
%s
graders:
  - %s
  - {name: said, type: text, config: {contains: [WITH]}}
tasks:
%s`, config, j.Grader(t), runnertest.Inline(tasks)) + runnertest.Skill
}

// Pairwise judges receive the result of the trial with the same number without skills, for any
// number of workers.
func TestBaselinePairwise(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			j := &runnertest.PairJudge{}
			res, events := runnertest.RunAgent(t, pairSuite(t, j, "  trials_per_task: 5", 4), record.Request{Workers: workers}, runnertest.Says)
			require.Empty(t, j.Strange)
			require.Equal(t, 20, res.Summary.Trials.Passed)
			runnertest.OneVerdictEach(t, res, events, true)
			require.Len(t, res.Trial(t, "t0", 1).Graders, 2)
			require.Len(t, res.Trial(t, "t0#baseline", 1).Graders, 1, "nothing to compare the baseline with")
			require.Equal(t, 4, res.Summary.Baseline.NoDifference, "the judge is left out of the comparison")
			require.Len(t, slices.Compact(runnertest.Hashes(res)), 40)
		})
	}
}

// A single requested trial has a baseline with the same number.
func TestBaselineOneTrial(t *testing.T) {
	t.Parallel()
	j := &runnertest.PairJudge{}
	res, _ := runnertest.RunAgent(t, pairSuite(t, j, "  trials_per_task: 5", 2), record.Request{Task: "t1", Trial: 4}, runnertest.Says)
	require.Empty(t, j.Strange)
	require.Equal(t, 1, res.Summary.Trials.Passed)
	require.Equal(t, 4, res.Trial(t, "t1#baseline", 4).TrialNum)
}

// Without a baseline result, the judge fails with a reason. Results of other graders still count
// in the comparison.
func TestBaselineWithoutOutput(t *testing.T) {
	t.Parallel()
	j := &runnertest.PairJudge{}
	res, _ := runnertest.RunAgent(t, pairSuite(t, j, "  retry_errors: 0", 1), record.Request{}, func(
		ctx context.Context, t *executor.Trial,
	) (string, error) {
		if !runnertest.Skilled(t) {
			return "", errors.New("no network")
		}
		return runnertest.Says(ctx, t)
	})
	trial := res.Trial(t, "t0", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Equal(t, `grader "better": nothing to compare with: the trial without skills ended in error: no network`, trial.Error)
	require.Equal(t, 1, res.Summary.Errors)
	require.Equal(t, 1, res.Summary.Baseline.Errors)
	require.Equal(t, 1, recordtest.ByID(t, res.Summary.Baseline.Tasks, "t0").With)
	require.Equal(t, 0, recordtest.ByID(t, res.Summary.Baseline.Tasks, "t0").Without)
}

// A baseline that a grader could not grade still has its output.
func TestBaselineThatCouldNotBeGraded(t *testing.T) {
	t.Parallel()
	j := &runnertest.PairJudge{}
	files := strings.Replace(pairSuite(t, j, "  retry_errors: 0", 1), "tasks:",
		"  - {name: broken, type: program, config: {command: no-such-program-here}}\ntasks:", 1)
	res, _ := runnertest.RunAgent(t, files, record.Request{}, runnertest.Says)
	require.Empty(t, j.Strange)
	require.Equal(t, record.Errored, res.Task(t, "t0#baseline").Verdict)
	require.True(t, res.Trial(t, "t0", 1).Graders[0].Passed)
}

// Without a baseline, pairwise judges report what they need.
func TestPairwiseWithoutBaseline(t *testing.T) {
	t.Parallel()
	files := strings.Replace(pairSuite(t, &runnertest.PairJudge{}, "", 1), "baseline: true\n", "", 1)
	res, _ := runnertest.RunAgent(t, files, record.Request{}, runnertest.Says)
	require.Contains(t, res.Trial(t, "t0", 1).Error, "baseline: true")
	require.Nil(t, res.Summary.Baseline)
}

// A failed baseline is expected and does not stop the run.
func TestBaselineAndFailFast(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: s
baseline: true
config: {executor: agent, skill_directories: [skills], fail_fast: true}
graders: [{type: text, config: {contains_cs: ["WITH "]}}]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
` + runnertest.Skill
	res, _ := runnertest.RunAgent(t, files, record.Request{}, runnertest.Says)
	require.Equal(t, 2, res.Summary.Passed)
	require.Equal(t, 2, res.Summary.Baseline.Trials.Failed)
	require.Equal(t, 1.0, res.Summary.Baseline.PassRate.Gain)

	res, events := runnertest.RunAgent(t, files, record.Request{}, func(context.Context, *executor.Trial) (string, error) { return "no", nil })
	require.Equal(t, 1, res.Summary.Failed)
	require.Equal(t, 1, res.Summary.Skipped)
	runnertest.OneVerdictEach(t, res, events, false)
}

// Hooks of a task and of its baseline have the same environment, so they must not run during
// trials of the other.
func TestBaselineHooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := &runnertest.PairJudge{}
	files := strings.Replace(pairSuite(t, j, "  sandbox: off\n  trials_per_task: 3", 3), "graders:", fmt.Sprintf(`hooks:
  before_task: [{command: 'echo "before $WAZA_TASK_ID" >> %[1]s/$WAZA_TASK_ID'}]
  after_task: [{command: 'echo "after $WAZA_TASK_ID" >> %[1]s/$WAZA_TASK_ID'}]
graders:`, dir), 1)
	res, events := runnertest.RunAgent(t, files, record.Request{Workers: 8}, runnertest.Says)
	require.Empty(t, j.Strange)
	require.Equal(t, 9, res.Summary.Trials.Passed)
	runnertest.OneVerdictEach(t, res, events, true)
	for i := range 3 {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("t%d", i)))
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(fmt.Sprintf("before t%d\nafter t%[1]d\n", i), 2), string(got))
	}
}

// A run that is cancelled or stopped while trials wait for their baselines ends, and each trial
// has one verdict.
func TestBaselineCutShort(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "stop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			j := &runnertest.PairJudge{}
			started, release := make(chan struct{}, 100), make(chan struct{})
			r := runnertest.AgentRunner(t, t.TempDir(), func(ctx context.Context, tr *executor.Trial) (string, error) {
				if !runnertest.Skilled(tr) && tr.Task.ID == "t1" {
					started <- struct{}{}
					select {
					case <-release:
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}
				return runnertest.Says(ctx, tr)
			})
			// Eight workers execute t0. Three wait in the baseline of t1, and the others for
			// them.
			live := runnertest.Start(t, r, pairSuite(t, j, "  trials_per_task: 3", 2), record.Request{Workers: 8})
			for range 3 {
				<-started
			}
			if how == "cancel" {
				live.Cancel()
			} else {
				live.Stop()
				close(release)
			}
			events := runnertest.Follow(t, live, 1)
			<-live.Done()
			res := runnertest.ResultOf(t, live)
			require.Equal(t, record.StatusCancelled, res.Status)
			runnertest.OneVerdictEach(t, res, events, true)
			want := record.Cancelled
			if how == "stop" {
				want = record.Skipped
				require.Equal(t, record.Passed, res.Task(t, "t1#baseline").Verdict, "what ran may end")
			}
			require.Equal(t, want, res.Task(t, "t1").Verdict)
			require.Empty(t, j.Strange)
		})
	}
}

// Workers do not wait for a baseline while there is other work.
func TestBaselineWaitsForNothingElse(t *testing.T) {
	t.Parallel()
	j := &runnertest.PairJudge{}
	var others atomic.Int32
	all := make(chan struct{})
	res, events := runnertest.RunAgent(t, pairSuite(t, j, "", 6), record.Request{Workers: 2}, func(
		ctx context.Context, tr *executor.Trial,
	) (string, error) {
		switch {
		case !runnertest.Skilled(tr) && tr.Task.ID == "t0":
			select { // keeps one worker busy until the other has executed all except t0
			case <-all:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		case tr.Task.ID != "t0":
			if others.Add(1) == 10 {
				close(all)
			}
		}
		return runnertest.Says(ctx, tr)
	})
	require.Equal(t, 6, res.Summary.Passed)
	runnertest.OneVerdictEach(t, res, events, true)
}

// The state of a run with roles whose process died is computed from its journal.
func TestInterruptedWithRoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runnertest.AgentRunner(t, dir, runnertest.Says)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: s
skill: explainer
baseline: true
config: {executor: agent, skill_directories: [skills], trials_per_task: 2}
graders: [{type: text, config: {contains: [WITH]}}]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
-- trigger_tests.yaml --
should_trigger_prompts: [explain]
`+runnertest.Skill, record.Request{})
	<-live.Done()
	whole := runnertest.ResultOf(t, live)
	journal := filepath.Join(dir, "runs", live.ID(), "journal.jsonl")
	data, err := os.ReadFile(journal)
	require.NoError(t, err)
	lines := bytes.SplitAfter(data, []byte("\n"))
	cut := slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte(`"task_complete","taskId":"a"`)) })
	require.Positive(t, cut)
	require.NoError(t, os.WriteFile(journal, bytes.Join(lines[:cut+1], nil), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "runs", live.ID(), "result.json")))

	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.Counts{Total: 2, Passed: 1}, p.Tasks)
	require.Equal(t, record.Counts{Total: 4, Passed: 2}, p.Trials)
	res := runnertest.ResultOf(t, h)
	require.Equal(t, record.StatusInterrupted, res.Status)
	require.Len(t, res.Tasks, 5)
	require.Len(t, res.Task(t, "a#baseline").Trials, 2)
	for i := range whole.Tasks {
		require.Equal(t, whole.Tasks[i].TaskRef, res.Tasks[i].TaskRef)
	}
	require.Equal(t, "explain", res.Task(t, "should_trigger#1").Trigger.Prompt)
}

// A task of the suite may have the id of a baseline.
func TestRoleIDsAreUnique(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
baseline: true
config: {executor: agent, skill_directories: [skills]}
graders: [{type: text, config: {contains: [WITH]}}]
tasks: [{id: a, prompt: x}, {id: 'a#baseline', prompt: x}, {id: 'should_trigger#1', prompt: x}]
-- trigger_tests.yaml --
should_trigger_prompts: [explain]
`+runnertest.Skill, record.Request{}, runnertest.Says)
	var ids []string
	for _, task := range res.Tasks {
		ids = append(ids, task.ID)
	}
	require.Equal(t, []string{
		"a#baseline-2", "a", "a#baseline#baseline", "a#baseline",
		"should_trigger#1#baseline", "should_trigger#1", "should_trigger#1-2",
	}, ids)
	require.Equal(t, 3, res.Summary.Baseline.Pairs)
}

// Amended trials count in the comparison and in the answers of trigger tests. They do not count
// among the tasks of the suite.
func TestAmendWithRoles(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), runnertest.Says)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: s
skill: explainer
baseline: true
config: {executor: agent, skill_directories: [skills]}
graders: [{type: text, config: {contains_cs: ["WITH "]}}]
tasks: [{id: a, prompt: x}]
-- trigger_tests.yaml --
should_not_trigger_prompts: [explain]
`+runnertest.Skill, record.Request{})
	<-live.Done()
	before := runnertest.ResultOf(t, live)
	require.Equal(t, 1.0, before.Summary.Baseline.PassRate.Gain)
	require.Equal(t, 1.0, *before.Summary.Triggers.Accuracy)

	runnertest.Flip(t, r, live.ID(), 0, 1) // the baseline passes
	runnertest.Flip(t, r, live.ID(), 2, 1) // and the skill was used
	h := runnertest.Reopened(t, r, live.ID())
	after := runnertest.ResultOf(t, h)
	require.Equal(t, 0.0, after.Summary.Baseline.PassRate.Gain)
	require.Equal(t, 1, after.Summary.Baseline.NoDifference)
	require.Equal(t, 0.0, *after.Summary.Triggers.Accuracy)
	require.Equal(t, before.Summary.Counts, after.Summary.Counts)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.Counts{Total: 1, Passed: 1}, p.Tasks)
}
