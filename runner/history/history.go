// Package history describes how tasks changed over the recorded runs of a suite: flaky tasks,
// flips and shifts. Call [Read].
package history

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"waza/runner/catalog"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/stats"
)

// Options select a history. The zero value selects the suite of the newest run.
type Options struct {
	// Suites identify the suite: each is the absolute path of its file or directory, or its
	// name. A run belongs to the suite if one of them matches.
	Suites []string
	// Tasks are globs that select tasks by id or name. Empty means all.
	Tasks []string
	// Limit is the most runs, the newest first; 20 if not positive.
	Limit int
}

// DefaultRuns is the default of Options.Limit.
const DefaultRuns = 20

// A History describes the tasks of a suite over its recorded runs.
type History struct {
	// Suite is the suite of the newest run.
	Suite record.SuiteRef `json:"suite"`
	// Runs lists the selected runs, oldest first.
	Runs []HistoryRun `json:"runs"`
	// Tasks lists the tasks of any of these runs, the flakiest first.
	Tasks []TaskHistory `json:"tasks"`
	// Judges lists how well graders agreed with people in each run, by grader, oldest first; absent
	// if people scored no trials.
	Judges []JudgeInRun `json:"judges,omitempty"`
}

// A HistoryRun is a run of a history.
type HistoryRun struct {
	RunID     string        `json:"runId"`
	Status    record.Status `json:"status"`
	StartedAt time.Time     `json:"startedAt"`
	Executor  string        `json:"executor"`
	Agent     string        `json:"agent,omitempty"`
	Model     string        `json:"model,omitempty"`
	// Amended reports whether the run was regraded or reviewed.
	Amended bool `json:"amended,omitempty"`
	// Usage is the usage of the run's summary; nil if it is unknown, and while the run is
	// active.
	Usage *record.Usage `json:"usage,omitempty"`
	// Damage describes the damaged part of the run's record; absent if nothing is damaged.
	Damage *record.Damage `json:"damage,omitempty"`
}

// A TaskHistory is the history of a task.
type TaskHistory struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Runs holds the task's result in each run of the history, in order; nil if the run does not
	// have it.
	Runs []*TaskInRun `json:"runs"`
	// Counted is the number of counted trials that were not reused from another run. Passed is
	// the number of them that passed.
	Counted int `json:"counted"`
	Passed  int `json:"passed"`
	// Flakiness is the share of counted trials with the rarer verdict. It is computed within
	// stretches of runs in which neither the task nor, by Shifts, its rate changed. It is nil if
	// no trial counts.
	Flakiness         *float64         `json:"flakiness"`
	FlakinessInterval *record.Interval `json:"flakinessInterval"`
	// Shifts lists the lasting changes of the task's pass rate, oldest first. Runs whose trials
	// could stop early are not searched.
	Shifts []Shift `json:"shifts"`
	// Flips lists the changes of verdict, oldest first.
	Flips []Flip `json:"flips"`
	// Causes counts the flips by their cause.
	Causes map[Cause]int `json:"causes"`
}

// A TaskInRun is the result of a task in a run.
type TaskInRun struct {
	Verdict record.Verdict `json:"verdict"` // empty if it has not ended
	Trials  record.Counts  `json:"trials"`
	// Flips counts the counted trials whose verdict differs from the previous one.
	Flips int `json:"flips,omitempty"`
	// Changed names the part of the task that changed since the previous run that has it:
	// execution, model or graders.
	Changed string `json:"changed,omitempty"`
}

// A Cause is the cause of a flip.
type Cause string

// The causes of flips.
const (
	// CauseAgent: the agent behaved differently.
	CauseAgent Cause = "agent"
	// CauseJudge: the agent behaved the same, and a judge or a person decided differently.
	CauseJudge Cause = "judge"
	// CauseGrader: the agent behaved the same, and another grader, or a changed one, decided
	// differently.
	CauseGrader Cause = "grader"
	// CauseInfrastructure: errors or timeouts.
	CauseInfrastructure Cause = "infrastructure"
	// CauseChange: the task, agent or model changed.
	CauseChange Cause = "change"
)

// A Flip is a change of verdict between two successive runs. If From is empty, it is a change
// between trials of one run.
type Flip struct {
	From string `json:"from,omitempty"`
	Run  string `json:"run"`
	// Was and Verdict are the task's verdicts; within a run they are passed and failed.
	Was     record.Verdict `json:"was"`
	Verdict record.Verdict `json:"verdict"`
	Cause   Cause          `json:"cause"`
	// Detail describes the cause in a few words.
	Detail string `json:"detail,omitempty"`
}

// A NoHistoryError means that no recorded run belongs to a suite.
type NoHistoryError struct{ Suites []string }

func (e *NoHistoryError) Error() string {
	if len(e.Suites) == 0 {
		return "no runs are recorded"
	}
	return fmt.Sprintf("no recorded run of the suite %s", e.Suites[0])
}

// Read returns the history of a suite's tasks over its recorded runs; active runs count with
// their ended trials. It reads transcripts only of tasks whose verdict changed, one at a time.
// The error is a [*NoHistoryError], a [*record.SelectionError] or the cause of ctx. Read omits
// runs that cannot be read.
func Read(ctx context.Context, r *catalog.Catalog, o Options) (*History, error) {
	runs, err := readRuns(ctx, r, o)
	if err != nil {
		return nil, err
	}
	return buildHistory(ctx, runs, o.Tasks)
}

// readRuns returns the newest runs of a suite, oldest first, and at least one.
func readRuns(ctx context.Context, r *catalog.Catalog, o Options) ([]*historyRun, error) {
	limit := o.Limit
	if limit <= 0 {
		limit = DefaultRuns
	}
	var runs []*historyRun
	suites := o.Suites
	err := r.Earlier("", func(h record.Handle) bool {
		rec := h.Record()
		if rec.Suite.Path == "" {
			return true // no file of the run names its suite any more
		}
		if len(suites) == 0 {
			suites = []string{rec.Suite.Path}
		}
		if OfSuite(rec.Suite, suites) {
			if run, err := readHistoryRun(h); err == nil {
				runs = append(runs, run)
			}
		}
		return len(runs) < limit && ctx.Err() == nil
	})
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case len(runs) == 0:
		return nil, &NoHistoryError{o.Suites}
	}
	slices.Reverse(runs)
	return runs, nil
}

// OfSuite reports whether one of the names is the suite's: the absolute path of its file or directory,
// or its name.
func OfSuite(s record.SuiteRef, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == s.Path || name == filepath.Dir(s.Path) || name == s.Name
	})
}

// A historyRun is a run with the outcomes of its trials, but without their content.
type historyRun struct {
	head HistoryRun
	rec  *record.Run
	run  *journal.Run
	// people holds the agreement of graders with people.
	people []record.CalibrationResult
	state  *replay.State
	tasks  map[string]int // indexes by id, of tasks of the suite
	// own holds the counted trials of each task that the run executed itself; nil if the run
	// executed all.
	own map[int][]bool
	// normal is nil until a transcript of the run is needed.
	normal *normalizer
}

func readHistoryRun(h record.Handle) (*historyRun, error) {
	run, st, err := replay.StateOf(h)
	if err != nil {
		return nil, err
	}
	progress, err := h.Progress()
	if err != nil {
		return nil, err
	}
	rec := h.Record()
	hr := &historyRun{rec: rec, run: run, state: st, tasks: map[string]int{}, head: HistoryRun{
		RunID: rec.RunID, Status: progress.Status, StartedAt: rec.CreatedAt, Amended: progress.AmendedAt != nil,
		Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.ModelText(nil),
	}}
	if past, ok := h.(*replay.RecordedRun); ok {
		if hr.head.Damage, err = past.Damage(); err != nil {
			return nil, err
		}
	}
	if progress.Summary != nil {
		hr.head.Usage, hr.people = progress.Summary.Usage, progress.Summary.Calibrations
	}
	for i, t := range rec.Tasks {
		if t.Role == record.RoleTask {
			hr.tasks[t.ID] = i
		}
	}
	if !rec.Asked.Cache {
		return hr, nil
	}
	hr.own = map[int][]bool{}
	return hr, replay.VisitLean(run, st, func(task int, t *replay.LeanTrial) error {
		if t.Verdict.Counted() {
			hr.own[task] = append(hr.own[task], t.Cached == nil)
		}
		return nil
	})
}

// inRun returns the result of a task in the run, or nil if the run does not have it. passed
// holds the counted trials that the run executed itself.
func (r *historyRun) inRun(id string) (t *TaskInRun, passed []bool) {
	i, ok := r.tasks[id]
	if !ok {
		return nil, nil
	}
	t = &TaskInRun{Trials: record.Counts{Total: r.rec.Tasks[i].Trials}}
	if res := r.state.Tasks[i].Result; res != nil {
		t.Verdict = res.Verdict
	}
	counted := 0
	for _, at := range r.state.Tasks[i].Trials {
		v := at.Verdict.Verdict()
		t.Trials.Add(v)
		if !v.Counted() {
			continue
		}
		counted++
		if own := r.own[i]; counted <= len(own) && !own[counted-1] {
			continue
		}
		passed = append(passed, v == record.Passed)
		if n := len(passed); n > 1 && passed[n-1] != passed[n-2] {
			t.Flips++
		}
	}
	return t, passed
}

// buildHistory builds the history from runs, oldest first.
func buildHistory(ctx context.Context, runs []*historyRun, globs []string) (*History, error) {
	h := &History{Suite: runs[len(runs)-1].rec.Suite, Runs: []HistoryRun{}, Tasks: []TaskHistory{}}
	for _, r := range runs {
		h.Runs = append(h.Runs, r.head)
	}
	h.Judges = judgesOf(runs)
	refs := tasksOf(runs)
	if err := checkHistoryTasks(globs, refs); err != nil {
		return nil, err
	}
	wanted := plan.NewFilter(globs)
	for _, ref := range refs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !wanted.Matches([]string{ref.ID, ref.Name}) {
			continue
		}
		t, err := taskHistory(runs, ref)
		if err != nil {
			return nil, err
		}
		h.Tasks = append(h.Tasks, *t)
	}
	slices.SortStableFunc(h.Tasks, func(a, b TaskHistory) int {
		return cmp.Or(cmp.Compare(flakiness(b), flakiness(a)), cmp.Compare(len(b.Flips), len(a.Flips)))
	})
	return h, nil
}

func flakiness(t TaskHistory) float64 {
	if t.Flakiness == nil {
		return -1
	}
	return *t.Flakiness
}

// tasksOf lists the tasks of all runs, those of the newest run first.
func tasksOf(runs []*historyRun) []record.TaskRef {
	var refs []record.TaskRef
	seen := map[string]bool{}
	for _, r := range slices.Backward(runs) {
		for _, t := range r.rec.Tasks {
			if t.Role == record.RoleTask && !seen[t.ID] {
				seen[t.ID] = true
				refs = append(refs, t)
			}
		}
	}
	return refs
}

func checkHistoryTasks(globs []string, refs []record.TaskRef) error {
	var known []string
	for _, t := range refs {
		known = append(known, t.ID)
	}
	return plan.CheckPatterns("task", globs, refs, func(t record.TaskRef) []string { return []string{t.ID, t.Name} }, known)
}

// taskHistory builds the history of a task.
func taskHistory(runs []*historyRun, ref record.TaskRef) (*TaskHistory, error) {
	t := &TaskHistory{ID: ref.ID, Name: ref.Name, Flips: []Flip{}, Causes: map[Cause]int{}, Shifts: []Shift{}}
	w := &flipWatch{task: t}
	var now epoch
	var odd oddOnes
	for _, r := range runs {
		in, passed := r.inRun(ref.ID)
		t.Runs = append(t.Runs, in)
		if in == nil {
			continue
		}
		changed, err := w.next(r, in)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", r.head.RunID, err)
		}
		in.Changed = changed
		if changed != "" {
			t.Shifts = append(t.Shifts, odd.add(now)...)
			now = nil
		}
		if run := r.epochRun(ref.ID, passed); run.counted > 0 {
			now = append(now, run)
		}
	}
	t.Shifts = append(t.Shifts, odd.add(now)...)
	t.Counted, t.Passed = odd.counted, odd.passed
	if odd.counted > 0 {
		share := float64(odd.odd) / float64(odd.counted)
		interval := stats.ClopperPearson(odd.odd, odd.counted, stats.DefaultConfidence)
		interval.High = min(interval.High, 0.5) // the rarer verdict has at most half of the trials
		t.Flakiness, t.FlakinessInterval = &share, &interval
	}
	for _, f := range t.Flips {
		t.Causes[f.Cause]++
	}
	return t, nil
}

func (r *historyRun) epochRun(id string, passed []bool) epochRun {
	run := epochRun{id: r.head.RunID, counted: len(passed), stopping: r.ref(id).Stopping > 0}
	for _, p := range passed {
		if p {
			run.passed++
		}
	}
	return run
}

// oddOnes counts the trials with the rarer verdict in stretches of runs in which neither the
// task nor its rate changed.
type oddOnes struct{ counted, passed, odd int }

// add counts the trials of an epoch, and returns its shifts.
func (o *oddOnes) add(e epoch) []Shift {
	parts, shifts := e.split()
	for _, part := range parts {
		s := part.share()
		o.counted, o.passed, o.odd = o.counted+s.N, o.passed+s.Passed, o.odd+min(s.Passed, s.N-s.Passed)
	}
	return shifts
}
