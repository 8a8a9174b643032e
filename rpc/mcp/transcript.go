package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval/jsonwalk"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/page"
)

// Limits on transcripts.
const (
	usualEntries = 20  // per page, unless the call asks for more
	mostEntries  = 200 // per page
	usualChars   = 800 // bytes of a text
	mostChars    = 16 << 10
	maxPage      = 24 << 10 // bytes of all texts of a page
	maxFiles     = 30
)

type transcriptInput struct {
	RunID    string `json:"run_id,omitempty" jsonschema:"id of the run; the newest when absent"`
	TaskID   string `json:"task_id,omitempty" jsonschema:"id of the task; when absent, the first task that did not pass"`
	Trial    int    `json:"trial,omitempty" jsonschema:"number of the trial, from 1; when absent, the first trial that did not pass"`
	Offset   int    `json:"offset,omitempty" jsonschema:"number of the first entry, from 0"`
	Limit    int    `json:"limit,omitempty" jsonschema:"maximum number of entries; 20 when absent"`
	MaxChars int    `json:"max_chars,omitempty" jsonschema:"maximum number of bytes of each text; 800 when absent, up to 16384"`
}

// trialShown is a page of a trial. The first page also has the result of the trial.
type trialShown struct {
	RunID   string        `json:"run_id"`
	TaskID  string        `json:"task_id"`
	Trial   int           `json:"trial"`
	Verdict string        `json:"verdict"`
	Damage  string        `json:"damage,omitempty" jsonschema:"parts of the run's record that are lost, changed or not verifiable"`
	Score   *float64      `json:"score,omitempty"`
	Error   string        `json:"error,omitempty"`
	Prompt  string        `json:"prompt,omitempty"`
	Output  string        `json:"output,omitempty" jsonschema:"the agent's answer"`
	Graders []graderShown `json:"graders,omitempty"`
	Files   []fileShown   `json:"files,omitempty" jsonschema:"files that the agent added, changed or removed"`
	// Moves of a trial that passed.
	Suspicious []string     `json:"suspicious,omitempty" jsonschema:"suspicious moves of an agent that passed: look at them before you trust the verdict"`
	Tier       string       `json:"tier,omitempty" jsonschema:"tier of the trial's sandbox, if a worker of a fleet chose it"`
	Total      int          `json:"total_entries"`
	Entries    []entryShown `json:"entries"`
	Next       *int         `json:"next_offset,omitempty" jsonschema:"offset of the next page; absent on the last page"`
}

type graderShown struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Passed   bool    `json:"passed"`
	Score    float64 `json:"score"`
	Feedback string  `json:"feedback,omitempty"`
	Error    string  `json:"error,omitempty" jsonschema:"why the grader itself failed"`
}

type fileShown struct {
	Path  string `json:"path"`
	State string `json:"state" jsonschema:"added, changed, removed or unknown"`
}

type entryShown struct {
	N         int    `json:"n" jsonschema:"number of the entry, from 0"`
	AtMS      int64  `json:"at_ms"`
	Type      string `json:"type" jsonschema:"message, thought, tool_call, skill, error, plan, permission, stop or dropped"`
	Role      string `json:"role,omitempty"`
	Text      string `json:"text,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Result    string `json:"result,omitempty"`
	Status    string `json:"status,omitempty"`
	// A tool call that only the agent says it made.
	SelfReported bool `json:"self_reported,omitempty" jsonschema:"only the agent says that it made this tool call; waza did not see it"`
}

func (s runTools) transcript(ctx context.Context, _ *sdk.CallToolRequest, in transcriptInput) (*trialShown, error) {
	switch {
	case in.Offset < 0 || in.Limit < 0 || in.Trial < 0:
		return nil, fmt.Errorf("offset, limit and trial must not be negative, got %d, %d and %d", in.Offset, in.Limit, in.Trial)
	case in.MaxChars < 0 || in.MaxChars > mostChars:
		return nil, fmt.Errorf("max_chars must be between 1 and %d, got %d", mostChars, in.MaxChars)
	}
	h, err := s.find(in.RunID)
	if err != nil {
		return nil, err
	}
	if err := choose(h, &in); err != nil {
		return nil, err
	}
	var found struct {
		Trial record.Trial
		Files []page.TrialFile
	}
	if err := s.daemon.call(ctx, "run.trial", map[string]any{"runId": h.ID(), "taskId": in.TaskID, "trial": in.Trial}, &found); err != nil {
		return nil, err
	}
	damage, err := damageOf(h)
	if err != nil {
		return nil, err
	}
	return showTrial(h.ID(), damage, &found.Trial, found.Files, in)
}

// showTrial returns a page of a trial. It shortens texts further than requested if the page
// would be too large.
func showTrial(runID, damage string, t *record.Trial, files []page.TrialFile, in transcriptInput) (*trialShown, error) {
	for each := cmp.Or(in.MaxChars, usualChars); ; each /= 2 {
		r := &trialShown{
			RunID: runID, TaskID: t.TaskID, Trial: t.TrialNum,
			Verdict: string(t.Verdict), Damage: damage, Score: rounded(t.Score),
			Error: shorten(t.Error, maxReason),
			Total: len(t.Transcript), Entries: []entryShown{}}
		if in.Offset == 0 {
			r.outcome(t, files, each)
		}
		r.page(t.Transcript, in.Offset, min(cmp.Or(in.Limit, usualEntries), mostEntries), each)
		encoded, err := jsonwalk.Encode(r)
		if err != nil || len(encoded) <= maxAnswer || each == 0 {
			return r, err
		}
	}
}

// choose sets the task and trial if the agent did not: the first trial that did not pass or, if
// all passed, the first.
func choose(h record.Handle, in *transcriptInput) error {
	if in.TaskID != "" && in.Trial > 0 {
		return nil
	}
	r, err := report.OfResults(h)
	if err != nil {
		return err
	}
	tasks, err := chosenTasks(r, in.TaskID)
	if err != nil {
		return err
	}
	rank := map[int]int{} // by the index of the task
	for i, t := range tasks {
		rank[t.index] = i + 1
	}
	best := 0
	var task string
	var trial int
	err = h.Outcomes(func(index int, t *record.Trial, _ int64) error {
		at := 2 * rank[index]
		if t.Verdict == record.Passed {
			at++
		}
		if rank[index] > 0 && (best == 0 || at < best) && (in.Trial == 0 || in.Trial == t.TrialNum) {
			best, task, trial = at, t.TaskID, t.TrialNum
		}
		return nil
	})
	if err == nil && best == 0 {
		err = fmt.Errorf("the trial does not exist in run %s or has not ended", h.ID())
	}
	in.TaskID, in.Trial = task, trial
	return err
}

// outcome sets the result of the trial.
func (r *trialShown) outcome(t *record.Trial, files []page.TrialFile, each int) {
	r.Prompt, r.Output = shorten(t.Prompt, each), shorten(t.Output, max(each, maxOutput))
	for _, g := range t.Graders[:min(len(t.Graders), maxFiles)] {
		r.Graders = append(r.Graders,
			graderShown{shorten(g.Name, 100), g.Type, g.Passed, round(g.Score), shorten(g.Feedback, each), shorten(g.Error, each)})
	}
	r.Tier = string(t.Tier)
	for _, why := range report.SuspicionTexts(t) {
		if len(r.Suspicious) < maxFiles {
			r.Suspicious = append(r.Suspicious, shorten(why, each))
		}
	}
	for _, f := range files {
		if f.State != "same" && len(r.Files) < maxFiles {
			r.Files = append(r.Files, fileShown{shorten(f.Path, 200), f.State})
		}
	}
}

// page adds entries from the offset on: at least one, and as many as fit.
func (r *trialShown) page(entries []record.Entry, offset, limit, each int) {
	room := maxPage
	for i := offset; i < len(entries); i++ {
		e := showEntry(&entries[i], each)
		e.N = i
		room -= len(e.Text) + len(e.Arguments) + len(e.Result) + 100
		if len(r.Entries) == limit || room < 0 && len(r.Entries) > 0 {
			r.Next = &i
			return
		}
		r.Entries = append(r.Entries, e)
	}
}

func showEntry(e *record.Entry, each int) entryShown {
	o := entryShown{AtMS: e.AtMS, Type: string(e.Type), Role: e.Role, Text: shorten(e.Text, each)}
	if c := e.Tool; c != nil {
		o.Tool, o.Status, o.SelfReported = shorten(cmp.Or(c.Name, c.Title), 200), c.Status, c.SelfReported
		o.Arguments, o.Result = shorten(string(c.Arguments), each), shorten(record.PlainText(c.Result), each)
	}
	if p := e.Permission; p != nil {
		o.Text = shorten(fmt.Sprintf("%s: allowed %v: %s", p.Title, p.Allowed, p.Reason), each)
	}
	if len(e.Plan) > 0 {
		var steps []string
		for _, step := range e.Plan {
			steps = append(steps, strings.TrimSpace(step.Status+" "+step.Text))
		}
		o.Text = shorten(strings.Join(steps, "\n"), each)
	}
	return o
}
