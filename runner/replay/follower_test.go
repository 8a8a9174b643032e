package replay_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/report/reporttest"
	"waza/runner/runnertest"
)

// beside is a suite with a baseline and trigger tests, whose trials end in several ways.
const beside = `
-- eval.yaml --
name: beside
skill: explainer
baseline: true
config: {executor: agent, skill_directories: [skills], trials_per_task: 2, parallel: true, workers: 3}
graders: [{name: says, type: text, config: {contains: [fine]}}]
tasks:
  - {id: good, prompt: x}
  - {id: bad, prompt: x}
  - {id: broken, prompt: x}
  - {id: judged, prompt: x, graders: [{name: taste, type: human, config: {instructions: Is it good, criteria: [taste]}}]}
-- trigger_tests.yaml --
skill: explainer
should_trigger_prompts: [{prompt: Explain this}]
should_not_trigger_prompts: [{prompt: Write that}]
` + runnertest.Skill

const grid = `
-- eval.yaml --
name: grid
config: {executor: agent, models: [one, two], trials_per_task: 2}
graders: [{name: says, type: text, config: {contains: [fine]}}]
tasks: [{id: good, prompt: x}, {id: bad, prompt: x}]
`

const plain = `
-- eval.yaml --
name: plain
config: {executor: agent, trials_per_task: 3}
graders: [{name: says, type: text, config: {contains: [fine]}}]
tasks: [{id: good, prompt: x}, {id: bad, prompt: x}, {id: broken, prompt: x}]
`

func mixed(_ context.Context, t *executor.Trial) (string, error) {
	switch {
	case t.Task.ID == "broken" && t.Num == 2:
		return "", executor.Permanent(errors.New("the network is down"))
	case t.Task.ID == "bad":
		return "awful", nil
	}
	return "fine", nil
}

// followed passes the events of a subscription to a follower, and checks at the end that nothing
// is running.
func followed(t *testing.T, h record.Handle, from int64, earlier []*record.Task) *replay.Follower {
	t.Helper()
	f := replay.NewFollower(h.Record(), earlier)
	for _, e := range runnertest.Follow(t, h, from) {
		f.Apply(e)
	}
	require.Zero(t, f.Running.Trials())
	require.Empty(t, f.Running)
	return f
}

// stateOf returns the state of a run from its journal.
func stateOf(t *testing.T, h record.Handle) *replay.State {
	t.Helper()
	_, st, err := replay.StateOf(h)
	require.NoError(t, err)
	return st
}

// A follower has the same counts as the state of the run and its summary.
func TestFollowerCountsAsTheStateDoes(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]string{"plain": plain, "beside": beside, "grid": grid} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runnertest.AgentRunner(t, t.TempDir(), mixed)
			live := runnertest.Start(t, r, files, record.Request{})
			f := followed(t, live, 1, nil)
			<-live.Done()
			for _, h := range []record.Handle{live, runnertest.Reopened(t, r, live.ID())} {
				st := stateOf(t, h)
				require.Equal(t, st.Progress, f.Progress)
				require.Equal(t, st.AllTrials(), f.AllTrials())
				for _, role := range []record.Role{record.RoleTask, record.RoleBaseline, record.RoleTrigger} {
					require.Equal(t, st.Trials(role), f.Trials(role), "role %q", role)
				}
				again := followed(t, h, 1, nil)
				require.Equal(t, f.Progress, again.Progress)
			}
			require.Equal(t, f.AllTrials().Total, f.AllTrials().Done())
			sum := f.Progress.Summary
			require.Equal(t, sum.Counts, f.Progress.Tasks)
			require.Equal(t, sum.Trials.Counts, f.Trials(record.RoleTask))
			if sum.Baseline != nil {
				require.Equal(t, sum.Baseline.Trials.Total, f.Trials(record.RoleBaseline).Total)
			}
			if sum.Triggers != nil {
				require.Equal(t, sum.Triggers.Trials, f.Trials(record.RoleTrigger))
			}
		})
	}
}

// A follower that continues from a state at any event is like one that saw all events.
func TestFollowerContinuesFromAnyEvent(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), mixed)
	live := runnertest.Start(t, r, beside, record.Request{})
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	rec := live.Record()
	whole, st := replay.ContinueFollower(rec, nil, true), replay.NewState(rec)
	for i, e := range events {
		late := replay.ContinueFollower(rec, st, true)
		for _, rest := range events[i:] {
			late.Apply(rest)
		}
		require.Equal(t, stateOf(t, live).Progress, late.Progress, "from event %d", e.Seq)
		require.Equal(t, stateOf(t, live).Progress.Trials.Done(), late.Cases())
		for task := range rec.Tasks {
			require.Equal(t, stateOf(t, live).Tasks[task].Result, late.Result(task))
		}
		st.Apply(e, replay.Place{Size: 1})
		whole.Apply(e)
		require.Equal(t, whole.Cases(), st.Progress.Trials.Done()-st.Progress.Trials.Cancelled)
	}
}

// A follower of a resumed run counts the trials of the run session and the kept trials, and the
// tasks of all sessions.
func TestFollowerOfAResumedRun(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]string{"plain": plain, "beside": beside} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := runnertest.AgentRunner(t, dir, mixed)
			live := runnertest.Start(t, r, files, record.Request{})
			<-live.Done()
			lines := len(runnertest.JournalLines(t, live.Files().Dir()))
			runnertest.CutJournal(t, dir, live.ID(), lines*2/3, 0)
			earlier, err := runnertest.Reopened(t, r, live.ID()).Results()
			require.NoError(t, err)
			again, err := runnertest.Resume(t, r, live.ID())
			require.NoError(t, err)
			late := followed(t, again, again.First(), earlier)
			<-again.Done()
			st := stateOf(t, again)
			for _, f := range []*replay.Follower{late, followed(t, again, 1, nil)} {
				require.Positive(t, f.Kept)
				require.Equal(t, st.AllTrials().Done(), f.Kept+f.AllTrials().Done())
				require.Equal(t, st.AllTrials().Total, f.AllTrials().Total)
				require.Equal(t, st.Progress.Tasks, f.Progress.Tasks)
				require.Equal(t, st.Progress.Summary, f.Progress.Summary)
				require.Equal(t, record.StatusCompleted, f.Progress.Status)
			}
		})
	}
}

// An amendment takes effect at its end, in a follower like in the state.
func TestFollowerOfAnAmendedRun(t *testing.T) {
	t.Parallel()
	r, id, _ := runnertest.RecordedRun(t)
	runnertest.Flip(t, r, id, 0, 1)
	h := runnertest.Reopened(t, r, id).(*replay.RecordedRun)
	f := replay.NewFollower(h.Record(), nil)
	lines, err := h.Files().Journal()
	require.NoError(t, err)
	defer lines.Close()
	var l replay.Lifter
	for {
		line, number, _, err := lines.NextUndamaged()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		e, _, err := l.Lift(line)
		require.NoError(t, err)
		e.Seq = number
		f.Apply(e)
	}
	st := stateOf(t, h)
	require.NotNil(t, st.Progress.AmendedAt)
	require.Equal(t, st.Progress, f.Progress)
	require.Equal(t, f.Progress.Summary.Counts, f.Progress.Tasks)
	require.Equal(t, f.Progress.Summary.Trials.Counts, f.Progress.Trials)
}

// Events of a damaged journal may name tasks that do not exist.
func TestFollowerIgnoresUnknownTasks(t *testing.T) {
	t.Parallel()
	f := replay.NewFollower(&record.Run{Tasks: []record.TaskRef{{ID: "a"}}}, nil)
	for _, n := range []int{-1, 0, 2, 1 << 40} {
		f.Apply(&record.Event{Type: record.TaskComplete, TaskNum: n, Verdict: record.Passed, Task: &record.Task{Verdict: record.Passed}})
	}
	require.Equal(t, record.Counts{Total: 1}, f.Progress.Tasks)
}

// When a run is resumed, trials that are not kept are void. Tasks are found by id, because they
// may differ from before.
func TestFollowerForgetsWhatIsNotKept(t *testing.T) {
	t.Parallel()
	f := replay.NewFollower(&record.Run{
		Tasks: []record.TaskRef{{ID: "new", Trials: 2}, {ID: "part", Trials: 2}, {ID: "kept", Trials: 2}, {ID: "more", Trials: 3}},
	},
		nil)
	for i, id := range []string{"gone", "kept", "part", "more"} { // their order at that time
		res := reporttest.NewTask(record.Passed, reporttest.Counts(2, 0, 0, 0, 0, 0), 1, 1)
		if id == "kept" {
			res = reporttest.NewTask(record.Failed, reporttest.Counts(0, 2, 0, 0, 0, 0), 0, 1)
		}
		f.Apply(&record.Event{Type: record.TaskComplete, TaskID: id, TaskNum: i + 1, Verdict: res.Verdict, Task: res})
	}
	f.Apply(&record.Event{Type: record.End, Status: record.StatusFailed, Error: "why", Summary: &record.Summary{}})
	require.NotNil(t, f.Progress.Summary)
	require.Equal(t, record.Counts{Total: 4, Passed: 2, Failed: 1}, f.Progress.Tasks)
	f.Apply(&record.Event{
		Type: record.RunResumed,
		Kept: map[string][]record.TrialRange{"kept": {{1, 2}}, "part": {{2, 2}}, "more": {{1, 1}, {2, 3}}},
	})
	require.Equal(t, record.StatusRunning, f.Progress.Status)
	require.Nil(t, f.Progress.Summary)
	require.Empty(t, f.Progress.Error)
	require.Equal(t, record.Counts{Total: 4, Failed: 1}, f.Progress.Tasks)
}
