//go:build agents && linux

package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// If a run's machine lacks the agent, a worker with the agent does its trials. Another worker
// never gets them, the run reports the missing agent of each worker, and no key is sent.
func TestAgentsFleet(t *testing.T) {
	for _, c := range []struct {
		realAgent
		box string
	}{{copilot, "auto"}, {opencode, "off"}} {
		a := c.realAgent
		t.Run(a.name, func(t *testing.T) {
			able := userOf(t, a, "moves/model.yaml")
			bare := func(kv string) bool {
				name, _, _ := strings.Cut(kv, "=")
				return slices.Contains([]string{"PATH", "WAZA_TEST_API_KEY", "OPENAI_API_KEY"}, name) ||
					strings.HasPrefix(name, "OPENCODE_") || strings.HasPrefix(name, "COPILOT_")
			}
			owner := &user{
				home: able.home, state: able.state,
				env: append(slices.DeleteFunc(slices.Clone(able.env), bare), "PATH="+os.Getenv("PATH")),
			}
			idle := startWorker(t, owner.env)
			const fleet = "embedded?slots=0&wait=1s"
			suite := filepath.Join(agentSuites, "moves")
			args := []string{"--fleet", fleet, "--sandbox", c.box, "--executor", "acp", "--agent", a.name, suite}
			r, code := owner.run(t, args...)
			require.Equal(t, 3, code)
			for _, task := range r.Tasks {
				require.Equal(t, record.Errored, task.Verdict)
				require.Contains(t, task.Trial(t, 1).Error, "the agent "+a.name+" is not")
			}

			busy := startWorker(t, able.env)
			r, code = owner.run(t, args...)
			got := map[string]record.Verdict{}
			for _, task := range r.Tasks {
				got[task.ID] = task.Verdict
			}
			if diff := cmp.Diff(movesVerdicts, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
				logTrials(t, r)
			}
			require.Equal(t, 1, code)
			require.Equal(t, "Did 0 trials\n", idle())
			require.Equal(t, "Did 5 trials\n", busy())
			able.requireNoKey(t)
		})
	}
}

// startWorker starts a worker of the embedded fleet. The returned function ends the worker and
// returns its last line.
func startWorker(t *testing.T, env []string) (end func() string) {
	t.Helper()
	cmd := exec.Command("waza", "worker", "--fleet", "embedded", "--slots", "3")
	cmd.Env, cmd.Stderr = env, os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(stdout)
	for range 2 { // its id, and its offer
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.NotContains(t, line, apiKey)
	}
	return func() string {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, cmd.Wait())
		return line
	}
}
