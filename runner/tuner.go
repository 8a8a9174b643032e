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

// tuner lets a model propose system prompts, generation by generation:
//
//	tasks of generation 0 end ─► prompts of 1 are proposed ─► tasks of 1 begin … ─► prompts of 2
//
// A proposal is recorded before a trial uses it, so that a run that is resumed has the same
// prompts. A nil tuner does nothing.
type tuner struct {
	s     *scheduler
	known map[eval.Proposal]bool // belongs to the goroutine of work, and to newTuner before

	mu      sync.Mutex // guards the fields below
	results map[*taskRun]*record.Task
	left    []int           // by generation: tasks that have not ended
	over    []chan struct{} // by generation: closed when none is left
}

// newTuner is nil where the run has no cells for prompts that are proposed. It gives the
// tasks the prompts that earlier sessions recorded.
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
		for i := range e.state.Prompts {
			u.know(&e.state.Prompts[i])
		}
	}
	return u
}

// place is where the system prompt of the task is among those that a model proposes.
func (t *taskRun) place() eval.Proposal {
	if t.Cell == nil {
		return eval.Proposal{}
	}
	return eval.Proposal{Generation: t.Cell.Generation, Number: t.Cell.Proposal}
}

// awaitsPrompt reports whether the system prompt of the task has yet to be proposed.
func (t *taskRun) awaitsPrompt() bool { return t.place().Generation > 0 && !t.prompted }

// know gives a prompt to its tasks, none of which has begun.
func (u *tuner) know(p *record.Prompt) {
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

// ended takes the result of a task that has ended.
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

// work proposes prompts until all generations have theirs, no more trials are to begin, or
// ctx ends.
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
		case <-r.stops:
			return
		case <-u.s.closed:
			return
		}
		if err := u.propose(ctx, g); err != nil {
			if ctx.Err() != nil {
				return
			}
			if why := executor.AsStop(err); why != nil {
				r.halt(why)
			}
			r.logf("error", "no system prompts for generation %d: %v", g, err)
			u.giveUp(g, err)
			return
		}
		u.s.queue.release(g)
	}
}

// propose asks for the prompts of a generation that are not known.
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
		err := r.feed.await(r.feed.emit(&record.Event{
			Type: record.PromptProposed, Level: "info", Prompt: p,
			Message: fmt.Sprintf("System prompt %d of generation %d (%s): %s", p.Number, p.Generation, p.Style, text.Clip(strings.Join(strings.Fields(p.Text), " "), 200)),
		}))
		if err != nil {
			return err
		}
		u.s.tally.AddPrompts(*p)
		u.know(p)
	}
	return nil
}

// missing are the places of a generation without a prompt.
func (u *tuner) missing(g int) (list []eval.Proposal) {
	for _, t := range u.s.tasks {
		if at := t.place(); at.Generation == g && !u.known[at] && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b eval.Proposal) int { return a.Number - b.Number })
	return list
}

// giveUp ends the tasks from a generation on in error, but for those with a prompt.
func (u *tuner) giveUp(g int, err error) {
	for _, t := range u.s.tasks {
		if t.awaitsPrompt() {
			t.unproposed = executor.Permanent(fmt.Errorf("there is no system prompt: %w", err))
		}
	}
	for ; g < len(u.left); g++ {
		u.s.queue.release(g)
	}
}

// tried are the prompts whose tasks have ended, the best first, with what most often went
// wrong.
func (u *tuner) tried() []propose.Tried {
	u.mu.Lock()
	defer u.mu.Unlock()
	byText := map[string][]*record.Task{}
	var order []string
	for _, t := range u.s.tasks {
		res := u.results[t]
		if res == nil || t.Role != record.RoleTask || t.awaitsPrompt() {
			continue
		}
		prompt := t.order.Params[eval.ParamSystemPrompt]
		if byText[prompt] == nil {
			order = append(order, prompt)
		}
		byText[prompt] = append(byText[prompt], res)
	}
	list := make([]propose.Tried, len(order))
	for i, prompt := range order {
		list[i] = propose.Tried{Text: prompt, Score: -1, Failures: failuresOf(byText[prompt])}
		if s := tally.ScoreOver(byText[prompt]); s != nil {
			list[i].Score = s.Mean
		}
	}
	slices.SortStableFunc(list, func(a, b propose.Tried) int { return cmp.Compare(b.Score, a.Score) })
	return list
}

// failuresOf says what kept trials of tasks from passing, the most frequent first.
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

// tasks are the prompts of the suite's tasks.
func (u *tuner) tasks() (list []string) {
	for _, t := range u.s.run.plan.Suite.Tasks {
		list = append(list, t.Inputs.Prompt)
	}
	return list
}
