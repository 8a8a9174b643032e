package workspace_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// fixtureSuite has one file of each kind that is read for a plan or copied.
const fixtureSuite = `
-- eval.yaml --
name: s
config: {executor: agent, skill_directories: [skills], instruction_files: [rules.md], retry_errors: 0}
tasks:
  - id: a
    prompt: hi
    inputs: {files: [in.txt]}
    graders:
      - {type: program, config: {command: sh, args: [check.sh]}}
      - {type: diff, config: {expected_files: [{path: in.txt, snapshot: want.txt}]}}
-- check.sh --
exit 0
-- rules.md --
Be brief.
-- fixtures/in.txt --
text
-- fixtures/want.txt --
text
-- skills/x/SKILL.md --
A skill.
-- skills/x/more.md --
More of it.
`

// special contains functions that create special files instead of regular ones.
var special = map[string]func(path string) error{
	"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
	"device": func(path string) error { return os.Symlink("/dev/zero", path) },
	"socket": func(path string) error {
		l, err := net.Listen("unix", path)
		if err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			err = l.Close()
		}
		return err
	},
	"directory": func(path string) error { return os.Mkdir(path, 0o755) },
}

// shortLoad loads the suite below a directory whose path is short enough for a socket.
func shortLoad(t *testing.T, r *runner.Runner, archive string) *eval.Suite {
	t.Helper()
	suite := runnertest.Load(t, r, archive)
	dir, err := os.MkdirTemp("", "w")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.CopyFS(dir, os.DirFS(suite.Dir)))
	suite, ds, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	return suite
}

// soon fails the test when do blocks.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s blocks", what)
	}
}

// A file that became a pipe after its suite was checked made the plan of a run wait forever for
// a writer.
func TestAttackPlanWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	for kind, replace := range special {
		for _, name := range []string{"fixtures/in.txt", "check.sh", "rules.md", "fixtures/want.txt", "skills/x/more.md"} {
			t.Run(kind+" "+filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				r := runnertest.AgentRunner(t, t.TempDir(), nil)
				suite := shortLoad(t, r, fixtureSuite)
				path := filepath.Join(suite.Dir, name)
				require.NoError(t, os.Remove(path))
				require.NoError(t, replace(path))
				soon(t, "the plan", func() {
					p, err := r.Planner().Plan(t.Context(), suite, record.Request{})
					if name == "skills/x/more.md" || name == "check.sh" || name == "fixtures/want.txt" {
						// Special files are neither part of a skill nor files that a grader
						// names.
						require.NoError(t, err)
						p.Close()
						return
					}
					var content *plan.ContentError
					require.ErrorAs(t, err, &content)
					require.ErrorIs(t, err, files.ErrNotRegular)
				})
			})
		}
	}
}

// A pipe that appeared after the run was planned blocked the trial, beyond its deadline and
// although it was cancelled.
func TestAttackTrialWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	for kind, replace := range special {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := runnertest.AgentRunner(t, t.TempDir(), func(_ context.Context, tr *executor.Trial) (string, error) {
				_, err := tr.Dir()
				return "", err
			})
			suite := shortLoad(t, r, fixtureSuite)
			plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
			require.NoError(t, err)
			path := filepath.Join(suite.Dir, "fixtures", "in.txt")
			require.NoError(t, os.Remove(path))
			require.NoError(t, replace(path))
			run, err := r.Start(plan)
			require.NoError(t, err)
			soon(t, "the trial", func() { <-run.Done() })
			trial := runnertest.ResultOf(t, run).Trial(t, "a", 1)
			require.Equal(t, record.Errored, trial.Verdict)
			require.Contains(t, trial.Error, "workspace: file in.txt:")
		})
	}
}

// An agent that replaced the fixtures of its suite by pipes blocked the comparison of its
// workspace with them, and graders that read their snapshots.
func TestAttackNothingWaitsForThePipesOfAnAgent(t *testing.T) {
	t.Parallel()
	var suite *eval.Suite
	r := runnertest.AgentRunner(t, t.TempDir(), func(_ context.Context, tr *executor.Trial) (string, error) {
		_, err := tr.Dir()
		for _, name := range []string{"in.txt", "want.txt"} {
			path := filepath.Join(suite.Dir, "fixtures", name)
			err = errors.Join(err, os.Remove(path), syscall.Mkfifo(path, 0o644))
		}
		return "", err
	})
	suite = runnertest.Load(t, r, fixtureSuite)
	plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
	require.NoError(t, err)
	run, err := r.Start(plan)
	require.NoError(t, err)
	soon(t, "the trial", func() { <-run.Done() })
	trial := runnertest.ResultOf(t, run).Trial(t, "a", 1)
	require.Equal(t, record.Passed, trial.Verdict, "graded with the planned content")
	require.Equal(t, []string{"fixtures/in.txt", "fixtures/want.txt"}, trial.ChangedFiles())
	require.Equal(t, record.GivenUnknown, trial.Workspace.Entries[0].Given)
}

// sparse creates a file of that size that takes no space.
func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	require.NoError(t, os.Truncate(path, size))
}

// Sparse files of hundreds of gigabytes were read to their end for the hash of a trial, and
// nothing could stop that.
func TestAttackHugeFilesStopNoPlan(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), nil)
	for _, name := range []string{"check.sh", "skills/x/more.md", "fixtures/want.txt"} {
		suite := runnertest.Load(t, r, fixtureSuite)
		sparse(t, filepath.Join(suite.Dir, name), 200<<30)
		_, err := r.Planner().Plan(t.Context(), suite, record.Request{})
		require.ErrorIs(t, err, files.ErrTooLarge, name)
		require.ErrorContains(t, err, filepath.Base(name))
		require.ErrorContains(t, err, "16 GiB")
		var content *plan.ContentError
		require.ErrorAs(t, err, &content)
		require.Equal(t, decode.CodeTooLarge, content.Diagnostic("eval.yaml").Code)
	}

	suite := runnertest.Load(t, r, fixtureSuite)
	sparse(t, filepath.Join(suite.Dir, "fixtures/in.txt"), eval.MaxFixtureBytes+1)
	_, ds, err := eval.Load(suite.File, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.Len(t, ds.Errors(), 1)
	require.Equal(t, decode.CodeTooLarge, ds.Errors()[0].Code)
	require.Contains(t, ds.Errors()[0].Message, "fixtures/in.txt has 1073741825 bytes; the limit is 1 GiB")

	suite = runnertest.Load(t, r, fixtureSuite)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("changed my mind")
	cancel(why)
	_, err = r.Planner().Plan(ctx, suite, record.Request{})
	require.Equal(t, why, err)
}

// A fixture that grows after it was checked is not copied beyond the limit.
func TestAttackHugeFixtureStopsTheTrial(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), func(_ context.Context, tr *executor.Trial) (string, error) {
		_, err := tr.Dir()
		return "", err
	})
	suite := runnertest.Load(t, r, fixtureSuite)
	plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
	require.NoError(t, err)
	sparse(t, filepath.Join(suite.Dir, "fixtures/in.txt"), 200<<30)
	run, err := r.Start(plan)
	require.NoError(t, err)
	<-run.Done()
	trial := runnertest.ResultOf(t, run).Trial(t, "a", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Equal(t, "workspace: file in.txt: file too large: 214748364800 bytes, the limit is 1 GiB", trial.Error)
}
