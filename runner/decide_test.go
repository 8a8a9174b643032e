package runner_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// decidingSuite returns a suite of some tasks, whose trials pass if the agent says good.
func decidingSuite(tasks int, more string) string {
	var b strings.Builder
	b.WriteString("-- eval.yaml --\nname: s\nconfig: {executor: agent, retry_errors: 0}\n" + more + "tasks:\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  - {id: t%d, prompt: x, graders: [{name: says, type: text, config: {contains: [good]}}]}\n", i)
	}
	return b.String()
}

// chanceOf returns a number from 0 to 99 that looks random and depends only on the trial.
func chanceOf(t *executor.Trial) int {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%s/%d", t.Task.ID, t.Model, t.Num)
	return int(h.Sum32()>>7) % 100
}

// passing returns an agent whose trials pass with a chance in percent that depends on the model.
func passing(percent map[string]int) runnertest.Agent {
	return func(_ context.Context, t *executor.Trial) (string, error) {
		if chanceOf(t) < percent[t.Model] {
			return "good", nil
		}
		return "bad", nil
	}
}

func question(a, b string) record.Request {
	return record.Request{Decide: &record.DecideRequest{A: a, B: b, BetterBy: 0.1, Risk: 0.05, Seed: 1}}
}

func decisionOf(t *testing.T, res runnertest.Result) *record.Decision {
	t.Helper()
	require.NotNil(t, res.Summary)
	require.NotNil(t, res.Summary.Decision)
	return res.Summary.Decision
}

// started lists the trials of each task that were started.
func started(res runnertest.Result) map[string]int {
	n := map[string]int{}
	for _, task := range res.Tasks {
		for _, trial := range task.Trials {
			if trial.Verdict != record.Skipped {
				n[task.ID]++
			}
		}
	}
	return n
}

func TestDecide(t *testing.T) {
	t.Parallel()
	agent := passing(map[string]int{"low": 30, "high": 80, "high2": 80})
	res, _ := runnertest.RunAgent(t, decidingSuite(6, ""), question("low", "high"), agent)
	d := decisionOf(t, res)
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Equal(t, record.DecidedBetter, d.Verdict)
	require.Equal(t, record.EndVerdict, d.Ended)
	require.Equal(t, record.EndingPassed, record.EndingOf(res.Status, res.Error, res.Summary))
	require.Regexp(t, `^high is better than low: \+\d+\.\d points \[\+\d+\.\d+, \+\d+\.\d+\] over these 6 tasks, after \d+ pairs$`, d.Text)
	require.Equal(t, 2*d.Pairs, d.Executed)
	require.Equal(t, 12*100-d.Executed, res.Summary.TrialsSaved)
	for i := range 6 { // each pair has both sides
		counts := started(res)
		require.Equal(t, counts[fmt.Sprintf("t%d[low]", i)], counts[fmt.Sprintf("t%d[high]", i)])
	}
	for _, task := range res.Tasks {
		require.NotEqual(t, record.Skipped, task.Verdict, "tasks have verdicts of the trials that counted")
		require.Equal(t, 100, task.Task.Trials.Counted()+task.Saved)
	}

	res, _ = runnertest.RunAgent(t, decidingSuite(6, ""), question("high", "low"), agent)
	require.Equal(t, record.DecidedNotBetter, decisionOf(t, res).Verdict)
	require.Equal(t, record.EndingFailed, record.EndingOf(res.Status, res.Error, res.Summary))

	req := question("high", "high2")
	req.Decide.MaxTrials = new(60)
	res, _ = runnertest.RunAgent(t, decidingSuite(6, ""), req, agent)
	d = decisionOf(t, res)
	require.Equal(t, record.DecidedNothing, d.Verdict)
	require.Equal(t, record.EndBudget, d.Ended)
	require.LessOrEqual(t, d.Executed, 60)
	require.Equal(t, record.EndingError, record.EndingOf(res.Status, res.Error, res.Summary))
}

// The choice of pairs depends on the question and the outcomes, and not on the order in which
// trials end.
func TestDecideWithAnyNumberOfWorkers(t *testing.T) {
	t.Parallel()
	agent := passing(map[string]int{"low": 50, "high": 75})
	var first runnertest.Result
	for _, workers := range []int{1, 3, 16} {
		req := question("low", "high")
		req.Workers = workers
		res, _ := runnertest.RunAgent(t, decidingSuite(5, ""), req, agent)
		if workers == 1 {
			first = res
			continue
		}
		require.Equal(t, decisionOf(t, first), decisionOf(t, res))
		require.Equal(t, started(first), started(res))
	}
}

// A killed run continues with the same pairs, wherever it was killed.
func TestDecideResumed(t *testing.T) {
	t.Parallel()
	agent := passing(map[string]int{"low": 40, "high": 80})
	state := t.TempDir()
	r := runnertest.AgentRunner(t, state, agent)
	req := question("low", "high")
	req.Decide.Pairs = 20
	live := runnertest.Start(t, r, decidingSuite(3, ""), req)
	<-live.Done()
	whole := runnertest.ResultOf(t, live)
	dir := filepath.Join(state, "runs", live.ID())
	lines := len(runnertest.JournalLines(t, dir))
	for keep := lines - 1; keep > 1; keep = keep * 3 / 4 {
		n := 0
		runnertest.CutRun(t, dir, func(string) bool { n++; return n <= keep })
		got, _ := runnertest.Resumed(t, r, live.ID())
		require.Equal(t, decisionOf(t, whole), decisionOf(t, got))
		runnertest.EqualResults(t, whole, got)
	}
}

// The same question with a larger budget continues with the trials of the first run.
func TestDecideFromTheCache(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), passing(map[string]int{"low": 50, "high": 80}))
	ask := func(budget int) *record.Decision {
		req := question("low", "high")
		req.Decide.MaxTrials = &budget
		live := runnertest.Start(t, r, decidingSuite(4, ""), req)
		<-live.Done()
		return decisionOf(t, runnertest.ResultOf(t, live))
	}
	few := ask(24)
	require.Equal(t, record.DecidedNothing, few.Verdict)
	require.Equal(t, 24, few.Executed)
	more := ask(2000)
	require.Equal(t, 24, more.Reused)
	require.NotEqual(t, record.DecidedNothing, more.Verdict)
	again := ask(0)
	require.Zero(t, again.Executed)
	require.Equal(t, more.Verdict, again.Verdict)
	require.Equal(t, more.Gain, again.Gain)
}

func TestDecideBetweenSkills(t *testing.T) {
	t.Parallel()
	suite := strings.Replace(decidingSuite(4, "config: {executor: agent, skill_directories: [skills]}\n"), "config: {executor: agent, retry_errors: 0}\n", "", 1) +
		"-- skills/helper/SKILL.md --\n---\nname: helper\ndescription: Helps with everything.\n---\nSay good.\n"
	suite = strings.Replace(suite, "tasks:\n", "baseline: true\ntasks:\n", 1)
	res, _ := runnertest.RunAgent(t, suite, question(record.SideNone, record.SideFiles), func(_ context.Context, trial *executor.Trial) (string, error) {
		if runnertest.Skilled(trial) || chanceOf(trial) < 20 {
			return "good", nil
		}
		return "bad", nil
	})
	d := decisionOf(t, res)
	require.Equal(t, record.DecidedBetter, d.Verdict)
	require.Regexp(t, `^The agent with skills is better than the agent without skills: `, d.Text)
}

// A pair with an error counts as the worst case, and the run ends although one side always fails.
func TestDecideWithErrors(t *testing.T) {
	t.Parallel()
	req := question("low", "broken")
	req.Decide.MaxTrials = new(40)
	res, _ := runnertest.RunAgent(t, decidingSuite(4, ""), req, func(_ context.Context, trial *executor.Trial) (string, error) {
		if trial.Model == "broken" {
			return "", errors.New("no answer")
		}
		return "good", nil
	})
	d := decisionOf(t, res)
	require.Equal(t, record.DecidedNothing, d.Verdict)
	require.Equal(t, d.Pairs, d.Missing)
	require.Contains(t, d.Text, "have no result and count as the worst case")
}

// A resumed run keeps its errors, wherever it was cut: repeating only these would favor the side that has them.
func TestDecideKeepsErrors(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	broken := func(_ context.Context, trial *executor.Trial) (string, error) {
		if trial.Model == "low" && chanceOf(trial) < 30 {
			return "", errors.New("no answer")
		}
		return "good", nil
	}
	r := runnertest.AgentRunner(t, state, broken)
	req := question("low", "high")
	req.Decide.MaxTrials = new(60)
	live := runnertest.Start(t, r, decidingSuite(3, ""), req)
	<-live.Done()
	whole := runnertest.ResultOf(t, live)
	require.Positive(t, decisionOf(t, whole).Missing)
	repaired := runnertest.AgentRunner(t, state, passing(map[string]int{"low": 0, "high": 100}))
	_, err := runnertest.Resume(t, repaired, live.ID())
	var nothing *runner.NothingLeftError
	require.ErrorAs(t, err, &nothing)

	dir := filepath.Join(state, "runs", live.ID())
	lines := len(runnertest.JournalLines(t, dir))
	n := 0
	runnertest.CutRun(t, dir, func(string) bool { n++; return n <= lines-1 })
	got, _ := runnertest.Resumed(t, repaired, live.ID())
	require.Equal(t, decisionOf(t, whole), decisionOf(t, got))
}
