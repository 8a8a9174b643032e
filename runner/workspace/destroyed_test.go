package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// An agent that deleted its workspace made its trials end in error, which does not count,
// instead of failing. An agent that replaced it by a link was graded by the target of the link.
func TestAttackDestroyedWorkspace(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "done.txt"), []byte("done"), 0o600))
	for name, c := range map[string]struct{ command, why string }{
		"deleted": {`echo done > done.txt; cd / && rm -r "$WAZA_WORKSPACE_DIR"`, "deleted its workspace"},
		"linked": {
			`cd / && rm -r "$WAZA_WORKSPACE_DIR" && ln -s ` + elsewhere + ` "$WAZA_WORKSPACE_DIR"`,
			"replaced its workspace by a symbolic link",
		},
		"moved, linked": {
			`echo done > done.txt; mv "$PWD" "$PWD-2" && ln -s "$PWD-2" "$WAZA_WORKSPACE_DIR"`,
			"replaced its workspace by a symbolic link",
		},
		"linked nowhere": {
			`cd / && rm -r "$WAZA_WORKSPACE_DIR" && ln -s /no/such/place "$WAZA_WORKSPACE_DIR"`,
			"replaced its workspace by a symbolic link",
		},
		"a file": {`cd / && rm -r "$WAZA_WORKSPACE_DIR" && echo done > "$WAZA_WORKSPACE_DIR"`, "replaced its workspace by a file"},
		"made once more": {
			`mkdir "$PWD-2"; echo done > "$PWD-2/done.txt"; cd / && rm -r "$WAZA_WORKSPACE_DIR" && mv "$WAZA_WORKSPACE_DIR-2" "$WAZA_WORKSPACE_DIR"`,
			"replaced its workspace by another directory",
		},
		"before the next": {`test "$WAZA_TURN" = 1 || exit 1; cd / && rm -r "$WAZA_WORKSPACE_DIR"`, "deleted its workspace"},
		"locked":          {`echo done > done.txt; chmod 0 .`, ""},
	} {
		for graders, list := range map[string]string{
			"file":    "[{name: g, type: file, config: {must_exist: [done.txt]}}]",
			"absence": "[{name: g, type: file, config: {must_not_exist: [other.txt]}}]",
			"program": "[{name: g, type: program, config: {command: test, args: [-e, done.txt], trust_workspace: true}}]",
			"none":    "[]",
		} {
			t.Run(name+" "+graders, func(t *testing.T) {
				t.Parallel()
				followUp := ""
				if strings.HasPrefix(name, "before") {
					followUp = ", follow_up_prompts: [y]"
				}
				r, err := runner.New(runner.Options{StateDir: t.TempDir()})
				require.NoError(t, err)
				files := fmt.Sprintf("\n-- eval.yaml --\nname: d\nconfig: {executor: command, sandbox: off, command: [sh, "+
					"agent.sh]}\ngraders: %s\ntasks: [{id: a, inputs: {prompt: x%s}}]\n-- agent.sh --\ncat > /dev/null\n%s\n",
					list, followUp, c.command)
				live := runnertest.Start(t, r, files, record.Request{})
				<-live.Done()
				requireDestroyed(t, live, c.why)
				runnertest.GradeAgain(t, r, live.ID(), files, regrade.GradeOptions{})
				requireDestroyed(t, runnertest.Reopened(t, r, live.ID()), c.why)
			})
		}
	}
}

// requireDestroyed checks that the only trial failed for that reason, or passed when the reason
// is empty.
func requireDestroyed(t *testing.T, h record.Handle, why string) {
	t.Helper()
	require.NoError(t, h.Trials(func(_ int, res *record.Trial) error {
		if why == "" {
			require.Equal(t, record.Passed, res.Verdict, "%+v", res)
			return nil
		}
		require.Equal(t, record.Failed, res.Verdict, "%+v", res)
		require.InDelta(t, 0, *res.Score, 0)
		for _, g := range res.Graders {
			require.Equal(t, "the agent "+why, g.Feedback)
		}
		if len(res.Graders) == 0 {
			require.Equal(t, "the agent "+why, res.Error)
		}
		return nil
	}))
}
