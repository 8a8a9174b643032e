package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/propose"
	"waza/runner/record"
	"waza/runner/tally"
)

// tuner asks a model for system prompts, generation by generation:
//
//	tasks of generation 0 end ─► prompts of 1 are proposed ─► tasks of 1 start … ─► prompts of 2
//
// A proposal is recorded before a trial uses it, so that a resumed run has the same prompts. A
// nil tuner does nothing.
type tuner struct {
	s     *scheduler
	known map[eval.Proposal]bool // used by newTuner, then only by the goroutine of work

	mu      sync.Mutex // guards the fields below
	results map[*taskRun]*record.Task
	left    []int           // by generation: number of tasks that have not ended
	over    []chan struct{} // by generation: closed when no task is left
}

// newTuner returns nil where the run has no cells for proposed prompts. It assigns the prompts
// that earlier run sessions recorded to their tasks.
func newTuner(s *scheduler) *tuner {
	generations := 0
	for _, t := range s.tasks {
		generations = max(generations, t.place().Generation)
	}
	if generations == 0 {
		return nil
	}
	u := &tuner{s: s, known: map[eval.Proposal]bool{}, results: map[*taskRun]*record.Task{}, left: make([]int, generations+1)}
	for _, t := range s.tasks {
		u.left[t.place().Generation]++
	}
	for _, n := range u.left {
		over := make(chan struct{})
		if n == 0 {
			close(over)
		}
		u.over = append(u.over, over)
	}
	if e := s.run.earlier; e != nil {
		for i := range e.past.State.Prompts {
			u.setPrompt(&e.past.State.Prompts[i])
		}
	}
	return u
}

// place returns the position of the task's system prompt among the proposed ones.
func (t *taskRun) place() eval.Proposal {
	if t.Cell == nil {
		return eval.Proposal{}
	}
	return eval.Proposal{Generation: t.Cell.Generation, Number: t.Cell.Proposal}
}

// awaitsPrompt reports whether the system prompt of the task is not proposed yet.
func (t *taskRun) awaitsPrompt() bool { return t.place().Generation > 0 && !t.prompted }

// setPrompt assigns a prompt to its tasks. None of them has started.
func (u *tuner) setPrompt(p *record.Prompt) {
	at := eval.Proposal{Generation: p.Generation, Number: p.Number}
	u.known[at] = true
	for _, t := range u.s.tasks {
		if t.place() == at {
			t.order.Params = maps.Clone(t.order.Params)
			t.order.Params[eval.ParamSystemPrompt] = p.Text
			t.prompted = true
		}
	}
}

// ended records the result of a task that has ended.
func (u *tuner) ended(t *taskRun, res *record.Task) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.results[t] != nil {
		return
	}
	u.results[t] = res
	g := t.place().Generation
	if u.left[g]--; u.left[g] == 0 {
		close(u.over[g])
	}
}

// work proposes prompts until all generations have theirs, no more trials start, or ctx ends.
func (u *tuner) work(ctx context.Context) {
	if u == nil {
		return
	}
	r := u.s.run
	defer u.s.queue.wake()
	for g := 1; g < len(u.left); g++ {
		select {
		case <-u.over[g-1]:
		case <-ctx.Done():
			return
		case <-r.stopped.done:
			return
		case <-u.s.failFast.done:
			return
		}
		if err := u.propose(ctx, g); err != nil {
			if ctx.Err() != nil {
				return
			}
			if why := executor.AsStop(err); why != nil {
				r.halt(why)
			}
			r.logf("error", "cannot propose system prompts for generation %d: %v", g, err)
			u.giveUp(g, err)
			return
		}
		u.s.queue.release(g)
	}
}

// propose requests the missing prompts of a generation.
func (u *tuner) propose(ctx context.Context, g int) error {
	r, missing := u.s.run, u.missing(g)
	if len(missing) == 0 {
		return nil
	}
	asker, err := r.plan.Proposer()
	if err != nil {
		return err
	}
	r.logf("info", "Proposing system prompts: generation %d of %d", g, len(u.left)-1)
	list, usage, err := propose.Prompts(ctx, asker, propose.Request{Count: len(missing), Tried: u.tried(), Tasks: u.tasks()})
	if err != nil {
		return err
	}
	for i, at := range missing {
		p := &record.Prompt{Generation: at.Generation, Number: at.Number, Style: list[i].Style, Text: list[i].Text}
		if i == 0 {
			p.Usage = usage
		}
		err := r.emitAndAwait(&record.Event{
			Type: record.PromptProposed, Level: "info", Prompt: p,
			Message: fmt.Sprintf("System prompt %d of generation %d (%s): %s", p.Number, p.Generation, p.Style,
				text.Clip(strings.Join(strings.Fields(p.Text), " "), 200)),
		})
		if err != nil {
			return err
		}
		u.setPrompt(p)
	}
	return nil
}

// missing returns the positions of a generation that have no prompt.
func (u *tuner) missing(g int) (list []eval.Proposal) {
	for _, t := range u.s.tasks {
		if at := t.place(); at.Generation == g && !u.known[at] && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b eval.Proposal) int { return a.Number - b.Number })
	return list
}

// giveUp ends the tasks without a prompt, from generation g on, in error.
func (u *tuner) giveUp(g int, err error) {
	for _, t := range u.s.tasks {
		if t.awaitsPrompt() {
			t.unproposed = executor.Permanent(fmt.Errorf("no system prompt: %w", err))
		}
	}
	for ; g < len(u.left); g++ {
		u.s.queue.release(g)
	}
}

// tried returns the prompts whose tasks have ended, best first, with their most frequent
// failures. Scores are means over the tasks that have one with every prompt. Without such tasks,
// and for prompts without any score, they are negative.
func (u *tuner) tried() []propose.Tried {
	u.mu.Lock()
	defer u.mu.Unlock()
	byText := map[string]int{}
	var sides []tally.Side
	var tasks []string
	seen := map[string]bool{}
	var ended [][]*record.Task // by prompt
	for _, t := range u.s.tasks {
		res := u.results[t]
		if res == nil || t.Role != record.RoleTask || t.awaitsPrompt() {
			continue
		}
		prompt := t.order.Params[eval.ParamSystemPrompt]
		i, known := byText[prompt]
		if !known {
			i, byText[prompt] = len(sides), len(sides)
			sides, ended = append(sides, tally.Side{Name: prompt, Tasks: map[string]*record.Task{}}), append(ended, nil)
		}
		name := fmt.Sprintf("%q %s", t.Task.Task.ID, t.Cell.WithoutPrompt())
		if !seen[name] {
			seen[name], tasks = true, append(tasks, name)
		}
		sides[i].Tasks[name], ended[i] = res, append(ended[i], res)
	}
	common, _ := tally.Common(tasks, sides)
	list := make([]propose.Tried, len(sides))
	for i, s := range sides {
		list[i] = propose.Tried{Text: s.Name, Score: -1, Failures: failuresOf(ended[i])}
		if score := s.ScoreOn(common); score != nil {
			list[i].Score = score.Mean
		}
	}
	slices.SortStableFunc(list, func(a, b propose.Tried) int { return cmp.Compare(b.Score, a.Score) })
	return list
}

// failuresOf returns the reasons why trials of the tasks did not pass, most frequent first.
func failuresOf(tasks []*record.Task) (list []string) {
	var reasons []record.Reason
	for _, res := range tasks {
		reasons = append(reasons, res.Reasons...)
	}
	slices.SortStableFunc(reasons, func(a, b record.Reason) int { return b.Trials - a.Trials })
	for _, why := range reasons {
		if text := strings.TrimPrefix(why.Grader+": "+why.Message, ": "); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// tasks returns the prompts of the suite's tasks.
func (u *tuner) tasks() (list []string) {
	for _, t := range u.s.run.plan.Suite.Tasks {
		list = append(list, t.Inputs.Prompt)
	}
	return list
}
