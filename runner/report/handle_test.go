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

	"waza/runner/journal"
	"waza/runner/record"
)

// canned is a run as a test says it is.
type canned struct {
	record.Handle
	rec      *record.Run
	progress record.Progress
	results  []*record.Task
	trials   [][]*record.Trial // by task
	err      error             // of Trials, at its end
}

func (c *canned) ID() string                         { return c.rec.RunID }
func (c *canned) Record() *record.Run                { return c.rec }
func (c *canned) Progress() (record.Progress, error) { return c.progress, nil }
func (c *canned) Results() ([]*record.Task, error)   { return c.results, nil }
func (c *canned) Damage() (*record.Damage, error)    { return nil, nil }
func (c *canned) Blobs() (record.Blobs, error)       { return new(journal.BlobReader), nil }
func (c *canned) WriteResult(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]any{"runId": c.rec.RunID, "summary": c.progress.Summary})
}

func (c *canned) Trials(visit func(int, *record.Trial) error) error {
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
func written(t *testing.T, format string, h record.Handle) string {
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
		rec: &record.Run{
			RunID: "20261121-101500.000-abc", CreatedAt: cannedStart,
			Suite:  record.SuiteRef{Path: "/repo/evals/demo/eval.yaml", Name: "demo & co", Skill: "explainer"},
			Config: record.Config{Trials: 2},
		},
		progress: record.Progress{Status: record.StatusCompleted, StartedAt: cannedStart},
	}
	c.rec.Config.Executor, c.rec.Config.Model, c.rec.Config.JudgeModel, c.rec.Config.TimeoutSeconds = "acp", "m-1", "j-1", 90
	c.rec.Config.Agent = "opencode"
	sum := exampleSummary()
	sum.Triggers = &record.TriggerResult{Skill: "explainer", Prompts: 1, Measured: true, Accuracy: share(0.5), Precision: share(1), Recall: share(0.5), F1: share(0.667),
		Results: []record.TriggerPrompt{{ID: "should_trigger#1", Verdict: record.Failed, Triggered: 1, Answered: 2}}}
	sum.Baseline = &record.BaselineResult{Measured: true, Pairs: 1, ClassCounts: record.ClassCounts{Improved: 1}, PassRate: &record.Gain{With: 1, Without: 0.5, Gain: 0.5},
		Tasks: []record.TaskBaseline{{ID: "ok", PassRate: &record.Gain{With: 1, Without: 0.5, Gain: 0.5}, Score: &record.Gain{With: 1, Without: 0.75, Gain: 0.25}}}}
	c.progress.Summary = sum

	polite := func(s float64, feedback string) record.Grade {
		return record.Grade{Name: "polite", Type: "text", Score: s, Passed: s == 1, Weight: 1, Feedback: feedback, DurationMS: 1,
			Details: map[string]any{"checks": []any{1.0}}}
	}
	c.task("ok#baseline", record.RoleBaseline, record.Passed,
		c.trial(record.Passed, polite(1, "")), c.trial(record.Failed, polite(0.5, "no please")))
	c.task("ok", record.RoleTask, record.Passed, c.trial(record.Passed, polite(1, "")), c.full())
	c.task("failed|<b>`x`</b>", record.RoleTask, record.Failed,
		c.trial(record.Passed, polite(1, "")),
		c.trial(record.Failed, polite(0, "=HYPERLINK(\"x\")\n@someone says ]]> \x1b[31m\x00\xff </failure>\n```\n</details>"),
			record.Grade{Name: "brief", Type: "behavior", Score: 0.25, Weight: 3}))
	c.task("slow", record.RoleTask, record.TimedOut, c.ended(record.TimedOut, "timeout exceeded"))
	c.task("broken", record.RoleTask, record.Errored, c.ended(record.Errored, "python3: not found on PATH\nsecond line"), c.trial(record.Passed, polite(1, "")))
	c.results[c.index("broken")].Error = "hook after_task: exit status 3"
	c.task("waits", record.RoleTask, record.NeedsReview, c.trial(record.NeedsReview, polite(1, ""), record.Grade{Name: "looks", Type: "human", Weight: 1, NeedsReview: true}))
	c.task("left out", record.RoleTask, record.Skipped, c.ended(record.Skipped, "not started: an earlier task failed"))
	c.task("cut short", record.RoleTask, record.Cancelled, c.ended(record.Cancelled, "the run was cancelled"))
	c.task("should_trigger#1", record.RoleTrigger, record.Failed,
		c.trial(record.Failed, record.Grade{Name: "_should_trigger", Type: "skill_invocation", Weight: 1, Feedback: "the skill was not used"}),
		c.trial(record.Passed, record.Grade{Name: "_should_trigger", Type: "skill_invocation", Weight: 1, Score: 1, Passed: true}))
	c.ref("should_trigger#1").Trigger = &record.TriggerRef{Prompt: "Explain this.", ShouldTrigger: true, Confidence: "medium"}
	c.task("never ended", record.RoleTask, "", c.trial(record.Passed, polite(1, "")))
	c.ref("never ended").Trials = 3
	c.ref("slow").Cell = &record.Cell{Name: "model=m-2", Model: "m-2"}
	c.trialOf("ok", 1).Cached = &record.CachedFrom{RunID: "earlier"}
	return c
}

// index is where the task of that id is.
func (c *canned) index(id string) int {
	return slices.IndexFunc(c.rec.Tasks, func(t record.TaskRef) bool { return t.ID == id })
}

func (c *canned) ref(id string) *record.TaskRef { return &c.rec.Tasks[c.index(id)] }

func (c *canned) trialOf(id string, num int) *record.Trial {
	list := c.trials[c.index(id)]
	return list[slices.IndexFunc(list, func(t *record.Trial) bool { return t.TrialNum == num })]
}

// task adds a task that ended so; without a verdict it has not ended.
func (c *canned) task(id string, role record.Role, v record.Verdict, trials ...*record.Trial) {
	ref := record.TaskRef{ID: id, Role: role, Name: "Task " + id, File: "tasks/" + strings.Trim(id, "|<b>`x/") + ".yaml", Trials: len(trials), First: 1, Tags: []string{"a", "b,c"}}
	counts := record.Counts{Total: len(trials)}
	var reasons []record.Reason
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
				reasons = append(reasons, record.Reason{Verdict: t.Verdict, Grader: g.Name, Message: g.Feedback, Trials: 1})
			}
		}
		if t.Error != "" {
			reasons = append(reasons, record.Reason{Verdict: t.Verdict, Message: t.Error, Trials: 1})
		}
	}
	var res *record.Task
	if v != "" {
		res = result(v, counts, scores, ms, reasons...)
	}
	c.rec.Tasks = append(c.rec.Tasks, ref)
	c.results = append(c.results, res)
	c.trials = append(c.trials, trials)
}

// trial is one that was graded.
func (c *canned) trial(v record.Verdict, graders ...record.Grade) *record.Trial {
	sum, weights := 0.0, 0.0
	for _, g := range graders {
		if !g.NeedsReview {
			sum += g.Score * g.Weight
			weights += g.Weight
		}
	}
	return &record.Trial{Hash: "h1", Verdict: v, Score: share(sum / weights), StartedAt: cannedStart.Add(time.Second), DurationMS: 1250, ExecutorMS: 1200, StartupMS: 40,
		Prompt: "Say it.", Output: "It is said.", Graders: graders, Transcript: []record.Entry{}}
}

// ended is one that no grader saw.
func (c *canned) ended(v record.Verdict, why string) *record.Trial {
	return &record.Trial{Hash: "h2", Verdict: v, Error: why, DurationMS: 20, Graders: []record.Grade{}, Transcript: []record.Entry{}}
}

// full is a trial of which everything is known.
func (c *canned) full() *record.Trial {
	t := c.trial(record.Passed, record.Grade{Name: "judge", Type: "prompt", Score: 1, Passed: true, Weight: 2, Details: []string{"not", "a", "map"}})
	t.Usage = &record.Usage{InputTokens: 100, OutputTokens: 20, CostUSD: 0.0125}
	t.Attempts = []record.Attempt{{Verdict: record.Failed}}
	call := func(tool record.ToolCall) *record.ToolCall { return &tool }
	t.Transcript = []record.Entry{
		{Type: record.EntryMessage, Role: "user", Text: "Say it."},
		{Type: record.EntryThought, Text: "Hm."},
		{Type: record.EntryPlan, Plan: []record.PlanStep{{Text: "say it", Status: "done"}}},
		{Type: record.EntryToolCall, Tool: call(record.ToolCall{ID: "c1", Name: "bash", Arguments: json.RawMessage(`{"command":"ls","path":["not a string"]}`), Result: json.RawMessage(`"a.txt"`), Status: "completed", DurationMS: 7})},
		{Type: record.EntryToolCall, Tool: call(record.ToolCall{Name: "edit", Arguments: json.RawMessage(`[1]`), Result: json.RawMessage(`{"error":"no such file"}`), Status: "failed"})},
		{Type: record.EntryToolCall, Tool: call(record.ToolCall{Name: "bash"})},
		{Type: record.EntrySkill, Text: "explainer"},
		{Type: record.EntryPermission, Permission: &record.Permission{Title: "write", Reason: "outside"}},
		{Type: record.EntryError, Text: "a hiccup"},
		{Type: record.EntryMessage, Role: "assistant", Text: "It is said."},
		{Type: record.EntryMessage, Role: "user", Text: "Again."},
		{Type: record.EntryStop, Text: "end_turn"},
		{Type: record.EntryDropped, Text: "3 entries"},
	}
	return t
}

func TestCannedWritesInAllFormats(t *testing.T) {
	t.Parallel()
	empty := &canned{rec: &record.Run{RunID: "r"}, progress: record.Progress{Status: record.StatusInterrupted}}
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
