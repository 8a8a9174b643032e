package main_test

import (
	"encoding/json"
	"errors"
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

	"waza/cmd/waza/exit"
	"waza/runner/record"
)

// repositoryRoot is the root of the repository, relative to this package.
const repositoryRoot = "../.."

// patience limits how long a test waits for an event.
const patience = 3 * time.Minute

// TestSuites runs every suite of testdata/suites and compares the verdicts of
// its tasks with expected.txt beside it.
func TestSuites(t *testing.T) {
	t.Parallel()
	root := filepath.Join(filepath.FromSlash(repositoryRoot), "testdata", "suites")
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
			got, trials := runSuite(t, dir)
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

// wantsPython reports whether a suite needs an interpreter that some machines lack.
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

// runSuite runs a suite to its end and returns the verdict of each task. It uses a separate
// process. Otherwise programs of other tests could inherit the mark of an agent that starts at
// the same time, and be killed with it.
func runSuite(t *testing.T, dir string) (map[string]record.Verdict, []*record.Trial) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "waza", "run", filepath.Join(dir, "eval.yaml"), "--events")
	cmd.Env = append(os.Environ(), "WAZA_STATE="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() == exit.Usage) {
		t.Fatalf("waza run: %v\n%s", err, stderr.String())
	}
	verdicts := map[string]record.Verdict{}
	var trials []*record.Trial
	for line := range strings.Lines(string(out)) {
		var e record.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		switch {
		case e.Type == record.TaskComplete:
			verdicts[e.TaskID] = e.Verdict
		case e.Trial != nil:
			trials = append(trials, e.Trial)
		}
	}
	return verdicts, trials
}

// requireChildrenGone checks that the processes that the agents of the suite reported are gone.
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
		// On a very slow machine, the trial can time out before the agent reports.
		require.True(t, reported || trial.Verdict == record.TimedOut, "task %s: the agent reported no child", trial.TaskID)
	}
}

// sleeps reports whether a sleep with that process id runs. A zombie does not count.
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
