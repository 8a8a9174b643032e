package review

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseScore(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"0": 0, "1": 1, "0.8": 0.8, ".5": 0.5, " 1.0\n": 1, "+1": 1, "-0": 0,
		"y": 1, "YES": 1, "Pass": 1, "passed": 1, "n": 0, "no": 0, "fail": 0, "FAILED": 0,
		"80%": 0.8, "80 %": 0.8, "12.5%": 0.125, "100%": 1, "0%": 0,
		"4/5": 0.8, " 4 / 5 ": 0.8, "0/3": 0, "7/7": 1, "2.5/10": 0.25,
	} {
		got, err := parseScore(text)
		require.NoError(t, err, text)
		require.InDelta(t, want, got, 1e-12, text)
	}
	for text, want := range map[string]string{
		"": "missing score", "  ": "missing score", "5": "the score must be between 0 and 1, got 5", "-0.1": "must be between 0 and 1",
		"101%": "must be between 0 and 100", "6/5": "the score must be between 0 and 5, got 6/5", "4/0": "invalid score",
		"4/": "invalid score", "/5": "invalid score",
		"1/-2": "invalid score", "nan": "invalid score", "inf": "invalid score", "1e-3": "invalid score",
		"0x1": "invalid score", "0,8": "invalid score", "1/2/3": "invalid score",
		"maybe": `invalid score "maybe"; give 0 to 1, y or n`, "%": "invalid score", "1_0": "invalid score", "80%%": "invalid score",
		strings.Repeat("9", 400): "invalid score", strings.Repeat("x", 400): "x…",
	} {
		_, err := parseScore(text)
		require.ErrorContains(t, err, want, text)
	}
}

// Every accepted text is a valid score.
func FuzzParseScore(f *testing.F) {
	for _, text := range []string{"0.8", "y", "80%", "4/5", "4/0", "nan", "-1/-1", "1e9", "\x00", "½"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		score, err := parseScore(text)
		if err == nil && !(score >= 0 && score <= 1) {
			t.Fatalf("%q is taken for %v", text, score)
		}
	})
}
