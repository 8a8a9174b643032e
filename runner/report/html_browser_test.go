//go:build browser

package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
)

// TestBrowser makes reports of real runs and uses them in a real browser. What a
// person does there is told in testdata/browser/report.mjs.
func TestBrowser(t *testing.T) {
	modules, chromium, node := browserTools(t)
	dir, screenshots := t.TempDir(), screenshotDir(t)
	makeReports(t, dir)
	cmd := exec.Command(node, filepath.Join("testdata", "browser", "report.mjs"), modules, chromium, dir, screenshots)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	done := 0
	lines := bufio.NewScanner(out)
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

// browserTools finds what the test needs, or skips it with the reason.
func browserTools(t *testing.T) (modules, chromium, node string) {
	t.Helper()
	if modules = os.Getenv("WAZA_BROWSER"); modules == "" {
		t.Skip("skipped: WAZA_BROWSER does not say where playwright-core is; make test-browser does")
	}
	if _, err := os.Stat(filepath.Join(modules, "node_modules", "playwright-core")); err != nil {
		t.Skip("skipped: playwright-core could not be had from npm")
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

// screenshotDir is $WAZA_SCREENSHOTS, for a person to look at afterwards.
func screenshotDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WAZA_SCREENSHOTS")
	if dir == "" {
		return t.TempDir()
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

func makeReports(t *testing.T, dir string) {
	t.Helper()
	r := newHTMLRunner(t)
	write := func(name string, h runner.Handle, o HTMLOptions) {
		var b bytes.Buffer
		start := time.Now()
		require.NoError(t, HTML(&b, h, o))
		t.Logf("%s: %d KB, written in %v", name, b.Len()/1000, time.Since(start).Round(time.Millisecond))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644))
	}
	before := runSuite(t, r, "demo", runner.Request{Model: "demo-0"})
	demo := runSuite(t, r, "demo", runner.Request{})
	write("demo.html", demo, HTMLOptions{})
	write("against.html", demo, HTMLOptions{Against: before})
	write("hostile.html", runSuite(t, r, "hostile", runner.Request{}), HTMLOptions{})
	many := runSuite(t, r, "many", runner.Request{})
	write("many.html", many, HTMLOptions{})
	write("small.html", many, HTMLOptions{TranscriptBytes: 100_000})
	write("long.html", runSuite(t, r, longSuite(t), runner.Request{}), HTMLOptions{})
}

// longSuite is a suite of ten thousand tasks.
func longSuite(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	suite, err := os.ReadFile(filepath.Join("testdata", "html", "long", "eval.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), suite, 0o644))
	var rows strings.Builder
	rows.WriteString("id,prompt\n")
	for i := range 10_000 {
		fmt.Fprintf(&rows, "case-%05d,Answer number %d\n", i+1, i+1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks.csv"), []byte(rows.String()), 0o644))
	return dir
}
