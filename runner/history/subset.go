package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"waza/runner/catalog"
	"waza/runner/irt"
	"waza/runner/plan"
	"waza/runner/record"
)

// DefaultSubsetRuns is the number of runs from which [ChooseSubset] learns unless its options set
// another one.
const DefaultSubsetRuns = 500

// SubsetOptions choose a subset. Options.Limit is [DefaultSubsetRuns] if it is not positive.
type SubsetOptions struct {
	Options
	// Keep is the share of the order of agents that the subset must keep; 0 means 0.95.
	Keep float64
	// EachRun counts each run by itself. Otherwise the runs of the same executor, agent, model,
	// cell and settings count as one subject.
	EachRun bool
}

// A Subset describes the tasks of a suite over its recorded runs, and the smallest subset of them
// that orders agents like the whole suite.
type Subset struct {
	Suite record.SuiteRef `json:"suite"`
	// Runs counts the runs with tasks of this suite. Configurations counts the different
	// executors, agents, models, cells and settings among them that count.
	Runs           int `json:"runs"`
	Configurations int `json:"configurations"`
	// Keep is the least share of the order that the subset keeps, with 95 % confidence.
	// Measured is the share that was measured with agents for which the subset was not chosen; nil
	// without a subset.
	Keep     float64  `json:"keep"`
	Measured *float64 `json:"measured"`
	// Chosen lists the ids of the tasks of the subset; empty without one. It includes the tasks
	// that were not measured.
	Chosen []string `json:"chosen"`
	// Refused is the reason why there is no subset, and Remedy states what would suffice. Both are
	// empty if there is one.
	Refused string `json:"refused,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	// Tasks lists the tasks of the newest run, in its order.
	Tasks []SubsetTask `json:"tasks"`
}

// A SubsetTask is a task of a suite as its runs show it.
type SubsetTask struct {
	ID string `json:"id"`
	// Measured is false for a task that is new, that changed, or that lacks trials in many runs.
	// It is in every subset.
	Measured bool `json:"measured"`
	// PassRate is the mean over configurations; nil if it was not measured.
	PassRate *float64 `json:"passRate"`
	// Difficulty is the ability at which half of the trials pass, in standard deviations of the
	// ability of agents. Slope is the slope of the logistic curve. Both are nil if they are unknown.
	Difficulty *float64 `json:"difficulty"`
	Slope      *float64 `json:"slope"`
	// Role states what the trials of the task say about agents; empty if that is unknown.
	Role irt.Role `json:"role,omitempty"`
	// P is the corrected p-value of the hypothesis that the task does not contradict the others;
	// nil if it was not tested.
	P      *float64 `json:"p"`
	Chosen bool     `json:"chosen"`
}

// A subject is an agent in one configuration: the passed and all counted trials of each task.
type subject struct{ passed, trials map[string]int }

// ChooseSubset reads the recorded runs of a suite, describes its tasks, and chooses a subset. The
// errors are those of [Read]. Data that do not suffice are no error, see [Subset.Refused].
func ChooseSubset(ctx context.Context, r *catalog.Catalog, o SubsetOptions) (*Subset, error) {
	if o.Limit <= 0 {
		o.Limit = DefaultSubsetRuns
	}
	runs, err := readRuns(ctx, r, o.Options)
	if err != nil {
		return nil, err
	}
	newest := runs[len(runs)-1]
	s := &Subset{Suite: newest.rec.Suite, Runs: len(runs), Keep: o.Keep, Chosen: []string{}, Tasks: []SubsetTask{}}
	if !(s.Keep > 0) {
		s.Keep = irt.DefaultKeep
	}
	ids := suiteTasks(newest.rec)
	if len(o.Tasks) > 0 {
		refs := tasksOf(runs)
		if err := checkHistoryTasks(o.Tasks, refs); err != nil {
			return nil, err
		}
		wanted := plan.NewFilter(o.Tasks)
		ids = slices.DeleteFunc(ids, func(id string) bool { return !wanted.Matches([]string{id}) })
	}
	measured, table := complete(ids, subjectsOf(runs, ids, o.EachRun))
	s.Configurations = len(table.Trials)
	if len(measured) == 0 {
		s.Configurations = 0
	}
	for _, id := range ids {
		s.Tasks = append(s.Tasks, SubsetTask{ID: id, Measured: slices.Contains(measured, id)})
	}
	var chosen *irt.Subset
	if len(measured) == 0 {
		err = &irt.InsufficientError{Reason: "no task has counted trials", Remedy: "run the suite"}
	} else {
		chosen, err = irt.Choose(table, s.Keep)
	}
	var few *irt.InsufficientError
	switch {
	case errors.As(err, &few):
		s.Refused, s.Remedy = few.Reason, few.Remedy
	case err != nil:
		return nil, err
	default:
		s.Measured = &chosen.Measured
	}
	s.fill(chosen, measured)
	return s, nil
}

// fill adds the descriptions of the measured tasks.
func (s *Subset) fill(chosen *irt.Subset, measured []string) {
	for i := range s.Tasks {
		t := &s.Tasks[i]
		at := slices.Index(measured, t.ID)
		if chosen != nil && at >= 0 {
			own := chosen.Tasks[at]
			t.PassRate, t.Difficulty, t.Slope, t.Role, t.Chosen = &own.PassRate, own.Difficulty, own.Slope, own.Role, own.Chosen
			if own.Slope != nil {
				t.P = &own.P
			}
		}
		t.Chosen = s.Refused == "" && (t.Chosen || !t.Measured)
		if t.Chosen {
			s.Chosen = append(s.Chosen, t.ID)
		}
	}
}

// taskName returns the id of a task in the suite, without its cell.
func taskName(t *record.TaskRef) string { return cmp.Or(t.Task, t.ID) }

// suiteTasks lists the tasks of a run once for all cells.
func suiteTasks(rec *record.Run) (ids []string) {
	seen := map[string]bool{}
	for i := range rec.Tasks {
		if t := &rec.Tasks[i]; t.Role == record.RoleTask && !seen[taskName(t)] {
			seen[taskName(t)] = true
			ids = append(ids, taskName(t))
		}
	}
	return ids
}

// configuration identifies what carried out a task of a run.
func configuration(rec *record.Run, t *record.TaskRef) string {
	cell := ""
	if t.Cell != nil {
		cell = t.Cell.Name
	}
	c := &rec.Config
	return fmt.Sprintf("%q %q %q %q %q %t", c.Executor, c.Agent, rec.ModelOf(t), c.ReasoningEffort, cell, rec.Imported != nil)
}

// subjectsOf sums up the runs of each configuration, oldest first. It drops the trials of a task
// before the last run in which the task itself changed.
func subjectsOf(runs []*historyRun, ids []string, each bool) []*subject {
	since := lastChanges(runs)
	var list []*subject
	byKey := map[string]*subject{}
	wanted := map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	for i, r := range runs {
		for at := range r.rec.Tasks {
			ref := &r.rec.Tasks[at]
			if ref.Role != record.RoleTask || !wanted[taskName(ref)] || i < since[taskName(ref)] {
				continue
			}
			_, passed := r.inRun(ref.ID)
			if len(passed) == 0 {
				continue
			}
			key := configuration(r.rec, ref)
			if each {
				key = r.head.RunID + " " + key
			}
			own := byKey[key]
			if own == nil {
				own = &subject{map[string]int{}, map[string]int{}}
				byKey[key], list = own, append(list, own)
			}
			for _, ok := range passed {
				own.trials[taskName(ref)]++
				if ok {
					own.passed[taskName(ref)]++
				}
			}
		}
	}
	return list
}

// lastChanges returns, by task, the index of the newest run in which its content differs from the
// previous run of the same configuration. A change of all tasks is one of the agent or of
// settings, unless only their graders changed.
func lastChanges(runs []*historyRun) map[string]int {
	since := map[string]int{}
	before := map[string]map[string]*record.TaskRef{} // by configuration and task
	for i, r := range runs {
		executions, graders, known := map[string]int{}, map[string]int{}, map[string]int{}
		each := func(do func(key string, was, now *record.TaskRef)) {
			for at := range r.rec.Tasks {
				now := &r.rec.Tasks[at]
				if now.Role != record.RoleTask || now.Hash == "" || now.Execution == "" {
					continue
				}
				key := configuration(r.rec, now)
				do(key, before[key][taskName(now)], now)
			}
		}
		each(func(key string, was, now *record.TaskRef) {
			switch {
			case was == nil:
				return
			case was.Execution != now.Execution:
				executions[key]++
			case was.Hash != now.Hash:
				graders[key]++
			}
			known[key]++
		})
		each(func(key string, was, now *record.TaskRef) {
			if was == nil {
				return
			}
			everywhere := executions[key] == known[key] && known[key] > 1
			if was.Hash != now.Hash && !(everywhere && was.Execution != now.Execution) {
				since[taskName(now)] = i
			}
		})
		each(func(key string, _, now *record.TaskRef) {
			if before[key] == nil {
				before[key] = map[string]*record.TaskRef{}
			}
			before[key][taskName(now)] = now
		})
	}
	return since
}

// complete returns the tasks and the subjects that have trials of each other. It removes the task
// or the subject that lacks the largest share, one at a time, and then subjects before tasks.
func complete(ids []string, subjects []*subject) (tasks []string, table irt.Table) {
	ids, subjects = slices.Clone(ids), slices.Clone(subjects)
	for len(ids) > 0 && len(subjects) > 0 {
		task, lackTask := -1, 0
		for k, id := range ids {
			n := 0
			for _, s := range subjects {
				if s.trials[id] == 0 {
					n++
				}
			}
			if n > lackTask {
				task, lackTask = k, n
			}
		}
		one, lack := -1, 0
		for i, s := range subjects {
			n := 0
			for _, id := range ids {
				if s.trials[id] == 0 {
					n++
				}
			}
			if n > lack {
				one, lack = i, n
			}
		}
		switch {
		case task < 0:
			for _, s := range subjects {
				var passed, trials []int
				for _, id := range ids {
					passed, trials = append(passed, s.passed[id]), append(trials, s.trials[id])
				}
				table.Passed, table.Trials = append(table.Passed, passed), append(table.Trials, trials)
			}
			return ids, table
		case lack*len(subjects) >= lackTask*len(ids):
			subjects = slices.Delete(subjects, one, one+1)
		default:
			ids = slices.Delete(ids, task, task+1)
		}
	}
	return nil, irt.Table{}
}
