package tally

import (
	"slices"

	"waza/runner/record"
)

// A Side is one of several things to compare, such as a cell: the results of its tasks by the
// name that they have on all sides.
type Side struct {
	Name  string
	Tasks map[string]*record.Task
	// Complete means that Tasks has all tasks of the side, and nil for those that did not end.
	Complete bool
}

const (
	// mostNamed is the most sides of a task, or tasks of a side, that a sentence names.
	mostNamed = 3
	noScore   = "has no score"
)

// Common returns the tasks, of those given, that have a score on each side. Only means over
// these tasks can be compared: a side whose hard tasks ended in error would otherwise beat one
// that solved some of them. Sides without any score are not compared, and leave out no tasks.
//
// The second result lists the omitted tasks and sides, but no tasks that ended without a score
// on all sides, such as those without graders. It is nil if all are compared, and if nothing has
// a score.
func Common(tasks []string, sides []Side) (common []string, left *record.CommonTasks) {
	c := &record.CommonTasks{}
	var compared []Side
	for _, s := range sides {
		if slices.ContainsFunc(tasks, func(task string) bool { return scored(s.Tasks[task]) }) {
			compared = append(compared, s)
		} else if s.Name != "" {
			c.Unscored = append(c.Unscored, s.Name)
		}
	}
	if len(compared) == 0 {
		return nil, nil // nothing is scored, as in a benchmark
	}
	for _, task := range tasks {
		var out *record.LeftOutTask
		if !slices.ContainsFunc(compared, func(s Side) bool { return scored(s.Tasks[task]) || whyUnscored(s.Tasks[task]) != noScore }) {
			continue // a task without graders
		}
		for _, s := range compared {
			res := s.Tasks[task]
			if scored(res) {
				continue
			}
			if out == nil {
				out = &record.LeftOutTask{Task: task, Why: whyUnscored(res)}
				if _, has := s.Tasks[task]; s.Complete && !has {
					out.Why = "is not done"
				}
			}
			if s.Name == "" {
				continue // the only side
			}
			if out.CellCount++; out.CellCount <= mostNamed {
				out.Cells = append(out.Cells, s.Name)
			}
		}
		if out != nil {
			c.LeftOut = append(c.LeftOut, *out)
		} else {
			common = append(common, task)
		}
	}
	if c.Tasks = len(common); len(c.LeftOut) == 0 && len(c.Unscored) == 0 {
		return common, nil
	}
	return common, c
}

// ScoreOn describes the mean scores of some tasks; nil when none has one, and while trials wait
// for a person's score.
func (s Side) ScoreOn(tasks []string) *record.ScoreStats {
	var list []*record.Task
	for _, task := range tasks {
		if res := s.Tasks[task]; res != nil {
			list = append(list, res)
		}
	}
	return ScoreOver(list)
}

func scored(res *record.Task) bool { return res != nil && res.Score != nil }

// whyUnscored returns the reason why a task has no score.
func whyUnscored(res *record.Task) string {
	switch {
	case res == nil:
		return "did not end"
	case res.Trials.NeedsReview > 0:
		return "waits for a person's score"
	case res.Verdict == record.Errored:
		return "ended in error"
	case res.Verdict == record.Cancelled:
		return "was cancelled"
	case res.Verdict == record.Skipped:
		return "was skipped"
	}
	return noScore
}

// sidesOf returns the cells of a run with the results of its tasks, or one side without a name
// in a run without a matrix. It also returns the names of the suite's tasks.
func sidesOf(rec *record.Run, results []*record.Task) (tasks []string, sides []Side) {
	seen, at := map[string]bool{}, map[string]int{}
	for i := range rec.Tasks {
		ref := &rec.Tasks[i]
		if ref.Role != record.RoleTask {
			continue
		}
		name, task := "", suiteTask(ref)
		if ref.Cell != nil {
			name = ref.Cell.Name
		}
		if !seen[task] {
			seen[task], tasks = true, append(tasks, task)
		}
		side, known := at[name]
		if !known {
			side, at[name] = len(sides), len(sides)
			sides = append(sides, Side{Name: name, Tasks: map[string]*record.Task{}, Complete: true})
		}
		sides[side].Tasks[task] = results[i]
	}
	return tasks, sides
}

// suiteTask returns the id of a task in the suite.
func suiteTask(ref *record.TaskRef) string {
	if ref.Cell != nil {
		return ref.Task
	}
	return ref.ID
}
