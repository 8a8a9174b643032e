package page

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/figure"
)

// The page rounds numbers in the same way as tables.
func TestPageRoundsAsTables(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	format, err := os.ReadFile(filepath.Join("web", "format.js"))
	require.NoError(t, err)
	script, want := string(format)+"\nconsole.log(JSON.stringify([", []string{}
	add := func(expression, text string) {
		script, want = script+expression+",", append(want, text)
	}
	for _, x := range []float64{0, 0.0004, 0.001, 0.0525, 1. / 3, 0.5, 0.8949, 0.9483, 0.999, 0.99996, 1} {
		low, high := x*x, min(1, x+0.0312)
		add(fmt.Sprintf("percent(%v).replace('\\u00a0', ' ')", x), figure.Percent(x))
		add(fmt.Sprintf("percent(%v, 0.9).replace('\\u00a0', ' ')", x), figure.PercentAgainst(x, 0.9))
		add(fmt.Sprintf("between({low: %v, high: %v}).replace('\\u00a0', ' ')", low, high), figure.PercentInterval(low, high))
		add(fmt.Sprintf("score(%v, 0.95)", x), figure.Score(x, 0.95))
		add(fmt.Sprintf("scores({low: %v, high: %v})", low, high), figure.ScoreInterval(low, high))
		add(fmt.Sprintf("signedBetween({low: %v, high: %v}).replaceAll('−', '-')", -low, high), figure.DifferenceInterval(-low, high))
		add(fmt.Sprintf("money(%v)", x), figure.Cost(x))
	}
	cmd := exec.CommandContext(t.Context(), node, "-e", script+"]))")
	out, err := cmd.Output()
	require.NoError(t, err)
	var got []string
	require.NoError(t, json.Unmarshal(out, &got))
	require.Equal(t, want, got)
}
