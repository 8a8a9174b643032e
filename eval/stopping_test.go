package eval_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// The key stopping has several shapes.
func TestStopping(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"true": 0.95, "false": 0, "{}": 0.95, "0.5": 0.5, "1": 1, "{confidence: 0.99}": 0.99, "~": 0,
	} {
		suite, diags := load(t, "name: x\nconfig: {trials_per_task: 9, stopping: "+text+"}\ntasks: [{id: a, prompt: hi}]\n")
		require.False(t, diags.HasErrors(), "%s: %v", text, diags)
		require.InDelta(t, want, suite.Config.Stopping.Confidence, 0, text)
		data, err := json.Marshal(suite.Config)
		require.NoError(t, err)
		var back eval.Config
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, suite.Config.Stopping, back.Stopping)
		if want == 0 {
			require.NotContains(t, string(data), "stopping")
		}
	}
}
