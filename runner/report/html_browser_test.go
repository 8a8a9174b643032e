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
	"waza/runner/grader"
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
	write("busy.html", busy(), HTMLOptions{})
	write("states.html", stateful(), HTMLOptions{})
	many := runSuite(t, r, "many", runner.Request{})
	write("many.html", many, HTMLOptions{})
	write("small.html", many, HTMLOptions{TranscriptBytes: 100_000})
	writeBuilt(t, dir)
	write("long.html", runSuite(t, r, longSuite(t), runner.Request{}), HTMLOptions{})
}

// writeBuilt lets the built program run the demo and write its report.
func writeBuilt(t *testing.T, dir string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "waza")
	out, err := exec.Command("go", "build", "-o", program, "waza/cmd/waza").CombinedOutput()
	require.NoError(t, err, "%s", out)
	suite := filepath.Join("testdata", "html", "demo", "eval.yaml")
	cmd := exec.Command(program, "run", suite, "--trials", "2", "--report", "html="+filepath.Join(dir, "built.html"))
	cmd.Env = append(os.Environ(), "WAZA_STATE="+t.TempDir())
	out, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 3, exit.ExitCode(), "some of its trials end in error: %s", out)
}

// stateful is a run in which there is one of everything that real runs seldom have
// together: all verdicts, a matrix, trials taken over, a task decided early, a run
// that could not go on and a damaged record.
func stateful() runner.Handle {
	c := cannedRun()
	c.progress.Status, c.progress.Error = runner.StatusFailed, "the disk is full"
	c.progress.Summary.TrialsSaved, c.progress.Summary.TrialsCached = 3, 2
	for i, cell := range []string{"m-1", "m-2"} {
		task := runner.TaskRef{ID: "prime[" + cell + "]", Task: "prime", Name: "prime", Trials: 5, First: 1,
			Cell: &runner.CellRef{Name: cell, Model: cell, Params: map[string]any{"temperature": 0.5}}}
		res := result(runner.Passed, counts(2, i, 0, 0, 0, 0), 0.9, 12)
		rate := float64(2) / float64(2+i)
		res.Trials.PassRate = &rate
		res.Decided = &runner.Decided{Verdict: runner.Passed, After: 2, Of: 5, Saved: 3, Confidence: 0.95}
		c.rec.Tasks, c.results = append(c.rec.Tasks, task), append(c.results, res)
		trial := func(n int) *runner.TrialResult {
			return &runner.TrialResult{TaskID: task.ID, TrialNum: n, Verdict: runner.Passed, Cached: &runner.CachedFrom{RunID: "earlier-run"}}
		}
		c.trials = append(c.trials, []*runner.TrialResult{trial(1), trial(2)})
	}
	long := runner.TaskRef{ID: "half", Name: "half done", Trials: 100, First: 1} // and not ended
	var done []*runner.TrialResult
	for n := range 60 {
		done = append(done, &runner.TrialResult{TaskID: long.ID, TrialNum: n + 1, Verdict: runner.Passed})
	}
	c.rec.Tasks, c.results, c.trials = append(c.rec.Tasks, long), append(c.results, nil), append(c.trials, done)
	return damagedRun{&held{canned: c}}
}

// busy is a run with a trial whose texts were made to keep a browser busy.
func busy() runner.Handle {
	repeat := func(s string) string { return strings.Repeat(s, 60_000/len(s)) }
	detail := repeat(`: expected "`)[:20_000] + repeat(`", got "`)[:20_000] + "x" // details may have 64 KiB in all
	c := &canned{rec: &runner.Record{RunID: "busy"}, progress: runner.Progress{Status: runner.StatusCompleted}}
	trial := c.trial(runner.Failed, grader.Result{Name: "checks", Type: "text", Weight: 1, Feedback: "no", Details: []any{
		map[string]any{"check": "is busy", "passed": false, "detail": detail},
		map[string]any{"check": "is told", "passed": false, "detail": "line 3: expected one, got two"},
	}})
	trial.Output = repeat("\n") + "the end"
	c.task("busy", runner.RoleTask, runner.Failed, trial)
	return c
}

// damagedRun is a run of whose journal a part is lost.
type damagedRun struct{ *held }

func (damagedRun) Damage() (*runner.Damage, error) {
	return &runner.Damage{Events: 4, Parts: 1, Bytes: 80, Line: 12, Error: "not JSON"}, nil
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
