package provider

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The program's windows are those of windows.json, and a suite's windows take precedence.
func TestWindows(t *testing.T) {
	t.Parallel()
	var table struct {
		AsOf    string         `json:"as_of"`
		Sources []string       `json:"sources"`
		Models  map[string]int `json:"models"`
	}
	require.NoError(t, json.Unmarshal(windowTable, &table))
	_, err := time.Parse(time.DateOnly, table.AsOf)
	require.NoError(t, err)
	require.NotEmpty(t, table.Sources)
	for model, n := range table.Models {
		require.Greater(t, n, 1000, model)
	}
	own := Windows{"gpt-4o": 1000, "mine": 500}
	for _, c := range []struct {
		windows Windows
		model   string
		want    int
	}{
		{nil, "gpt-4o", 128000}, {nil, "GPT-4o-mini-2024-07-18", 128000}, {nil, "openai/gpt-4o", 128000}, {nil, "gpt-4o-audio", 0}, {nil, "", 0},
		{own, "gpt-4o-2024-08-06", 1000}, {own, "gpt-4o-mini", 128000}, {own, "me/mine", 500}, {own, "other", 0},
	} {
		n, ok := c.windows.Find(c.model)
		require.Equal(t, c.want, n, c.model)
		require.Equal(t, c.want > 0, ok, c.model)
	}
}
