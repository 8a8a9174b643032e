package report

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/journal"
)

// canned is a run as a test says it is.
type canned struct {
	runner.Handle
	rec      *runner.Record
	progress runner.Progress
	results  []*runner.TaskResult
	trials   [][]*runner.TrialResult // by task
	err      error                   // of Trials, at its end
}

func (c *canned) ID() string                             { return c.rec.RunID }
func (c *canned) Record() *runner.Record                 { return c.rec }
func (c *canned) Progress() (runner.Progress, error)     { return c.progress, nil }
func (c *canned) Results() ([]*runner.TaskResult, error) { return c.results, nil }
func (c *canned) Damage() (*runner.Damage, error)        { return nil, nil }
func (c *canned) Blobs() (runner.Blobs, error)           { return new(journal.BlobReader), nil }
func (c *canned) WriteResult(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]any{"runId": c.rec.RunID, "summary": c.progress.Summary})
}

func (c *canned) Trials(visit func(int, *runner.TrialResult) error) error {
	for i, list := range c.trials {
		for _, t := range list {
			if err := visit(i, t); err != nil {
				return err
			}
		}
	}
	return c.err
}

// written is what a format makes of a run.
func written(t *testing.T, format string, h runner.Handle) string {
	t.Helper()
	f, ok := Find(Formats(), format)
	require.True(t, ok, format)
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, h))
	return b.String()
}

var cannedStart = time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)

// cannedRun has a task of each verdict, a baseline, a trigger test and a task that
// never ended; agents and graders of it are hostile.
func cannedRun() *canned {
	c := &canned{
		rec: &runner.Record{
			RunID: "20261121-101500.000-abc", CreatedAt: cannedStart,
			Suite:  runner.SuiteRef{Path: "/repo/evals/demo/eval.yaml", Name: "demo & co", Skill: "explainer"},
			Config: runner.RunConfig{Trials: 2},
		},
		progress: runner.Progress{Status: runner.StatusCompleted, StartedAt: cannedStart},
	}
	c.rec.Config.Executor, c.rec.Config.Model, c.rec.Config.JudgeModel, c.rec.Config.TimeoutSeconds = "acp", "m-1", "j-1", 90
	c.rec.Config.Agent = "opencode"
	sum := exampleSummary()
	sum.Triggers = &runner.TriggerResult{Skill: "explainer", Prompts: 1, Measured: true, Accuracy: share(0.5), Precision: share(1), Recall: share(0.5), F1: share(0.667),
		Results: []runner.TriggerPrompt{{ID: "should_trigger#1", Verdict: runner.Failed, Triggered: 1, Answered: 2}}}
	sum.Baseline = &runner.BaselineResult{Measured: true, Pairs: 1, ClassCounts: runner.ClassCounts{Improved: 1}, PassRate: &runner.Gain{With: 1, Without: 0.5, Gain: 0.5},
		Tasks: []runner.TaskBaseline{{ID: "ok", PassRate: &runner.Gain{With: 1, Without: 0.5, Gain: 0.5}, Score: &runner.Gain{With: 1, Without: 0.75, Gain: 0.25}}}}
	c.progress.Summary = sum

	polite := func(s float64, feedback string) grader.Result {
		return grader.Result{Name: "polite", Type: "text", Score: s, Passed: s == 1, Weight: 1, Feedback: feedback, DurationMS: 1,
			Details: map[string]any{"checks": []any{1.0}}}
	}
	c.task("ok#baseline", runner.RoleBaseline, runner.Passed,
		c.trial(runner.Passed, polite(1, "")), c.trial(runner.Failed, polite(0.5, "no please")))
	c.task("ok", runner.RoleTask, runner.Passed, c.trial(runner.Passed, polite(1, "")), c.full())
	c.task("failed|<b>`x`</b>", runner.RoleTask, runner.Failed,
		c.trial(runner.Passed, polite(1, "")),
		c.trial(runner.Failed, polite(0, "=HYPERLINK(\"x\")\n@someone says ]]> \x1b[31m\x00\xff </failure>\n```\n</details>"),
			grader.Result{Name: "brief", Type: "behavior", Score: 0.25, Weight: 3}))
	c.task("slow", runner.RoleTask, runner.TimedOut, c.ended(runner.TimedOut, "timeout exceeded"))
	c.task("broken", runner.RoleTask, runner.Errored, c.ended(runner.Errored, "python3: not found on PATH\nsecond line"), c.trial(runner.Passed, polite(1, "")))
	c.results[c.index("broken")].Error = "hook after_task: exit status 3"
	c.task("waits", runner.RoleTask, runner.NeedsReview, c.trial(runner.NeedsReview, polite(1, ""), grader.Result{Name: "looks", Type: "human", Weight: 1, NeedsReview: true}))
	c.task("left out", runner.RoleTask, runner.Skipped, c.ended(runner.Skipped, "not started: an earlier task failed"))
	c.task("cut short", runner.RoleTask, runner.Cancelled, c.ended(runner.Cancelled, "the run was cancelled"))
	c.task("should_trigger#1", runner.RoleTrigger, runner.Failed,
		c.trial(runner.Failed, grader.Result{Name: "_should_trigger", Type: "skill_invocation", Weight: 1, Feedback: "the skill was not used"}),
		c.trial(runner.Passed, grader.Result{Name: "_should_trigger", Type: "skill_invocation", Weight: 1, Score: 1, Passed: true}))
	c.ref("should_trigger#1").Trigger = &runner.TriggerRef{Prompt: "Explain this.", ShouldTrigger: true, Confidence: "medium"}
	c.task("never ended", runner.RoleTask, "", c.trial(runner.Passed, polite(1, "")))
	c.ref("never ended").Trials = 3
	c.ref("slow").Cell = &runner.CellRef{Name: "model=m-2", Model: "m-2"}
	c.trialOf("ok", 1).Cached = &runner.CachedFrom{RunID: "earlier"}
	return c
}

// index is where the task of that id is.
func (c *canned) index(id string) int {
	return slices.IndexFunc(c.rec.Tasks, func(t runner.TaskRef) bool { return t.ID == id })
}

func (c *canned) ref(id string) *runner.TaskRef { return &c.rec.Tasks[c.index(id)] }

func (c *canned) trialOf(id string, num int) *runner.TrialResult {
	list := c.trials[c.index(id)]
	return list[slices.IndexFunc(list, func(t *runner.TrialResult) bool { return t.TrialNum == num })]
}

// task adds a task that ended so; without a verdict it has not ended.
func (c *canned) task(id string, role runner.Role, v runner.Verdict, trials ...*runner.TrialResult) {
	ref := runner.TaskRef{ID: id, Role: role, Name: "Task " + id, File: "tasks/" + strings.Trim(id, "|<b>`x/") + ".yaml", Trials: len(trials), First: 1, Tags: []string{"a", "b,c"}}
	counts := runner.Counts{Total: len(trials)}
	var reasons []runner.Reason
	ms, scores := 0.0, 0.0
	for i, t := range trials {
		t.TaskID, t.TrialNum = id, i+1
		counts.Add(t.Verdict)
		ms += float64(t.DurationMS) / float64(len(trials))
		if t.Score != nil {
			scores += *t.Score / float64(len(trials))
		}
		for _, g := range t.Graders {
			if !g.Passed && !g.NeedsReview {
				reasons = append(reasons, runner.Reason{Verdict: t.Verdict, Grader: g.Name, Message: g.Feedback, Trials: 1})
			}
		}
		if t.Error != "" {
			reasons = append(reasons, runner.Reason{Verdict: t.Verdict, Message: t.Error, Trials: 1})
		}
	}
	var res *runner.TaskResult
	if v != "" {
		res = result(v, counts, scores, ms, reasons...)
	}
	c.rec.Tasks = append(c.rec.Tasks, ref)
	c.results = append(c.results, res)
	c.trials = append(c.trials, trials)
}

// trial is one that was graded.
func (c *canned) trial(v runner.Verdict, graders ...grader.Result) *runner.TrialResult {
	sum, weights := 0.0, 0.0
	for _, g := range graders {
		if !g.NeedsReview {
			sum += g.Score * g.Weight
			weights += g.Weight
		}
	}
	return &runner.TrialResult{Hash: "h1", Verdict: v, Score: share(sum / weights), StartedAt: cannedStart.Add(time.Second), DurationMS: 1250, ExecutorMS: 1200, StartupMS: 40,
		Prompt: "Say it.", Output: "It is said.", Graders: graders, Transcript: []executor.Entry{}}
}

// ended is one that no grader saw.
func (c *canned) ended(v runner.Verdict, why string) *runner.TrialResult {
	return &runner.TrialResult{Hash: "h2", Verdict: v, Error: why, DurationMS: 20, Graders: []grader.Result{}, Transcript: []executor.Entry{}}
}

// full is a trial of which everything is known.
func (c *canned) full() *runner.TrialResult {
	t := c.trial(runner.Passed, grader.Result{Name: "judge", Type: "prompt", Score: 1, Passed: true, Weight: 2, Details: []string{"not", "a", "map"}})
	t.Usage = &executor.Usage{InputTokens: 100, OutputTokens: 20, CostUSD: 0.0125}
	t.Attempts = []runner.AttemptResult{{Verdict: runner.Failed}}
	call := func(tool executor.ToolCall) *executor.ToolCall { return &tool }
	t.Transcript = []executor.Entry{
		{Type: executor.EntryMessage, Role: "user", Text: "Say it."},
		{Type: executor.EntryThought, Text: "Hm."},
		{Type: executor.EntryPlan, Plan: []executor.PlanStep{{Text: "say it", Status: "done"}}},
		{Type: executor.EntryToolCall, Tool: call(executor.ToolCall{ID: "c1", Name: "bash", Arguments: json.RawMessage(`{"command":"ls","path":["not a string"]}`), Result: json.RawMessage(`"a.txt"`), Status: "completed", DurationMS: 7})},
		{Type: executor.EntryToolCall, Tool: call(executor.ToolCall{Name: "edit", Arguments: json.RawMessage(`[1]`), Result: json.RawMessage(`{"error":"no such file"}`), Status: "failed"})},
		{Type: executor.EntryToolCall, Tool: call(executor.ToolCall{Name: "bash"})},
		{Type: executor.EntrySkill, Text: "explainer"},
		{Type: executor.EntryPermission, Permission: &executor.Permission{Title: "write", Reason: "outside"}},
		{Type: executor.EntryError, Text: "a hiccup"},
		{Type: executor.EntryMessage, Role: "assistant", Text: "It is said."},
		{Type: executor.EntryMessage, Role: "user", Text: "Again."},
		{Type: executor.EntryStop, Text: "end_turn"},
		{Type: executor.EntryDropped, Text: "3 entries"},
	}
	return t
}

func TestCannedWritesInAllFormats(t *testing.T) {
	t.Parallel()
	empty := &canned{rec: &runner.Record{RunID: "r"}, progress: runner.Progress{Status: runner.StatusInterrupted}}
	for _, f := range Formats() {
		require.NotEmpty(t, written(t, f.Name, cannedRun()), f.Name)
		require.NotEmpty(t, written(t, f.Name, empty), f.Name)
		for _, full := range []int{0, 200} {
			require.Error(t, f.Write(&fullDisk{left: full}, cannedRun()), f.Name)
		}
	}
}

// fullDisk takes so many bytes and no more.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}
