package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestResume(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	whole := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	runnertest.CutRun(t, dir, runnertest.Before(`"taskNum":2,"totalTasks":2,"trialNum":2`))
	h := runnertest.Reopened(t, r, id)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, p.Status)
	got, events := runnertest.Resumed(t, r, id)
	require.Equal(t, id, got.RunID)
	runnertest.EqualResults(t, whole, got)
	require.Equal(t, `run_resumed
task_start b
trial_start b 2/2
trial_complete b 2/2 passed
task_complete b failed
run_complete completed
end completed
`, runnertest.Outline(events))
	require.Equal(t, 3, events[0].KeptTrials)
	require.Equal(t, map[string][]record.TrialRange{"a": {{1, 2}}, "b": {{1, 1}}}, events[0].Kept)
	runnertest.EqualResults(t, whole, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)))
	_, err = runnertest.Resume(t, r, id)
	var nothing *runner.NothingLeftError
	require.ErrorAs(t, err, &nothing)
}

// Resuming reads the journal once, and then the trials in it: with a million of them, each reading
// takes a second. The damage that this reading finds needs no other.
func TestResumeReadsTheJournalOnce(t *testing.T) { // not parallel, because it counts what the process reads
	state, measured := t.TempDir(), make(chan struct{})
	agent := func(ctx context.Context, trial *executor.Trial) (string, error) {
		select {
		case <-measured:
		case <-ctx.Done():
		}
		return fmt.Sprintf("%s, %d", trial.Task.ID, trial.Num), nil
	}
	close(measured)
	const suite = `
-- eval.yaml --
name: many
config: {executor: agent, trials_per_task: 2000, parallel: true}
graders: [{name: says, type: text, config: {contains: [","]}}]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`
	id := runnertest.RecordRun(t, state, suite, agent).ID()
	dir := filepath.Join(state, "runs", id)
	runnertest.CutRun(t, dir, runnertest.Before(`"taskNum":2,"totalTasks":2,"trialNum":1900`))
	path := filepath.Join(dir, "journal.jsonl")
	journal, err := os.ReadFile(path)
	require.NoError(t, err)
	middle := len(journal) / 2
	journal[middle+bytes.IndexByte(journal[middle:], '\n')+10] ^= 1 // within a line
	require.NoError(t, os.WriteFile(path, journal, 0o600))

	measured = make(chan struct{})
	r := runnertest.AgentRunner(t, state, agent)
	before := bytesRead(t)
	run, err := runnertest.Resume(t, r, id)
	require.NoError(t, err)
	damage := run.EarlierDamage()
	read := bytesRead(t) - before
	close(measured)
	<-run.Done()
	require.EqualValues(t, 1, damage.Events)
	require.Greater(t, len(journal), 1_000_000)
	require.GreaterOrEqual(t, read, len(journal))
	require.Less(t, read, len(journal)*5/2)
	p, err := run.Progress()
	require.NoError(t, err)
	require.Equal(t, 4000, p.Trials.Passed)
}

// bytesRead returns how many bytes this process has read.
func bytesRead(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("this system does not count the bytes that a process reads")
	}
	_, err = fmt.Sscanf(string(b), "rchar: %d", &n)
	require.NoError(t, err)
	return n
}
