package main_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/record"
)

// patience is how long a test waits for what must come.
const patience = 3 * time.Minute

// TestSuites runs every suite of testdata/suites and compares the verdicts of
// its tasks with expected.txt beside it.
func TestSuites(t *testing.T) {
	t.Parallel()
	root := filepath.Join(filepath.FromSlash(repositoryRoot), "testdata", "suites")
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	for _, dir := range suiteDirs(t, root) {
		name, err := filepath.Rel(root, dir)
		require.NoError(t, err)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			if wantsPython(t, dir) {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip("python3 is not installed")
				}
			}
			want := expectedVerdicts(t, filepath.Join(dir, "expected.txt"))
			got, trials := runSuite(t, r, dir)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
				for _, trial := range trials {
					t.Logf("%s %d: %s %s %q %+v", trial.TaskID, trial.TrialNum, trial.Verdict, trial.Error, trial.Output, trial.Graders)
				}
			}
			if name == "trees" {
				requireChildrenGone(t, trials)
			}
		})
	}
}

// suiteDirs lists the directories below root that hold a suite.
func suiteDirs(t *testing.T, root string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "eval.yaml" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	return dirs
}

// expectedVerdicts reads lines of "task-id verdict".
func expectedVerdicts(t *testing.T, file string) map[string]record.Verdict {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	verdicts := map[string]record.Verdict{}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		require.Len(t, fields, 2, "%s: %q", file, line)
		verdicts[fields[0]] = record.Verdict(fields[1])
	}
	return verdicts
}

// wantsPython reports whether a suite asks for an interpreter that not every
// machine has.
func wantsPython(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		found = found || regexp.MustCompile(`python3|assertions:`).Match(content)
		return err
	})
	require.NoError(t, err)
	return found
}

// runSuite runs a suite to its end and returns the verdict of each task.
func runSuite(t *testing.T, r *runner.Runner, dir string) (map[string]record.Verdict, []*record.Trial) {
	t.Helper()
	suite, found, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.False(t, found.HasErrors(), "%v", found)
	plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
	require.NoError(t, err)
	findings := plan.Preflight(t.Context())
	require.False(t, findings.HasErrors(), "%v", findings)
	run, err := r.Start(plan)
	require.NoError(t, err)
	t.Cleanup(func() { run.Cancel(); <-run.Done() })

	verdicts := map[string]record.Verdict{}
	var trials []*record.Trial
	for events := run.Subscribe(1); ; {
		batch, err := events.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for _, e := range batch {
			switch {
			case e.Type == record.TaskComplete:
				verdicts[e.TaskID] = e.Verdict
			case e.Trial != nil:
				trials = append(trials, e.Trial)
			}
		}
	}
	<-run.Done()
	return verdicts, trials
}

// requireChildrenGone looks for the processes whose numbers the agents of the
// suite reported.
func requireChildrenGone(t *testing.T, trials []*record.Trial) {
	t.Helper()
	child := regexp.MustCompile(`^child (\d+)$`)
	require.NotEmpty(t, trials)
	for _, trial := range trials {
		reported := false
		for _, entry := range trial.Transcript {
			if m := child.FindStringSubmatch(entry.Text); m != nil && entry.Type == record.EntryMessage {
				reported = true
				require.Eventually(t, func() bool { return !sleeps(t, m[1]) }, patience, 10*time.Millisecond,
					"task %s: child %s still runs", trial.TaskID, m[1])
			}
		}
		// On a very slow machine the time may be up before the agent has come so far.
		require.True(t, reported || trial.Verdict == record.TimedOut, "task %s: the agent reported no child", trial.TaskID)
	}
}

// sleeps reports whether a sleep with that process number runs; one that has
// ended and whose parent has not looked at it yet does not.
func sleeps(t *testing.T, pid string) bool {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return err == nil && strings.Contains(string(stat), "(sleep) ") && !strings.Contains(string(stat), "(sleep) Z")
	}
	ps, err := exec.LookPath("ps")
	require.NoError(t, err)
	out, err := exec.Command(ps, "-o", "stat=,comm=", "-p", pid).Output()
	stat := strings.TrimSpace(string(out))
	return err == nil && strings.HasSuffix(stat, "sleep") && !strings.HasPrefix(stat, "Z")
}
