package runner

import (
	"slices"
	"sync"

	"waza/runner/record"
	"waza/runner/tally"
	"waza/runner/trial"
)

// queue hands out the pending trials of a run in the order of the plan, each once. Most trials
// can start at any time. Trials of a task that is compared with its baseline start after it:
//
//	baseline  1 ✓   2 ✓   3 …             trial n of the task starts when trial n of
//	               │     └─ task 3 waits  its baseline is over; with task hooks,
//	task      1 ✓  └─ 2 …                 when the whole baseline is over
//
// If the next trial would have to wait, the queue hands out a trial of a later task. claim waits
// only when no other is ready. It never waits forever: a baseline precedes its task and waits for
// nothing, so every awaited trial is running and ends. In a run that decides a question, claim hands
// out only chosen trials, and also waits for the end of those after which the next are chosen.
type queue struct {
	mu    sync.Mutex // guards the fields below and those of the tasks' queued
	over  *sync.Cond // signaled when an awaited trial may be over
	tasks []*taskRun // tasks that still have trials to hand out
	aside []*taskRun // earlier tasks whose next trial had to wait: at most one per worker
	held  []*taskRun // tasks that must not start; rest returns their trials
	later []*taskRun // tasks whose system prompt is not proposed yet
	// chooser chooses the trials; nil if all are handed out in the order of the plan.
	chooser *chooser
	// report, unless nil, gets the progress of the question of the run. reporter finds it.
	report   func(*record.DecisionProgress)
	reporter *tally.DecisionReporter
}

// queued is the state of a task in the queue.
type queued struct {
	next int // index of the next trial to hand out; Trials when none is left
	// what a trial of the task waits for
	after waitKind
	// left holds the results of an awaited baseline's trials, by index. An element is nil until
	// its trial is over, and after the comparison.
	left []*record.Baseline
	// done reports whether all trials and hooks of the task are over.
	done bool
}

// waitKind states what a trial waits for.
type waitKind int

const (
	afterNothing  waitKind = iota
	afterTrial             // the trial of the baseline with the same number
	afterBaseline          // the whole baseline, because the hooks of both would conflict
)

// A turn is what the queue hands out: one trial of a task, by its number. The zero value
// means that there is no trial.
type turn struct {
	*taskRun
	trial int
}

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

// claim returns the next trial that can start, and waits for one if necessary. It returns the zero
// turn when none is left or when closed reports that no more trials start.
func (q *queue) claim(closed func() bool) turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !closed() {
		if next := q.nextLocked(); next.taskRun != nil || !q.waitsLocked() {
			return next
		}
		q.over.Wait()
	}
	return turn{}
}

// release allows the tasks of a generation of system prompts to start.
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

// wake makes waiting workers check again whether a trial can start.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over.Broadcast()
}

// waitsLocked reports whether trials can become ready.
func (q *queue) waitsLocked() bool {
	if q.chooser != nil {
		return q.chooser.end == ""
	}
	return len(q.aside)+len(q.later) > 0
}

func (q *queue) nextLocked() turn {
	if q.chooser != nil {
		next := q.chooser.next()
		if next.taskRun != nil && next.queued.next == next.Trials {
			q.tasks = slices.DeleteFunc(q.tasks, func(t *taskRun) bool { return t == next.taskRun })
		}
		return next
	}
	for i, t := range q.aside {
		if t.readyLocked() {
			next := t.takeLocked()
			if t.queued.next == t.Trials {
				q.aside = slices.Delete(q.aside, i, i+1)
			}
			return next
		}
	}
	for len(q.tasks) > 0 {
		t := q.tasks[0]
		if !t.readyLocked() {
			q.aside, q.tasks = append(q.aside, t), q.tasks[1:]
			continue
		}
		next := t.takeLocked()
		if t.queued.next == t.Trials {
			q.tasks = q.tasks[1:]
		}
		return next
	}
	return turn{}
}

// empty reports whether no trial is left to start.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.tasks)+len(q.aside)+len(q.later) == 0
}

// rest returns any trial that was not handed out.
func (q *queue) rest() turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, list := range []*[]*taskRun{&q.aside, &q.tasks, &q.held, &q.later} {
		if len(*list) == 0 {
			continue
		}
		t := (*list)[0]
		next := t.takeLocked()
		if t.queued.next == t.Trials {
			*list = (*list)[1:]
		}
		return next
	}
	return turn{}
}

// drop removes and returns the trials of a task that were not handed out.
func (q *queue) drop(t *taskRun) []turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	var left []turn
	for t.queued.next < t.Trials {
		left = append(left, t.takeLocked())
	}
	same := func(other *taskRun) bool { return other == t }
	for _, list := range []*[]*taskRun{&q.tasks, &q.aside, &q.held, &q.later} {
		*list = slices.DeleteFunc(*list, same)
	}
	return left
}

func (t *taskRun) takeLocked() turn {
	next := turn{t, t.First + t.queued.next}
	t.queued.next++
	t.skipLocked()
	return next
}

// skipLocked skips trials that need no execution.
func (t *taskRun) skipLocked() {
	for t.queued.next < t.Trials && t.isKept(t.queued.next) {
		t.queued.next++
	}
}

// readyLocked reports whether the next trial of a task can start.
func (t *taskRun) readyLocked() bool {
	switch t.queued.after {
	case afterTrial:
		return t.baseline.leftLocked(t.queued.next)
	case afterBaseline:
		b := &t.baseline.queued
		// The last trial may report its end before another one does.
		return b.done && (b.left == nil || t.baseline.leftLocked(t.queued.next))
	}
	return true
}

// leftLocked reports whether the result of the trial at the index is available for a comparison.
func (t *taskRun) leftLocked(index int) bool {
	return t.isKept(index) || t.queued.left[index] != nil
}

// ended records that a trial is over, and whether its task is.
func (q *queue) ended(t *taskRun, res *record.Trial, last bool) {
	if q.chooser == nil && t.awaiting == nil && !(t.Compares && t.baseline != nil) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.chooser != nil {
		defer q.over.Broadcast()
		defer q.reportLocked()
		defer q.chooser.ended(t, res)
	}
	if t.awaiting == nil && !(t.Compares && t.baseline != nil) {
		return
	}
	if t.awaiting == nil {
		t.baseline.queued.left[res.TrialNum-t.First] = nil // may be megabytes
		return
	}
	if i := res.TrialNum - t.First; t.queued.left != nil && !t.awaiting.isKept(i) {
		t.queued.left[i] = trial.BaselineOf(res, t.order.Against.Arm())
	}
	t.queued.done = t.queued.done || last
	q.over.Broadcast()
}

// follow gives the progress of the question of the run to report: at once if there is any, and later after batches
// of pairs. It does nothing for other runs.
func (q *queue) follow(report func(*record.DecisionProgress)) {
	if q.chooser == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.report = report
	q.reportLocked()
}

// reportLocked reports the progress of the question if it has changed enough.
func (q *queue) reportLocked() {
	if q.report == nil {
		return
	}
	if news := q.reporter.News(); news != nil {
		q.report(news)
	}
}

// baseline returns the trial to compare a trial of a task with. It is nil when the task has no
// baseline, or when the baseline's trial was kept.
func (q *queue) baseline(t turn) *record.Baseline {
	if t.baseline == nil || !t.Compares {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.baseline.queued.left[t.trial-t.First]
}
