package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// cutStep returns the number of bytes between two cuts. make test-crash cuts at every byte.
func cutStep() int {
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		return 331
	case "ci":
		return 9
	}
	return 1
}

// everything is a suite with all parts of a summary: tasks that pass, fail and are flaky, trials
// in error and trials that a person scores, baselines, trigger tests, metrics and groups.
const everything = `
-- eval.yaml --
name: everything
skill: explainer
baseline: true
config: {executor: agent, skill_directories: [skills], trials_per_task: 3, group_by: tags, parallel: true, workers: 3}
metrics:
  - {name: task_completion, weight: 0.5, threshold: 0.9}
  - {name: says, weight: 0.3, threshold: 0.5}
  - {name: trigger_accuracy, weight: 0.2, threshold: 0.5}
graders:
  - {name: says, type: text, config: {contains: [fine]}}
  - {name: agrees, type: human_calibration, config: {calibrate_grader: says, criteria: [clarity]}}
tasks:
  - {id: good, prompt: x, tags: [a]}
  - {id: flaky, prompt: x, tags: [a, b]}
  - {id: bad, prompt: x, tags: [b]}
  - {id: broken, prompt: x}
  - {id: judged, prompt: x, graders: [{name: taste, type: human, config: {instructions: Is it good, criteria: [taste]}}]}
-- trigger_tests.yaml --
skill: explainer
should_trigger_prompts: [{prompt: Explain this}, {prompt: Explain that, confidence: medium}]
should_not_trigger_prompts: [{prompt: Write that}]
` + runnertest.Skill

// counting is an agent that behaves as the name of a task says, always the same for the same
// trial, and counts the executions of each trial.
type counting struct {
	mu   sync.Mutex // guards done
	done map[string]int
}

func (c *counting) do(_ context.Context, t *executor.Trial) (string, error) {
	key := fmt.Sprintf("%s/%v/%d", t.Task.ID, runnertest.Skilled(t), t.Num)
	c.mu.Lock()
	c.done[key]++
	c.mu.Unlock()
	switch {
	case t.Task.ID == "broken" && t.Num == 2:
		return "", executor.Permanent(errors.New("the network is down"))
	case t.Task.ID == "bad", t.Task.ID == "flaky" && t.Num != 1, !runnertest.Skilled(t) && t.Num == 3:
		return fmt.Sprintf("poor, %d", t.Num), nil
	}
	return "fine", nil
}

// state is the directory of a run at some moment, for restoring it.
type state struct {
	record, journal, result []byte
	key                     []byte // of its state directory
}

func stateOf(t *testing.T, dir string) state {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return b
	}
	return state{read("run.json"), read("journal.jsonl"), read("result.json"), read("../../record.key")}
}

// put makes a state directory with one run in it.
func (s state) put(t *testing.T, id string) (stateDir string) {
	t.Helper()
	stateDir = t.TempDir()
	dir := filepath.Join(stateDir, "runs", id)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	if s.key != nil {
		require.NoError(t, os.WriteFile(filepath.Join(stateDir, "record.key"), s.key, 0o600))
	}
	for name, b := range map[string][]byte{"run.json": s.record, "journal.jsonl": s.journal, "result.json": s.result} {
		if b != nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
		}
	}
	return stateDir
}

// finished returns the trials whose end is in the journal. None of them may run again.
func (s state) finished(t *testing.T) map[string]bool {
	t.Helper()
	done := map[string]bool{}
	for line := range bytes.Lines(s.journal) {
		var e record.Event
		if json.Unmarshal(line, &e) == nil && e.Type == record.TrialComplete && e.Verdict != record.Errored && e.Role != record.RoleTrigger {
			done[fmt.Sprintf("%s/%v/%d", e.Trial.TaskID, e.Role == record.RoleTask, e.TrialNum)] = true
		}
	}
	return done
}

// wholeRun runs the suite everything to its end.
func wholeRun(t *testing.T) (runnertest.Result, state, string) {
	t.Helper()
	stateDir := t.TempDir()
	c := &counting{done: map[string]int{}}
	r := runnertest.AgentRunner(t, stateDir, c.do)
	live := runnertest.Start(t, r, everything, record.Request{})
	<-live.Done()
	return runnertest.ResultOf(t, live), stateOf(t, filepath.Join(stateDir, "runs", live.ID())), live.ID()
}

// takesUp resumes a run from this state. It checks that the result equals that of an
// uninterrupted run and that no trial was executed twice.
func (s state) takesUp(t *testing.T, id string, want runnertest.Result) state {
	t.Helper()
	stateDir := s.put(t, id)
	c := &counting{done: map[string]int{}}
	r := runnertest.AgentRunner(t, stateDir, c.do)
	got, events := runnertest.Resumed(t, r, id)
	runnertest.EqualResults(t, want, got)
	for key := range s.finished(t) {
		require.Zero(t, c.done[key], "%s was done twice", key)
	}
	require.Equal(t, record.End, events[len(events)-1].Type)
	h := runnertest.Reopened(t, r, id)
	runnertest.EqualResults(t, want, runnertest.ResultOf(t, h))
	seq := int64(0)
	for _, e := range runnertest.Follow(t, h, 1) {
		seq++
		require.Equal(t, seq, e.Seq)
		require.Equal(t, seq == events[len(events)-1].Seq, e.Type == record.End)
	}
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, want.Summary.Trials.Counts, p.Trials)
	require.Equal(t, want.Summary.Counts, p.Tasks)
	return stateOf(t, filepath.Join(stateDir, "runs", id))
}

// A journal that was truncated anywhere, by a full disk or a power failure, can be resumed. The
// result equals that of an uninterrupted run.
func TestResumeAfterAnyCut(t *testing.T) {
	t.Parallel()
	want, s, id := wholeRun(t)
	require.Equal(t, record.StatusCompleted, want.Status)
	// The journal contains a second session, too.
	half := s
	half.journal, half.result = s.journal[:len(s.journal)/2], nil
	second := half.takesUp(t, id, want)
	require.Contains(t, string(second.journal), `"run_resumed"`)
	step := cutStep()
	for name, s := range map[string]state{"first": s, "second": second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := max(1, len(s.journal)-4<<10); cut <= len(s.journal); cut += step {
				left := s
				left.journal = s.journal[:cut]
				if cut%2 == 0 {
					left.result = nil
				}
				left.takesUp(t, id, want)
			}
		})
	}
}
