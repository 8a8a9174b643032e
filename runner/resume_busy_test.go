package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// A run that is active in any process, or being graded, cannot be resumed. If many callers try
// at once, one succeeds.
func TestResumeBusy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "a/1")
	run := s.start(threeTasks, record.Request{})
	other := runnertest.AgentRunner(t, s.state, s.do)
	var busy *record.BusyError
	for _, r := range []*runner.Runner{s.r, other} {
		_, err := runnertest.Resume(t, r, s.id)
		require.ErrorAs(t, err, &busy)
		require.EqualError(t, err, fmt.Sprintf("run %s is still running in process %d", s.id, os.Getpid()))
	}
	s.cancelHanging(run)
	<-run.Done()
	require.NoError(t, s.r.Amender().Amend(t.Context(), s.id, func(context.Context, *regrade.Amendment) error {
		_, err := runnertest.Resume(t, other, s.id)
		require.ErrorAs(t, err, &busy)
		require.Contains(t, err.Error(), "is already being graded or reviewed")
		return nil
	}))
	s.set(s.hang)
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		all.Go(func() {
			r := []*runner.Runner{s.r, other}[i%2]
			rec := runnertest.Reopened(t, r, s.id).Record()
			plan, err := r.Planner().Plan(t.Context(), runnertest.Load(t, r, threeTasks), rec.Asked)
			if err != nil {
				t.Error(err)
				return
			}
			run, err := r.Resume(t.Context(), s.id, plan)
			if err == nil {
				<-run.Done()
				mu.Lock()
				won++
				mu.Unlock()
				return
			}
			var busy *record.BusyError
			var nothing *runner.NothingLeftError
			switch {
			case errors.As(err, &busy) && busy.Running && busy.PID == os.Getpid(): // not: being graded or reviewed
			case !errors.As(err, &nothing):
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, won)
	require.Equal(t, "a/1 a/1 a/2 b/1 b/2 c/1 c/2", s.done())

	_, err := s.r.Resume(t.Context(), "nope", runnertest.PlanOf(t, s.r, threeTasks))
	require.ErrorIs(t, err, record.ErrRunNotFound)
	require.NoError(t, s.r.Close(t.Context()))
	_, err = s.r.Resume(t.Context(), s.id, runnertest.PlanOf(t, other, threeTasks))
	require.ErrorIs(t, err, runner.ErrClosed)
}

// The process may be killed while it resumes a run. After any step, the run is interrupted, and
// the next attempt finds everything.
func TestResumeKilledWhileTakingUp(t *testing.T) {
	t.Parallel()
	want, s, id := wholeRun(t)
	was := s
	was.journal = s.journal[:len(s.journal)/2]
	again := was.takesUp(t, id, want) // its record belongs to the second session
	at := strings.Index(string(again.journal), `"type":"run_resumed"`)
	begin := strings.LastIndexByte(string(again.journal[:at]), '\n') + 1
	announced := begin + strings.IndexByte(string(again.journal[begin:]), '\n') + 1
	for name, left := range map[string]state{
		"the result is gone, of half a run":   {s.record, was.journal, nil, s.key},
		"the record is new":                   {again.record, again.journal[:begin], nil, s.key},
		"the record is new, the run was over": {again.record, s.journal, nil, s.key},
		"and the result is still there":       {again.record, s.journal, s.result, s.key},
		"it was announced":                    {again.record, again.journal[:announced], nil, s.key},
		"the record was lost with the power":  {s.record, again.journal[:announced], nil, s.key},
		"and the result came back":            {s.record, again.journal[:announced], s.result, s.key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left.takesUp(t, id, want)
		})
	}
	left := state{again.record, s.journal, nil, s.key}
	h := runnertest.Reopened(t, runnertest.AgentRunner(t, left.put(t, id), (&counting{done: map[string]int{}}).do), id)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, p.Status)
	require.Nil(t, p.Summary)
}

// Workspaces of the previous session are removed before the run continues.
func TestResumeClearsUp(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "b/2")
	s.run(threeTasks)
	s.set(s.hang)
	left := filepath.Join(s.state, "work", s.id, "1-a-1-1")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "locked"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "locked", "file"), nil, 0o600))
	require.NoError(t, os.Chmod(filepath.Join(left, "locked"), 0o500))
	s.resume()
	require.NoDirExists(t, filepath.Join(s.state, "work", s.id))
}
