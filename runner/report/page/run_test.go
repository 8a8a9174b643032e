package page

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/record"
)

// runSuite runs a suite, from testdata/html or from its own directory, to its end and returns
// its record.
func runSuite(t *testing.T, r *runner.Runner, name string, req record.Request) record.Handle {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join("testdata", "html", name)
	}
	suite, ds, err := eval.Load(filepath.Join(name, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	plan, err := r.Planner().Plan(t.Context(), suite, req)
	require.NoError(t, err)
	run, err := r.Start(plan)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	select {
	case <-run.Done():
	case <-ctx.Done():
		run.Cancel()
		<-run.Done()
		t.Fatalf("%s: the run did not end", name)
	}
	h, err := r.Catalog().Run(run.ID())
	require.NoError(t, err)
	return h
}

func newHTMLRunner(t *testing.T) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}
