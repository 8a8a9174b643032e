package mcp

import (
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/runnertest"
)

// An agent read the results of a damaged record without a word about the damage.
func TestRepliesShowDamage(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	suite := "name: s\nconfig: {executor: mock, mock: {replies: [{match: x, output: y}]}}\ntasks: [{id: a, prompt: " +
		"x, graders: [{name: g, type: text, config: {contains: [y]}}]}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(suite), 0o600))
	s := serverOf(t, dir, state)
	c := client(t, s)
	calls := map[string]map[string]any{
		"waza_run_result": nil, "waza_run_status": {"run_id": "latest"}, "waza_run_transcript": {"task_id": "a", "trial": 1},
		"waza_run_history": {"path": "eval.yaml"}, "waza_results_runs": nil, "waza_results_summary": nil,
	}
	call(t, c, "waza_run", map[string]any{"path": "eval.yaml", "wait_seconds": 600})
	for name, arguments := range calls {
		require.NotContains(t, call(t, c, name, arguments), "amage", name)
	}
	infos, err := s.runner.Catalog().List(0)
	require.NoError(t, err)
	runnertest.DamageRun(t, state, infos[0].RunID)
	for name, arguments := range calls {
		want := `"damage":"the journal is damaged at line `
		if name == "waza_results_summary" {
			want = `"damagedRuns":1`
		}
		require.Contains(t, call(t, c, name, arguments), want, name)
	}
	r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: runsURI + "/latest"})
	require.NoError(t, err)
	require.Contains(t, r.Contents[0].Text, `"damage":"the journal is damaged`)
}

// An agent read the verdicts of a judge who always prefers the first output without the warning
// of the other reports.
func TestDigestWarnsAboutJudges(t *testing.T) {
	t.Parallel()
	d := &runDigest{}
	d.sumUp(&record.Summary{JudgePositions: []record.JudgePosition{{Judge: "j-1", First: 9, Second: 1, Compared: 10, P: 0.021}}})
	require.Equal(t, []string{
		"judge j-1 prefers the first of two outputs, whichever it is: in 9 of 10 comparisons, and the second in 1 (p " +
			"0.021). These are ties; change the judge or its criteria",
	},
		d.Judges)
}
