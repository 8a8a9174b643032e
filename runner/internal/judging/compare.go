package judging

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"waza/runner/grader"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/trial"
)

// A pair holds the answers of two models to one case.
type pair struct {
	a, b       int // indexes of tasks
	num        int // of the trials
	comparison record.CaseComparison
}

// compareAll makes the comparisons that no earlier session made.
func (j *Job) compareAll(ctx context.Context) error {
	pairs, leftOut, err := j.pairs(ctx)
	if err != nil {
		return err
	}
	if len(pairs)+leftOut == 0 && len(j.State.Judged.Comparisons) == 0 {
		return nil
	}
	comparing := record.Comparing{Total: len(pairs), LeftOut: leftOut}
	var open []*pair
	stale := make(map[record.ComparisonKey]bool, len(j.State.Judged.Comparisons))
	for key := range j.State.Judged.Comparisons {
		stale[key] = true
	}
	for _, p := range pairs {
		was := j.State.Judged.Comparisons[p.comparison.Key()]
		if was == nil || was.Error != "" || was.Hash != p.comparison.Hash {
			open = append(open, p)
			continue
		}
		delete(stale, p.comparison.Key())
		comparing.Done++
	}
	for key := range stale {
		comparing.Dropped = append(comparing.Dropped, key)
	}
	j.Emit(&record.Event{Type: record.CompareStart, Comparing: &comparing})
	if leftOut > 0 {
		j.Log("warning", "%d comparisons omitted: a run makes at most %d", leftOut, j.Most)
	}
	j.comparing = record.Comparing{Total: comparing.Total, Done: comparing.Done}
	j.ask(ctx, open)
	return nil
}

// ask makes comparisons, several at once.
func (j *Job) ask(ctx context.Context, open []*pair) {
	next := make(chan *pair)
	var workers sync.WaitGroup
	var mu sync.Mutex // guards failed
	failed := 0
	for range min(max(1, j.Plan.Config.ActualWorkers), len(open)) {
		workers.Go(func() {
			for p := range next {
				if !j.compare(ctx, p) {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	for _, p := range open {
		if j.ended(ctx) {
			break
		}
		next <- p
	}
	close(next)
	workers.Wait()
	if failed > 0 && !j.ended(ctx) {
		j.Log("warning", "%d of %d comparisons could not be made; waza run --resume %s makes them", failed, len(open), j.Record.RunID)
	}
}

// compare makes one comparison. It returns false if that failed.
func (j *Job) compare(ctx context.Context, p *pair) bool {
	c := p.comparison
	t := j.Plan.Tasks[p.a]
	by := j.comparer(t)
	made, err := record.CaseComparison{}, by.err
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, t.Timeout)
		defer cancel()
		limited, end := context.WithCancelCause(limited)
		defer end(nil)
		var s *grader.Subject
		if s, err = j.subject(end, p); err == nil {
			made, err = by.Compare(limited, s)
		}
	}
	c.Winner, c.Confidence, c.Reasoning, c.Usage = made.Winner, made.Confidence, made.Reasoning, made.Usage
	c.Judges, c.PreferredFirst, c.PreferredSecond = made.Judges, made.PreferredFirst, made.PreferredSecond
	if err != nil {
		reason, recorded := j.failed(ctx, err)
		if !recorded {
			return true
		}
		c.Error = reason
	}
	j.mu.Lock()
	j.comparing.Done++
	comparing := j.comparing
	j.mu.Unlock()
	j.Emit(&record.Event{Type: record.CompareComplete, Comparing: &comparing, Comparison: &c})
	return err == nil
}

// subject returns the judge's view of a pair: the answer of model A, and the answer of model B
// as the baseline. It calls end if the texts are too long.
func (j *Job) subject(end context.CancelCauseFunc, p *pair) (*grader.Subject, error) {
	a, b, err := j.answers(p)
	if err != nil {
		return nil, err
	}
	t := j.Plan.Tasks[p.a]
	o := j.Plan.Order(t, j.Record.RunID, p.a+1)
	o.Num = p.num
	return grader.NewSubject(grader.Subject{
		Suite: o.Suite, Task: o.Task, Prompt: a.Prompt, Output: a.Output, OutputDropped: a.OutputDropped,
		Expand: trial.Expand(&o, end), Baseline: &record.Baseline{Output: b.Output},
	}), nil
}

// answers reads the trials of a pair.
func (j *Job) answers(p *pair) (a, b *record.Trial, err error) {
	read := func(task int) (*record.Trial, error) {
		res := new(record.Trial)
		return res, j.files.Decode(j.place(task, p.num), res)
	}
	if a, err = read(p.a); err == nil {
		b, err = read(p.b)
	}
	return a, b, err
}

func (j *Job) place(task, num int) replay.Place {
	return j.State.Tasks[task].Trials[num-j.Record.Tasks[task].First]
}

// pairs returns the comparisons to make, in the order of the suite. Each compares the answers of
// the first model and of another model to the same case, with the same parameters. Cases without
// an answer from both are omitted.
func (j *Job) pairs(ctx context.Context) (list []*pair, leftOut int, err error) {
	first := map[string]int{} // by task of the suite and parameters
	for i, t := range j.Plan.Tasks {
		if t.Role != record.RoleTask || t.Cell == nil || promptOf(t) == nil {
			continue
		}
		key := caseKey(t)
		a, known := first[key]
		if !known {
			first[key] = i
			continue
		}
		for num := t.First; num < t.First+t.Trials; num++ {
			if err := context.Cause(ctx); err != nil {
				return nil, 0, nil // the run reports the reason
			}
			p := &pair{a: a, b: i, num: num}
			ok, err := j.complete(p)
			switch {
			case err != nil:
				return nil, 0, err
			case !ok:
			case len(list) == j.Most:
				leftOut++
			default:
				p.comparison.Num = len(list) + 1
				list = append(list, p)
			}
		}
	}
	return list, leftOut, nil
}

// caseKey identifies the cases by which models are compared.
func caseKey(t *plan.Task) string {
	params, err := json.Marshal(t.Cell.Params)
	if err != nil {
		params = []byte(t.Cell.Name) // no other cell has this name
	}
	return t.Task.ID + "\x00" + string(params)
}

// complete fills in the answers of a pair. It returns false if one side has no answer.
func (j *Job) complete(p *pair) (bool, error) {
	a, b := j.Plan.Tasks[p.a], j.Plan.Tasks[p.b]
	if p.num < a.First || p.num >= a.First+a.Trials {
		return false, nil
	}
	for _, task := range []int{p.a, p.b} {
		if at := j.place(task, p.num); at.Size == 0 || !at.Verdict.Verdict().Graded() {
			return false, nil
		}
	}
	ours, theirs, err := j.answers(p)
	if err != nil || strings.TrimSpace(ours.Output) == "" || strings.TrimSpace(theirs.Output) == "" {
		return false, err
	}
	p.comparison = record.CaseComparison{ModelA: a.Cell.Model, ModelB: b.Cell.Model, TaskA: a.ID, TaskB: b.ID, TrialNum: p.num}
	by := j.comparer(a)
	if by.err != nil {
		return true, nil
	}
	s, err := j.subject(func(error) {}, p)
	if err == nil {
		p.comparison.Hash, err = by.Hash(s)
	}
	return true, err
}
