package regrade_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// A grading searches the recorded trials again, and so does a run that reuses them with other graders.
// A trial whose workspace is lost keeps its earlier suspicions.
func TestGradeSearchesAgain(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: calc
config: {executor: command, command: 'echo The difference of 3 and 1 is 2 | tee answer.py', sandbox: off}
tasks:
  - id: a
    prompt: Subtract 1 from 3 with a program.
    graders: [{name: says, type: text, config: {contains: [The difference of 3 and 1 is 2]}}]
`
	other := runnertest.Replace(t, files, "contains: [The difference of 3 and 1 is 2]", "regex_match: [is]")
	r, id, dir := runnertest.FinishedRun(t, files)
	found := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Trial(t, "a", 1).Suspicions
	require.Len(t, found, 1)
	require.Equal(t, "hard-codes", found[0].Rule)
	_, res := runnertest.GradeAgain(t, r, id, other, regrade.GradeOptions{})
	require.Empty(t, res.Trial(t, "a", 1).Suspicions)
	require.Zero(t, res.Summary.Suspicious)
	_, res = runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.Equal(t, found, res.Trial(t, "a", 1).Suspicions)
	require.Equal(t, 1, res.Summary.Suspicious)

	reuses := runnertest.Start(t, r, other, record.Request{Cache: true})
	<-reuses.Done()
	res = runnertest.ResultOf(t, reuses)
	require.Equal(t, 1, res.Summary.TrialsCached)
	require.Empty(t, res.Trial(t, "a", 1).Suspicions)

	require.NoError(t, os.Truncate(filepath.Join(dir, "files.gz"), 3))
	_, res = runnertest.GradeAgain(t, r, id, other, regrade.GradeOptions{})
	require.Equal(t, found, res.Trial(t, "a", 1).Suspicions)
}
