package compare

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/compare"
	"waza/runner/record"
)

// equalRuns writes results of the same agent: 4 tasks with 6 trials each.
func equalRuns(t *testing.T, rng *rand.Rand, n int) []compare.Source {
	t.Helper()
	dir := t.TempDir()
	var sources []compare.Source
	for i := range n {
		var tasks []map[string]any
		for task := range 4 {
			var trials []record.Trial
			for trial := range 6 {
				score := 0.0
				x := record.Trial{TrialNum: trial + 1, Verdict: record.Failed, Score: &score}
				if rng.Float64() < 0.5 {
					x.Verdict, score = record.Passed, 1
				}
				trials = append(trials, x)
			}
			tasks = append(tasks, map[string]any{
				"id": fmt.Sprint(task), "totalTrials": 6, "firstTrial": 1, "passThreshold": 1, "verdict": record.Failed,
				"trials": trials,
			})
		}
		text, err := json.Marshal(map[string]any{"runId": fmt.Sprint(i), "suite": map[string]string{"name": "s"}, "tasks": tasks})
		require.NoError(t, err)
		path := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		require.NoError(t, os.WriteFile(path, text, 0o600))
		s, err := compare.FromFile(path, "")
		require.NoError(t, err)
		sources = append(sources, s)
	}
	return sources
}

// One command compares 12 equal cells. It calls a task changed in at most 5 % of cases, has a verdict
// of better or worse in at most 5 %, and its exit code is 1 in at most 5 %. Each comparison keeps that level by itself as well, but the 11
// comparisons of a command would exceed it.
func TestLevelOfACommand(t *testing.T) {
	t.Parallel()
	const commands, most = 25, 4 // at the level, 1.25 are expected, and 5 or more have a chance of 0.7 %
	rng := rand.New(rand.NewPCG(12, 7))
	alarms, verdicts, failed, apart := 0, 0, 0, 0
	for range commands {
		sources := equalRuns(t, rng, 12)
		c, err := compare.Compare(t.Context(), sources, compare.Options{})
		require.NoError(t, err)
		require.Len(t, c.Comparisons, 11)
		if c.Changes() > 0 {
			alarms++
		}
		if c.Verdicts() > 0 {
			verdicts++
		}
		if code(c, failOnRegression) == exit.Failed {
			require.NotZero(t, c.Changes()+c.Verdicts())
			failed++
		}
		for i := range c.Comparisons {
			own, err := compare.Compare(t.Context(), []compare.Source{sources[0], sources[i+1]}, compare.Options{})
			require.NoError(t, err)
			if own.Changes()+own.Verdicts() > 0 {
				apart++
				break
			}
		}
	}
	require.LessOrEqual(t, alarms, most)
	require.LessOrEqual(t, verdicts, most)
	require.LessOrEqual(t, failed, most)
	require.Greater(t, apart, most, "tests of single comparisons do not keep the level of the command")
}
