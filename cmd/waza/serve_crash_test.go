//go:build linux

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/pause"
	"waza/runner/record"
)

// serveSize returns how often a server or its caller is ended, and the number of agents.
func serveSize() (kills, agents int) {
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		return 3, 5
	case "ci":
		return 15, 20
	}
	return 210, 20 // half of them at least are kill -9 of the server
}

const serveTasks = 4

// remoteSuite is a suite whose trials agents do: of ten, seven pass and three fail.
func remoteSuite(t *testing.T, trials int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eval.yaml")
	var b strings.Builder
	fmt.Fprintf(&b, "name: remote\nconfig: {executor: remote, trials_per_task: %d}\ngraders: [{name: fine, type: "+
		"text, config: {contains: [fine]}}]\ntasks:\n",
		trials)
	for i := range serveTasks {
		fmt.Fprintf(&b, "  - {id: t%d, prompt: Do it., inputs: {tool: work}}\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// worker is an agent that takes up to so long, and whose answer depends on the trial alone.
func worker(r *rand.Rand, n, most int, longest time.Duration) *wireAgent {
	return &wireAgent{id: wireID(n), tools: []string{"work"}, most: most, work: func(ctx context.Context, e wireEvaluation) any {
		_ = pause.For(ctx, longest/2+upTo(r, longest/2))
		if e.trial()%10 < 3 {
			return map[string]any{"status": "success", "output": "poor"}
		}
		return map[string]any{"status": "success", "output": "fine"}
	}}
}

// A server that is killed or stopped repeatedly while agents work loses no trial and counts none
// twice. The run is the server's own, or of another process that is also killed.
func TestCrashServe(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"server", "waza run"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			r := seeded(t)
			kills, agents := serveSize()
			trials := kills * 10 // of each task: more than there is time for
			s := newServed(t, wazaPath(t))
			for n := range agents {
				startAgents(t, s.agents, worker(r, n, 1+n%3, 400*time.Millisecond))
			}
			suite := remoteSuite(t, trials)
			s.start()
			var run *exec.Cmd
			runs := func(args ...string) {
				run = exec.Command(s.waza, append([]string{"run"}, args...)...)
				run.Env, run.Stdout, run.Stderr = s.env, s.log, s.log
				require.NoError(t, run.Start())
			}
			if owner == "server" {
				var started struct{ RunID string }
				s.call("eval.run", map[string]any{"path": suite}, &started)
			} else {
				runs(suite)
				defer func() { _ = run.Process.Kill() }()
			}
			during, killed := 0, 0
			for range kills {
				require.NoError(t, pause.For(t.Context(), 50*time.Millisecond+upTo(r, 350*time.Millisecond)))
				if s.result() == nil {
					during++
				}
				switch what := r.IntN(4); {
				case what == 0 && run != nil && s.started():
					require.NoError(t, run.Process.Kill())
					_ = run.Wait() // killed
					runs("--resume", suite)
				case what == 1:
					s.stop()
					s.start()
				default:
					killed++
					s.kill()
					s.start()
				}
			}
			t.Logf("%d of %d ends came before the end of the run; %d were kill -9 of the server", during, kills, killed)
			require.NotZero(t, during)
			s.until("the run has ended", func() bool { return s.result() != nil })
			if run != nil {
				within(t, "waza run does not end", func() { _ = run.Wait() })
				require.Equal(t, exit.Failed, run.ProcessState.ExitCode(), "%s", s.log)
			}
			s.kill()
			s.until("no process is left", func() bool { return len(markedWith(t, s.mark)) == 0 })
			requireWhole(t, s.result(), trials)
			requireIntact(t, s.state)
		})
	}
}

// started reports whether a run exists.
func (s *served) started() bool {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(s.state, "runs", "*", "journal.jsonl"))
	require.NoError(s, err)
	return len(files) > 0
}

// result is the only run's result; nil as long as it is not complete.
func (s *served) result() []byte {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(s.state, "runs", "*", "result.json"))
	require.NoError(s, err)
	require.LessOrEqual(s, len(files), 1)
	if len(files) == 0 {
		return nil
	}
	b, err := os.ReadFile(files[0])
	if errors.Is(err, os.ErrNotExist) {
		return nil // a server that was stopped has left it, and the next one has resumed the run
	}
	require.NoError(s, err)
	var got struct{ Status record.Status }
	require.NoError(s, json.Unmarshal(b, &got))
	if got.Status != record.StatusCompleted {
		return nil // the server was stopped
	}
	return b
}

// requireWhole checks that each trial has one verdict, which is its own.
func requireWhole(t *testing.T, result []byte, trials int) {
	t.Helper()
	var got struct {
		Status record.Status
		Tasks  []struct {
			ID     string
			Trials []record.Trial
		}
		Summary struct {
			Trials struct{ Total, Passed, Failed int }
		}
	}
	require.NoError(t, json.Unmarshal(result, &got))
	require.Equal(t, record.StatusCompleted, got.Status)
	require.Len(t, got.Tasks, serveTasks)
	failed := 0
	for _, task := range got.Tasks {
		require.Len(t, task.Trials, trials, task.ID)
		for i, trial := range task.Trials {
			require.Equal(t, i+1, trial.TrialNum)
			require.Empty(t, trial.Attempts, "%s/%d: no attempt counts that an agent or the server has not ended", task.ID, i+1)
			want := record.Passed
			if trial.TrialNum%10 < 3 {
				want = record.Failed
				failed++
			}
			require.Equal(t, want, trial.Verdict, "%s/%d: %s", task.ID, trial.TrialNum, trial.Error)
		}
	}
	require.Equal(t, serveTasks*trials, got.Summary.Trials.Total)
	require.Equal(t, failed, got.Summary.Trials.Failed)
	require.Equal(t, serveTasks*trials-failed, got.Summary.Trials.Passed)
}

// requireIntact checks the server's database.
func requireIntact(t *testing.T, state string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(state, "serve.db"))
	require.NoError(t, err)
	defer db.Close()
	var verdict string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&verdict))
	require.Equal(t, "ok", verdict)
}
