package tally_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/regrade"
	"waza/runner/runnertest"
	"waza/runner/tally"
)

// stopping returns a suite of one task with 50 trials by the agent of the test. A trial passes
// when the agent prints good.
func stopping(config, more string) string {
	return fmt.Sprintf(`
-- eval.yaml --
name: many
config: {executor: agent, trials_per_task: 50, retry_errors: 0, stopping: %s}
graders: [{type: text, config: {contains: [good]}}]
%s
`, config, more) + runnertest.Skill
}

// decision returns the verdict of each trial by its first letter, and the decision of the task.
func decision(task *recordtest.Task) (trials string, decided *record.Decided) {
	var b strings.Builder
	for _, trial := range task.Trials {
		b.WriteString(string(trial.Verdict)[:1])
	}
	return b.String(), task.Decided
}

// goodBut returns an agent that prints good in all trials except these.
func goodBut(bad ...int) runnertest.Agent {
	return func(_ context.Context, t *executor.Trial) (string, error) {
		for _, n := range bad {
			if n == t.Num {
				return "bad", nil
			}
			if n == -t.Num {
				return "", executor.Permanent(errors.New("broken"))
			}
		}
		return "good", nil
	}
}

func TestStopping(t *testing.T) {
	t.Parallel()
	const one = "tasks: [{id: a, prompt: x}]"
	for _, c := range []struct {
		name, config, more string
		agent              runnertest.Agent
		req                record.Request
		trials             string // verdicts of the first trials
		verdict            record.Verdict
		decided            string // empty without a decision
		saved              int
		of                 string // the checked task; a when empty
	}{
		{
			name: "one failure decides where all must pass", config: "true", more: one, agent: goodBut(3),
			trials: "ppfs", verdict: record.Failed, decided: "decided after 3 of 50 trials: failed, whatever the remaining trials do", saved: 47,
		},
		{
			name: "an error decides nothing", config: "true", more: one, agent: goodBut(-2, 4),
			trials: "pepfs", verdict: record.Failed, decided: "decided after 4 of 50 trials: failed, whatever the remaining trials do", saved: 46,
		},
		{
			name: "a pass", config: "0.95", more: "pass_threshold: 0.8\n" + one, agent: goodBut(),
			trials: "ppppppppppps", verdict: record.Passed, decided: "decided after 11 of 50 trials: passed at 95 % confidence", saved: 39,
		},
		{
			name: "more confidence takes more trials", config: "{confidence: 0.999}", more: "pass_threshold: 0.8\n" + one, agent: goodBut(),
			trials: "ppppppppppppppppppps", verdict: record.Passed, decided: "decided after 19 of 50 trials: passed at 99.9 % confidence", saved: 31,
		},
		{
			name: "nothing uncertain", config: "1", more: "pass_threshold: 0.1\n" + one, agent: goodBut(1),
			trials: "fppppps", verdict: record.Passed, decided: "decided after 6 of 50 trials: passed, whatever the remaining trials do", saved: 44,
		},
		{
			name: "too close to call", config: "1", more: one, agent: goodBut(50),
			trials: strings.Repeat("p", 49) + "f", verdict: record.Failed,
		},
		{
			name: "the request has the last word", config: "true", more: one, agent: goodBut(1), req: record.Request{Stopping: new(float64)},
			trials: "fp", verdict: record.Failed,
		},
		{
			name: "trials in error leave fewer that must pass", config: "1", more: "pass_threshold: 0.5\n" + one,
			req: record.Request{Trials: 8}, agent: goodBut(-1, -2),
			trials: "eeppps", verdict: record.Passed, decided: "decided after 5 of 8 trials: passed, whatever the remaining trials do", saved: 3,
		},
		{
			name: "not beside a baseline", of: "a#baseline", config: "true",
			more: "baseline: true\ntasks: [{id: a, prompt: x, skill_directories: [skills]}]", agent: goodBut(1),
			trials: "fp", verdict: record.Failed,
		},
		{
			name: "a person's score may be the one that decides", config: "true", req: record.Request{Trials: 3},
			more:   "tasks: [{id: a, prompt: x, graders: [{type: human, config: {}}]}]",
			agent:  goodBut(2),
			trials: "nfn", verdict: record.Failed,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, events := runnertest.RunAgent(t, stopping(c.config, c.more), c.req, c.agent)
			runnertest.OneVerdictEach(t, res, events, false)
			task := res.Task(t, cmp.Or(c.of, "a"))
			trials, decided := decision(task)
			require.Equal(t, c.trials, trials[:len(c.trials)])
			require.Equal(t, c.verdict, task.Verdict)
			require.Equal(t, c.saved, res.Summary.TrialsSaved)
			if c.decided == "" {
				require.Nil(t, decided)
				require.NotContains(t, trials, "s")
				return
			}
			require.Equal(t, c.decided, tally.DecisionText(decided))
			require.Equal(t, c.saved, strings.Count(trials, "s"))
			require.Equal(t, "not started: "+c.decided, task.Trial(t, len(trials)).Error)
		})
	}
}

// Parallel trials are processed in the order of their numbers, because failing ones may end
// first. Here the failed trial ends first, and decides once those before it have passed. Running
// trials then end, and no more start.
func TestStoppingLooksInOrder(t *testing.T) {
	t.Parallel()
	failed, decided := make(chan struct{}), make(chan struct{})
	wait := func(ctx context.Context, c <-chan struct{}) {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
	r := runnertest.AgentRunner(t, t.TempDir(), func(ctx context.Context, tr *executor.Trial) (string, error) {
		switch {
		case tr.Num == 3:
			defer close(failed)
			return "bad", nil
		case tr.Num < 3:
			wait(ctx, failed)
		default:
			wait(ctx, decided)
		}
		return "good", nil
	})
	live := runnertest.Start(t, r, stopping("true", "tasks: [{id: a, prompt: x}]"), record.Request{Workers: 3})
	sub := live.Subscribe(1)
	for skipped := false; !skipped; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			skipped = skipped || e.Verdict == record.Skipped
		}
	}
	close(decided)
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	runnertest.OneVerdictEach(t, res, runnertest.Follow(t, live, 1), false)
	require.Equal(t, record.Failed, res.Task(t, "a").Verdict)
	require.Equal(t, "decided after 3 of 50 trials: failed, whatever the remaining trials do", tally.DecisionText(res.Task(t, "a").Decided))
	trials, _ := decision(res.Task(t, "a"))
	require.Equal(t, "ppf", trials[:3])
	require.Equal(t, res.Summary.TrialsSaved, strings.Count(trials, "s"))
	require.GreaterOrEqual(t, res.Summary.TrialsSaved, 45)
}

// A decided task frees the workers for the next task.
func TestStoppingGoesOn(t *testing.T) {
	t.Parallel()
	res, events := runnertest.RunAgent(t, stopping("true", "tasks: [{id: a, prompt: x}, {id: b, prompt: x}]"), record.Request{Trials: 5},
		func(_ context.Context, t *executor.Trial) (string, error) {
			if t.Task.ID == "a" {
				return "bad", nil
			}
			return "good", nil
		})
	runnertest.OneVerdictEach(t, res, events, false)
	require.Equal(t, 4, res.Summary.TrialsSaved)
	require.Equal(t, 5, res.Task(t, "b").Task.Trials.Passed)
	require.Nil(t, res.Task(t, "b").Decided)
	require.Equal(t, record.StatusCompleted, res.Status)
}

// Grading again decides again from the existing trials. Without a decision, the verdicts of
// skipped trials are unknown.
func TestStoppingGradedAgain(t *testing.T) {
	t.Parallel()
	suite := stopping("true", "pass_threshold: 0.8\ntasks: [{id: a, prompt: x}]")
	r := runnertest.AgentRunner(t, t.TempDir(), goodBut())
	live := runnertest.Start(t, r, suite, record.Request{})
	<-live.Done()
	before := runnertest.ResultOf(t, live)
	require.Equal(t, 11, before.Task(t, "a").Decided.After)

	_, res := runnertest.GradeAgain(t, r, live.ID(),
		runnertest.Replace(t, suite, "contains: [good]", "contains: [better]"), regrade.GradeOptions{})
	require.Equal(t, record.Failed, res.Task(t, "a").Verdict)
	require.Equal(t, record.Failed, res.Task(t, "a").Decided.Verdict)
	require.Less(t, res.Task(t, "a").Decided.After, 11)
	require.Equal(t, 39, res.Summary.TrialsSaved)

	// If all must pass, 11 passed trials decide nothing.
	_, res = runnertest.GradeAgain(t, r, live.ID(),
		runnertest.Replace(t, suite, "pass_threshold: 0.8", "pass_threshold: 1"), regrade.GradeOptions{})
	require.Nil(t, res.Task(t, "a").Decided)
	require.Equal(t, record.Skipped, res.Task(t, "a").Verdict)
	require.Zero(t, res.Summary.TrialsSaved)

	_, res = runnertest.GradeAgain(t, r, live.ID(), suite, regrade.GradeOptions{})
	require.Equal(t, before.Task(t, "a").Task, res.Task(t, "a").Task)
}

// A resumed run decides as if it had never been interrupted, from kept and new trials.
func TestStoppingResumed(t *testing.T) {
	t.Parallel()
	suite := stopping("true", "pass_threshold: 0.8\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]")
	var mu sync.Mutex
	asked := map[string]int{}
	state := t.TempDir()
	r := runnertest.AgentRunner(t, state, func(_ context.Context, tr *executor.Trial) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[fmt.Sprintf("%s/%d", tr.Task.ID, tr.Num)]++
		return "good", nil
	})
	live := runnertest.Start(t, r, suite, record.Request{})
	<-live.Done()
	whole := runnertest.ResultOf(t, live)
	require.Equal(t, 78, whole.Summary.TrialsSaved)
	require.Len(t, asked, 22)

	_, err := runnertest.Resume(t, r, live.ID())
	var nothing *runner.NothingLeftError
	require.ErrorAs(t, err, &nothing, "skipped trials need no execution")

	// The process died in b, and had not recorded the end of all skipped trials of a.
	dir := filepath.Join(state, "runs", live.ID())
	runnertest.CutRun(t, dir, runnertest.Before(`"taskNum":2,"totalTasks":2,"trialNum":5`))
	got, events := runnertest.Resumed(t, r, live.ID())
	runnertest.EqualResults(t, whole, got)
	require.Equal(t, 15, events[0].KeptTrials)
	require.Equal(t, "run resumed: 15 of 100 trials kept", events[0].Message)
	require.Len(t, asked, 22)
	require.Equal(t, 1, asked["a/11"])

	runnertest.CutRun(t, dir, runnertest.Before(`"taskNum":1,"totalTasks":2,"trialNum":30`))
	got, _ = runnertest.Resumed(t, r, live.ID())
	runnertest.EqualResults(t, whole, got)
	require.Equal(t, 1, asked["a/11"])
}
