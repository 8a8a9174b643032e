//go:build agents && linux

package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/sandbox"
)

// Real agents do a suite in sandboxes: with an open network and their login, with nothing but their API,
// and with a key that only the proxy has.
func TestAgentsSandbox(t *testing.T) {
	if err := sandbox.Detect().Strict(); err != nil {
		t.Skipf("skipped: this machine has no strict sandboxes: %v", err)
	}
	for _, a := range []realAgent{copilot, opencode, gemini, claudeCode, codex} {
		t.Run(a.name, func(t *testing.T) {
			t.Run("auto", func(t *testing.T) {
				u := userOf(t, a, "moves/model.yaml")
				login := filepath.Join(u.home, a.login)
				require.NoError(t, os.MkdirAll(filepath.Join(login, "skills", "mine"), 0o700)) // which the sandbox hides
				require.NoError(t, os.WriteFile(filepath.Join(login, "skills", "mine", "SKILL.md"), []byte("---\nname: mine\ndescription: x\n---\n"), 0o600))
				r := doMoves(t, u, a, map[string]record.Verdict{
					"uses-a-tool": record.Passed, "follows-up": record.Passed, "wrong-reply": record.Failed,
				}, "auto", surroundings.SandboxAuto)
				require.Empty(t, refusals(r))
				kept, err := os.ReadDir(login)
				require.NoError(t, err)
				require.NotEmpty(t, kept, "the agent keeps its files in %s", login)
			})
			t.Run("strict", func(t *testing.T) {
				u := userOf(t, a, "moves/model.yaml")
				host := u.nameModel(t)
				r := doMoves(t, u, a, map[string]record.Verdict{"uses-a-tool": record.Passed},
					`{mode: strict, network: ["`+host+`"]}`, surroundings.SandboxStrict)
				require.Equal(t, []string{host}, r.Sandbox.Network.Hosts)
				for _, text := range refusals(r) {
					require.NotContains(t, text, host)
					t.Log(text) // of updates, plugins and statistics
				}
			})
			t.Run("keys", func(t *testing.T) {
				u := userOf(t, a, "moves/model.yaml")
				r := doMoves(t, u, a, map[string]record.Verdict{"uses-a-tool": record.Passed},
					"{mode: strict, network: none, keys: proxy}", surroundings.SandboxStrict)
				require.Equal(t, surroundings.Network{}, r.Sandbox.Network)
			})
		})
	}
}

// doMoves lets an agent do tasks of the suite moves in a sandbox, and checks their verdicts and the
// record.
func doMoves(t *testing.T, u *user, a realAgent, want map[string]record.Verdict, box string, mode surroundings.SandboxMode) *recordtest.Result {
	t.Helper()
	args := append(slices.Clone(a.chosen), "--sandbox", box, filepath.Join(agentSuites, "moves"))
	wantCode := 0
	for id, verdict := range want {
		args = append(args, "--task", id)
		if verdict == record.Failed {
			wantCode = 1
		}
	}
	r, code := u.run(t, args...)
	got := map[string]record.Verdict{}
	for _, task := range r.Tasks {
		got[task.ID] = task.Verdict
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
		logTrials(t, r)
	}
	require.Equal(t, wantCode, code)
	require.NotNil(t, r.Sandbox)
	require.Equal(t, mode, r.Sandbox.Mode)
	require.Equal(t, record.TierNamespaces, r.Sandbox.Tier)
	require.Equal(t, record.AgentPerTrial, r.Sandbox.Agent)
	calls := callsOf(r.Trial(t, "uses-a-tool", 1))
	require.Len(t, calls, 1)
	require.Equal(t, "completed", calls[0].Status, "%s", calls[0].Result)
	return r
}

// refusals returns what the sandboxes of a run refused.
func refusals(r *recordtest.Result) []string {
	var texts []string
	for _, task := range r.Tasks {
		for _, trial := range task.Trials {
			for _, e := range trial.Transcript {
				if e.Type == record.EntrySandbox {
					texts = append(texts, e.Text)
				}
			}
		}
	}
	return texts
}

// nameModel gives the model's address a name instead of a number, and returns it with the port.
func (u *user) nameModel(t *testing.T) string {
	t.Helper()
	host := ""
	for i, kv := range u.env {
		u.env[i] = strings.ReplaceAll(kv, "http://127.0.0.1:", "http://localhost:")
		if address, ok := strings.CutPrefix(u.env[i], "OPENAI_BASE_URL=http://"); ok {
			host, _, _ = strings.Cut(address, "/")
		}
	}
	require.NotEmpty(t, host)
	return host
}
