package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/sandbox"
)

// stepsTests are verifiers for the task harbor-steps-data, which has none.
var stepsTests = map[string]string{
	"tests/helpers.sh": "says() { [ \"$(/app/greet.sh)\" = \"$1\" ] && echo 1 || echo 0; }\n",
	"steps/scaffold/tests/test.sh": "#!/bin/sh\n. /tests/helpers.sh\n[ ! -e /tests/expected.txt ] && [ \"$GREETER_PROJECT\" = hello-multi-step-full ] || exit\n" +
		"says hello >/logs/verifier/reward.txt\n",
	"steps/implement/workdir/setup.sh": "#!/bin/sh\ncp config.txt given.txt\n",
	"steps/implement/tests/test.sh": "#!/bin/sh\n. /tests/helpers.sh\ncmp given.txt config.txt && [ \"$(cat /tests/expected.txt)\" = \"$EXPECTED_GREETING\" ] || exit\n" +
		"[ \"$(says \"$EXPECTED_GREETING\")\" = 1 ] && echo 1 >/logs/verifier/reward.txt && exit\n" +
		"grep -q Hello greet.sh && echo 0.5 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n",
	"steps/document/tests/test.sh": "#!/bin/sh\ngrep -q config.txt README.md && echo '{\"reward\": 1, \"style\": 0.5}' >/logs/verifier/reward.json && exit\n" +
		"echo 0 >/logs/verifier/reward.txt\n",
}

// A task with steps is one conversation with a verifier after each step. Its reward is the mean of those
// of the steps that were done.
func TestHarborSteps(t *testing.T) {
	t.Parallel()
	if err := sandbox.Detect().Namespaces; err != nil {
		t.Skip("no sandbox of namespaces: ", err)
	}
	const (
		hello    = "#!/bin/sh\necho hello\n"
		greets   = "#!/bin/sh\necho \"Hello, $(cat /app/config.txt)!\"\n"
		tries    = "#!/bin/sh\necho Hello\n"
		mentions = "# greet.sh\nReads config.txt\n"
	)
	for name, c := range map[string]struct {
		scripts []string // greet.sh after each step; the last step writes README.md
		edit    [2]string
		verdict record.Verdict
		score   float64
		rewards string
	}{
		"all steps":      {[]string{hello, greets, mentions}, [2]string{}, record.Passed, 1, "1 1 1"},
		"a part":         {[]string{hello, tries, mentions}, [2]string{}, record.Failed, 2.5 / 3, "1 0.5 1"},
		"the first ends": {[]string{"#!/bin/sh\n"}, [2]string{}, record.Failed, 0, "0"},
		"the next ends":  {[]string{hello, hello}, [2]string{}, record.Failed, 0.5, "1 0"},
		"the last":       {[]string{hello, greets, "# greet.sh\n"}, [2]string{}, record.Failed, 2.0 / 3, "1 1 0"},
		"final":          {[]string{hello, tries, mentions}, [2]string{"artifacts =", "multi_step_reward_strategy = \"final\"\nartifacts ="}, record.Passed, 1, "1 0.5 1"},
		"by name":        {[]string{hello, greets}, [2]string{"min_reward = 0.5", "min_reward = {reward = 0.5, style = 0.1}"}, record.Passed, 1, "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trial := runSteps(t, c.edit, func(dir string, num int) error {
				if num > len(c.scripts) {
					return fmt.Errorf("there must be no step %d", num)
				}
				file := "greet.sh"
				if num == 3 {
					file = "README.md"
				}
				return os.WriteFile(filepath.Join(dir, file), []byte(c.scripts[num-1]), 0o755)
			})
			require.Equal(t, c.verdict, trial.Verdict, "%s %+v", trial.Error, trial.Graders)
			require.InDelta(t, c.score, *trial.Score, 1e-9)
			var rewards []string
			for _, g := range trial.Graders {
				if g.AfterTurn > 0 {
					rewards = append(rewards, fmt.Sprint(g.Details.(map[string]any)["rewards"].(map[string]any)["reward"]))
				}
			}
			require.Equal(t, c.rewards, strings.Join(rewards, " "))
		})
	}
}

// A health check or setup.sh that fails ends the trial in an error.
func TestHarborStepsBreak(t *testing.T) {
	t.Parallel()
	if err := sandbox.Detect().Namespaces; err != nil {
		t.Skip("no sandbox of namespaces: ", err)
	}
	nothing := func(string, int) error { return nil }
	trial := runSteps(t, [2]string{"min_reward = 1.0", ""}, nothing)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Contains(t, trial.Error, "the health check failed")
	trial = runSteps(t, [2]string{"name = \"scaffold\"\n", "name = \"scaffold\"\nhealthcheck = {command = \"exit 1\", interval_sec = 0.01}\n"}, nothing)
	require.Contains(t, trial.Error, "the health check failed")
	require.Empty(t, trial.Transcript)
}

// runSteps runs the task harbor-steps-data with an edit of its task.toml and an agent that changes the
// workspace at each step.
func runSteps(t *testing.T, edit [2]string, agent func(dir string, num int) error) *record.Trial {
	t.Helper()
	from := filepath.Join("..", "..", "shared", "suites", "formats", "harbor-steps-data")
	if _, err := os.Stat(from); err != nil {
		t.Skip("the published suites are not beside this checkout")
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	for name, content := range stepsTests {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	file := filepath.Join(dir, "task.toml")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(data), edit[0])
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(data), edit[0], edit[1], 1)), 0o644))
	r := runnertest.AgentRunner(t, t.TempDir(), func(ctx context.Context, trial *executor.Trial) (string, error) {
		work, err := trial.Dir()
		if err != nil {
			return "", err
		}
		trial.Transcript.Message("user", trial.Prompt)
		return "done", trial.Converse(ctx, func(_ context.Context, num int, _ string) (executor.Outcome, error) {
			return executor.Outcome{Output: "done"}, agent(work, num)
		})
	})
	req := record.Request{Executor: "agent"}
	p, err := r.Planner().Prepare(t.Context(), file, req, plan.PrepareOptions{})
	require.NoError(t, err)
	require.Empty(t, p.All().Errors())
	run, err := r.Start(p.Plan)
	require.NoError(t, err)
	<-run.Done()
	return runnertest.ResultOf(t, run).Trial(t, p.Suite.Tasks[0].ID, 1)
}
