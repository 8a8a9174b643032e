package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

const cachedSuite = `
-- eval.yaml --
name: cached
config: {executor: agent, trials_per_task: 2, parallel: true, workers: 3}
graders:
  - {name: says, type: text, config: {contains: ["-1"]}}
tasks:
  - {id: a, prompt: one}
  - {id: b, prompt: two}
`

// An edit of one task executes only that task. Reused trials are marked and unchanged.
func TestCache(t *testing.T) {
	t.Parallel()
	c := runnertest.NewCached(t, nil)
	first, executed := c.Run(cachedSuite, record.Request{})
	require.Equal(t, "a-1 a-2 b-1 b-2", executed)
	require.Zero(t, first.Summary.TrialsCached)

	again, executed, events := c.Follow(cachedSuite, record.Request{})
	require.Empty(t, executed)
	require.Equal(t, 4, again.Summary.TrialsCached)
	require.Equal(t, first.Summary.Counts, again.Summary.Counts)
	require.Equal(t, first.Summary.Usage, again.Summary.Usage)
	require.Equal(t, again.Summary.Usage, again.Summary.UsageCached)
	for i := range again.Tasks {
		require.Equal(t, 2, again.Tasks[i].Cached)
		for j := range again.Tasks[i].Trials {
			trial, before := again.Tasks[i].Trials[j], first.Tasks[i].Trials[j]
			require.Equal(t, &record.CachedFrom{RunID: first.RunID, Spent: &record.Ledger{Agent: &record.Usage{InputTokens: 1}}}, trial.Cached)
			trial.Cached = nil
			if diff := cmp.Diff(before, trial); diff != "" {
				t.Errorf("trees differ (-before +after):\n%s", diff)
			}
		}
	}
	runnertest.OneVerdictEach(t, again, events, false)
	starts, cached := 0, 0
	for _, e := range events {
		switch {
		case e.Type == record.TrialStart:
			starts++
			require.False(t, e.Cached)
		case e.Type == record.TrialComplete && e.Cached:
			cached++
		}
	}
	require.Equal(t, 4, starts, "each trial has both events")
	require.Equal(t, 4, cached)

	edit := runnertest.Replace(t, cachedSuite, "prompt: two", "prompt: three")
	third, executed := c.Run(edit, record.Request{})
	require.Equal(t, "b-1 b-2", executed)
	require.Equal(t, 2, third.Summary.TrialsCached)
	require.Equal(t, first.RunID, third.Trial(t, "a", 1).Cached.RunID, "the run that executed it, not one that took it over")
	require.EqualValues(t, 4, third.Summary.Usage.InputTokens)
	require.EqualValues(t, 2, third.Summary.UsageCached.InputTokens)

	_, executed = c.Run(edit, record.Request{Trials: 3})
	require.Equal(t, "a-3 b-3", executed, "more trials are just these")
	_, executed = c.Run(cachedSuite, record.Request{Model: "other"})
	require.Equal(t, "a-1 a-2 b-1 b-2", executed)
	res, executed := c.Run(cachedSuite, record.Request{Task: "b", Trial: 2})
	require.Empty(t, executed, "an edit that is undone")
	require.Equal(t, 2, res.Trial(t, "b", 2).TrialNum)
}

// Without the cache everything is executed, but later runs with the cache can reuse it.
func TestCacheIsAskedFor(t *testing.T) {
	t.Parallel()
	c := runnertest.NewCached(t, nil)
	for range 2 {
		live := runnertest.Start(t, c.R, cachedSuite, record.Request{})
		<-live.Done()
		require.Zero(t, runnertest.ResultOf(t, live).Summary.TrialsCached)
	}
	require.Len(t, c.Asked, 8)
	_, executed := c.Run(cachedSuite, record.Request{})
	require.Empty(t, executed)
}

// An edited grader grades the recorded trial, including its workspace. Nothing is executed. The
// numbers are those of the new verdicts.
func TestCacheGradesAgain(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: graded
hooks:
  before_run: [{command: exit 1, error_on_fail: true}]
config: {executor: agent, trials_per_task: 2}
graders: [{name: file, type: file, config: {must_exist: [kept/out-1.txt]}}]
tasks: [{id: a, prompt: x, files: [{path: in.txt, content: given}]}]
`
	c := runnertest.NewCached(t, func(_ context.Context, t *executor.Trial) (string, error) {
		dir, err := t.Dir()
		if err != nil {
			return "", err
		}
		if err := os.Mkdir(filepath.Join(dir, "kept"), 0o755); err != nil {
			return "", err
		}
		return "done", os.WriteFile(filepath.Join(dir, "kept", fmt.Sprintf("out-%d.txt", t.Num)), []byte("run "+t.RunID), 0o644)
	})
	first, executed := c.Run(runnertest.Replace(t, files, "exit 1", "exit 0"), record.Request{})
	require.Equal(t, "a-1 a-2", executed)
	require.Equal(t, 1, first.Summary.Trials.Passed)

	next, executed := c.Run(runnertest.Replace(t, files, "exit 1", "exit 0", "out-1.txt", "out-2.txt"), record.Request{})
	require.Empty(t, executed)
	require.Equal(t, record.Failed, next.Trial(t, "a", 1).Verdict)
	require.Equal(t, record.Passed, next.Trial(t, "a", 2).Verdict)
	require.NotEqual(t, first.Trial(t, "a", 1).Hash, next.Trial(t, "a", 1).Hash)
	require.NotNil(t, next.Trial(t, "a", 1).Cached)

	// The new record does not depend on the old one: it has its own contents.
	require.NoError(t, os.RemoveAll(filepath.Join(c.State, "runs", first.RunID)))
	removed, err := c.R.Catalog().Collect(t.Context(), catalog.Retention{}, false)
	require.NoError(t, err)
	require.Len(t, removed, 1)
	require.Equal(t, catalog.RemovedIndex, removed[0].Kind)
	third, executed := c.Run(runnertest.Replace(t, files, "exit 1", "exit 0", "must_exist: [kept/out-1.txt]",
		`content_patterns: [{path: kept/out-1.txt, must_match: ["run `+first.RunID+`"]}]`),
		record.Request{})
	require.Empty(t, executed)
	require.Equal(t, record.Passed, third.Trial(t, "a", 1).Verdict, "%v", third.Trial(t, "a", 1).Graders)
	require.Equal(t, first.RunID, third.Trial(t, "a", 1).Cached.RunID)

	_, executed = c.Run(files, record.Request{})
	require.Empty(t, executed, "the changed hook fails")
}

// Only trials that measure the agent are reused.
func TestCacheOfErrors(t *testing.T) {
	t.Parallel()
	fail := true
	c := runnertest.NewCached(t, func(ctx context.Context, t *executor.Trial) (string, error) {
		switch {
		case fail && t.Task.ID == "a" && t.Num == 1:
			return "", executor.Permanent(errors.New("no network"))
		case fail && t.Task.ID == "b" && t.Num == 2:
			return "", executor.ErrTimeout
		}
		return runnertest.Says(ctx, t)
	})
	c.Run(cachedSuite, record.Request{})
	fail = false
	res, executed := c.Run(cachedSuite, record.Request{})
	require.Equal(t, "a-1 b-2", executed)
	require.Equal(t, 2, res.Summary.TrialsCached)

	// For fail_fast, a reused trial has ended.
	bad := runnertest.Replace(t, cachedSuite, "contains: [\"-1\"]", "contains: [nothing]", "prompt: two", "prompt: two!")
	res, executed = c.Run(bad, record.Request{FailFast: true, Workers: 1})
	require.Empty(t, executed)
	require.Equal(t, record.Skipped, res.Trial(t, "b", 1).Verdict)
	require.Nil(t, res.Trial(t, "b", 1).Cached)
}

// Damaged records and an index with invalid entries are ignored.
func TestCacheOfDamagedRuns(t *testing.T) {
	t.Parallel()
	c := runnertest.NewCached(t, nil)
	first, _ := c.Run(cachedSuite, record.Request{})
	journal := filepath.Join(c.State, "runs", first.RunID, "journal.jsonl")
	data, err := os.ReadFile(journal)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, `"trial_complete"`) &&
			strings.Contains(line, `"taskId":"a","taskName":"a","taskNum":1,"totalTasks":2,"trialNum":2`) {
			line = "{\"seq\":1,\"type\":\x00}\n"
		}
		lines = append(lines, line)
	}
	require.NoError(t, os.WriteFile(journal, []byte(strings.Join(lines, "")), 0o600))
	_, executed := c.Run(cachedSuite, record.Request{})
	require.Equal(t, "a-2", executed)

	second, _ := c.Run(runnertest.Replace(t, cachedSuite, "prompt: one", "prompt: 1"), record.Request{})
	require.NoError(t, os.WriteFile(filepath.Join(c.State, "runs", second.RunID, "run.json"), []byte("{"), 0o600))
	_, executed = c.Run(runnertest.Replace(t, cachedSuite, "prompt: one", "prompt: 1"), record.Request{})
	require.Empty(t, executed, "the journal has what run.json held")

	require.NoError(t, os.RemoveAll(filepath.Join(c.State, "cache")))
	_, executed = c.Run(cachedSuite, record.Request{})
	require.Equal(t, "a-1 a-2 b-1 b-2", executed)
}

// A person's score is not lost when the graders are edited or the edit is undone.
func TestCacheOfReviews(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: reviewed
config: {executor: agent}
graders:
  - {name: taste, type: human, config: {instructions: "Is it good?"}}
  - {name: says, type: text, config: {contains: [WITHOUT]}}
tasks: [{id: a, prompt: x}]
`
	c := runnertest.NewCached(t, nil)
	first, _ := c.Run(files, record.Request{})
	require.Equal(t, record.NeedsReview, first.Task(t, "a").Verdict)
	second, executed := c.Run(files, record.Request{})
	require.Empty(t, executed)
	require.Equal(t, record.NeedsReview, second.Task(t, "a").Verdict)

	_, err := c.R.Amender().Review(t.Context(), first.RunID, regrade.Review{TaskID: "a", Trial: 1, Grader: "taste", Score: 1})
	require.NoError(t, err)
	for _, edit := range [][]string{nil, {"contains: [WITHOUT]", "contains: [a-1]"}, nil} {
		res, executed := c.Run(runnertest.Replace(t, files, edit...), record.Request{})
		require.Empty(t, executed)
		require.Equal(t, record.Passed, res.Task(t, "a").Verdict, "%v", edit)
		require.Equal(t, 1.0, *res.Trial(t, "a", 1).Score)
	}
}

// A run that was graded again has verdicts of other graders than those that it ran with.
func TestCacheOfAmendedRuns(t *testing.T) {
	t.Parallel()
	c := runnertest.NewCached(t, nil)
	first, _ := c.Run(cachedSuite, record.Request{})
	strict := runnertest.Replace(t, cachedSuite, `contains: ["-1"]`, "contains: [nothing]")
	_, err := c.R.Amender().Grade(t.Context(), first.RunID, runnertest.Load(t, c.R, strict), regrade.GradeOptions{})
	require.NoError(t, err)
	res, executed := c.Run(cachedSuite, record.Request{})
	require.Empty(t, executed)
	require.Equal(t, 2, res.Summary.Trials.Passed)
	res, executed = c.Run(strict, record.Request{})
	require.Empty(t, executed)
	require.Zero(t, res.Summary.Trials.Passed)
}

// Task hooks belong to the execution of a task.
func TestCacheAndHooks(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "hooks")
	open := runnertest.Replace(t, cachedSuite, "config: {", "config: {sandbox: off, ")
	files := runnertest.Replace(t, open, "name: cached", fmt.Sprintf(
		"name: cached\nhooks: {before_run: ['echo run >>%[1]s'], before_task: ['echo $WAZA_TASK_ID >>%[1]s'], "+
			"after_task: ['echo after >>%[1]s'], after_run: ['echo over >>%[1]s']}",
		out))
	c := runnertest.NewCached(t, nil)
	ran := func(files string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(out, nil, 0o600))
		c.Run(files, record.Request{Workers: 1})
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		return strings.Join(strings.Fields(string(data)), " ")
	}
	require.Equal(t, "run a after b after over", ran(files))
	require.Empty(t, ran(files))
	require.Equal(t, "run b after over", ran(runnertest.Replace(t, files, "two", "three")))
}

// Reused outputs of baselines are compared with. A judge is not asked the same question again.
func TestCacheOfBaselines(t *testing.T) {
	t.Parallel()
	judge := &runnertest.PairJudge{}
	files := `
-- eval.yaml --
name: pairs
baseline: true
config: {executor: agent, trials_per_task: 2, skill_directories: [skills]}
graders: [` + judge.Grader(t) + `]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
-- trigger_tests.yaml --
should_trigger_prompts: [use it]
` + runnertest.Skill
	c := runnertest.NewCached(t, nil)
	first, executed := c.Run(files, record.Request{})
	require.Equal(t, "a-1 a-1 a-2 a-2 b-1 b-1 b-2 b-2 should_trigger#1-1 should_trigger#1-2", executed)
	again, executed := c.Run(files, record.Request{})
	require.Empty(t, executed)
	require.Equal(t, first.Summary.Baseline, again.Summary.Baseline)
	require.Equal(t, first.Summary.Triggers, again.Summary.Triggers)
	require.Equal(t, 10, again.Summary.TrialsCached)

	calls := judge.Calls()
	graded, executed := c.Run(runnertest.Replace(t, files, "graders: [{name: better",
		"graders: [{type: text, config: {contains: [WITH]}}, {name: better"),
		record.Request{})
	require.Empty(t, executed)
	require.Equal(t, calls, judge.Calls(), "the judge was asked already")
	require.Equal(t, 2, graded.Summary.Passed)
	_, executed = c.Run(runnertest.Replace(t, files, "Prefer skills.", "Prefer skills!"), record.Request{})
	require.Empty(t, executed)
	require.Greater(t, judge.Calls(), calls)
	require.Empty(t, judge.Strange)

	// An edited skill does not affect baselines.
	_, executed = c.Run(runnertest.Replace(t, files, "\nExplain.\n", "\nExplain more.\n"), record.Request{})
	require.Equal(t, "a-1 a-2 b-1 b-2 should_trigger#1-1 should_trigger#1-2", executed)
	require.Empty(t, judge.Strange)
}

// Trials of an active run of this process can be reused.
func TestCacheOfRunningRuns(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := runnertest.NewCached(t, func(ctx context.Context, trial *executor.Trial) (string, error) {
		if trial.Task.ID == "b" && trial.Num == 2 {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return runnertest.Says(ctx, trial)
	})
	live := runnertest.Start(t, c.R, cachedSuite, record.Request{})
	sub := live.Subscribe(1)
	for ended := 0; ended < 3; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == record.TrialComplete {
				ended++
			}
		}
	}
	require.Eventually(t, func() bool { // ended trials are in the index within a second
		plan, err := c.R.Planner().Plan(t.Context(), runnertest.Load(t, c.R, cachedSuite), record.Request{Cache: true})
		require.NoError(t, err)
		defer plan.Close()
		return plan.Cached() == 3
	}, time.Minute, 10*time.Millisecond)
	close(release)
	<-live.Done()
	_, executed := c.Run(cachedSuite, record.Request{})
	require.Empty(t, executed)
}
