//go:build browser

package page

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
	"waza/runner/record"
	"waza/runner/report/reporttest"

	"github.com/stretchr/testify/require"
)

// TestBrowser creates reports of real runs and uses them in a real browser.
// testdata/browser/report.mjs contains the user's actions.
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

// browserTools finds the programs that the test needs, or skips it with the reason.
func browserTools(t *testing.T) (modules, chromium, node string) {
	t.Helper()
	if modules = os.Getenv("WAZA_BROWSER"); modules == "" {
		t.Skip("skipped: WAZA_BROWSER does not say where playwright-core is; make test-browser does")
	}
	if _, err := os.Stat(filepath.Join(modules, "node_modules", "playwright-core")); err != nil {
		t.Skip("skipped: npm could not install playwright-core")
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

// screenshotDir returns $WAZA_SCREENSHOTS, for people to look at afterwards.
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
	write := func(name string, h record.Handle, o Options) {
		var b bytes.Buffer
		start := time.Now()
		require.NoError(t, WriteWith(&b, h, o))
		t.Logf("%s: %d KB, written in %v", name, b.Len()/1000, time.Since(start).Round(time.Millisecond))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644))
	}
	before := runSuite(t, r, "demo", record.Request{Model: "demo-0"})
	demo := runSuite(t, r, "demo", record.Request{})
	write("demo.html", demo, Options{})
	write("against.html", demo, Options{Against: before})
	suites, err := filepath.Abs(filepath.Join("..", "..", "..", "testdata", "suites"))
	require.NoError(t, err)
	write("routing.html", runSuite(t, r, filepath.Join(suites, "routing"), record.Request{}), Options{})
	write("hostile.html", runSuite(t, r, "hostile", record.Request{}), Options{})
	write("busy.html", busy(), Options{})
	write("states.html", stateful(), Options{})
	many := runSuite(t, r, "many", record.Request{})
	write("many.html", many, Options{})
	write("small.html", many, Options{TranscriptBytes: 100_000})
	writeBuilt(t, dir)
	write("long.html", runSuite(t, r, longSuite(t), record.Request{}), Options{})
}

// writeBuilt makes the built program run the demo and write its report.
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

// stateful returns a run with features that real runs seldom combine: all verdicts, a matrix,
// reused trials, a task decided early, a failed run and a damaged record.
func stateful() record.Handle {
	c := reporttest.CannedRun()
	c.Now.Status, c.Now.Error = record.StatusFailed, "the disk is full"
	c.Now.Summary.TrialsSaved, c.Now.Summary.TrialsCached = 3, 2
	conclude(c.Now.Summary)
	for i, cell := range []string{"m-1", "m-2"} {
		task := record.TaskRef{ID: "prime[" + cell + "]", Task: "prime", Name: "prime", Trials: 5, First: 1,
			Cell: &record.Cell{Name: cell, Model: cell, Params: map[string]any{"temperature": 0.5}}}
		res := reporttest.NewTask(record.Passed, reporttest.Counts(2, i, 0, 0, 0, 0), 0.9, 12)
		rate := float64(2) / float64(2+i)
		res.Trials.PassRate = &rate
		res.Decided = &record.Decided{Verdict: record.Passed, After: 2, Of: 5, Saved: 3, Confidence: 0.95}
		c.Rec.Tasks, c.Ended = append(c.Rec.Tasks, task), append(c.Ended, res)
		trial := func(n int) *record.Trial {
			return &record.Trial{TaskID: task.ID, TrialNum: n, Verdict: record.Passed, Cached: &record.CachedFrom{RunID: "earlier-run"}}
		}
		c.Done = append(c.Done, []*record.Trial{trial(1), trial(2)})
	}
	long := record.TaskRef{ID: "half", Name: "half done", Trials: 100, First: 1} // and not ended
	var done []*record.Trial
	for n := range 60 {
		done = append(done, &record.Trial{TaskID: long.ID, TrialNum: n + 1, Verdict: record.Passed})
	}
	c.Rec.Tasks, c.Ended, c.Done = append(c.Rec.Tasks, long), append(c.Ended, nil), append(c.Done, done)
	return damagedRun{&held{Canned: c}}
}

// busy returns a run with a trial whose texts are made to keep a browser busy.
func busy() record.Handle {
	repeat := func(s string) string { return strings.Repeat(s, 60_000/len(s)) }
	detail := repeat(`: expected "`)[:20_000] + repeat(`", got "`)[:20_000] + "x" // all details can have 64 KiB together
	c := &reporttest.Canned{Rec: &record.Run{RunID: "busy"}, Now: record.Progress{Status: record.StatusCompleted}}
	trial := c.Graded(record.Failed, record.Grade{Name: "checks", Type: "text", Weight: 1, Feedback: "no", Details: []any{
		map[string]any{"check": "is busy", "passed": false, "detail": detail},
		map[string]any{"check": "is shown", "passed": false, "detail": "line 3: expected one, got two"},
	}})
	trial.Output = repeat("\n") + "the end"
	c.AddTask("busy", record.RoleTask, record.Failed, trial)
	return c
}

// damagedRun is a run whose journal lost a part.
type damagedRun struct{ *held }

func (damagedRun) Damage() (*record.Damage, error) {
	return &record.Damage{Events: 4, Parts: 1, Bytes: 80, Line: 12, Error: "not JSON"}, nil
}

// longSuite writes a suite of ten thousand tasks.
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
