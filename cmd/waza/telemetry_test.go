//go:build unix

package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fetch returns the content of a URL. An empty token sends none.
func fetch(t *testing.T, url, token string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return b
}

// scrape returns the samples of a daemon's metrics, by name and labels.
func scrape(t *testing.T, address, token string) map[string]float64 {
	t.Helper()
	samples := map[string]float64{}
	for line := range strings.Lines(string(fetch(t, "http://"+address+"/metrics", token))) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") || !strings.HasPrefix(name, "waza_") {
			continue
		}
		sample, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err, line)
		samples[name] = sample
	}
	return samples
}

// A daemon exports metrics of its runs and requests to Prometheus while they are active.
func TestDaemonMetrics(t *testing.T) {
	t.Parallel()
	suite, pids := sleepers(t, 2)
	d := startDaemon(t, "--metrics", "127.0.0.1:0")
	address := d.address(t)
	before := scrape(t, address, "")
	require.Zero(t, before[`waza_runs_total{status="completed"}`])
	require.Zero(t, before[`waza_trials_total{verdict="passed"}`])
	require.Zero(t, before["waza_runs_running"])
	require.Eventually(t, func() bool { // the address can be printed before the server is ready
		return scrape(t, address, "")["waza_rpc_connections"] == 1
	}, patience, 10*time.Millisecond)

	d.send(t, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":%q}}`, suite)
	d.send(t, `{"jsonrpc":"2.0","id":2,"method":"no.such.method"}`)
	d.send(t, `{"jsonrpc":"2.0","id":3,"method":"run.status","params":{"runId":"none"}}`)
	sleeping(t, pids, 2)
	var during map[string]float64
	require.Eventually(t, func() bool {
		during = scrape(t, address, "")
		return during["waza_trials_running"] == 2 && during["waza_rpc_subscriptions"] == 1
	}, patience, 10*time.Millisecond, "%v", during)
	require.InDelta(t, 1, during["waza_runs_running"], 0)
	require.Positive(t, during["waza_journal_lines_total"])
	require.Positive(t, during["waza_journal_bytes_total"])
	require.InDelta(t, 1, during[`waza_rpc_requests_total{code="0",method="eval.run"}`], 0)
	require.InDelta(t, 1, during[`waza_rpc_requests_total{code="-32601",method="unknown"}`], 0)

	reply := readMessage(t, d.out)
	for string(reply.ID) != "1" {
		reply = readMessage(t, d.out)
	}
	var started struct{ RunID string }
	require.NoError(t, json.Unmarshal(reply.Result, &started))
	d.send(t, `{"jsonrpc":"2.0","id":4,"method":"run.cancel","params":{"runId":%q}}`, started.RunID)
	require.Eventually(t, func() bool {
		after := scrape(t, address, "")
		return after["waza_runs_running"] == 0 && after["waza_trials_running"] == 0 && after[`waza_runs_total{status="cancelled"}`] == 1 &&
			after[`waza_trials_total{verdict="cancelled"}`] == 2 && after["waza_trial_duration_seconds_count"] == 2
	}, patience, 10*time.Millisecond)
	require.NoError(t, d.in.Close())
	require.Zero(t, d.exitCode(t))
}

// Metrics are available only on this machine, and with the token.
func TestDaemonMetricsAreGuarded(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("very-hard-to-guess"), 0o600))
	d := startDaemon(t, "--metrics", "127.0.0.1:0", "--token-file", token)
	address := d.address(t)
	resp, err := http.Get("http://" + address + "/metrics") //nolint:noctx // the test is over soon
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.NotEmpty(t, scrape(t, address, "very-hard-to-guess"))
	require.NoError(t, d.in.Close())
	require.Zero(t, d.exitCode(t))

	d = startDaemon(t, "--metrics", "0.0.0.0:0")
	require.Equal(t, 2, d.exitCode(t))
}
