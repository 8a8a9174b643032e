package runnertest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/regrade"
)

// RecordedRun returns an ended run of TwoTasks: a passed twice, b failed its first trial and
// passed its second.
func RecordedRun(t *testing.T) (r *runner.Runner, id, dir string) {
	t.Helper()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := Start(t, r, TwoTasks, record.Request{})
	<-live.Done()
	return r, live.ID(), filepath.Join(state, "runs", live.ID())
}

// Flip gives a trial the opposite verdict.
func Flip(t *testing.T, r *runner.Runner, id string, task, num int) {
	t.Helper()
	require.NoError(t, r.Amender().Amend(t.Context(), id, func(_ context.Context, a *regrade.Amendment) error {
		return FlipIn(a, task, num)
	}))
}

// FlipIn gives a trial the opposite verdict within an amendment.
func FlipIn(a *regrade.Amendment, task, num int) error {
	res, err := a.Trial(task, num)
	if err != nil {
		return err
	}
	was, score := res.Verdict, 1.0
	if res.Verdict = record.Passed; was == record.Passed {
		res.Verdict, score = record.Failed, 0
	}
	res.Score = &score
	res.Graders[0].Passed, res.Graders[0].Score = was != record.Passed, score
	return a.Replace(task, was, res)
}

// Reopened opens a run again from its files.
func Reopened(t *testing.T, r *runner.Runner, id string) record.Handle {
	t.Helper()
	h, err := r.Catalog().Run(id)
	require.NoError(t, err)
	return h
}

// JournalLines returns the lines of the journal in a directory.
func JournalLines(t *testing.T, dir string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(b, []byte("\n")))
	lines := bytes.SplitAfter(b, []byte("\n"))
	return lines[:len(lines)-1] // the last element follows the last newline
}

// RecordRun runs a suite with an agent, and returns the recorded run.
func RecordRun(t *testing.T, dir, files string, a Agent) record.Handle {
	t.Helper()
	r := AgentRunner(t, dir, a)
	live := Start(t, r, files, record.Request{Workers: 4})
	<-live.Done()
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	return h
}

// Compare compares runs.
func Compare(t *testing.T, o compare.Options, handles ...record.Handle) *compare.Comparison {
	t.Helper()
	var sources []compare.Source
	for _, h := range handles {
		sources = append(sources, compare.FromRun(h))
	}
	c, err := compare.Compare(t.Context(), sources, o)
	require.NoError(t, err)
	return c
}

// Recorded returns everything that runs left on disk, and checks that it contains none of the
// keys.
func Recorded(t *testing.T, state string, keys ...string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, key := range keys {
			require.NotContains(t, string(data), key, path)
		}
		all.Write(data)
		return err
	}))
	return all.String()
}

// CutJournal keeps the first lines of a run's journal, without the given number of bytes at the
// end of the last.
func CutJournal(t *testing.T, stateDir, id string, lines, less int) {
	t.Helper()
	file := filepath.Join(stateDir, "runs", id, "journal.jsonl")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	kept := bytes.Join(bytes.SplitAfter(b, []byte("\n"))[:lines], nil)
	require.NoError(t, os.WriteFile(file, kept[:len(kept)-less], 0o600))
}

// FinishedRun runs a suite to its end and returns the values needed to grade it again.
func FinishedRun(t *testing.T, files string) (r *runner.Runner, id, dir string) {
	t.Helper()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := Start(t, r, files, record.Request{})
	<-live.Done()
	require.Empty(t, ResultOf(t, live).Error)
	return r, live.ID(), filepath.Join(state, "runs", live.ID())
}

// GradeAgain grades a recorded run with the graders of other files.
func GradeAgain(t *testing.T, r *runner.Runner, id, files string, o regrade.GradeOptions) (*regrade.Grading, Result) {
	t.Helper()
	g, err := r.Amender().Grade(t.Context(), id, Load(t, r, files), o)
	require.NoError(t, err)
	return g, ResultOf(t, Reopened(t, r, id))
}

// Replace replaces texts of a suite. Each text must exist.
func Replace(t *testing.T, files string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, files, pairs[i])
		files = strings.ReplaceAll(files, pairs[i], pairs[i+1])
	}
	return files
}

// Changes lists what changed, one per line.
func Changes(g *regrade.Grading) string {
	var b strings.Builder
	for _, c := range g.Changes {
		fmt.Fprintf(&b, "%s %d %s %s %s\n", c.TaskID, c.Trial, c.Was, c.Verdict, strings.Split(c.Feedback, "\n")[0])
	}
	return b.String()
}

// DamageRun overwrites a byte of the journal of a run of a state directory, in its second half.
func DamageRun(t *testing.T, state, id string) {
	t.Helper()
	path := filepath.Join(state, "runs", id, "journal.jsonl")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
}
