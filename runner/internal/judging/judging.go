// Package judging asks judges the remaining questions when the trials of a run of the kind judge
// have ended: which of two models gave the better answer to each case, and what the verdicts
// have in common. Call [Job.Do] after the last trial is recorded.
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

// MaxComparisons is the value of [Job.Most] for all runs.
const MaxComparisons = 2000

// A Job asks the remaining questions of a run. All fields are required.
type Job struct {
	Plan   *plan.Plan
	Record *record.Run
	Files  *journal.Run
	// State is the state of the run after its trials.
	State *replay.State
	// Verdicts is the digest of the verdicts of the trials, see [tally.Run.Verdicts].
	Verdicts string
	// Most is the most comparisons that the run makes; further ones are omitted.
	Most int
	// Emit records an event, and returns when it is recorded. Many goroutines call it.
	Emit func(e *record.Event)
	// Log sends a message to the followers of the run.
	Log func(level, format string, args ...any)
	// Halt is called when a judge cannot be asked any more. Do asks no further questions then.
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

// A comparer holds a judge.Comparer, or the reason why it is missing.
type comparer struct {
	*judge.Comparer
	err error
}

// Do asks the questions that earlier sessions did not answer, as many at once as the run
// executes trials. It returns when all are answered, ctx has ended, or no more should be asked.
// If a judge does not answer, Do records that as the error of the question. Do returns an error
// if it cannot read the trials.
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

// ended reports whether no further questions should be asked.
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

// failed interprets an error of a judge. recorded is false if the question was cut short or no
// more questions should be asked; otherwise reason is the text to record.
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

// maxError is the most bytes recorded of an error.
const maxError = 500

// comparer returns the comparer of a task's first prompt grader; nil if the task has none.
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

// promptOf returns the first grader of a task that asks a model; nil if the task has none.
func promptOf(t *plan.Task) *eval.Grader {
	for _, g := range t.Effective {
		if g.Type == record.TypePrompt {
			return g
		}
	}
	return nil
}

// find lets the judge sum up the verdicts, unless an earlier session did so for the same
// verdicts.
func (j *Job) find(ctx context.Context) error {
	of := j.Verdicts
	if of == "" {
		return nil
	}
	if f := j.State.Judged.Findings; f != nil && f.Error == "" && f.Of == of {
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
	j.Emit(&record.Event{Type: record.JudgeComplete, Findings: &f})
	return nil
}

// reporter returns the judge named in config or, if graders name their judges, the judge of the
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

// notes returns the verdicts in the order of the suite. If there are more than the judge can
// see, it returns equally many of the worst and of the best.
func (j *Job) notes() ([]judge.Note, error) {
	type graded struct {
		judge.Note
		at      int
		quality int
	}
	var all []graded
	err := replay.VisitLean(j.Files, j.State, func(task int, t *replay.LeanTrial) error {
		ref := &j.Record.Tasks[task]
		v := tally.CaseVerdictOf(&t.Trial)
		if ref.Role != record.RoleTask || v.QualityScore == nil {
			return nil
		}
		n := judge.Note{Case: ref.ID, Verdict: v}
		if ref.Cell != nil {
			n.Case, n.Model = ref.Task, j.Record.ModelOf(ref)
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

// IsOpen reports whether a completed run of the kind judge has open questions: comparisons that
// could not be made, or a report without lists or with stale ones. The summary can be nil.
func IsOpen(s *record.Summary) bool {
	if s == nil || s.Judged == nil {
		return false
	}
	r := s.Judged.Report
	return s.Judged.Missing > 0 || r != nil && (r.Missing != "" || r.Stale)
}
