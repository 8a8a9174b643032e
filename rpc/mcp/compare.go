package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/runner/compare"
	"waza/runner/history"
	"waza/runner/record"
	"waza/runner/report"
)

// maxNames limits lists of ids.
const maxNames = 20

type compareInput struct {
	Run   string   `json:"run,omitempty" jsonschema:"id of the run to compare; the newest of this project when absent"`
	Base  string   `json:"base,omitempty" jsonschema:"id of the run to compare with; when absent, the previous run of the same suite"`
	Tasks []string `json:"tasks,omitempty" jsonschema:"compare only tasks whose id or name matches one of these globs"`
	About string   `json:"about,omitempty" jsonschema:"question of the outcome: these_tasks, whether anything changed on exactly these tasks, or tasks_like_these, whether it changed on all tasks of this kind; when absent, tasks_like_these unless there are too few tasks"`
}

type comparison struct {
	Base    string  `json:"base"`
	Run     string  `json:"run"`
	About   string  `json:"about" jsonschema:"question of the outcome: tasks_like_these, of which the compared ones are a sample, or these_tasks"`
	Outcome string  `json:"outcome" jsonschema:"answer to that question by a test of all tasks together, which can show what no single task shows: better, worse, same (a difference larger than the margin is ruled out) or undecided (the differences may be chance)"`
	P       float64 `json:"p" jsonschema:"p-value of the outcome, corrected for earlier comparisons with the base"`
	// The answers to both questions; the first has the values above if About names it.
	TheseTasks     answer     `json:"these_tasks" jsonschema:"whether anything changed on exactly these tasks"`
	TasksLikeThese likeAnswer `json:"tasks_like_these" jsonschema:"whether the mean changed over all tasks of this kind"`
	Compared       int        `json:"compared" jsonschema:"number of tasks with results in both runs"`
	Improved       int        `json:"improved" jsonschema:"number of tasks that improved, each tested by itself"`
	Regressed      int        `json:"regressed" jsonschema:"number of tasks that regressed, each tested by itself"`
	Collapsed      []string   `json:"collapsed,omitempty" jsonschema:"tasks that passed all trials of the base and none of the run, in too few trials for a test; a gate fails for them by a rule"`
	Unchanged      int        `json:"unchanged"`
	// NoDifference and Undecided are those of the run.compare method.
	NoDifference int          `json:"no_difference" jsonschema:"number of tasks without a difference, but with too few trials to rule one out"`
	Undecided    int          `json:"undecided" jsonschema:"number of tasks with a difference that may be chance"`
	Lost         int          `json:"lost" jsonschema:"number of tasks that passed in the base and do not pass now"`
	Won          int          `json:"won" jsonschema:"number of tasks that pass now and did not pass in the base"`
	PassRate     *contrast    `json:"pass_rate,omitempty"`
	Score        *contrast    `json:"score,omitempty"`
	DurationMS   *contrast    `json:"duration_ms,omitempty"`
	Tokens       *contrast    `json:"tokens,omitempty"`
	CostUSD      *contrast    `json:"cost_usd,omitempty"`
	Tasks        []taskChange `json:"tasks" jsonschema:"tasks that differ, regressed ones first"`
	Omitted      int          `json:"tasks_omitted,omitempty"`
	OnlyBase     []string     `json:"only_base,omitempty" jsonschema:"tasks that only the base has"`
	OnlyRun      []string     `json:"only_run,omitempty" jsonschema:"tasks that only the run has"`
	Uncounted    []string     `json:"uncounted,omitempty" jsonschema:"tasks that cannot be compared, because no trial of one run counts"`
	Differences  []string     `json:"differences,omitempty" jsonschema:"settings that differ"`
	Notes        []string     `json:"notes,omitempty" jsonschema:"limitations of the comparison"`
}

// An answer answers one question.
type answer struct {
	Outcome  string    `json:"outcome" jsonschema:"better, worse, same or undecided"`
	P        float64   `json:"p"`
	PassRate *contrast `json:"pass_rate,omitempty" jsonschema:"with the interval of this question"`
	Score    *contrast `json:"score,omitempty" jsonschema:"with the interval of this question"`
}

type likeAnswer struct {
	answer
	TooFew      bool   `json:"too_few,omitempty" jsonschema:"there are too few tasks for any answer"`
	AtLeast     int    `json:"at_least" jsonschema:"number of tasks, or clusters of them, that the test needs at least"`
	TasksNeeded int    `json:"tasks_needed,omitempty" jsonschema:"number of tasks that would show this difference"`
	Advice      string `json:"advice,omitempty" jsonschema:"what limits the answer, and whether more tasks or more trials would help"`
}

func answerOf(a *record.Answer) answer {
	return answer{string(a.Outcome), round(a.P), contrastOf(a.PassRate), contrastOf(a.Score)}
}

// A contrast compares a mean of two runs.
type contrast struct {
	Base       float64     `json:"base"`
	Run        float64     `json:"run"`
	Difference float64     `json:"difference"`
	Interval   *[2]float64 `json:"interval,omitempty" jsonschema:"95 % interval of the difference"`
}

type taskChange struct {
	TaskID   string    `json:"task_id"`
	Class    string    `json:"class" jsonschema:"improved, regressed, undecided, unchanged or no_difference"`
	P        float64   `json:"p"`
	PassRate contrast  `json:"pass_rate"`
	Score    *contrast `json:"score,omitempty"`
	Changed  string    `json:"changed,omitempty" jsonschema:"changed part of the task itself: execution, model or graders"`
	Trials   int       `json:"trials_needed,omitempty" jsonschema:"number of trials per run that would show this difference"`
}

func (s runTools) compareRuns(ctx context.Context, _ *sdk.CallToolRequest, in compareInput) (*comparison, error) {
	run, err := s.find(in.Run)
	if err != nil {
		return nil, err
	}
	base := in.Base
	if base == "" {
		before, err := s.runner.Catalog().Find(s.dir, run.ID()+"~1")
		if err != nil {
			return nil, fmt.Errorf("run %s is the first of its suite; set base to the run to compare with", run.ID())
		}
		base = before.ID()
	} else if h, err := s.find(base); err != nil {
		return nil, err
	} else {
		base = h.ID()
	}
	params := map[string]any{"runIds": []string{base, run.ID()}}
	if in.About != "" {
		params["about"] = in.About
	}
	if len(in.Tasks) > 0 {
		params["tasks"] = in.Tasks
	}
	var c compare.Comparison
	if err := s.daemon.call(ctx, "run.compare", params, &c); err != nil {
		return nil, err
	}
	if len(c.Comparisons) != 1 {
		return nil, fmt.Errorf("cannot compare the runs %s and %s", base, run.ID())
	}
	r := newComparison(&c.Comparisons[0])
	r.Base, r.Run = base, run.ID()
	return r, nil
}

func newComparison(c *compare.RunComparison) *comparison {
	r := &comparison{
		About: string(c.About), Outcome: string(c.Outcome), P: round(c.P), TheseTasks: answerOf(&c.TheseTasks),
		TasksLikeThese: likeAnswer{
			answer: answerOf(&c.TasksLikeThese.Answer), TooFew: c.TasksLikeThese.TooFew, AtLeast: c.TasksLikeThese.AtLeast,
			Advice: strings.Join(report.LikeTexts(&c.TasksLikeThese, c.Compared), "; "),
		},
		Compared: c.Compared, Improved: c.Improved, Regressed: c.Regressed,
		Unchanged: c.Unchanged, NoDifference: c.NoDifference, Undecided: c.Undecided, Lost: c.Verdicts.Lost, Won: c.Verdicts.Won,
		PassRate: contrastOf(c.PassRate), Score: contrastOf(c.Score), DurationMS: ratioOf(c.DurationMS),
		Tokens: ratioOf(c.Tokens), CostUSD: ratioOf(c.CostUSD),
		Tasks: []taskChange{}, OnlyBase: firstNames(c.OnlyReference), OnlyRun: firstNames(c.OnlyRun),
	}
	if n := c.TasksLikeThese.TasksNeeded; n != nil {
		r.TasksLikeThese.TasksNeeded = *n
	}
	var ids []string
	for _, t := range c.Uncounted {
		ids = append(ids, t.ID)
	}
	r.Uncounted = firstNames(ids)
	for _, t := range c.Collapsed() {
		r.Collapsed = append(r.Collapsed, t.ID)
	}
	r.Collapsed = firstNames(r.Collapsed)
	for _, d := range c.Differences[:min(len(c.Differences), maxNames)] {
		r.Differences = append(r.Differences, shorten(fmt.Sprintf("%s: %s, then %s", d.What, d.Reference, d.Run), maxSentence))
	}
	for _, n := range c.Notes[:min(len(c.Notes), maxNames)] {
		r.Notes = append(r.Notes, shorten(n.Run+" "+n.Text, maxSentence))
	}
	r.changes(c.Tasks)
	return r
}

// classOrder sorts the tasks that need attention first.
var classOrder = map[record.Class]int{
	record.Regressed: 0, record.Improved: 1, record.Undecided: 2, record.NoDifference: 3, record.Unchanged: 4,
}

// changes lists the tasks that differ.
func (r *comparison) changes(tasks []compare.TaskComparison) {
	var differ []compare.TaskComparison
	for _, t := range tasks {
		if t.PassRate.Difference != 0 || t.Class == record.Regressed || t.Class == record.Improved ||
			t.Class == record.Undecided || t.Changed != "" {
			differ = append(differ, t)
		}
	}
	slices.SortStableFunc(differ, func(a, b compare.TaskComparison) int {
		return cmp.Or(cmp.Compare(classOrder[a.Class], classOrder[b.Class]), cmp.Compare(a.PassRate.Difference, b.PassRate.Difference))
	})
	for _, t := range differ {
		change := taskChange{
			TaskID: t.ID, Class: string(t.Class), P: round(t.P), PassRate: *contrastOf(&t.PassRate),
			Score: contrastOf(t.Score), Changed: t.Changed,
		}
		if t.Needed != nil {
			change.Trials = t.Needed.Trials
		}
		r.Tasks = append(r.Tasks, change)
	}
	r.Tasks = limitList(r.Tasks, usualTasks)
	r.Omitted = len(differ) - len(r.Tasks)
}

func contrastOf(c *record.Contrast) *contrast {
	if c == nil {
		return nil
	}
	r := &contrast{Base: round(c.Reference), Run: round(c.Run), Difference: round(c.Difference)}
	if c.Interval != nil {
		r.Interval = &[2]float64{round(c.Interval.Low), round(c.Interval.High)}
	}
	return r
}

func ratioOf(c *compare.Ratio) *contrast {
	if c == nil {
		return nil
	}
	return &contrast{Base: round(c.Reference), Run: round(c.Run), Difference: round(c.Run - c.Reference)}
}

// firstNames returns the first elements of a list.
func firstNames(list []string) []string {
	if len(list) <= maxNames {
		return list
	}
	return append(slices.Clone(list[:maxNames]), fmt.Sprintf("… and %d more", len(list)-maxNames))
}

type historyInput struct {
	Path   string `json:"path" jsonschema:"suite file, or the directory that holds it"`
	TaskID string `json:"task_id,omitempty" jsonschema:"only this task; a glob can match several"`
	Limit  int    `json:"limit,omitempty" jsonschema:"maximum number of runs, the newest; 10 when absent, up to 50"`
}

type suiteHistory struct {
	Suite   string        `json:"suite"`
	Runs    []pastRun     `json:"runs" jsonschema:"the runs, oldest first"`
	Tasks   []taskHistory `json:"tasks" jsonschema:"the tasks, the flakiest first"`
	Omitted int           `json:"tasks_omitted,omitempty" jsonschema:"number of tasks that were left out; get one with task_id"`
}

type pastRun struct {
	RunID     string `json:"run_id"`
	Status    string `json:"status"`
	StartedAt string `json:"started_at"`
	Model     string `json:"model,omitempty"`
	Damage    string `json:"damage,omitempty" jsonschema:"parts of the record that are lost, changed or not verifiable"`
}

type taskHistory struct {
	TaskID    string         `json:"task_id"`
	Verdicts  []string       `json:"verdicts" jsonschema:"verdict of the task in each of the runs, in their order; - if a run does not have the task"`
	Counted   int            `json:"counted" jsonschema:"number of trials that count; errors do not"`
	Passed    int            `json:"passed"`
	Flakiness *float64       `json:"flakiness,omitempty" jsonschema:"share of the trials with the rarer verdict while nothing changed"`
	Causes    map[string]int `json:"causes,omitempty" jsonschema:"how often the verdict changed because of the agent, a judge, a grader, the infrastructure, or a change of the task, agent or model"`
	LastFlip  string         `json:"last_flip,omitempty" jsonschema:"the newest change of verdict"`
}

func (s runTools) history(ctx context.Context, _ *sdk.CallToolRequest, in historyInput) (*suiteHistory, error) {
	const usual, most = 10, 50
	if in.Limit < 0 || in.Limit > most {
		return nil, fmt.Errorf("limit must be between 1 and %d, got %d", most, in.Limit)
	}
	path, err := s.within("path", in.Path)
	if err != nil {
		return nil, err
	}
	var h history.History
	in.Path, in.Limit = path, cmp.Or(in.Limit, usual)
	if err := s.daemon.call(ctx, "task.history", in, &h); err != nil {
		return nil, err
	}
	r := &suiteHistory{Suite: shorten(h.Suite.Name, 100), Runs: []pastRun{}, Tasks: []taskHistory{}}
	for _, run := range h.Runs {
		r.Runs = append(r.Runs, pastRun{
			run.RunID, string(run.Status), run.StartedAt.UTC().Format("2006-01-02T15:04:05Z"),
			cmp.Or(run.Model, run.Agent), damageText(run.Damage),
		})
	}
	for _, t := range h.Tasks[:min(len(h.Tasks), usualTasks)] {
		r.Tasks = append(r.Tasks, historyOf(&t))
	}
	r.Tasks = limitList(r.Tasks, usualTasks)
	r.Omitted = len(h.Tasks) - len(r.Tasks)
	return r, nil
}

func historyOf(t *history.TaskHistory) taskHistory {
	r := taskHistory{TaskID: t.ID, Verdicts: []string{}, Counted: t.Counted, Passed: t.Passed, Flakiness: rounded(t.Flakiness)}
	for _, run := range t.Runs {
		verdict := "-"
		if run != nil {
			verdict = cmp.Or(string(run.Verdict), "running")
		}
		r.Verdicts = append(r.Verdicts, verdict)
	}
	for cause, n := range t.Causes {
		if n > 0 {
			if r.Causes == nil {
				r.Causes = map[string]int{}
			}
			r.Causes[string(cause)] = n
		}
	}
	if n := len(t.Flips); n > 0 {
		f := t.Flips[n-1]
		r.LastFlip = shorten(fmt.Sprintf("%s: %s, then %s; cause: %s %s", f.Run, f.Was, f.Verdict, f.Cause, f.Detail), maxSentence)
	}
	return r
}
