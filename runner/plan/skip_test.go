package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/runnertest"
)

// Contexts that leave no room in the window of a model are skipped and recorded. Contexts of
// unknown models are run.
func TestSkippedContexts(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	planned := func(config string, req record.Request) (*record.Run, error) {
		suite := runnertest.Load(t, r,
			"-- eval.yaml --\nname: s\nkind: benchmark\nconfig: {executor: openai, "+config+"}\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n")
		p, err := r.Planner().Plan(t.Context(), suite, req)
		if err != nil {
			return nil, err
		}
		defer p.Close()
		return p.Record("id", time.Now(), 1), nil
	}
	ids := func(rec *record.Run) (list []string) {
		for _, task := range rec.Tasks {
			list = append(list, task.ID)
		}
		return list
	}
	rec, err := planned("models: [gpt-4o, gpt-3.5-turbo, unknown], matrix: {context_tokens: [0, 16000, 127999]}, trials_per_task: 2",
		record.Request{})
	require.NoError(t, err)
	require.Len(t, rec.Tasks, 2*(3+2+3))
	require.Equal(t, []int{0, 16000, 127999}, rec.Benchmark.Tiers)
	require.Zero(t, rec.Benchmark.MaxTokens)
	require.Len(t, rec.Benchmark.Skipped, 1)
	skipped := rec.Benchmark.Skipped[0]
	require.Equal(t, "gpt-3.5-turbo,context_tokens=127999", skipped.Cell.Name)
	require.Equal(t, record.SkippedCell{
		Cell: skipped.Cell, ContextTokens: 127999, Window: 16385,
		Reason: "a context of 127999 tokens leaves no room in the window of gpt-3.5-turbo, which is 16385 tokens",
	}, skipped)

	// The answer needs room, too. Windows of the suite take precedence over built-in ones.
	rec, err = planned("models: [gpt-4o, tiny], matrix: {context_tokens: [100, 127000]}, params: {max_tokens: "+
		"1000}, context_windows: {tiny: 1101}",
		record.Request{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"a[gpt-4o,context_tokens=100]", "a[tiny,context_tokens=100]", "b[gpt-4o,context_tokens=100]",
		"b[tiny,context_tokens=100]",
	},
		ids(rec))
	require.Len(t, rec.Benchmark.Skipped, 2)
	require.Equal(t, 1000, rec.Benchmark.MaxTokens)
	rec, err = planned("models: [gpt-4o, tiny], matrix: {context_tokens: [100, 127000]}, params: {max_tokens: "+
		"1000}, context_windows: {tiny: 1100}",
		record.Request{})
	require.NoError(t, err)
	require.Equal(t, []string{"a[gpt-4o,context_tokens=100]", "b[gpt-4o,context_tokens=100]"}, ids(rec))

	// Without a context, the window does not matter.
	rec, err = planned("model: tiny, params: {max_tokens: 1000}, context_windows: {tiny: 10}", record.Request{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, ids(rec))
	require.Equal(t, &record.BenchmarkRef{Tiers: []int{0}, MaxTokens: 1000}, rec.Benchmark)
	require.Equal(t, 7, (&record.BenchmarkRef{Tiers: []int{7}}).ContextOf(nil))

	var selection *record.SelectionError
	_, err = planned("model: tiny, context_tokens: 20, context_windows: {tiny: 10}", record.Request{})
	require.ErrorAs(t, err, &selection)
	require.EqualError(t, err, "nothing to run: a context of 20 tokens leaves no room in the window of tiny, which is 10 tokens")

	confidence := 0.95
	rec, err = planned("model: m, trials_per_task: 5", record.Request{Stopping: &confidence})
	require.NoError(t, err)
	require.Zero(t, rec.Tasks[0].Stopping, "all trials are measured")
}
