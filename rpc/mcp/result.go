package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/report"
)

// Limits on results.
const (
	usualTasks    = 30  // in a result, unless the call asks for more
	usualFailures = 8   // tasks that did not pass and are shown with reasons
	mostReasons   = 5   // per task
	maxReason     = 600 // bytes
	maxOutput     = 400 // bytes of an agent's answer
)

type resultInput struct {
	RunID       string  `json:"run_id,omitempty" jsonschema:"id of the run; the newest when absent"`
	TaskID      string  `json:"task_id,omitempty" jsonschema:"only this task"`
	Offset      int     `json:"offset,omitempty" jsonschema:"number of tasks to skip; tasks that did not pass come first"`
	Limit       int     `json:"limit,omitempty" jsonschema:"maximum number of tasks; 30 when absent"`
	WaitSeconds float64 `json:"wait_seconds,omitempty" jsonschema:"seconds to wait for the end of an active run; 0 when absent"`
}

// runDigest is the result of a run in compact form.
type runDigest struct {
	RunID     string    `json:"run_id"`
	Status    string    `json:"status" jsonschema:"running, completed, failed (the run itself failed), cancelled or interrupted; a completed run can have failed tasks"`
	Damage    string    `json:"damage,omitempty" jsonschema:"parts of the record that are lost, changed or not verifiable: do not rely on the results"`
	Error     string    `json:"error,omitempty" jsonschema:"why the run did not complete"`
	Suite     string    `json:"suite"`
	Path      string    `json:"path" jsonschema:"suite file"`
	Executor  string    `json:"executor,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Model     string    `json:"model,omitempty"`
	Sandbox   string    `json:"sandbox,omitempty" jsonschema:"the sandboxes of the trials; absent in records of versions without them"`
	StartedAt time.Time `json:"started_at"`
	Tasks     counts    `json:"tasks"`
	Trials    counts    `json:"trials"`
	// Summary of a completed run.
	PassRate   *float64      `json:"pass_rate,omitempty" jsonschema:"share of the counted tasks that passed; errors are not counted, because they are not caused by the agent"`
	Score      *float64      `json:"score,omitempty" jsonschema:"mean score of the tasks, 0 to 1"`
	Tokens     int64         `json:"tokens,omitempty"`
	CostUSD    float64       `json:"cost_usd,omitempty"`
	DurationMS int64         `json:"duration_ms,omitempty"`
	Missed     []string      `json:"missed_thresholds,omitempty" jsonschema:"metrics below their threshold"`
	Baseline   *baseline     `json:"baseline,omitempty" jsonschema:"results of the agent with its skills and without, or with earlier ones"`
	Triggers   *triggers     `json:"trigger_tests,omitempty" jsonschema:"how well the agent knew when to use the skill"`
	Judges     []string      `json:"judge_positions,omitempty" jsonschema:"judges who compare outputs and prefer the first or the second, whichever it is"`
	Decision   *decision     `json:"decision,omitempty" jsonschema:"the answer to the question of the run"`
	Tuning     *tuning       `json:"tuning,omitempty" jsonschema:"the best cell of a tuning of parameters or prompts"`
	Results    []taskOutcome `json:"results" jsonschema:"the tasks, those that did not pass first"`
	Omitted    int           `json:"results_omitted,omitempty" jsonschema:"number of tasks that were left out; get them with offset"`
	Warnings   []string      `json:"warnings,omitempty" jsonschema:"requirements of the run that this machine lacks"`
	Next       string        `json:"next,omitempty" jsonschema:"suggested next call"`
}

// decision is the answer to the question of a run.
type decision struct {
	Verdict   string  `json:"verdict" jsonschema:"better, not_better or undecided"`
	Answer    string  `json:"answer" jsonschema:"the answer in one line"`
	Gain      float64 `json:"gain" jsonschema:"gain of side b over side a, as a difference of pass rates"`
	Low       float64 `json:"low" jsonschema:"lower bound of the gain"`
	High      float64 `json:"high" jsonschema:"upper bound of the gain"`
	Pairs     int     `json:"pairs" jsonschema:"pairs of trials that the answer uses"`
	MoreUSD   float64 `json:"more_usd,omitempty" jsonschema:"predicted further cost until an answer, in US dollars"`
	MorePairs int     `json:"more_pairs,omitempty" jsonschema:"predicted further pairs until an answer"`
}

func decisionOf(d *record.Decision) *decision {
	if d == nil {
		return nil
	}
	out := &decision{
		Verdict: string(d.Verdict), Answer: shorten(d.Text, maxSentence), Gain: *rounded(&d.Gain), Low: *rounded(&d.Interval.Low),
		High: *rounded(&d.Interval.High), Pairs: d.Pairs,
	}
	if d.More != nil {
		out.MoreUSD, out.MorePairs = *rounded(&d.More.CostUSD), d.More.Pairs
	}
	return out
}

// sandboxOf describes the sandboxes of a run; empty if its record has none.
func sandboxOf(rec *record.Run, sum *record.Summary) string {
	if rec.Sandbox == nil {
		return ""
	}
	return rec.Sandbox.After(sum).String()
}

type counts struct {
	Total       int `json:"total"`
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	Errors      int `json:"errors,omitempty" jsonschema:"faults of the harness, the network or a provider, not of the agent"`
	Timeouts    int `json:"timeouts,omitempty"`
	Cancelled   int `json:"cancelled,omitempty"`
	Skipped     int `json:"skipped,omitempty"`
	NeedsReview int `json:"needs_review,omitempty"`
	Pending     int `json:"pending,omitempty" jsonschema:"not finished yet"`
}

func countsOf(c record.Counts) counts {
	return counts{c.Total, c.Passed, c.Failed, c.Errors, c.Timeouts, c.Cancelled, c.Skipped, c.NeedsReview, c.Total - c.Done()}
}

type baseline struct {
	Arm             string   `json:"arm,omitempty" jsonschema:"name of the side that the skills are compared with; absent for an agent without skills"`
	Pairs           int      `json:"pairs" jsonschema:"number of tasks that were compared"`
	PassRateWith    *float64 `json:"pass_rate_with,omitempty"`
	PassRateWithout *float64 `json:"pass_rate_without,omitempty"`
	Gain            *float64 `json:"gain,omitempty"`
	About           string   `json:"about,omitempty" jsonschema:"question of the outcome: tasks_like_these, of which the compared ones are a sample, or these_tasks"`
	Outcome         string   `json:"outcome,omitempty" jsonschema:"effect of the skills by a test of that question: better, worse, same or undecided"`
	P               *float64 `json:"p,omitempty" jsonschema:"p-value of the outcome"`
	MoreTrials      int      `json:"more_trials,omitempty" jsonschema:"number of further trials of each task that would decide about these tasks, if that is undecided"`
	Note            string   `json:"note,omitempty"`
}

type triggers struct {
	Prompts   int      `json:"prompts"`
	Precision *float64 `json:"precision,omitempty"`
	Recall    *float64 `json:"recall,omitempty"`
	F1        *float64 `json:"f1,omitempty"`
	Accuracy  *float64 `json:"accuracy,omitempty"`
	Note      string   `json:"note,omitempty"`
}

type tuning struct {
	Best        string   `json:"best_cell,omitempty" jsonschema:"absent if the cells have no task with a score in common"`
	Score       *float64 `json:"score,omitempty" jsonschema:"estimate of the true score of the best cell, over the tasks with a score in every cell"`
	Low         *float64 `json:"score_low,omitempty" jsonschema:"lower limit of its 95 % interval"`
	High        *float64 `json:"score_high,omitempty" jsonschema:"upper limit of its 95 % interval"`
	Basis       string   `json:"score_basis,omitempty" jsonschema:"shrunk, because the same trials selected the cell and no fresh trials confirm it, or measured, if there was only one cell"`
	TrialsScore *float64 `json:"trials_score,omitempty" jsonschema:"mean score of the trials of the best cell, too high on average"`
	Rivals      []string `json:"possibly_as_good,omitempty" jsonschema:"the first cells that the trials do not separate from the best"`
	RivalCount  int      `json:"possibly_as_good_count,omitempty"`
	Note        string   `json:"note,omitempty"`
	LeftOut     []string `json:"tasks_left_out,omitempty" jsonschema:"the first tasks without a score in every cell, with the reason"`
	LeftOutMany int      `json:"tasks_left_out_count,omitempty"`
}

// mostNamed is the most cells, tasks or judges of a list in a digest.
const mostNamed = 8

// tuningOf returns the digest of a tuning, or nil.
func tuningOf(s *record.Summary) *tuning {
	t := s.Tune
	if t == nil {
		return nil
	}
	d := &tuning{Best: shorten(t.Best, maxSentence), Note: shorten(t.Note, maxSentence), RivalCount: len(t.Rivals)}
	for _, rival := range t.Rivals[:min(len(t.Rivals), mostNamed)] {
		d.Rivals = append(d.Rivals, shorten(rival, maxSentence))
	}
	if e := t.Score; e != nil {
		d.Score, d.TrialsScore, d.Basis = rounded(&e.Value), rounded(&e.Observed), e.Basis
		d.Low, d.High = rounded(&e.Interval.Low), rounded(&e.Interval.High)
	}
	if s.Common != nil {
		d.LeftOutMany = len(s.Common.LeftOut)
		for _, out := range s.Common.LeftOut[:min(d.LeftOutMany, mostNamed)] {
			d.LeftOut = append(d.LeftOut, shorten(out.Task+": "+out.Why, maxSentence))
		}
	}
	return d
}

// taskOutcome is the result of a task.
type taskOutcome struct {
	TaskID  string   `json:"task_id"`
	Verdict string   `json:"verdict" jsonschema:"passed, failed, error, timeout, cancelled, skipped or needs_review; running if the task has not ended"`
	Role    string   `json:"role,omitempty" jsonschema:"baseline or trigger; absent for a task of the suite itself"`
	Passed  int      `json:"passed" jsonschema:"number of trials that passed"`
	Trials  int      `json:"trials"`
	Score   *float64 `json:"score,omitempty"`
	Flaky   bool     `json:"flaky,omitempty"`
	// Set if there are any; they count as passed.
	Suspicious   int `json:"suspicious,omitempty" jsonschema:"number of trials that passed with suspicious moves; they count as passed"`
	SelfReported int `json:"self_reported,omitempty" jsonschema:"number of passes that depend on tool calls that only the agent says it made"`
	// Set for the first tasks that did not pass.
	Reasons []reason `json:"reasons,omitempty"`
	Trial   int      `json:"trial,omitempty" jsonschema:"number of a trial that did not pass, for waza_run_transcript"`
	Output  string   `json:"output,omitempty" jsonschema:"the agent's answer in that trial"`
}

type reason struct {
	Grader  string `json:"grader,omitempty" jsonschema:"grader that did not pass; absent for an error"`
	Message string `json:"message"`
	Trials  int    `json:"trials" jsonschema:"number of trials that did not pass for this reason"`
}

func (s runTools) runResult(ctx context.Context, req *sdk.CallToolRequest, in resultInput) (*runDigest, error) {
	h, err := s.find(in.RunID)
	if err != nil {
		return nil, err
	}
	wait, _, err := waitOf(req, &in.WaitSeconds)
	if err != nil {
		return nil, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return nil, fmt.Errorf("offset and limit must not be negative, got %d and %d", in.Offset, in.Limit)
	}
	if wait > 0 {
		if err := s.await(ctx, req, h, wait, true); err != nil {
			return nil, err
		}
	}
	return s.digest(h, digestOptions{in.TaskID, in.Offset, in.Limit})
}

type digestOptions struct {
	task          string // empty means all
	offset, limit int
}

// digest returns the current result of a run.
func (s runTools) digest(h record.Handle, o digestOptions) (*runDigest, error) {
	r, err := report.Of(h)
	if err != nil {
		return nil, err
	}
	p, err := h.Progress()
	if err != nil {
		return nil, err
	}
	damage, err := damageOf(h)
	if err != nil {
		return nil, err
	}
	rec := r.Record
	d := &runDigest{
		RunID: rec.RunID, Status: string(r.Status), Damage: damage, Error: shorten(r.Error, maxReason),
		Suite: shorten(rec.Suite.Name, 100), Path: s.relative(rec.Suite.Path),
		Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.ModelText(nil), StartedAt: p.StartedAt,
		Sandbox: sandboxOf(rec, r.Summary),
		Tasks:   countsOf(p.Tasks), Trials: countsOf(p.Trials), Results: []taskOutcome{},
	}
	d.sumUp(r.Summary)
	tasks, err := chosenTasks(r, o.task)
	if err != nil {
		return nil, err
	}
	offset, limit := min(o.offset, len(tasks)), cmp.Or(o.limit, usualTasks)
	tasks = tasks[offset:]
	all := len(tasks)
	tasks = tasks[:min(all, limit)]
	wanted := map[int]*taskOutcome{}
	for i, t := range tasks {
		d.Results = append(d.Results, outcomeOf(t, i < usualFailures))
	}
	for i, t := range tasks {
		if len(d.Results[i].Reasons) > 0 {
			wanted[t.index] = &d.Results[i]
		}
	}
	if err := showFailures(h, wanted); err != nil {
		return nil, err
	}
	d.Results = limitList(d.Results, limit)
	d.Omitted = all - len(d.Results)
	d.Next = d.next()
	return d, nil
}

func (d *runDigest) sumUp(s *record.Summary) {
	if s == nil {
		return
	}
	d.PassRate, d.DurationMS, d.Missed = rounded(s.PassRate), s.DurationMS, s.Missed
	if s.Score != nil {
		d.Score = rounded(&s.Score.Mean)
	}
	if s.Usage != nil {
		d.Tokens, d.CostUSD = s.Usage.Total(), s.Usage.CostUSD
	}
	d.Decision = decisionOf(s.Decision)
	if b := s.Baseline; b != nil {
		d.Baseline = &baseline{Arm: string(b.Arm), Pairs: b.Pairs, About: string(b.About), Outcome: string(b.Outcome), Note: shorten(b.Note, maxSentence)}
		if b.Outcome != "" {
			d.Baseline.P = rounded(&b.P)
		}
		if b.Needed != nil {
			d.Baseline.MoreTrials = b.Needed.More
		}
		if g := b.PassRate; g != nil {
			d.Baseline.PassRateWith, d.Baseline.PassRateWithout, d.Baseline.Gain = rounded(&g.With), rounded(&g.Without), rounded(&g.Gain)
		}
	}
	for i := range s.JudgePositions[:min(len(s.JudgePositions), mostNamed)] {
		d.Judges = append(d.Judges, shorten(report.PositionText(&s.JudgePositions[i]), maxSentence))
	}
	d.Tuning = tuningOf(s)
	if t := s.Triggers; t != nil {
		d.Triggers = &triggers{
			t.Prompts, rounded(t.Precision), rounded(t.Recall), rounded(t.F1), rounded(t.Accuracy),
			shorten(t.Note, maxSentence),
		}
	}
}

// shownTask is a task with its index in the run.
type shownTask struct {
	report.Task
	index int
}

// known returns the result of the task so far, or nil.
func (t *shownTask) known() *record.Task { return cmp.Or(t.Result, t.SoFar) }

// rank orders tasks by how much attention they need.
func (t *shownTask) rank() int {
	res := t.known()
	switch {
	case res == nil:
		return 5
	case t.Role == record.RoleBaseline:
		return 6
	}
	switch res.Verdict {
	case record.Failed, record.TimedOut:
		return 0
	case record.Errored:
		return 1
	case record.NeedsReview:
		return 2
	case record.Passed:
		return 4
	}
	return 3
}

// chosenTasks returns the tasks of a run, or one of them; tasks that did not pass come first.
func chosenTasks(r *report.Report, id string) ([]shownTask, error) {
	var tasks []shownTask
	var known []string
	for i, t := range r.Tasks {
		known = append(known, t.ID)
		if id == "" || t.ID == id {
			tasks = append(tasks, shownTask{t, i})
		}
	}
	if id != "" && len(tasks) == 0 {
		return nil, fmt.Errorf("run %s has no task %q; its tasks are %s", r.Record.RunID, shorten(id, 200), text.Names(known))
	}
	slices.SortStableFunc(tasks, func(a, b shownTask) int { return a.rank() - b.rank() })
	return tasks, nil
}

func outcomeOf(t shownTask, reasons bool) taskOutcome {
	o := taskOutcome{TaskID: t.ID, Verdict: "running", Role: string(t.Role), Trials: t.Trials}
	res := t.known()
	if res == nil {
		return o
	}
	if t.Result != nil {
		o.Verdict = string(res.Verdict)
	}
	o.Passed, o.Flaky, o.Suspicious, o.SelfReported = res.Trials.Passed, res.Flaky, res.Suspicious, res.SelfReported
	if res.Score != nil {
		o.Score = rounded(&res.Score.Mean)
	}
	if !reasons || t.Role == record.RoleBaseline && res.Verdict != record.Errored {
		return o
	}
	if res.Error != "" {
		o.Reasons = append(o.Reasons, reason{Message: shorten(res.Error, maxReason)})
	}
	for _, why := range res.Reasons[:min(len(res.Reasons), mostReasons)] {
		o.Reasons = append(o.Reasons, reason{shorten(why.Grader, 100), cmp.Or(shorten(why.Message, maxReason), "no reason given"), why.Trials})
	}
	return o
}

// showFailures sets a failed trial of each outcome. It reads the trials one by one.
func showFailures(h record.Handle, wanted map[int]*taskOutcome) error {
	if len(wanted) == 0 {
		return nil
	}
	return h.Trials(func(task int, t *record.Trial) error {
		if o := wanted[task]; o != nil && o.Trial == 0 && t.Verdict != record.Passed {
			o.Trial, o.Output = t.TrialNum, shorten(t.Output, maxOutput)
		}
		return nil
	})
}

// next suggests the next call of the agent.
func (d *runDigest) next() string {
	if d.Status == string(record.StatusRunning) {
		return fmt.Sprintf("The run continues: call waza_run_result with run_id %s and wait_seconds 50.", d.RunID)
	}
	for _, o := range d.Results {
		if o.Trial > 0 {
			return fmt.Sprintf("To see what the agent did, call waza_run_transcript with run_id %s, task_id %s and trial %d.",
				d.RunID, o.TaskID, o.Trial)
		}
	}
	return ""
}
