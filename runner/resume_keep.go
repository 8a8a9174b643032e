package runner

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"waza/eval/text"
	"waza/runner/journal"
	"waza/runner/judging"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/replay"
	"waza/runner/tally"
	"waza/runner/trial"
)

// earlier is what a run that is taken up again has of its sessions before.
type earlier struct {
	plan  *plan.Plan
	rec   *record.Run   // of the run from now on
	state *replay.State // what is kept, by that record
	ran   time.Duration
	ended bool          // the last session recorded its end
	last  time.Time     // of the last event; zero without any
	tasks []earlierTask // of the plan
	tally *tally.Run    // of what is kept

	// kept, changed and again count trials that were recorded: those whose
	// results stand, those that are not known by the same content any more, and
	// those whose verdict does not say what became of them.
	kept, changed, again int
	added, gone          []string // ids of tasks
	overBudget           error    // what was spent is too much to go on; nil when it is not
}

// earlierTask is a task of the plan as earlier sessions left it.
type earlierTask struct {
	kept   []bool // by index; nil when nothing is
	n      int    // how many are
	again  int    // trials whose verdict does not say what became of them
	tally  tally.Task
	result *record.Task // nil when the task had not ended
	held   bool         // a task before it failed, and fail_fast is on
}

// readEarlier finds out what of a run that is locked is to be kept by a plan.
func readEarlier(ctx context.Context, run *journal.Run, p *plan.Plan) (*earlier, error) {
	was, _, err := replay.ReadRecord(run)
	if err != nil {
		return nil, err
	}
	e := &earlier{plan: p, rec: p.Record(was.RunID, was.CreatedAt, os.Getpid()), tasks: make([]earlierTask, len(p.Tasks))}
	if _, err := marshalRecord(p, e.rec); err != nil { // takes secrets out
		return nil, err
	}
	if e.state, err = replay.FoldJournal(run, e.rec); err != nil {
		return nil, err
	}
	e.tally = tally.NewRun(e.rec)
	e.tally.AddPrompts(e.state.Prompts...)
	if err := e.choose(ctx, run); err != nil {
		return nil, err
	}
	e.compareTasks(was)
	e.holdTasks()
	// Of a run that somebody was about to take up again, the end counts no more.
	over := e.state.Progress.EndedAt != nil && was.Resumed <= e.state.Resumed
	if status := e.state.Progress.Status; over && status == record.StatusCompleted && e.nothingLeft() && !judging.IsOpen(e.state.Progress.Summary) {
		return nil, &NothingLeftError{RunID: was.RunID, Status: status}
	}
	e.overBudget = chargeEarlier(run, p, e.rec)
	e.ran = e.state.Clock.Total()
	e.ended, e.last = e.state.Progress.EndedAt != nil, e.state.Clock.Last
	e.rec.Resumed = e.state.Resumed + 1
	e.state.Reopen()
	e.state.KeepOnly(e.ranges())
	e.state.Judged.AddTo(e.tally)
	return e, nil
}

// candidate is the place of a trial that may be kept, and what decoding it gave.
type candidate struct {
	task, index int
	at          replay.Place
	res         replay.Lean
	err         error
}

// batchSize is how many trials are decoded at once.
const batchSize = 1024

// choose looks at every trial that was recorded, in the order of the plan, and
// counts those that are kept. All processors decode, for that takes the time.
func (e *earlier) choose(ctx context.Context, run *journal.Run) error {
	files, err := replay.OpenTrials(run)
	if err != nil {
		return err
	}
	defer files.Close()
	baselines := map[*plan.Task]*earlierTask{}
	batch := make([]candidate, 0, batchSize)
	flush := func() error {
		decodeAll(files, batch)
		for i := range batch {
			e.take(&batch[i], baselines)
		}
		batch = batch[:0]
		return context.Cause(ctx)
	}
	for i, t := range e.plan.Tasks {
		e.tasks[i].tally = tally.NewTask(&e.rec.Tasks[i], t.Threshold)
		baselines[t] = &e.tasks[i]
		e.tasks[i].result = e.state.Tasks[i].Result
		for j, at := range e.state.Tasks[i].Trials {
			switch {
			case at.Size == 0:
			case !at.Verdict.Verdict().Keepable():
				e.tasks[i].again++
			default:
				batch = append(batch, candidate{task: i, index: j, at: at})
			}
			if len(batch) == batchSize {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for i := range e.tasks {
		if e.tasks[i].tally.Early.Decided == nil { // what was left out stays so
			e.again += e.tasks[i].again
		}
	}
	return nil
}

func decodeAll(files *replay.Trials, batch []candidate) {
	workers := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(batch); i += workers {
				c := &batch[i]
				c.err = c.res.Read(files, c.at)
			}
		})
	}
	all.Wait()
}

// take keeps a trial if its content is what it was. One that cannot be read is done
// again, as is one that was compared with a baseline that is.
func (e *earlier) take(c *candidate, baselines map[*plan.Task]*earlierTask) {
	t, et := e.plan.Tasks[c.task], &e.tasks[c.task]
	res, num := &c.res.Trial, t.First+c.index
	switch {
	case c.err != nil || res.TrialNum != num || replay.CodeOf(res.Verdict) != c.at.Verdict:
		e.again++
		return
	case res.Hash != t.TrialHash(num):
		e.changed++
		return
	case t.Compares && t.Baseline != nil && regrade.Gradable(res) && !baselines[t.Baseline].keeps(c.index):
		e.again++
		return
	}
	if et.kept == nil {
		et.kept = make([]bool, t.Trials)
	}
	et.kept[c.index] = true
	et.n++
	e.kept++
	et.tally.Add(res)
	et.tally.Early.Add(c.index, res.Verdict)
	e.tally.AddTrial(c.task, res)
}

func (t *earlierTask) keeps(index int) bool { return t.kept != nil && t.kept[index] }

// whole reports whether nothing of a task is to be done: all its trials are kept, or
// they decide its verdict.
func (e *earlier) whole(task int) bool {
	et := &e.tasks[task]
	return et.n == e.plan.Tasks[task].Trials || et.tally.Early.Decided != nil
}

// verdict is that of a task of which nothing is to be done.
func (t *earlierTask) verdict(threshold float64) record.Verdict {
	if d := t.tally.Early.Decided; d != nil && t.broken() == "" {
		return d.Verdict
	}
	return tally.TaskVerdict(t.tally.Counts, threshold, t.broken() != "")
}

// compareTasks finds out which tasks came and went.
func (e *earlier) compareTasks(was *record.Run) {
	before := make(map[string]bool, len(was.Tasks))
	for _, t := range was.Tasks {
		before[t.ID] = true
	}
	for _, t := range e.rec.Tasks {
		if !before[t.ID] {
			e.added = append(e.added, t.ID)
		}
		delete(before, t.ID)
	}
	for _, t := range was.Tasks {
		if before[t.ID] {
			e.gone = append(e.gone, t.ID)
		}
	}
}

// holdTasks keeps what comes after a task that failed from beginning, where
// fail_fast is on. What comes before it had begun by then.
func (e *earlier) holdTasks() {
	failed := false
	for i, t := range e.plan.Tasks {
		et := &e.tasks[i]
		et.held = failed
		if e.whole(i) {
			failed = failed || e.plan.FailsFast(t, et.verdict(t.Threshold))
		}
	}
}

// broken is why the task is an error whatever its trials are; empty when it is none.
func (t *earlierTask) broken() string {
	if t.result == nil {
		return ""
	}
	return t.result.Error
}

// nothingLeft reports whether no trial would be done.
func (e *earlier) nothingLeft() bool {
	for i := range e.tasks {
		if !e.tasks[i].held && !e.whole(i) {
			return false
		}
	}
	return true
}

// ranges are the trials that are kept, by the id of their task.
func (e *earlier) ranges() map[string][]record.TrialRange {
	kept := map[string][]record.TrialRange{}
	for i, t := range e.rec.Tasks {
		var list []record.TrialRange
		for j, keep := range e.tasks[i].kept {
			num := t.First + j
			switch last := len(list) - 1; {
			case !keep:
			case last >= 0 && list[last][1] == num-1:
				list[last][1] = num
			default:
				list = append(list, record.TrialRange{num, num})
			}
		}
		if list != nil {
			kept[t.ID] = list
		}
	}
	return kept
}

// event is the one that begins the session.
func (e *earlier) event() *record.Event {
	total := e.plan.TotalTrials()
	return &record.Event{
		Type: record.RunResumed, TotalTasks: len(e.plan.Tasks), TotalTrials: total,
		Kept: e.ranges(), KeptTrials: e.kept, Message: e.message(total),
	}
}

func (e *earlier) message(total int) string {
	text := fmt.Sprintf("the run is taken up again: %d of %d trials are kept", e.kept, total)
	if e.changed > 0 {
		text += fmt.Sprintf("; %d are done anew, for their task has changed", e.changed)
	}
	if e.again > 0 {
		text += fmt.Sprintf("; %d are done again that were in error, cancelled or skipped", e.again)
	}
	return text
}

// differences say in which tasks the suite differs from what it was.
func (e *earlier) differences() []string {
	var list []string
	if len(e.gone) > 0 {
		list = append(list, "no longer in the suite, and left out: "+text.Names(e.gone))
	}
	if len(e.added) > 0 {
		list = append(list, "new in the suite: "+text.Names(e.added))
	}
	return list
}

// carryOver lets tasks begin with what earlier sessions did of them.
func carryOver(s *scheduler, e *earlier) {
	s.tally = e.tally
	for i, t := range s.tasks {
		et := &e.tasks[i]
		t.kept, t.held, t.tally, t.left = et.kept, et.held, et.tally, t.Trials-et.n
		et.kept, et.tally = nil, tally.Task{}
	}
}

// settle ends the tasks of which nothing is to be done: without a word those whose
// result stands in the journal, and anew those whose threshold has changed, whose
// end the process did not live to tell, or whose verdict was decided before all
// trials were started. Hooks do not run, for nothing does.
func settle(s *scheduler) {
	e := s.run.earlier
	if e == nil {
		return
	}
	for i, t := range s.tasks {
		if t.left > 0 && t.tally.Early.Decided == nil {
			continue
		}
		t.tally.Broken = e.tasks[i].broken()
		if t.left > 0 {
			s.skipDecided(t, t.tally.Early.Decided)
			t.kept = slices.Repeat([]bool{true}, t.Trials) // nothing of it is executed
			continue
		}
		res := t.tally.Result(t.Threshold)
		t.tally = tally.Task{}
		if sameResult(res, e.tasks[i].result) {
			s.addResult(t, res)
		} else {
			s.announceTask(t, res)
		}
		e.tasks[i].result = nil
	}
}

// sameResult reports whether a result is the one that was recorded, but for
// statistics, which follow from the rest.
func sameResult(a, recorded *record.Task) bool {
	return recorded != nil && a.Verdict == recorded.Verdict && a.Trials.Counts == recorded.Trials.Counts && a.Error == recorded.Error && sameScore(a.Score, recorded.Score)
}

func sameScore(a, b *record.ScoreStats) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// keptBaseline is what a trial without skills left that was done in an earlier
// session.
func keptBaseline(s *scheduler, b *taskRun, num int) *record.Baseline {
	at := s.run.fold.Place(replay.KeyOf(b.num-1, num-b.First))
	res := new(record.Trial)
	files, err := replay.OpenTrials(s.run.log.Run())
	if err == nil {
		defer files.Close()
		err = files.Decode(at, res)
	}
	if err != nil {
		return &record.Baseline{Missing: err.Error()}
	}
	return trial.BaselineOf(res)
}
