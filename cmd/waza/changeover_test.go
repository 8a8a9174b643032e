package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// changeover has a script for each key of suites of microsoft/waza: a suite with the key, the
// output of waza validate and the result of a run.
var changeover = filepath.Join(repositoryRoot, "testdata", "changeover")

// changedOver lists the keys and habits of these suites.
var changedOver = strings.Fields(`
	unknown-key executor-mock executor-names empty-prompt max_tool_calls max_tokens max_duration_ms max_calls file-paths two-places
	inputs-files unnamed-graders same-named-graders unknown-grader grader-types weight variables fixture-text expected should_trigger
	outcomes metrics workers allow_only expect_tools reasoning_effort golden adversarial inject_skill_body instruction_files
	context-fixture prompt_file skills forbidden_skills tasks-and-hooks trigger_tests init new-eval repos task-instruction_files responder checkpoints mcp_mocks mocks agent-file`)

func TestChangeover(t *testing.T) {
	t.Parallel()
	for _, key := range changedOver {
		require.FileExists(t, filepath.Join(changeover, key+".txtar"))
	}
	testscript.Run(t, scripts(changeover))
}

// waza validate and waza run accept existing suites, whatever the results of their tasks. The
// folder formats holds suites in formats of other tools.
func TestSuitesOfTheFieldRun(t *testing.T) {
	t.Parallel()
	suites, err := filepath.Abs(filepath.Join(repositoryRoot, "..", "shared", "suites"))
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(suites, "*", "*", "eval.yaml"))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no shared suites beside the checkout")
	}
	for _, file := range found {
		if strings.HasPrefix(file, filepath.Join(suites, "formats")) {
			continue
		}
		for _, args := range [][]string{{"validate", file}, {"run", file, "--executor", "mock"}} {
			cmd := exec.CommandContext(t.Context(), "waza", args...)
			cmd.Env = append(os.Environ(), "WAZA_STATE="+t.TempDir())
			out, err := cmd.CombinedOutput()
			var ended *exec.ExitError
			if err != nil && (!errors.As(err, &ended) || args[0] == "validate" || ended.ExitCode() == 2) {
				t.Errorf("waza %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
}
