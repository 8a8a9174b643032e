package replay_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/runnertest"
)

// Subscribers that start at any time and position receive each event once.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: many
config: {trials_per_task: 3000, parallel: true, workers: 4}
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`, record.Request{})
	idle := live.Subscribe(1) // reads only when everything is over
	type got struct {
		from   int64
		events []*record.Event
	}
	results := make(chan got)
	froms := []int64{-5, 1, 2, 100, 5000, 12000}
	for _, from := range froms {
		go func() { results <- got{from, runnertest.Follow(t, live, from)} }()
	}
	check := func(from int64, events []*record.Event, total int64) {
		require.EqualValues(t, total-max(1, from)+1, len(events), "from %d", from)
		for i, e := range events {
			require.EqualValues(t, max(1, from)+int64(i), e.Seq)
		}
		require.Equal(t, record.End, events[len(events)-1].Type)
	}
	const total = 1 + 2*(2+6000/2*2) + 2 + 2 // run_start; per task start, complete, trials; task logs; run_complete, end
	for range froms {
		g := <-results
		check(g.from, g.events, total)
	}
	<-live.Done()
	var late []*record.Event
	for {
		batch, err := idle.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		late = append(late, batch...)
	}
	check(1, late, total)

	past, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	require.NotSame(t, live, past)
	check(7, runnertest.Follow(t, past, 7), total)
	require.Empty(t, runnertest.Follow(t, past, total+1))

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	slow := runnertest.Start(t, r, runnertest.Endless, record.Request{})
	_, err = slow.Subscribe(1 << 40).Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// The state of a run whose process died is computed from its journal.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	require.False(t, replay.LacksEnd(live))
	lacksEnd := func() bool { return replay.LacksEnd(runnertest.Reopened(t, r, live.ID())) }
	require.False(t, lacksEnd())
	require.NoError(t, os.Remove(filepath.Join(dir, "runs", live.ID(), "result.json")))
	require.False(t, lacksEnd(), "the journal contains the end")
	runnertest.CutJournal(t, dir, live.ID(), 10, 3)
	require.True(t, lacksEnd())

	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, p.Status)
	require.Equal(t, 4, p.Trials.Total)
	require.Equal(t, 2, p.Trials.Passed)
	res := runnertest.ResultOf(t, h)
	require.Equal(t, record.StatusInterrupted, res.Status)
	require.Len(t, res.Task(t, "a").Trials, 2)
	require.Len(t, runnertest.Follow(t, h, 1), 9)

	infos, err := r.Catalog().List(0)
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.Equal(t, record.StatusInterrupted, infos[0].Status)
	_, err = r.Catalog().Run("nope")
	require.ErrorIs(t, err, record.ErrRunNotFound)
}

// The directory of a run contains only its record.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: files
config: {executor: command, command: "mkdir locked && touch locked/x && chmod 500 locked && cat a/in.txt"}
tasks:
  - id: a
    inputs: {prompt: x, files: [{path: a/in.txt, content: "for {{task_id}}"}, fixture.bin]}
    graders:
      - {type: file, config: {must_exist: [locked/x, fixture.bin]}}
      - {type: text, config: {contains: [for a]}}
-- fixtures/fixture.bin --
bytes
`, record.Request{})
	<-live.Done()
	require.Equal(t, record.Passed, runnertest.ResultOf(t, live).Task(t, "a").Verdict)
	entries, err := os.ReadDir(filepath.Join(dir, "runs", live.ID()))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"files.gz", "journal.jsonl", "result.json", "run.json"}, names)
}

// The next run removes the workspaces that a killed process left, but not those of active runs.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := func(id string) string { return filepath.Join(dir, "work", id, "1-a-1-1") }
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	alive := runnertest.Start(t, r, `
-- eval.yaml --
name: long
config: {mock: {latency_ms: 1000000}}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	require.NoError(t, os.MkdirAll(work(alive.ID()), 0o700))
	// Renamed, because the first run may clean up during the copy.
	killed := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.MkdirAll(filepath.Join(killed, "1-a-1-1"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(killed, "1-a-1-1"), 0o500))
	require.NoError(t, os.Rename(killed, filepath.Join(dir, "work", "20200101-000000-killed")))
	<-runnertest.Start(t, r, runnertest.TwoTasks, record.Request{}).Done()
	require.DirExists(t, work(alive.ID()))
	require.NoDirExists(t, filepath.Join(dir, "work", "20200101-000000-killed"))
}

// Followers of a run whose journal could not record the end received none.
func TestEndThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	runnertest.CutJournal(t, dir, live.ID(), 7, 0)
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	events := runnertest.Follow(t, h, 3)
	require.Len(t, events, 6)
	require.Equal(t, record.End, events[5].Type)
	require.EqualValues(t, 8, events[5].Seq)
	require.Empty(t, runnertest.Follow(t, h, 8), "nothing comes after the end")
}

// A workspace path is absolute even if the state directory is relative.
func TestRelativeStateDir(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	rel, err := filepath.Rel(here, t.TempDir())
	require.NoError(t, err)
	r, err := runner.New(runner.Options{StateDir: rel})
	require.NoError(t, err)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: where
config: {executor: command, command: 'printf %s "$WAZA_WORKSPACE_DIR"'}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	<-live.Done()
	require.True(t, filepath.IsAbs(runnertest.ResultOf(t, live).Trial(t, "a", 1).Output))
}

// Trials visits the trials of the result in order, live and recorded.
func TestTrials(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	past, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	for _, h := range []record.Handle{live, past} {
		res := runnertest.ResultOf(t, h)
		var want, got []record.Trial
		for _, task := range res.Tasks {
			want = append(want, task.Trials...)
		}
		require.NotEmpty(t, want)
		require.NoError(t, h.Trials(func(task int, trial *record.Trial) error {
			require.Equal(t, h.Record().Tasks[task].ID, trial.TaskID)
			got = append(got, *trial)
			return nil
		}))
		require.Equal(t, want, got)
		stop := errors.New("stop")
		require.ErrorIs(t, h.Trials(func(int, *record.Trial) error { return stop }), stop)
	}
}
