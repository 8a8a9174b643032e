package runner

import (
	"slices"
	"sync"

	"waza/runner/record"
	"waza/runner/trial"
)

// queue hands out the trials of a run that are to be done, in the order of the
// plan, each once. Most may begin at any time; those of a task that is compared
// with its baseline come after it:
//
//	baseline  1 ✓   2 ✓   3 …             trial n of the task begins when trial n of
//	               │     └─ task 3 waits  its baseline is over; where there are task
//	task      1 ✓  └─ 2 …                 hooks, when the whole baseline is
//
// Whoever would have to wait takes a trial of a later task instead. Only when
// there is none does it wait, and never in vain: a baseline stands before its
// task and waits for nothing, so what is waited for runs, and ends.
type queue struct {
	mu    sync.Mutex // guards the fields below and those of the tasks' queued
	over  *sync.Cond // something that is waited for may be over
	tasks []*taskRun // those of which no trial was handed out yet, or not all
	aside []*taskRun // those before, whose next trial had to wait: at most one for each worker
	held  []*taskRun // those that are not to begin; rest returns their trials
	later []*taskRun // those whose system prompt has yet to be proposed
}

// queued is the state of a task in the queue.
type queued struct {
	next int // index of the next trial to hand out; Trials when there is none
	// after says what a trial of the task waits for.
	after after
	// left holds what trials of an awaited baseline left, by number from the first;
	// nil as long as one is not over, and once it was compared with.
	left []*record.Baseline
	// done: all trials of the task are over, and its hooks.
	done bool
}

// after says what a trial waits for.
type after int

const (
	afterNothing  after = iota
	afterTrial          // the baseline's trial of the same number
	afterBaseline       // the whole baseline, for hooks of both would get in each other's way
)

func newQueue(tasks []*taskRun, hooks bool) *queue {
	q := &queue{}
	q.over = sync.NewCond(&q.mu)
	for _, t := range tasks {
		t.skipLocked()
		switch {
		case t.queued.next == t.Trials:
			t.queued.done = true
		case t.held:
			q.held = append(q.held, t)
		case t.awaitsPrompt():
			q.later = append(q.later, t)
		default:
			q.tasks = append(q.tasks, t)
		}
		if t.baseline == nil {
			continue
		}
		switch {
		case hooks:
			t.queued.after = afterBaseline
		case t.Compares:
			t.queued.after = afterTrial
		}
		if hooks || t.Compares {
			t.baseline.awaiting = t
		}
		if t.Compares {
			t.baseline.queued.left = make([]*record.Baseline, t.Trials)
		}
	}
	return q
}

// claim returns the next trial that may begin, waiting for one if need be; nil
// when there is none or closed says that no more are to begin.
func (q *queue) claim(closed func() bool) (*taskRun, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !closed() {
		if t, num := q.nextLocked(); t != nil {
			return t, num
		}
		if len(q.aside)+len(q.later) == 0 {
			return nil, 0
		}
		q.over.Wait()
	}
	return nil, 0
}

// release lets the tasks of a generation of system prompts begin.
func (q *queue) release(generation int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.later = slices.DeleteFunc(q.later, func(t *taskRun) bool {
		if t.Cell.Generation != generation {
			return false
		}
		q.tasks = append(q.tasks, t)
		return true
	})
	q.over.Broadcast()
}

// wake lets those that wait look whether more is to begin.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over.Broadcast()
}

func (q *queue) nextLocked() (*taskRun, int) {
	for i, t := range q.aside {
		if t.readyLocked() {
			num := t.takeLocked()
			if t.queued.next == t.Trials {
				q.aside = slices.Delete(q.aside, i, i+1)
			}
			return t, num
		}
	}
	for len(q.tasks) > 0 {
		t := q.tasks[0]
		if !t.readyLocked() {
			q.aside, q.tasks = append(q.aside, t), q.tasks[1:]
			continue
		}
		num := t.takeLocked()
		if t.queued.next == t.Trials {
			q.tasks = q.tasks[1:]
		}
		return t, num
	}
	return nil, 0
}

// empty reports whether there is no trial to begin.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.tasks)+len(q.aside)+len(q.later) == 0
}

// rest returns any trial that was not handed out, nil when there is none.
func (q *queue) rest() (*taskRun, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, list := range []*[]*taskRun{&q.aside, &q.tasks, &q.held, &q.later} {
		if len(*list) == 0 {
			continue
		}
		t := (*list)[0]
		num := t.takeLocked()
		if t.queued.next == t.Trials {
			*list = (*list)[1:]
		}
		return t, num
	}
	return nil, 0
}

// drop takes the trials of a task that were not handed out away, and returns their
// numbers.
func (q *queue) drop(t *taskRun) []int {
	q.mu.Lock()
	defer q.mu.Unlock()
	var nums []int
	for t.queued.next < t.Trials {
		nums = append(nums, t.takeLocked())
	}
	same := func(other *taskRun) bool { return other == t }
	for _, list := range []*[]*taskRun{&q.tasks, &q.aside, &q.held, &q.later} {
		*list = slices.DeleteFunc(*list, same)
	}
	return nums
}

func (t *taskRun) takeLocked() int {
	num := t.First + t.queued.next
	t.queued.next++
	t.skipLocked()
	return num
}

// skipLocked passes over trials that are not to be done.
func (t *taskRun) skipLocked() {
	for t.queued.next < t.Trials && t.isKept(t.queued.next) {
		t.queued.next++
	}
}

// readyLocked reports whether the next trial of a task may begin.
func (t *taskRun) readyLocked() bool {
	switch t.queued.after {
	case afterTrial:
		return t.baseline.leftLocked(t.queued.next)
	case afterBaseline:
		b := &t.baseline.queued
		// The last trial may tell of its end before another does.
		return b.done && (b.left == nil || t.baseline.leftLocked(t.queued.next))
	}
	return true
}

// leftLocked reports whether what the trial at an index left is there to be
// compared with.
func (t *taskRun) leftLocked(index int) bool {
	return t.isKept(index) || t.queued.left[index] != nil
}

// ended tells that a trial is over, and whether its task is.
func (q *queue) ended(t *taskRun, res *record.Trial, last bool) {
	if t.awaiting == nil && !(t.Compares && t.baseline != nil) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.awaiting == nil {
		t.baseline.queued.left[res.TrialNum-t.First] = nil // may be megabytes
		return
	}
	if i := res.TrialNum - t.First; t.queued.left != nil && !t.awaiting.isKept(i) {
		t.queued.left[i] = trial.BaselineOf(res)
	}
	t.queued.done = t.queued.done || last
	q.over.Broadcast()
}

// baseline returns what a trial of a task is compared with; nil when its task has
// no baseline, or that trial of it was kept.
func (q *queue) baseline(t *taskRun, num int) *record.Baseline {
	if t.baseline == nil || !t.Compares {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.baseline.queued.left[num-t.First]
}
