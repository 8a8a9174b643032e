package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestFind(t *testing.T) {
	t.Parallel()
	const suite = "-- eval.yaml --\nname: a\nconfig: {executor: agent}\ntasks: [{id: t, prompt: x}]\n"
	dir := t.TempDir()
	good := func(context.Context, *executor.Trial) (string, error) { return "good", nil }
	r := runnertest.AgentRunner(t, dir, good)
	_, err := r.Catalog().Find("", "latest")
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
		h, err := r.Catalog().Find("", ref)
		require.NoError(t, err, ref)
		require.Equal(t, want, h.ID(), ref)
	}
	for ref, want := range map[string]string{
		"latest~3": "no such run: latest~3: the suite has only 2 earlier runs", other + "~1": "the suite has only 0 earlier runs",
		"nope": "no such run: nope", "": "no such run: ", "../x": "no such run", "latest~x": "~ must be followed by a number of runs",
		"20": "no such run: 20", "latest~-1": "~ must be followed by",
	} {
		_, err := r.Catalog().Find("", ref)
		require.ErrorIs(t, err, record.ErrRunNotFound, ref)
		require.ErrorContains(t, err, want)
	}
	var many *catalog.AmbiguousRunError
	_, err = r.Catalog().Find("", first[:8])
	require.ErrorAs(t, err, &many)
	require.Equal(t, []string{third, other, second, first}, many.RunIDs)
}

// Suites returns the newest runs of each suite of a project, and no others.
func TestSuites(t *testing.T) {
	t.Parallel()
	const suite = "-- .waza.yaml --\n{}\n-- eval.yaml --\nname: a\nconfig: {executor: agent}\ntasks: [{id: t, prompt: x}]\n" +
		"-- sub/eval.yaml --\nname: b\nconfig: {executor: agent}\ntasks: [{id: t, prompt: x}]\n"
	dir := t.TempDir()
	good := func(context.Context, *executor.Trial) (string, error) { return "good", nil }
	r := runnertest.AgentRunner(t, dir, good)
	root := runnertest.Load(t, r, suite).Dir
	start := func(path string) string {
		prepared, err := r.Planner().Prepare(t.Context(), filepath.Join(root, path), record.Request{}, plan.PrepareOptions{})
		require.NoError(t, err)
		run, err := r.Start(prepared.Plan)
		require.NoError(t, err)
		<-run.Done()
		return run.ID()
	}
	a1, b1, a2, b2, a3 := start("eval.yaml"), start("sub/eval.yaml"), start("eval.yaml"), start("sub/eval.yaml"), start("eval.yaml")
	runnertest.RecordRun(t, dir, "-- eval.yaml --\nname: c\nconfig: {executor: agent}\ntasks: [{id: t, prompt: x}]\n", good)
	ids := func(n int) (all [][]string) {
		suites, err := r.Catalog().Suites(root, n)
		require.NoError(t, err)
		for _, runs := range suites {
			var list []string
			for _, h := range runs {
				list = append(list, h.ID())
			}
			all = append(all, list)
		}
		return all
	}
	require.Equal(t, [][]string{{a3, a2}, {b2, b1}}, ids(2))
	require.Equal(t, [][]string{{a3, a2, a1}, {b2, b1}}, ids(3))
	require.NoError(t, os.Remove(filepath.Join(root, "sub", "eval.yaml")))
	require.Equal(t, [][]string{{a3, a2}}, ids(2), "a suite without a file is no longer a suite of the project")
	for ref, want := range map[string]int{"latest": 0, "latest~": 1, "latest~3": 3} {
		n, ok := catalog.LatestBack(ref)
		require.True(t, ok)
		require.Equal(t, want, n)
	}
	_, ok := catalog.LatestBack(a1)
	require.False(t, ok)
}
