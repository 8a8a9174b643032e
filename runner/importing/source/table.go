package source

import (
	"fmt"

	"waza/runner/record"
	"waza/runner/tally"
)

// A Table gathers the trials of a file by task. P is the place of a trial in the file.
type Table[P any] struct {
	tasks []*row[P]
	byID  map[string]*row[P]
}

type row[P any] struct {
	ref    record.TaskRef
	places map[int]P // by the number of the trial
	last   int       // the highest number
}

// maxNumber is the highest number of a trial. Missing trials become skipped ones, so a higher
// number would be a mistake.
const maxNumber = 10_000

// Task adds a task unless the table has it.
func (t *Table[P]) Task(ref record.TaskRef) error {
	_, err := t.row(ref)
	return err
}

func (t *Table[P]) row(ref record.TaskRef) (*row[P], error) {
	if r := t.byID[ref.ID]; r != nil {
		return r, nil
	}
	switch {
	case ref.ID == "":
		return nil, fmt.Errorf("the id of the task is missing")
	case len(ref.ID) > MaxName || len(ref.Name) > MaxName:
		return nil, fmt.Errorf("the id or name of the task has more than %d bytes", MaxName)
	case len(t.tasks) >= MaxTasks:
		return nil, fmt.Errorf("the file has more than %d tasks", MaxTasks)
	}
	if t.byID == nil {
		t.byID = map[string]*row[P]{}
	}
	if ref.Name == "" {
		ref.Name = ref.ID
	}
	r := &row[P]{ref: ref, places: map[int]P{}}
	t.byID[ref.ID], t.tasks = r, append(t.tasks, r)
	return r, nil
}

// Add adds a trial of a task. A number below 1, or one that the task has, is replaced by the next
// free number.
func (t *Table[P]) Add(ref record.TaskRef, num int, at P) error {
	r, err := t.row(ref)
	if err != nil {
		return err
	}
	if _, taken := r.places[num]; taken || num < 1 {
		num = r.last + 1
	}
	if num > maxNumber {
		return fmt.Errorf("trial %d of task %q: the limit is %d", num, ref.ID, maxNumber)
	}
	r.places[num], r.last = at, max(r.last, num)
	return nil
}

// Expect states how many trials each task has. Missing ones become skipped trials. A small file
// that expects very many of them is refused.
func (t *Table[P]) Expect(trials int) error {
	found, missing := 0, 0
	for _, r := range t.tasks {
		r.last = max(r.last, min(trials, maxNumber))
		found += len(r.places)
		missing += r.last - len(r.places)
	}
	if most := 10*found + 1000; missing > most {
		return fmt.Errorf("the file lacks %d trials and has %d: the limit for this number is %d", missing, found, most)
	}
	return nil
}

// Refs returns the tasks.
func (t *Table[P]) Refs() ([]record.TaskRef, error) {
	refs := make([]record.TaskRef, 0, len(t.tasks))
	trials := 0
	for _, r := range t.tasks {
		r.last = max(r.last, 1)
		if trials += r.last; trials > MaxTrials {
			return nil, fmt.Errorf("the file has more than %d trials", MaxTrials)
		}
		ref := r.ref
		ref.Trials, ref.First = r.last, 1
		refs = append(refs, ref)
	}
	return refs, nil
}

// Read visits the trials in the order of the tasks. load converts the trial at a place; missing is
// the reason of trials that the file does not contain.
func (t *Table[P]) Read(visit Visit, missing string, load func(at P) (*record.Trial, error)) error {
	for i, r := range t.tasks {
		for num := 1; num <= r.last; num++ {
			res := &record.Trial{Verdict: record.Skipped, Error: missing, Untimed: true}
			if at, ok := r.places[num]; ok {
				var err error
				if res, err = load(at); err != nil {
					return err
				}
			}
			res.TaskID, res.TrialNum = r.ref.ID, num
			if res.Graders == nil {
				res.Graders = []record.Grade{}
			}
			if res.Transcript == nil {
				res.Transcript = []record.Entry{}
			}
			if err := visit(i, res); err != nil {
				return err
			}
		}
	}
	return nil
}

// TypeImported is the type of graders whose scores the file states.
const TypeImported = "imported"

// GraderType returns the type of a grader that the file names. The types of graders that ask people
// are left to [Unscored], because waza would ask again.
func GraderType(named string) string {
	switch named {
	case "", record.TypeHuman, record.TypeHumanCalibration:
		return TypeImported
	}
	return named
}

// Unscored returns the result of a grader without a score in the file: a person can give it.
func Unscored(name, why string) record.Grade {
	return record.Grade{
		Name: name, Type: record.TypeHuman, Weight: 1, NeedsReview: true,
		Details: record.Review{Instructions: why, Threshold: record.DefaultPass},
	}
}

// Judge sets verdict and score of a trial from its graders. Without a grader it waits for a
// person's score.
func Judge(t *record.Trial, why string) {
	if len(t.Graders) == 0 {
		t.Graders = []record.Grade{Unscored("score", why)}
	}
	t.Verdict, t.Score, t.Error = tally.VerdictOf(t.Graders, nil)
}

// Fail sets the verdict of a trial that has no result because something broke.
func Fail(t *record.Trial, reason string) {
	t.Verdict, t.Score, t.Error = record.Errored, nil, reason
}

// Pass returns 1 for a pass and 0 for a failure.
func Pass(passed bool) float64 {
	if passed {
		return 1
	}
	return 0
}

// FullScore reports whether a score is 1, except for rounding.
func FullScore(score float64) bool { return score >= 1-1e-9 }
