package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// Corrected rates and rankings are the same in the report for terminals and in Markdown.
func TestCorrectedAndRanking(t *testing.T) {
	t.Parallel()
	rate := 0.61
	r := New(&record.Run{RunID: "20261121-101500-abc"})
	r.Progress = record.Progress{Status: record.StatusCompleted, Summary: &record.Summary{
		Calibrations: []record.CalibrationResult{{Grader: "tone", Pending: 2, Corrected: &record.CorrectedRate{
			Trials: 200, Drawn: 50, Labels: 48, Judged: 0.7, JudgedInterval: record.Interval{Low: 0.63, High: 0.76}, JudgedScore: 0.7,
			PassRate: &rate, PassRateInterval: &record.Interval{Low: 0.5, High: 0.7}, Score: &rate, ScoreInterval: &record.Interval{Low: 0.5, High: 0.7},
		}}},
		Judged: &record.JudgeResult{Ranking: []record.ModelStrength{
			{Model: "m|1", Rank: 1, Group: 1, Strength: 0.8, StrengthInterval: record.Interval{Low: 0.6, High: 1}},
			{Model: "m-2", Rank: 1, Group: 2, Strength: 0.5, StrengthInterval: record.Interval{Low: 0, High: 1}},
		}},
	}}
	var text strings.Builder
	require.NoError(t, r.Write(&text, Options{}))
	require.Contains(t, text.String(), "tone    48 of 200  70 %    63–76 %        61 %       50–70 %        0.61 0.50–0.70\n")
	require.Contains(t, text.String(), `2 drawn trials have no label: waza review 20261121-101500-abc --calibrate 50 --grader "tone"`)
	require.Contains(t, text.String(), "Ranking\nModel  Rank  Beats the average  95 % interval  Group\nm|1    1     80 %               60–100 %       1\n")
	require.Contains(t, text.String(), "The models form 2 groups without a comparison between them")
	markdown := r.correctedDocument().markdown() + r.judgedDocument(CodeSpan, true).markdown() + r.agreementDocument().markdown()
	for _, line := range []string{
		"| `tone` | 48 of 200 | 70 % | 63–76 % | 61 % | 50–70 % | 0.61 0.50–0.70 |", "| `m-2` | 1 | 50 % | 0–100 % | 2 |",
		"| `tone` | 0 | – | – | – | – |",
	} {
		require.Contains(t, markdown, line)
	}
}
