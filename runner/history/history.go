// Package history says how tasks fared over the recorded runs of a suite: flaky tasks,
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

// Options say which history is told. The zero value tells that of the suite
// that was run last.
type Options struct {
	// Suites name the suite: each is the absolute path of its file or of the
	// directory that holds it, or its name. A run is of the suite when one fits.
	Suites []string
	// Tasks are globs: only tasks whose id or name matches one. Empty means all.
	Tasks []string
	// Limit is the most runs, the newest; 20 when not positive.
	Limit int
}

// DefaultRuns is how many runs a history goes back.
const DefaultRuns = 20

// History is what became of the tasks of a suite over its recorded runs.
type History struct {
	// Suite is that of the newest run.
	Suite record.SuiteRef `json:"suite"`
	// Runs are those that were looked at, oldest first.
	Runs []HistoryRun `json:"runs"`
	// Tasks are those of any of these runs, the flakiest first.
	Tasks []TaskHistory `json:"tasks"`
}

// HistoryRun is a run of a history.
type HistoryRun struct {
	RunID     string        `json:"runId"`
	Status    record.Status `json:"status"`
	StartedAt time.Time     `json:"startedAt"`
	Executor  string        `json:"executor"`
	Agent     string        `json:"agent,omitempty"`
	Model     string        `json:"model,omitempty"`
	// Amended: it was graded anew or reviewed since.
	Amended bool `json:"amended,omitempty"`
	// Usage is that of the run's summary; nil when nothing is known of it, and while the
	// run is active.
	Usage *record.Usage `json:"usage,omitempty"`
	// Damage is what of the run's record is damaged; absent when nothing is.
	Damage *record.Damage `json:"damage,omitempty"`
}

// TaskHistory is what became of a task.
type TaskHistory struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Runs are what became of it in each run of the history, in that order; nil
	// where the run does not have it.
	Runs []*TaskInRun `json:"runs"`
	// Counted is how many trials count that were not taken over from another
	// run, Passed how many of them passed.
	Counted int `json:"counted"`
	Passed  int `json:"passed"`
	// Flakiness is the share of these that are the odd ones out: of successive runs
	// between which neither the task nor, by Shifts, its rate changed, those with the rarer
	// verdict. It is nil when nothing counts.
	Flakiness         *float64         `json:"flakiness"`
	FlakinessInterval *record.Interval `json:"flakinessInterval"`
	// Shifts are the lasting changes of the task's pass rate, oldest first. None are
	// looked for in runs whose trials could stop early.
	Shifts []Shift `json:"shifts"`
	// Flips are the changes of verdict, oldest first.
	Flips []Flip `json:"flips"`
	// Causes counts the flips by their cause.
	Causes map[Cause]int `json:"causes"`
}

// TaskInRun is what became of a task in a run.
type TaskInRun struct {
	Verdict record.Verdict `json:"verdict"` // empty when it has not ended
	Trials  record.Counts  `json:"trials"`
	// Flips is how often a counted trial has another verdict than the one before.
	Flips int `json:"flips,omitempty"`
	// Changed says what of the task is another than in the run before that has
	// it: execution or graders.
	Changed string `json:"changed,omitempty"`
}

// Cause says where a flip comes from.
type Cause string

// The causes of flips.
const (
	// CauseAgent: the agent did something else.
	CauseAgent Cause = "agent"
	// CauseJudge: it did the same, and a judge or a person gave another verdict.
	CauseJudge Cause = "judge"
	// CauseGrader: it did the same, and another grader, or an edited one, gave
	// another verdict.
	CauseGrader Cause = "grader"
	// CauseInfrastructure: errors, or trials whose time was up.
	CauseInfrastructure Cause = "infrastructure"
	// CauseChange: it was another task, agent or model.
	CauseChange Cause = "change"
)

// Flip is a change of verdict: between two runs in succession or, when From is
// empty, between trials of one.
type Flip struct {
	From string `json:"from,omitempty"`
	Run  string `json:"run"`
	// Was and Verdict are those of the task; within a run passed and failed.
	Was     record.Verdict `json:"was"`
	Verdict record.Verdict `json:"verdict"`
	Cause   Cause          `json:"cause"`
	// Detail says more of it, in a few words.
	Detail string `json:"detail,omitempty"`
}

// NoHistoryError says that no recorded run is of a suite.
type NoHistoryError struct{ Suites []string }

func (e *NoHistoryError) Error() string {
	if len(e.Suites) == 0 {
		return "no runs are recorded"
	}
	return fmt.Sprintf("no recorded run is of the suite %s", e.Suites[0])
}

// Read says what became of the tasks of a suite over its recorded runs; those
// that go on count as far as they have come. Transcripts are read only of tasks
// whose verdict changed, one at a time. The error is a [*NoHistoryError], a
// [*record.SelectionError] or the cause of ctx; runs that cannot be read are left out.
func Read(ctx context.Context, r *catalog.Catalog, o Options) (*History, error) {
	limit := o.Limit
	if limit <= 0 {
		limit = DefaultRuns
	}
	var runs []*historyRun
	suites := o.Suites
	err := r.Earlier("", func(h record.Handle) bool {
		rec := h.Record()
		if rec.Suite.Path == "" {
			return true // no file of the run says any more which suite it is of
		}
		if len(suites) == 0 {
			suites = []string{rec.Suite.Path}
		}
		if ofSuite(rec.Suite, suites) {
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
	return tellHistory(ctx, runs, o.Tasks)
}

func ofSuite(s record.SuiteRef, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == s.Path || name == filepath.Dir(s.Path) || name == s.Name
	})
}

// historyRun is a run, and what became of its trials but for what they hold.
type historyRun struct {
	head  HistoryRun
	rec   *record.Run
	run   *journal.Run
	state *replay.State
	tasks map[string]int // indexes by id, of tasks of the suite
	// own are the counted trials of each task that the run executed itself;
	// nil when those are all.
	own map[int][]bool
	// normal is nil until a transcript of the run is looked at.
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
		Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.Config.Model,
	}}
	if past, ok := h.(*replay.Recorded); ok {
		if hr.head.Damage, err = past.Damage(); err != nil {
			return nil, err
		}
	}
	if progress.Summary != nil {
		hr.head.Usage = progress.Summary.Usage
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
	return hr, replay.VisitLean(run, st, func(task int, t *replay.Lean) error {
		if t.Verdict.Counted() {
			hr.own[task] = append(hr.own[task], t.Cached == nil)
		}
		return nil
	})
}

// inRun tells of a task in the run; nil when the run does not have it. passed are
// the counted trials that the run executed itself.
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

// tellHistory puts the history together, oldest run first.
func tellHistory(ctx context.Context, runs []*historyRun, globs []string) (*History, error) {
	h := &History{Suite: runs[len(runs)-1].rec.Suite, Runs: []HistoryRun{}, Tasks: []TaskHistory{}}
	for _, r := range runs {
		h.Runs = append(h.Runs, r.head)
	}
	refs := tasksOf(runs)
	if err := checkHistoryTasks(globs, refs); err != nil {
		return nil, err
	}
	wanted := plan.NewFilter(globs)
	for _, ref := range refs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !wanted.Takes([]string{ref.ID, ref.Name}) {
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

// tasksOf lists the tasks of all runs, those of the newest first.
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
	for _, g := range globs {
		f := plan.NewFilter([]string{g})
		if !slices.ContainsFunc(refs, func(t record.TaskRef) bool { return f.Takes([]string{t.ID, t.Name}) }) {
			return &record.SelectionError{What: "task", Patterns: []string{g}, Known: known}
		}
	}
	return nil
}

// taskHistory goes through the runs that have a task.
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
		interval := stats.Wilson(odd.odd, odd.counted, stats.DefaultConfidence)
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

// oddOnes counts the trials that have the rarer verdict, over runs between which
// neither the task nor its rate changed.
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
