package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// openSandboxes gives an environment sandboxes of namespaces.
func openSandboxes(t *testing.T, env *grader.Env) {
	t.Helper()
	openLimited(t, env, sandbox.Policy{})
}

// openLimited is like openSandboxes, with a policy.
func openLimited(t *testing.T, env *grader.Env, policy sandbox.Policy) {
	t.Helper()
	if err := sandbox.Detect().Namespaces; err != nil {
		t.Skip("no sandbox of namespaces: ", err)
	}
	var err error
	env.Sandboxes, err = sandbox.Open(record.TierNamespaces, policy)
	require.NoError(t, err)
	t.Cleanup(env.Sandboxes.Close)
}

// usualTest is the test.sh of the Terminal-Bench family.
const usualTest = `#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.7.13/install.sh | sh
source $HOME/.local/bin/env
uvx -p 3.13 -w pytest==8.4.1 --with pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then echo 1 >/logs/verifier/reward.txt; else echo 0 >/logs/verifier/reward.txt; fi
`

// usualVerdict is the verdict of usualTest: a machine without pytest cannot run it.
func usualVerdict() gradertest.Verdict {
	if exec.Command("python3", "-I", "-c", "import pytest").Run() != nil {
		return gradertest.Errors("pytest is not installed")
	}
	return gradertest.Passes()
}

func TestReward(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, config string
		want           gradertest.Verdict
	}{
		"one":            {"echo 1 >/logs/verifier/reward.txt", "", gradertest.Passes()},
		"exit code":      {"echo 1.0 >/logs/verifier/reward.txt; exit 3", "", gradertest.Passes()},
		"zero":           {"echo said; echo 0 >/logs/verifier/reward.txt", "", gradertest.Scores(0, "the reward is 0, and 1 passes", "said")},
		"part":           {"echo 0.5 >/logs/verifier/reward.txt", "", gradertest.Scores(0.5, "the reward is 0.5")},
		"none":           {"echo gone", "", gradertest.Errors("the verifier wrote neither /logs/verifier/reward.txt nor reward.json: gone")},
		"empty":          {": >/logs/verifier/reward.txt", "", gradertest.Errors("reward.txt: the file is empty")},
		"not a number":   {"echo nan >/logs/verifier/reward.txt", "", gradertest.Errors(`expected one number, got "nan"`)},
		"json wins":      {"echo 1 >/logs/verifier/reward.txt; echo '{\"reward\": 0, \"x\": 1}' >/logs/verifier/reward.json", "", gradertest.Scores(0, "the reward is 0")},
		"bad json wins":  {"echo 1 >/logs/verifier/reward.txt; echo 7 >/logs/verifier/reward.json", "", gradertest.Errors("reward.json: expected a JSON object of numbers")},
		"least":          {"echo '{\"a\": 1, \"b\": 0.25}' >/logs/verifier/reward.json", "", gradertest.Scores(0.25, "the reward is 0.25")},
		"link":           {"ln -s /etc/hostname /logs/verifier/reward.txt", "", gradertest.Errors("reward.txt: ")},
		"tests":          {"[ $(cat /tests/data/want.txt) = right ] && [ $(cat got.txt) = right ] && echo 1 >/logs/verifier/reward.txt", "", gradertest.Passes()},
		"variable":       {"echo $R >/logs/verifier/reward.txt", "env: {R: '${WAZA_NO_SUCH:-1}'}", gradertest.Passes()},
		"no variable":    {"echo 1 >/logs/verifier/reward.txt", "env: {R: '${WAZA_NO_SUCH}'}", gradertest.Errors("WAZA_NO_SUCH is not set")},
		"timeout":        {"sleep 600", "timeout: 0.2", gradertest.Errors("ran longer than its timeout of 200ms")},
		"interpreter":    {"#!/usr/bin/env no-such-shell\necho 1 >/logs/verifier/reward.txt", "", gradertest.Errors("the program no-such-shell is not installed")},
		"package":        {"apt-get update; apt-get install -y no-such-package; echo 0 >/logs/verifier/reward.txt", "", gradertest.Errors("the package no-such-package is not installed")},
		"tool of uv":     {"uvx no-such-tool; echo 0 >/logs/verifier/reward.txt", "", gradertest.Errors("has no replacement for the tool no-such-tool")},
		"python":         {"python3 /tests/check.py", "", gradertest.Passes()},
		"curl":           {"apt-get install -y curl; curl -LsSf https://astral.sh/uv/0.7.13/install.sh | sh && . $HOME/.local/bin/env && echo 1 >/logs/verifier/reward.txt", "", gradertest.Passes()},
		"usual":          {usualTest, "", usualVerdict()},
		"another folder": {"[ $PWD = /app ] && [ $(cat /app/got.txt) = right ] && echo 1 >/logs/verifier/reward.txt", "workdir: /app", gradertest.Passes()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "python" {
				gradertest.NeedPython(t)
			}
			script := c.script
			if script[0] != '#' {
				script = "#!/bin/sh\n" + script
			}
			b, env := gradertest.Bind(t, "reward", "tests: [tests]\n"+c.config, map[string]string{
				"tests/test.sh": script, "tests/data/want.txt": "right\n", "tests/test_outputs.py": "def test_got():\n    assert open('got.txt').read() == 'right\\n'\n",
				"tests/check.py": "open('/logs/verifier/reward.txt', 'w').write('1' if open('got.txt').read() == 'right\\n' else '0')\n",
			})
			openSandboxes(t, env)
			s := gradertest.Subject("", gradertest.Workspace(t, map[string]string{"got.txt": "right\n"}), func(s *grader.Subject) {
				s.Temp = t.TempDir()
				s.Env = append(os.Environ(), "HOME="+filepath.Join(s.Temp, "home"))
				if name == "another folder" {
					s.Task.Sandbox = surroundings.TaskSandbox{Paths: map[string]string{"/app": "."}}
				}
			})
			gradertest.RequireVerdict(t, b, s, c.want)
		})
	}
}

// The least reward to pass is that of the option, and the score is the reward.
func TestPassReward(t *testing.T) {
	t.Parallel()
	o := &RewardOptions{PassReward: 1}
	require.False(t, o.score(map[string]float64{"reward": 0.75}, "").Passed)
	o.SetPassReward(0.5)
	score := o.score(map[string]float64{"reward": 0.75, "other": 0}, "")
	require.True(t, score.Passed)
	require.InDelta(t, 0.75, score.Score, 0)
	high := o.score(map[string]float64{"reward": 3}, "")
	require.InDelta(t, 1, high.Score, 0)
	require.Equal(t, RewardDetails{Rewards: map[string]float64{"reward": 3}}, high.Details)
}

// Rewards by name replace the least reward to pass.
func TestPassRewards(t *testing.T) {
	t.Parallel()
	o := &RewardOptions{PassReward: 1, PassRewards: map[string]float64{"a": 0.5, "b": 0}}
	require.True(t, o.score(map[string]float64{"reward": 0, "a": 0.5, "b": 0}, "").Passed)
	require.Equal(t, `the reward "a" is 0.25, and 0.5 passes: said`, o.score(map[string]float64{"reward": 1, "a": 0.25, "b": 1}, "said").Feedback)
	require.Equal(t, `the verifier gave no reward "b", and 0 passes`, o.score(map[string]float64{"reward": 1, "a": 1}, "").Feedback)
	o.PassRewards = map[string]float64{}
	require.True(t, o.score(map[string]float64{"reward": 0}, "").Passed)
	o.SetPassReward(1)
	require.True(t, o.score(map[string]float64{"reward": 0}, "").Passed)
}

// Rewards of checkpoints are combined per name, also those that were read from a record. Other results
// and those without a reward do not count.
func TestCombine(t *testing.T) {
	t.Parallel()
	reached := []record.Grade{
		{Type: "reward", AfterTurn: 1, Details: RewardDetails{Rewards: map[string]float64{"reward": 1, "speed": 0.5}}},
		{Type: "text", AfterTurn: 1, Details: map[string]any{"rewards": map[string]any{"reward": 0.0}}},
		{Type: "reward", AfterTurn: 2, NeedsReview: true},
		{Type: "reward", AfterTurn: 3, Details: map[string]any{"rewards": map[string]any{"reward": 0.25}}},
	}
	mean, err := (&RewardOptions{PassReward: 0.6, Combine: "mean"}).combine(reached)
	require.NoError(t, err)
	require.Equal(t, RewardDetails{Rewards: map[string]float64{"reward": 0.625, "speed": 0.25}}, mean.Details)
	require.InDelta(t, 0.625, mean.Score, 0)
	require.True(t, mean.Passed)
	final, err := (&RewardOptions{PassReward: 0.6, Combine: "final"}).combine(reached)
	require.NoError(t, err)
	require.InDelta(t, 0.25, final.Score, 0)
	require.False(t, final.Passed)
	_, err = (&RewardOptions{Combine: "mean"}).combine(reached[1:3])
	require.ErrorContains(t, err, "no checkpoint gave a reward")
	lost := record.Grade{Name: "turn 4: tests", Type: "reward", AfterTurn: 4, Optional: true, Error: "lost"}
	_, err = (&RewardOptions{Combine: "mean"}).combine(append(reached, lost))
	require.ErrorContains(t, err, "turn 4: tests: lost")
}

func TestRewardChecks(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"{}":                                  "nothing to run: give tests",
		"tests: [none]":                       "no such folder: none",
		"tests: [empty]":                      "no folder of tests contains test.sh",
		"tests: [t]\nworkdir: app":            "workdir must be an absolute path",
		"tests: [../../..]":                   "tests[0]: ",
		"tests: [t]\ncombine: mean":           "a grader has tests or combine, not both",
		"combine: most":                       "combine must be one of mean, final",
		"tests: [t]\npass_rewards: {a: .nan}": "pass_rewards.a must be a number",
	} {
		_, found := gradertest.Load(t, "reward", config, map[string]string{"t/test.sh": "", "empty/x": ""})
		require.NotEmpty(t, found.Errors(), config)
		require.Contains(t, found.Errors()[0].Message, want)
	}
}

// In a container, the verifier has what the agent changed in its container, except for tests and rewards,
// and real programs. The engine is a stand-in, see runner/sandbox/internal/container/testdata/engine.
func TestRewardInContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the stand-in for docker needs the root user to change the root of programs")
	}
	if err := exec.Command("unshare", "--mount", "--propagation", "private", "true").Run(); err != nil {
		t.Skip("the stand-in for docker needs mount namespaces: ", err)
	}
	script, err := filepath.Abs("../../sandbox/internal/container/testdata/engine")
	require.NoError(t, err)
	bin, state := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(script, filepath.Join(bin, "docker")))
	require.NoError(t, os.WriteFile(filepath.Join(state, "rooted"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(state, "images", "base", "app"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(state, "images", "base", "app", "of-image"), nil, 0o600))
	t.Setenv("STANDIN", state)
	t.Setenv("WAZA_CONTAINER_RUNTIME", filepath.Join(bin, "docker"))
	b, env := gradertest.Bind(t, "reward", "tests: [tests]\nworkdir: /app", map[string]string{
		"tests/test.sh": "#!/bin/sh\nset -e\n[ $PWD = /app ]\n[ -e of-image ]\n[ -e given ]\n[ -e /srv/installed ]\n[ ! -e /tests/planted ]\n" +
			"[ ! -e /logs/verifier/reward.txt ]\n[ -e made ]\necho 1 >/logs/verifier/reward.txt\n",
	})
	env.Sandboxes, err = sandbox.Open(record.TierContainer, sandbox.Policy{Image: surroundings.SandboxImage{Image: "x"}})
	require.NoError(t, err)
	defer env.Sandboxes.Close()
	workspace := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(workspace, "given"), nil, 0o600))
	task := surroundings.TaskSandbox{Paths: map[string]string{"/app": "."}}
	agent := func(line string) {
		t.Helper()
		environ := append(os.Environ(), "HOME=/root")
		require.NoError(t, proc.Run(t.Context(), proc.Command{
			Args: []string{"sh", "-c", line}, Dir: workspace, Env: environ,
			Sandbox: env.Sandboxes.For(sandbox.View{Env: environ, Write: []string{workspace}, Task: task, Workspace: workspace}),
		}))
	}
	subject := func(s *grader.Subject) {
		s.Temp, s.Env, s.Task.Sandbox = t.TempDir(), append(os.Environ(), "HOME=/root"), task
		s.Dir = func() (string, error) { return workspace, nil }
	}
	agent("mkdir -p /srv /tests /logs/verifier; touch /srv/installed /tests/planted; echo 1 >/logs/verifier/reward.txt")
	gradertest.RequireVerdict(t, b, gradertest.Subject("", subject),
		gradertest.Errors("the verifier wrote neither /logs/verifier/reward.txt nor reward.json"))
	agent("touch made")
	gradertest.RequireVerdict(t, b, gradertest.Subject("", subject), gradertest.Passes())
	agent("rm -rf /logs; mkdir verifier; echo '{\"reward\": 1}' >verifier/reward.json; ln -s app /logs; rm made")
	gradertest.RequireVerdict(t, b, gradertest.Subject("", subject),
		gradertest.Errors("the verifier wrote neither /logs/verifier/reward.txt nor reward.json"))
	require.NoError(t, os.WriteFile(filepath.Join(state, "replaced-rm"), nil, 0o600))
	gradertest.RequireVerdict(t, b, gradertest.Subject("", subject), gradertest.Scores(0, "an earlier program changed the container"))
	require.NoError(t, os.Remove(filepath.Join(state, "replaced-rm")))
	require.NoError(t, os.WriteFile(filepath.Join(state, "broken-rm"), nil, 0o600))
	gradertest.RequireVerdict(t, b, gradertest.Subject("", subject), gradertest.Scores(0, "rm works in its image"))
	require.NoError(t, os.Remove(filepath.Join(state, "broken-rm")))
	fault := filepath.Join(state, "fails-cp")
	require.NoError(t, os.WriteFile(fault, []byte("no space left"), 0o600))
	gradertest.RequireVerdict(t, b, gradertest.Subject("", subject), gradertest.Errors("cannot be copied into the container"))
	require.NoError(t, os.Rename(fault, filepath.Join(state, "fails-once-cp")))
	gradertest.RequireVerdict(t, b, gradertest.Subject("", subject), gradertest.Errors("cannot be copied into the container"))
	gradertest.RequireVerdict(t, b, gradertest.Subject("", func(s *grader.Subject) {
		subject(s)
		s.Missing = func(string) error { return nil }
	}), gradertest.Errors("the verifier needs the container of the agent, which is not in the record"))
	env.Sandboxes.Forget(workspace)
}
