package catalog_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestFind(t *testing.T) {
	t.Parallel()
	const suite = "-- eval.yaml --\nname: a\nconfig: {executor: agent}\ntasks: [{id: t, prompt: x}]\n"
	dir := t.TempDir()
	good := func(context.Context, *executor.Trial) (string, error) { return "good", nil }
	r := runnertest.AgentRunner(t, dir, good)
	_, err := r.Catalog().Find("latest")
	require.ErrorIs(t, err, record.ErrRunNotFound)
	loaded := runnertest.Load(t, r, suite)
	again := func() string {
		plan, err := r.Planner().Plan(t.Context(), loaded, record.Request{})
		require.NoError(t, err)
		run, err := r.Start(plan)
		require.NoError(t, err)
		<-run.Done()
		return run.ID()
	}
	first, second := again(), again()
	other := runnertest.RecordRun(t, dir, suite, good).ID() // of another file
	third := again()
	for ref, want := range map[string]string{
		first: first, "latest": third, "latest~": second, "latest~1": second, "latest~2": first, third + "~0": third,
		second + "~1": first, other[strings.LastIndexByte(other, '-')+1:]: other, first[:len(first)-2]: first,
	} {
		h, err := r.Catalog().Find(ref)
		require.NoError(t, err, ref)
		require.Equal(t, want, h.ID(), ref)
	}
	for ref, want := range map[string]string{
		"latest~3": "no such run: latest~3: the suite has only 2 earlier runs", other + "~1": "the suite has only 0 earlier runs",
		"nope": "no such run: nope", "": "no such run: ", "../x": "no such run", "latest~x": "~ must be followed by a number of runs",
		"20": "no such run: 20", "latest~-1": "~ must be followed by",
	} {
		_, err := r.Catalog().Find(ref)
		require.ErrorIs(t, err, record.ErrRunNotFound, ref)
		require.ErrorContains(t, err, want)
	}
	var many *catalog.AmbiguousRunError
	_, err = r.Catalog().Find(first[:8])
	require.ErrorAs(t, err, &many)
	require.Equal(t, []string{third, other, second, first}, many.RunIDs)
}
