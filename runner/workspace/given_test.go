package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A snapshot records the fate of the task's files, and their initial contents.
func TestSnapshotOfGivenFiles(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, `
-- fixtures/data/same.txt --
same
-- fixtures/edited.txt --
one
-- fixtures/gone.txt --
gone
-- fixtures/swapped.txt --
swapped
-- fixtures/node_modules/lib.js --
lib
-- eval.yaml --
name: files
config:
  executor: command
  command: "echo two >> edited.txt; echo {{trial}} > new.txt; rm gone.txt swapped.txt; mkdir swapped.txt; rm -r node_modules/lib.js"
tasks:
  - id: a
    inputs:
      prompt: x
      files: [data/same.txt, ./edited.txt, gone.txt, swapped.txt, node_modules/lib.js, {path: filled.txt, content: "trial {{trial}}"}]
    graders:
      - {type: file, config: {created: true, must_exist: [new.txt], must_not_exist: [AGENTS.md, SKILL.md, in.txt, kept.txt]}}
`, record.Request{})
	<-live.Done()
	trial := runnertest.ResultOf(t, live).Trial(t, "a", 1)
	require.Equal(t, record.Passed, trial.Verdict, trial.Graders)
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	for _, h := range []record.Handle{live, h} {
		require.Empty(t, cmp.Diff(strings.TrimLeft(`
data 
data/same.txt same
edited.txt changed "one\n" -> "one\ntwo\n"
filled.txt same
new.txt 
node_modules 
swapped.txt changed "swapped\n" -> dir
removed gone.txt changed "gone\n"
`, "\n"), givenOf(t, h)))
	}
}

// Files that an executor puts into a workspace before its agent starts are not the agent's.
func TestSnapshotOfPreparedFiles(t *testing.T) {
	t.Parallel()
	prepares := runnertest.Agent(func(_ context.Context, trial *executor.Trial) (string, error) {
		dir, err := trial.Dir()
		if err != nil {
			return "", err
		}
		for _, name := range []string{"AGENTS.md", "SKILL.md", "gone.md"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
				return "", err
			}
		}
		trial.Prepared()
		for _, name := range []string{"AGENTS.md", "in.txt", "new.txt"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("by the agent"), 0o600); err != nil {
				return "", err
			}
		}
		return "done", os.Remove(filepath.Join(dir, "gone.md"))
	})
	r := runnertest.AgentRunner(t, t.TempDir(), prepares)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: files
config: {executor: agent}
tasks:
  - id: a
    inputs: {prompt: x, files: [{path: in.txt, content: given}, {path: kept.txt, content: kept}]}
    graders:
      - {type: file, config: {must_exist: [new.txt]}}
`, record.Request{})
	<-live.Done()
	require.Empty(t, cmp.Diff(strings.TrimLeft(`
AGENTS.md changed "AGENTS.md" -> "by the agent"
SKILL.md same
in.txt changed "given" -> "by the agent"
kept.txt same
new.txt 
removed gone.md changed "gone.md"
`, "\n"), givenOf(t, live)))
}

// givenOf returns the fate of the files of a run's only trial.
func givenOf(t *testing.T, h record.Handle) string {
	t.Helper()
	blobs, err := h.Blobs()
	require.NoError(t, err)
	defer blobs.Close()
	var b strings.Builder
	tell := func(prefix string, e record.SnapshotEntry) {
		fmt.Fprintf(&b, "%s%s %s", prefix, e.Path, e.Given)
		if e.Before != nil {
			before, err := blobs.Get(*e.Before)
			require.NoError(t, err)
			fmt.Fprintf(&b, " %q", before)
			switch {
			case e.Blob != nil:
				after, err := blobs.Get(*e.Blob)
				require.NoError(t, err)
				fmt.Fprintf(&b, " -> %q", after)
			case prefix == "":
				fmt.Fprintf(&b, " -> %s", e.Type)
			}
		}
		b.WriteByte('\n')
	}
	require.NoError(t, h.Trials(func(_ int, trial *record.Trial) error {
		require.NotNil(t, trial.Workspace, trial.Error)
		for _, e := range trial.Workspace.Entries {
			tell("", e)
		}
		for _, e := range trial.Workspace.Removed {
			tell("removed ", e)
		}
		return nil
	}))
	return b.String()
}
