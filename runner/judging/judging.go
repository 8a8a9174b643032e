// Package judging asks judges what is left when the trials of a run of the kind judge have
// ended: which of two models gave the better answer to each case, and what the verdicts
// have in common. Call [Job.Do] when the last trial is recorded.
package judging

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/judge"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
)

// MaxComparisons is how many comparisons a run makes; further ones are left out.
const MaxComparisons = 2000

// Job is what is left to ask. All fields are required.
type Job struct {
	Plan   *plan.Plan
	Record *record.Run
	Files  *journal.Run
	// State is that of the run after its trials.
	State *replay.State
	// Tally gets the answers, also those of earlier sessions that are kept.
	Tally *tally.Run
	// Emit records an event, and returns when it is recorded. It is called by many
	// goroutines.
	Emit func(e *record.Event)
	// Log writes a message to the followers of the run.
	Log func(level, format string, args ...any)
	// Halt is called when a judge cannot be asked any more. No further question is asked.
	Halt func(why *executor.StopError)
	// Stopping is closed when no further questions should be asked.
	Stopping <-chan struct{}

	env       *grader.Env
	files     *replay.Trials
	mu        sync.Mutex // guards the fields below
	comparers map[*eval.Grader]*comparer
	halted    bool
	comparing record.Comparing
}

// comparer is a comparer, or why there is none.
type comparer struct {
	*judge.Comparer
	err error
}

// Do asks what the recorded answers of earlier sessions do not answer, as many questions
// at once as the run does trials, and returns when all are answered, ctx has ended, or no
// more are to be asked. A judge that does not answer is recorded as the error of that
// question. The error says why the trials cannot be read.
func (j *Job) Do(ctx context.Context) error {
	files, err := replay.OpenTrials(j.Files)
	if err != nil {
		return err
	}
	defer files.Close()
	j.files, j.env, j.comparers = files, j.Plan.Env().Grading, map[*eval.Grader]*comparer{}
	if err := j.compareAll(ctx); err != nil {
		return err
	}
	if j.ended(ctx) {
		return nil
	}
	return j.find(ctx)
}

// ended reports whether no further question is to be asked.
func (j *Job) ended(ctx context.Context) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.Stopping:
		return true
	default:
		return j.halted || ctx.Err() != nil
	}
}

// failed says what an error of a judge means: recorded, with the text, or not, because
// the question was cut short or none should be asked any more.
func (j *Job) failed(ctx context.Context, err error) (reason string, recorded bool) {
	if ctx.Err() != nil {
		return "", false
	}
	if why := executor.AsStop(err); why != nil {
		j.mu.Lock()
		first := !j.halted
		j.halted = true
		j.mu.Unlock()
		if first {
			j.Halt(why)
		}
		return "", false
	}
	return text.Clip(j.Plan.Pool.Redactor().Text(err.Error()), maxError), true
}

// maxError bounds the bytes of what is recorded of an error.
const maxError = 500

// comparer is that of a task's first prompt grader; nil when the task has none.
func (j *Job) comparer(t *plan.Task) *comparer {
	spec := promptOf(t)
	if spec == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.comparers[spec]
	if c == nil {
		c = &comparer{}
		c.Comparer, c.err = judge.NewComparer(spec, j.env)
		j.comparers[spec] = c
	}
	return c
}

// promptOf is the first grader of a task that asks a model; nil when it has none.
func promptOf(t *plan.Task) *eval.Grader {
	for _, g := range t.Effective {
		if g.Type == record.TypePrompt {
			return g
		}
	}
	return nil
}

// find lets the judge say what the verdicts have in common, unless an earlier session
// did for the same verdicts.
func (j *Job) find(ctx context.Context) error {
	of := j.Tally.Verdicts()
	if of == "" {
		return nil
	}
	if f := j.State.Judged.Findings; f != nil && f.Error == "" && f.Of == of {
		j.Tally.AddJudged(nil, f)
		return nil
	}
	c := j.reporter()
	if c == nil {
		return nil
	}
	notes, err := j.notes()
	if err != nil {
		return err
	}
	err = c.err
	var f record.Findings
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, plan.Seconds(j.Plan.Config.TimeoutSeconds))
		defer cancel()
		f, err = c.Find(limited, notes)
	}
	f.Of = of
	if err != nil {
		reason, recorded := j.failed(ctx, err)
		if !recorded {
			return nil
		}
		f.Error = reason
		j.Log("warning", "The report has no strengths and weaknesses: %s", reason)
	}
	j.Tally.AddJudged(nil, &f)
	j.Emit(&record.Event{Type: record.JudgeComplete, Findings: &f})
	return nil
}

// reporter is the judge that config names or, where graders name theirs, that of the
// first task.
func (j *Job) reporter() *comparer {
	var first *comparer
	for _, t := range j.Plan.Tasks {
		spec := promptOf(t)
		if t.Role != record.RoleTask || spec == nil {
			continue
		}
		if judge.NamesNoJudge(spec) {
			return j.comparer(t)
		}
		if first == nil {
			first = j.comparer(t)
		}
	}
	return first
}

// notes are the verdicts in the order of the suite. Of more than the judge is shown, they
// are as many of the worst as of the best.
func (j *Job) notes() ([]judge.Note, error) {
	type graded struct {
		judge.Note
		at      int
		quality int
	}
	var all []graded
	err := replay.VisitLean(j.Files, j.State, func(task int, t *replay.Lean) error {
		ref := &j.Record.Tasks[task]
		v := tally.CaseVerdictOf(&t.Trial)
		if ref.Role != record.RoleTask || v.QualityScore == nil {
			return nil
		}
		n := judge.Note{Case: ref.ID, Verdict: v}
		if ref.Cell != nil {
			n.Case, n.Model = ref.Task, ref.Cell.Model
		}
		if ref.Trials > 1 {
			n.Case += fmt.Sprintf("#%d", t.TrialNum)
		}
		all = append(all, graded{n, len(all), *v.QualityScore})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(all) > judge.MaxNotes {
		slices.SortStableFunc(all, func(a, b graded) int { return a.quality - b.quality })
		const half = judge.MaxNotes / 2
		all = append(all[:half:half], all[len(all)-half:]...)
		slices.SortFunc(all, func(a, b graded) int { return a.at - b.at })
	}
	notes := make([]judge.Note, len(all))
	for i := range all {
		notes[i] = all[i].Note
	}
	return notes, nil
}

// IsOpen reports whether a run of the kind judge that has completed has questions left:
// comparisons that could not be made, or a report that lacks its lists or is stale. The
// summary may be nil.
func IsOpen(s *record.Summary) bool {
	if s == nil || s.Judged == nil {
		return false
	}
	r := s.Judged.Report
	return s.Judged.Missing > 0 || r != nil && (r.Missing != "" || r.Stale)
}
