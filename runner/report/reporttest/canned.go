// Package reporttest helps to test reports with runs that need no journal, and with golden
// files. Call [CannedRun] for a run with a task of each verdict, and [Golden] to compare its
// reports.
package reporttest

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"waza/eval/surroundings"
	"waza/runner/journal"
	"waza/runner/record"
)

// A Canned is a run with the data that a test gives it.
type Canned struct {
	record.Handle
	Rec   *record.Run
	Now   record.Progress
	Ended []*record.Task
	Done  [][]*record.Trial // by task
	Err   error             // returned by Trials after the last trial
}

// ID implements [record.Handle].
func (c *Canned) ID() string { return c.Rec.RunID }

// Record implements [record.Handle].
func (c *Canned) Record() *record.Run { return c.Rec }

// Progress implements [record.Handle].
func (c *Canned) Progress() (record.Progress, error) { return c.Now, nil }

// Results implements [record.Handle].
func (c *Canned) Results() ([]*record.Task, error) { return c.Ended, nil }

// Damage implements [record.Handle]: nothing is damaged.
func (c *Canned) Damage() (*record.Damage, error) { return nil, nil }

// Blobs implements [record.Handle]: there are no blobs.
func (c *Canned) Blobs() (record.Blobs, error) { return new(journal.BlobReader), nil }

// WriteResult implements [record.Handle]; it writes less than real runs do.
func (c *Canned) WriteResult(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]any{"runId": c.Rec.RunID, "summary": c.Now.Summary})
}

// Outcomes implements [record.Handle]. Its trials are those of Trials, with all parts.
func (c *Canned) Outcomes(visit func(int, *record.Trial, int64) error) error {
	return c.Trials(func(task int, t *record.Trial) error { return visit(task, t, 0) })
}

// Chosen implements [record.Handle].
func (c *Canned) Chosen(choose func(task, num int) bool, visit func(int, *record.Trial) error) error {
	return c.Trials(func(task int, t *record.Trial) error {
		if !choose(task, t.TrialNum) {
			return nil
		}
		return visit(task, t)
	})
}

// Trials implements [record.Handle].
func (c *Canned) Trials(visit func(int, *record.Trial) error) error {
	for i, list := range c.Done {
		for _, t := range list {
			if err := visit(i, t); err != nil {
				return err
			}
		}
	}
	return c.Err
}

var cannedStart = time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)

// CannedRun returns a run with a task of each verdict, a baseline, a trigger test and a task
// that never ended. Texts of its agents and graders are hostile.
func CannedRun() *Canned {
	c := &Canned{
		Rec: &record.Run{
			RunID: "20261121-101500.000-abc", CreatedAt: cannedStart,
			Suite:  record.SuiteRef{Path: "/repo/evals/demo/eval.yaml", Name: "demo & co", Skill: "explainer"},
			Config: record.Config{Trials: 2},
			Sandbox: &record.Sandbox{
				Mode: surroundings.SandboxAuto, Tier: record.TierNamespaces, Network: surroundings.Network{Open: true},
				Limits: surroundings.SandboxLimits{Processes: 1024, Disk: 10 << 30}, Agent: record.AgentPerTrial,
			},
		},
		Now: record.Progress{Status: record.StatusCompleted, StartedAt: cannedStart},
	}
	c.Rec.Config.Executor, c.Rec.Config.Model, c.Rec.Config.JudgeModel, c.Rec.Config.TimeoutSeconds = "acp", "m-1", "j-1", 90
	c.Rec.Config.Agent = "opencode"
	sum := Summary()
	sum.Triggers = &record.TriggerResult{Skill: "explainer", Prompts: 1, Measured: true,
		Accuracy: Share(0.5), Precision: Share(1), Recall: Share(0.5), F1: Share(0.667), Trials: Counts(1, 1, 0, 0, 0, 0), EndedEarly: 1,
		Results: []record.TriggerPrompt{{ID: "should_trigger#1", Verdict: record.Failed, Triggered: 1, Answered: 2}}}
	sum.Baseline = &record.BaselineResult{Measured: true, Pairs: 1, ClassCounts: record.ClassCounts{Improved: 1}, PassRate: &record.Gain{With: 1, Without: 0.5, Gain: 0.5},
		Tasks: []record.TaskBaseline{
			{ID: "ok", PassRate: &record.Gain{With: 1, Without: 0.5, Gain: 0.5}, Score: &record.Gain{With: 1, Without: 0.75, Gain: 0.25}},
		}}
	c.Now.Summary = sum

	polite := func(s float64, feedback string) record.Grade {
		return record.Grade{Name: "polite", Type: "text", Score: s, Passed: s == 1, Weight: 1, Feedback: feedback, DurationMS: 1,
			Details: map[string]any{"checks": []any{1.0}}}
	}
	c.AddTask("ok#baseline", record.RoleBaseline, record.Passed,
		c.Graded(record.Passed, polite(1, "")), c.Graded(record.Failed, polite(0.5, "no please")))
	c.Ref("ok#baseline").Of = "ok"
	c.AddTask("ok", record.RoleTask, record.Passed, c.Graded(record.Passed, polite(1, "")), c.full())
	c.AddTask("failed|<b>`x`</b>", record.RoleTask, record.Failed,
		c.Graded(record.Passed, polite(1, "")),
		c.Graded(record.Failed, polite(0, "=HYPERLINK(\"x\")\n@someone says ]]> \x1b[31m\x00\xff </failure>\n```\n</details>"),
			record.Grade{Name: "brief", Type: "behavior", Score: 0.25, Weight: 3}))
	c.AddTask("slow", record.RoleTask, record.TimedOut, c.Ungraded(record.TimedOut, "timeout exceeded"))
	c.AddTask("broken", record.RoleTask, record.Errored,
		c.Ungraded(record.Errored, "python3: not found on PATH\nsecond line"),
		c.Graded(record.Passed, polite(1, "")))
	c.Ended[c.Index("broken")].Error = "hook after_task: exit status 3"
	c.AddTask("waits", record.RoleTask, record.NeedsReview,
		c.Graded(record.NeedsReview, polite(1, ""), record.Grade{Name: "looks", Type: "human", Weight: 1, NeedsReview: true}))
	c.AddTask("left out", record.RoleTask, record.Skipped, c.Ungraded(record.Skipped, "not started: an earlier task failed"))
	c.AddTask("cut short", record.RoleTask, record.Cancelled, c.Ungraded(record.Cancelled, "the run was cancelled"))
	c.AddTask("should_trigger#1", record.RoleTrigger, record.Failed,
		c.Graded(record.Failed, record.Grade{Name: "_should_trigger", Type: "skill_invocation", Weight: 1, Feedback: "the skill was not used"}),
		c.Graded(record.Passed, record.Grade{Name: "_should_trigger", Type: "skill_invocation", Weight: 1, Score: 1, Passed: true}))
	c.Trial("should_trigger#1", 2).EndedEarly = true
	c.Ref("should_trigger#1").Trigger = &record.TriggerRef{Prompt: "Explain this.", ShouldTrigger: true, Confidence: "medium"}
	c.AddTask("never ended", record.RoleTask, "", c.Graded(record.Passed, polite(1, "")))
	c.Ref("never ended").Trials = 3
	c.Ref("slow").Cell = &record.Cell{Name: "model=m-2", Model: "m-2"}
	c.Trial("ok", 1).Cached = &record.CachedFrom{RunID: "earlier"}
	return c
}

// Index returns the index of the task with an id.
func (c *Canned) Index(id string) int {
	return slices.IndexFunc(c.Rec.Tasks, func(t record.TaskRef) bool { return t.ID == id })
}

// Ref returns the planned task with an id.
func (c *Canned) Ref(id string) *record.TaskRef { return &c.Rec.Tasks[c.Index(id)] }

// Trial returns a trial by the id of its task and its number.
func (c *Canned) Trial(id string, num int) *record.Trial {
	list := c.Done[c.Index(id)]
	return list[slices.IndexFunc(list, func(t *record.Trial) bool { return t.TrialNum == num })]
}

// AddTask adds a task with a verdict; without a verdict it has not ended.
func (c *Canned) AddTask(id string, role record.Role, v record.Verdict, trials ...*record.Trial) {
	ref := record.TaskRef{
		ID: id, Role: role, Name: "Task " + id, File: "tasks/" + strings.Trim(id, "|<b>`x/") + ".yaml",
		Trials: len(trials), First: 1, Tags: []string{"a", "b,c"},
	}
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
		res = NewTask(v, counts, scores, ms, reasons...)
	}
	c.Rec.Tasks = append(c.Rec.Tasks, ref)
	c.Ended = append(c.Ended, res)
	c.Done = append(c.Done, trials)
}

// Graded returns a trial with the given grades.
func (c *Canned) Graded(v record.Verdict, graders ...record.Grade) *record.Trial {
	sum, weights := 0.0, 0.0
	for _, g := range graders {
		if !g.NeedsReview {
			sum += g.Score * g.Weight
			weights += g.Weight
		}
	}
	return &record.Trial{Hash: "h1", Verdict: v, Score: Share(sum / weights), StartedAt: cannedStart.Add(time.Second), DurationMS: 1250, ExecutorMS: 1200, StartupMS: 40,
		Prompt: "Say it.", Output: "Here it is.", Graders: graders, Transcript: []record.Entry{}}
}

// Ungraded returns a trial without grades.
func (c *Canned) Ungraded(v record.Verdict, why string) *record.Trial {
	return &record.Trial{Hash: "h2", Verdict: v, Error: why, DurationMS: 20, Graders: []record.Grade{}, Transcript: []record.Entry{}}
}

// full returns a trial with all fields set.
func (c *Canned) full() *record.Trial {
	t := c.Graded(record.Passed,
		record.Grade{Name: "judge", Type: "prompt", Score: 1, Passed: true, Weight: 2, Details: []string{"not", "a", "map"}})
	t.Usage = &record.Usage{InputTokens: 100, OutputTokens: 20, CostUSD: 0.0125}
	t.Attempts = []record.Attempt{{Verdict: record.Failed}}
	call := func(tool record.ToolCall) *record.ToolCall { return &tool }
	t.Transcript = []record.Entry{
		{Type: record.EntryMessage, Role: "user", Text: "Say it."},
		{Type: record.EntryThought, Text: "Hm."},
		{Type: record.EntryPlan, Plan: []record.PlanStep{{Text: "say it", Status: "done"}}},
		{
			Type: record.EntryToolCall,
			Tool: call(record.ToolCall{
				ID: "c1", Name: "bash", Arguments: json.RawMessage(`{"command":"ls","path":["not a string"]}`),
				Result: json.RawMessage(`"a.txt"`), Status: "completed", DurationMS: 7,
			}),
		},
		{
			Type: record.EntryToolCall,
			Tool: call(record.ToolCall{
				Name: "edit", Arguments: json.RawMessage(`[1]`), Result: json.RawMessage(`{"error":"no such file"}`),
				Status: "failed",
			}),
		},
		{Type: record.EntryToolCall, Tool: call(record.ToolCall{Name: "bash"})},
		{Type: record.EntrySkill, Text: "explainer"},
		{Type: record.EntryPermission, Permission: &record.Permission{Title: "write", Reason: "outside"}},
		{Type: record.EntryError, Text: "a hiccup"},
		{Type: record.EntryMessage, Role: "assistant", Text: "Here it is."},
		{Type: record.EntryMessage, Role: "user", Text: "Again."},
		{Type: record.EntryStop, Text: "end_turn"},
		{Type: record.EntryDropped, Text: "3 entries"},
	}
	return t
}
