//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A worker serves what it counts, and whether it reaches its fleet, to clients that do not come
// by another name.
func TestWorkerMetrics(t *testing.T) {
	t.Parallel()
	env := environment(t)
	c := startWaza(t, env, "worker", "--fleet", "embedded", "--slots", "2", "--metrics", "127.0.0.1:0")
	_, address, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(c.says(t, "metrics at http://")), "/metrics"), "http://")
	require.True(t, ok)
	get := func(path, host string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		require.NoError(t, err)
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	code, said := get("/healthz", "")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", said)
	code, _ = get("/metrics", "attacker.example")
	require.Equal(t, http.StatusForbidden, code)

	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite,
		[]byte("name: n\nconfig: {executor: mock, trials_per_task: 6}\ntasks: [{id: a, prompt: x, expected: {output_contains: [x]}}]\n"),
		0o600))
	run := exec.Command(wazaPath(t), "run", suite, "--fleet", "embedded?slots=0")
	run.Env = env
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	want := []string{
		`waza_worker_trials_total{verdict="passed"} 6`, "waza_worker_slots 2", "waza_worker_slots_busy 0",
		`waza_worker_order_seconds_count{phase="send"} 6`,
	}
	require.Eventually(t, func() bool {
		_, text := get("/metrics", "")
		return !slices.ContainsFunc(want, func(line string) bool { return !strings.Contains(text, line+"\n") })
	}, patience, 10*time.Millisecond)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Zero(t, c.exitCode(t))

	taken := startWaza(t, env, "worker", "--fleet", "embedded", "--metrics", "256.0.0.1:1")
	require.Contains(t, taken.says(t, "--metrics"), "256.0.0.1")
	require.Equal(t, 2, taken.exitCode(t))
}
