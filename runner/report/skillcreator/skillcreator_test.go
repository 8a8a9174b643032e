package skillcreator

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	all := reporttest.Files(t, Write, reporttest.CannedRun())
	reporttest.Golden(t, "iteration.txt", reporttest.Joined(all))
	for name, text := range all {
		if path.Ext(name) == ".json" {
			require.True(t, json.Valid([]byte(text)), name)
		}
	}
	for _, name := range slices.Collect(maps.Keys(all)) {
		require.NotContains(t, name, "should_trigger")
	}
}

func TestErrorsOfTheRunAndOfFilesAreReturned(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	c.Err = errors.New("broken record")
	nothing := func(string, func(w writerOf) error) error { return nil }
	require.ErrorContains(t, Write(nothing, c), "broken record")
	full := errors.New("full")
	for _, stop := range []string{"timing.json", "grading.json", "transcript.md", "metrics.json", "response.md", "eval_metadata.json", "benchmark.json", "benchmark.md"} {
		err := Write(func(name string, _ func(w writerOf) error) error {
			if path.Base(name) == stop {
				return full
			}
			return nil
		}, reporttest.CannedRun())
		require.ErrorIs(t, err, full, stop)
	}
}

// comparison returns a run of two tasks with a number of trials per arm. The task 2 ends in an error
// in its second trial.
func comparison(trials int, baseline bool) *reporttest.Canned {
	c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}, Now: record.Progress{Status: record.StatusCompleted}}
	c.Rec.Config.Trials = trials
	c.Rec.Suite.Name, c.Rec.Suite.Skill = "a suite", "pdf"
	list := func(arm int) (all []*record.Trial) {
		for i := range trials {
			all = append(all, marks(c, arm, i))
		}
		return all
	}
	c.AddTask("1", record.RoleTask, record.Passed, list(0)...)
	second := list(1)
	if trials > 1 {
		second[1] = c.Ungraded(record.Errored, "no network")
	}
	c.AddTask("2", record.RoleTask, record.Passed, second...)
	if baseline {
		for _, id := range []string{"1", "2"} {
			c.AddTask(id+"#baseline", record.RoleBaseline, record.Failed, list(2)...)
			c.Ref(id + "#baseline").Of = id
		}
	}
	return c
}

// marks returns a trial whose judge marked three statements.
func marks(c *reporttest.Canned, arm, i int) *record.Trial {
	statements := make([]any, 3)
	for n := range statements {
		statements[n] = map[string]any{"text": "S" + string(rune('1'+n)), "passed": n+arm != 2+i%2, "evidence": "seen"}
	}
	t := c.Graded(record.Failed, record.Grade{
		Name: "judge", Type: record.TypePrompt, Score: 0.5, Weight: 1, DurationMS: 900,
		Details: map[string]any{"opinions": []any{map[string]any{"judge": "j", "statements": statements}}},
	})
	t.ExecutorMS = int64(1000*arm + 333*i + 17)
	if arm != 1 || i > 0 {
		t.Usage = &record.Usage{InputTokens: int64(1000 + 100*i), OutputTokens: int64(7 * (arm + 1))}
	}
	return t
}

// The benchmark is the one that the files of the trials give, by the rules of skill-creator.
func TestBenchmarkFollowsFromTheFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*reporttest.Canned{
		"one trial":              comparison(1, true),
		"several trials":         comparison(4, true),
		"no baseline":            comparison(3, false),
		"one trial, no baseline": comparison(1, false),
		"errors, hostile texts":  reporttest.CannedRun(),
		"no trials":              {Rec: &record.Run{RunID: "r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := reporttest.Files(t, Write, c)
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(all["benchmark.json"]), &got))
			want := aggregate(t, all)
			require.Equal(t, want.summary, got["run_summary"])
			require.Equal(t, want.ids, got["metadata"].(map[string]any)["evals_run"])
			runs, _ := got["runs"].([]any)
			require.Len(t, runs, len(want.runs))
			for _, r := range runs {
				run := r.(map[string]any)
				key := folderOf(all, run["eval_id"]) + "/" + run["configuration"].(string) + "/" + number(run["run_number"])
				require.Equal(t, want.runs[key], run["result"], key)
			}
		})
	}
}

func TestIDsHaveOneType(t *testing.T) {
	t.Parallel()
	ids := func(list ...string) []any {
		c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}}
		for _, id := range list {
			c.AddTask(id, record.RoleTask, record.Passed, c.Graded(record.Passed, record.Grade{Name: "g", Passed: true, Weight: 1}))
		}
		var doc benchmark
		require.NoError(t, json.Unmarshal([]byte(reporttest.Files(t, Write, c)["benchmark.json"]), &doc))
		return doc.Metadata.EvalsRun
	}
	require.Equal(t, []any{2., 10.}, ids("10", "2"))
	require.Equal(t, []any{"10", "2", "b"}, ids("10", "2", "b"))
	require.Equal(t, []any{"01", "2"}, ids("2", "01"))
}

func TestFoldersOfHostileIDs(t *testing.T) {
	t.Parallel()
	c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}}
	for _, id := range []string{"../x", "", "a/b", "a-b", "A-B", strings.Repeat("x", 300), "..", "\x00\n", strings.Repeat("é", 300), "eval_metadata.json"} {
		c.AddTask(id, record.RoleTask, record.Passed, c.Graded(record.Passed, record.Grade{Name: "g", Passed: true, Weight: 1}))
	}
	folders := map[string]bool{}
	for name := range reporttest.Files(t, Write, c) {
		for _, part := range strings.Split(name, "/") {
			require.LessOrEqual(t, len(part), 200)
			require.NotContains(t, part, "..")
		}
		if folder, _, ok := strings.Cut(name, "/"); ok {
			folders[strings.ToLower(folder)] = true
		}
	}
	require.Len(t, folders, len(c.Rec.Tasks))
}

func TestUncountedTrialsHaveNoGrading(t *testing.T) {
	t.Parallel()
	all := reporttest.Files(t, Write, comparison(2, true))
	require.NotContains(t, all, "eval-2/with_skill/run-2/grading.json")
	require.Contains(t, all, "eval-2/with_skill/run-2/timing.json")
	require.Contains(t, all["benchmark.md"], "- `eval-2/with_skill/run-2 is not graded: error: no network`\n")
	require.Contains(t, all["eval-1/eval_metadata.json"], `"assertions": [`+"\n    \"S1\",")
}

// Numbers that nobody knows are left out, because a zero would count.
func TestUnknownNumbersAreLeftOut(t *testing.T) {
	t.Parallel()
	c := comparison(1, true)
	for _, list := range c.Done {
		for _, trial := range list {
			trial.Usage = nil
		}
	}
	all := reporttest.Files(t, Write, c)
	for name, text := range all {
		require.NotContains(t, text, `tokens"`, name)
	}
	require.Contains(t, all["benchmark.md"], "| Tokens | — | — | — |")
	require.Contains(t, all["benchmark.json"], `"time_seconds"`)
}

func TestTimeoutsAndUngradedGradersFail(t *testing.T) {
	t.Parallel()
	trial := &record.Trial{Verdict: record.TimedOut, Error: "timeout exceeded", Ungraded: []record.GraderRef{{Name: "polite", Type: "text"}}}
	require.Equal(t, []expectation{
		{"The agent finishes in time", false, "timeout exceeded"},
		{"polite (grader text) passes", false, "not graded, because the agent did not finish"},
	}, expectationsOf(trial))
	require.Equal(t, []expectation{{"The agent completes the task", true, "no grader; the verdict is passed"}},
		expectationsOf(&record.Trial{Verdict: record.Passed}))
	require.Equal(t, []expectation{{"The agent completes the task", false, "exit status 1"}},
		expectationsOf(&record.Trial{Verdict: record.Failed, Error: "exit status 1"}))
}

// Paths of files that agents wrote stay below the folder of outputs, and differ where case does not
// count.
func FuzzPathsOfOutputs(f *testing.F) {
	f.Add("a/b.txt", "A/b.txt", "a/B.txt")
	f.Add("../x", "a/../../x", "metrics.json")
	f.Add("Metrics.JSON", strings.Repeat("x/", 50)+strings.Repeat("y", 300), "\x00/\xff")
	f.Add("", "/", "a//b")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		names := newTree(metricsFile)
		seen := map[string]string{strings.ToLower(metricsFile): ""}
		for _, file := range []string{a, b, c} {
			name := names.add(file)
			require.True(t, filepath.IsLocal(name), "%q", name)
			require.Equal(t, path.Clean(name), name)
			folded := strings.ToLower(strings.ToUpper(name))
			if was, ok := seen[folded]; ok {
				require.Equal(t, was, file)
			}
			seen[folded] = file
			for _, part := range strings.Split(name, "/") {
				require.LessOrEqual(t, len(part), 255)
			}
		}
	})
}

func TestFilesOfAgentsAreCopied(t *testing.T) {
	t.Parallel()
	c := comparison(1, false)
	trial := c.Trial("1", 1)
	at := func(path, text string, given record.Given) record.SnapshotEntry {
		return record.SnapshotEntry{Path: path, Type: record.EntryFile, Given: given, Blob: &record.Blob{Hash: text}}
	}
	lost := at("lost.txt", "", "")
	trial.Workspace = &record.Snapshot{Entries: []record.SnapshotEntry{
		{Path: "out", Type: record.EntryDir}, at("out/new.txt", "new", ""), at("given.txt", "given", record.GivenSame),
		at("changed.txt", "changed", record.GivenChanged), at("metrics.json", "mine", ""), at(".git/config", "no", ""),
		{Path: "link", Type: record.EntryLink, Link: "/etc/passwd"}, lost,
	}}
	all := reporttest.Files(t, Write, stored{c})
	dir := "eval-1/with_skill/run-1/outputs/"
	require.Equal(t, "new", all[dir+"out/new.txt"])
	require.Equal(t, "changed", all[dir+"changed.txt"])
	require.Equal(t, "mine", all[dir+"metrics-2.json"])
	require.Equal(t, trial.Output, all[dir+"response.md"])
	for _, name := range []string{"given.txt", ".git/config", "link", "lost.txt"} {
		require.NotContains(t, all, dir+name)
	}
	require.Contains(t, all["benchmark.md"], "lost.txt is missing")
	metrics := object(t, all[dir+"metrics.json"])
	require.Equal(t, []any{"out/new.txt", "metrics-2.json"}, metrics["files_created"])
	require.InDelta(t, len(trial.Output)+len("newchangedmine"), metrics["output_chars"], 0)
}

// A stored is a run whose files contain the texts of their hashes.
type stored struct{ *reporttest.Canned }

func (stored) Blobs() (record.Blobs, error) { return texts{}, nil }

type texts struct{}

func (texts) Get(b record.Blob) ([]byte, error) {
	if b.Hash == "" {
		return nil, errors.New("lost")
	}
	return []byte(b.Hash), nil
}

func (texts) Close() error { return nil }

// Skills at a revision are the old skill. The difference is what the new one gains, although the
// rules of skill-creator, which sort the arms by name, subtract the new one.
func TestOldSkill(t *testing.T) {
	t.Parallel()
	c := comparison(2, true)
	c.Rec.Baseline = &record.BaselineRef{Against: &record.Revision{Name: "v1", Commit: "c"}}
	all := reporttest.Files(t, Write, c)
	require.Contains(t, all, "eval-1/old_skill/run-1/grading.json")
	for name := range all {
		require.NotContains(t, name, "without_skill")
	}
	var got benchmark
	require.NoError(t, json.Unmarshal([]byte(all["benchmark.json"]), &got))
	require.Equal(t, withSkill, got.Runs[0].Configuration)
	require.Contains(t, got.Notes, "old_skill is the agent with skills at v1")
	require.Contains(t, all["benchmark.md"], "| Metric | With Skill | Old Skill | Delta |")
	without := reporttest.Files(t, Write, comparison(2, true))
	require.NotContains(t, without["benchmark.json"], "old_skill")
	var other benchmark
	require.NoError(t, json.Unmarshal([]byte(without["benchmark.json"]), &other))
	require.Equal(t, other.RunSummary["delta"], got.RunSummary["delta"])
}
