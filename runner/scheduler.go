package runner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"waza/eval/surroundings"
	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/tally"
	"waza/runner/trial"
)

// scheduler hands the trials of a run to its workers in the order of the plan, and collects the
// results. Trials of a task can run in parallel. The task starts before its first trial and ends
// after its last. It is the [trial.Owner] of the run's trials. Its goroutines are the workers; work
// waits for them.
type scheduler struct {
	run   *Run
	env   *trial.Env
	tasks []*taskRun
	queue *queue
	index *indexer
	tuner *tuner // nil where no model proposes system prompts
	// fleet executes the trials; nil when this process does. It is set before the workers start.
	fleet trial.FleetTrials

	// failFast is set when a task failed and the suite sets fail_fast. Trials that wait for
	// admission then do not start.
	failFast *latch
}

func newScheduler(r *Run) *scheduler {
	s := &scheduler{run: r, env: r.plan.Env(), index: newIndexer(r), failFast: newLatch()}
	s.env.Owner, s.env.Stopping, s.env.Closed = s, r.stopped.done, s.failFast.done
	s.env.Blobs, s.env.Dir, s.env.Logger = r.log.Blobs(), r.log.WorkDir(), r.runner.log
	runs := make(map[*plan.Task]*taskRun)
	for i, t := range r.plan.Tasks {
		tr := &taskRun{
			Task: t, order: r.plan.Order(t, r.ID(), i+1), num: i + 1, left: t.Trials,
			tally: tally.NewTask(&r.rec.Tasks[i], t.Threshold),
		}
		if t.Role == record.RoleBaseline {
			runs[t] = tr
		}
		if t.Baseline != nil {
			tr.baseline = runs[t.Baseline]
		}
		s.tasks = append(s.tasks, tr)
	}
	if r.earlier != nil {
		s.carryOver(r.earlier)
	}
	s.tuner = newTuner(s)
	h := r.plan.Suite.Hooks
	s.queue = newQueue(s.tasks, len(h.BeforeTask)+len(h.AfterTask) > 0)
	if s.queue.chooser = newChooser(r.rec, s.tasks, r.earlier.decidingOf()); s.queue.chooser != nil {
		s.queue.reporter = tally.NewDecisionReporter(r.rec, s.queue.chooser.deciding)
	}
	return s
}

func (s *scheduler) executes() bool { return slices.ContainsFunc(s.tasks, (*taskRun).executes) }

// open opens the executors of the trials to execute, or the fleet that executes them.
func (s *scheduler) open(ctx context.Context) error {
	if s.run.plan.Fleet != nil {
		return s.openFleet(ctx)
	}
	for _, t := range s.tasks {
		if !t.executes() {
			continue
		}
		if err := s.env.Open(ctx, &t.order); err != nil {
			return err
		}
	}
	return nil
}

func (s *scheduler) close() {
	for _, t := range s.tasks {
		t.session.end()
	}
	if s.fleet != nil {
		if err := s.fleet.Close(); err != nil {
			s.run.logf("warning", "%v", err)
		}
	}
	if err := s.env.Close(); err != nil {
		s.run.logf("warning", "%v", err)
	}
}

// bind builds the graders of all tasks that this process grades.
func (s *scheduler) bind() error {
	if s.fleet != nil {
		return nil
	}
	for _, t := range s.tasks {
		if !t.Grades() {
			continue
		}
		if _, err := s.env.Bind(&t.order); err != nil {
			return err
		}
	}
	return nil
}

// work executes all trials and returns when the last has ended.
func (s *scheduler) work() {
	s.queue.follow(func(p *record.DecisionProgress) {
		s.run.feed.emit(&record.Event{Type: record.DecideProgress, TotalTasks: len(s.tasks), Deciding: p})
	})
	var workers sync.WaitGroup
	for range min(s.run.plan.Config.ActualWorkers, s.run.plan.TotalTrials()) {
		workers.Go(func() {
			for {
				t := s.claim()
				if t.taskRun == nil {
					return
				}
				s.runTrial(t)
			}
		})
	}
	workers.Wait()
}

// claim returns the next trial to start, or the zero turn when none is left or no more trials start.
// It blocks while every remaining trial has to wait for a running one.
func (s *scheduler) claim() turn {
	return s.queue.claim(func() bool {
		return s.run.isEnding() || s.failFast.isSet()
	})
}

// skipRest sets the verdict of every trial that was not started, so that each trial of a run has
// exactly one.
func (s *scheduler) skipRest(status record.Status) {
	verdict, reason := record.Skipped, failedFast
	switch {
	case s.failFast.isSet():
	case s.run.stopped.isSet():
		reason = trial.Stopped
	case status == record.StatusCancelled:
		verdict, reason = record.Cancelled, "not started: the run was cancelled"
	case status == record.StatusFailed:
		reason = "not started: the run failed"
	case s.run.rec.Question != nil:
		reason = notNeeded
	}
	for {
		t := s.queue.rest()
		if t.taskRun == nil {
			return
		}
		if t.held {
			s.complete(t.taskRun, t.notStarted(record.Skipped, failedFast))
		} else {
			s.complete(t.taskRun, t.notStarted(verdict, reason))
		}
	}
}

const (
	failedFast = "not started: an earlier task failed and fail_fast is on"
	notNeeded  = "not started: the question of the run did not need it"
)

// startTask starts the task of a trial if it is the first: it announces the task and runs its hooks.
// Other workers with trials of the task wait.
func (s *scheduler) startTask(t *taskRun) {
	t.starting.Do(func() {
		r := s.run
		t.env = trial.Environ(r.plan.Inherited(), &t.order)
		s.emit(t, &record.Event{Type: record.TaskStart})
		r.logTask(t, "info", "Running task: %s", t.Name)
		if t.broken = t.unproposed; t.broken != nil {
			return
		}
		if !t.hooked() {
			return
		}
		hooks := r.plan.Suite.Hooks.BeforeTask
		if len(hooks) == 0 {
			return
		}
		s.env.Grading.Planned.Adopt(func() {
			if err := s.runHooks(r.ctx, t, "before_task", hooks); err != nil {
				t.broken = executor.Permanent(err)
			}
		})
	})
}

// runHooks runs hooks of a task, in its sandbox if it has one.
func (s *scheduler) runHooks(ctx context.Context, t *taskRun, when string, list []surroundings.Hook) error {
	if len(list) == 0 {
		return nil
	}
	sh := outside(t.env)
	if t.session == nil {
		box, err := s.env.HookSandbox(ctx, &t.order, t.env)
		if err == nil && box != nil {
			t.session, err = openSession(s.run.ctx, box, s.run.plan.Suite.Dir, t.env)
		}
		if err != nil {
			return fmt.Errorf("%s hooks: %w", when, err)
		}
	}
	if t.session != nil {
		sh = t.session.run
	}
	err := s.run.hooks.run(ctx, when, list, t.Timeout, sh)
	if err != nil && t.session != nil && strings.Contains(err.Error(), "Read-only file system") {
		err = fmt.Errorf("%w; hooks of tasks run in a sandbox, so add what they change to config.sandbox.write", err)
	}
	return err
}

// runTrial executes one trial from its start to its record. A worker whose process is killed
// therefore loses at most one trial.
func (s *scheduler) runTrial(t turn) {
	err := s.run.feed.await(s.doTrial(t)) // the feed reports errors
	if s.fleet != nil && err == nil {
		s.fleet.Recorded(&record.Order{TaskNum: t.num, Num: t.trial, Hash: t.TrialHash(t.trial)})
	}
}

// doTrial executes or reuses one trial, up to its verdict. It returns the number of the event
// that announces the result.
func (s *scheduler) doTrial(t turn) (seq int64) {
	s.startTask(t.taskRun)
	if s.run.stopped.isSet() && s.run.ctx.Err() == nil { // stopped while hooks ran
		return s.complete(t.taskRun, t.notStarted(record.Skipped, trial.Stopped))
	}
	if e := t.Earlier[t.trial]; e != nil {
		s.announce(t)
		return s.complete(t.taskRun, s.reuseTrial(t, e))
	}
	if t.broken != nil {
		s.announce(t)
		return s.complete(t.taskRun, trial.Broken(s.run.ctx, s.order(t), t.broken))
	}
	do := s.run.runner.do
	if s.fleet != nil {
		do = s.fleet.Do
	}
	res := do(s.run.ctx, s.env, s.order(t))
	if !res.StartedAt.IsZero() {
		s.announce(t) // unless it is announced already
	}
	return s.complete(t.taskRun, res)
}

// Start implements [trial.Owner]: it checks whether anything that happened while the trial waited
// for admission prevents its start, and announces the trial otherwise.
func (s *scheduler) Start(o *record.Order) (skip string) {
	t := s.tasks[o.TaskNum-1]
	decided := t.decision()
	switch {
	case s.run.ctx.Err() != nil: // the verdict depends on the reason
	case s.failFast.isSet():
		return failedFast
	case s.run.stopped.isSet():
		return trial.Stopped
	case decided != nil:
		return "not started: " + tally.DecisionText(decided)
	}
	s.announce(turn{t, o.Num})
	return ""
}

// Halt implements [trial.Owner].
func (s *scheduler) Halt(why *executor.StopError) { s.run.halt(why) }

// Log implements [trial.Owner].
func (s *scheduler) Log(o *record.Order, n trial.Notice) {
	if n.Level == "debug" && !s.run.plan.Verbose {
		return
	}
	e := logEvent(nil, n.Level, n.Message)
	if o != nil {
		t := s.tasks[o.TaskNum-1]
		e.TaskID, e.TaskName, e.TaskNum = t.ID, t.Name, t.num
	}
	if n.Attempt > 0 {
		e.TrialNum, e.Attempt = o.Num, n.Attempt
	}
	s.run.feed.emit(e)
}

// emit emits an event about a task.
func (s *scheduler) emit(t *taskRun, e *record.Event) (seq int64) {
	e.TaskID, e.TaskName, e.TaskNum, e.Role = t.ID, t.Name, t.num, t.Role
	e.TotalTasks, e.TotalTrials = len(s.tasks), t.Trials
	return s.run.feed.emit(e)
}

// announce reports once that a trial starts.
func (s *scheduler) announce(t turn) {
	if !t.markStarted(t.trial) {
		return
	}
	s.emit(t.taskRun, &record.Event{Type: record.TrialStart, TrialNum: t.trial})
}

// order returns the order of one trial of a task.
func (s *scheduler) order(t turn) *record.Order {
	o := t.order
	o.Num, o.Hash, o.Baseline = t.trial, t.TrialHash(t.trial), s.compareWith(t)
	return &o
}

// compareWith returns the baseline that pairwise judges compare a trial with; nil when the suite
// requests no baseline.
func (s *scheduler) compareWith(t turn) *record.Baseline {
	if why := t.Setup.Baselines; why != "" && s.run.rec.Baseline != nil {
		return &record.Baseline{Missing: "the baseline is " + why}
	}
	if b := t.baseline; b != nil && t.Compares && b.isKept(t.trial-b.First) {
		return s.keptBaseline(turn{b, t.trial})
	}
	return s.queue.baseline(t)
}

// complete announces the result of a trial and, after the task's last trial, that of the task.
// It returns the number of the trial's event.
func (s *scheduler) complete(t *taskRun, res *record.Trial) (seq int64) {
	if res.Verdict == record.Errored {
		s.run.logTrial(t, res)
	}
	seq = s.emit(t, &record.Event{
		Type: record.TrialComplete, TrialNum: res.TrialNum, Verdict: res.Verdict, Score: res.Score, DurationMS: res.DurationMS,
		Cached: res.Cached != nil, Error: clipReason(res.Error), Trial: res,
	})
	ended := t.add(res)
	if ended.reusable {
		s.index.note(t.Task)
	}
	if ended.last {
		s.completeTask(t)
	}
	s.queue.ended(t, res, ended.last)
	if ended.decided != nil {
		s.skipDecided(t, ended.decided)
	}
	return seq
}

func (s *scheduler) completeTask(t *taskRun) {
	r := s.run
	hasStarted := true
	t.starting.Do(func() { hasStarted = false })
	if hasStarted && t.hooked() {
		ctx, cancel := r.contextAfter()
		defer cancel()
		if err := s.runHooks(ctx, t, "after_task", r.plan.Suite.Hooks.AfterTask); err != nil {
			t.tally.Broken = err.Error() // no worker has a trial of the task
			r.logTask(t, "error", "%v", err)
		}
		t.session.end()
	}
	res := t.tally.Result(t.Threshold)
	t.tally, t.env = tally.Task{}, nil // no longer needed, and there may be many tasks
	if r.plan.FailsFast(t.Task, res.Verdict) {
		s.failFast.set()
	}
	s.announceTask(t, res)
}

// announceTask reports the result of a task.
func (s *scheduler) announceTask(t *taskRun, res *record.Task) {
	s.tuner.ended(t, res)
	e := &record.Event{Type: record.TaskComplete, Verdict: res.Verdict, Task: res}
	if res.Score != nil {
		e.Score = &res.Score.Mean
	}
	if res.DurationMS != nil {
		e.DurationMS = int64(math.Round(res.DurationMS.Mean * float64(res.DurationMS.N)))
	}
	s.emit(t, e)
}

// skipDecided skips the trials of a task that have not started, because its verdict is decided.
// Running trials can finish.
func (s *scheduler) skipDecided(t *taskRun, why *record.Decided) {
	left := s.queue.drop(t)
	if len(left) == 0 {
		return
	}
	s.run.logTask(t, "info", "%s", tally.DecisionText(why))
	for _, next := range left {
		s.complete(t, next.notStarted(record.Skipped, "not started: "+tally.DecisionText(why)))
	}
}
