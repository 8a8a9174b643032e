//go:build browser

package dashboard_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDashboard uses the dashboard of a real server in a real browser. The scenarios are in
// testdata/browser.
func TestDashboard(t *testing.T) {
	modules, chromium, node := browserTools(t)
	program := filepath.Join(t.TempDir(), "waza")
	out, err := exec.Command("go", "build", "-o", program, "waza/cmd/waza").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), node, "--experimental-websocket",
		filepath.Join("testdata", "browser", "main.mjs"), modules, chromium, program, screenshotDir(t))
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	done := 0
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Name, Error, Note string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), "%s", lines.Text())
		done++
		t.Run(line.Name, func(t *testing.T) {
			if line.Note != "" {
				t.Logf("note: %s", line.Note)
			}
			if line.Error != "" {
				t.Error(line.Error)
			}
		})
	}
	require.NoError(t, lines.Err())
	require.NoError(t, cmd.Wait())
	require.Positive(t, done)
}

// browserTools finds the tools that the test needs. It skips the test when one is missing.
func browserTools(t *testing.T) (modules, chromium, node string) {
	t.Helper()
	if modules = os.Getenv("WAZA_BROWSER"); modules == "" {
		t.Skip("skipped: WAZA_BROWSER is not set to the directory of playwright-core; run make test-dashboard")
	}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(modules, "node_modules", name)); err != nil {
			t.Skip("skipped: " + name + " could not be installed from npm")
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: node is not installed")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if chromium, err = exec.LookPath(name); err == nil {
			return modules, chromium, node
		}
	}
	t.Skip("skipped: chromium is not installed")
	return "", "", ""
}

// screenshotDir returns $WAZA_SCREENSHOTS, a directory for screenshots that people inspect
// later.
func screenshotDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WAZA_SCREENSHOTS")
	if dir == "" {
		return t.TempDir()
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}
