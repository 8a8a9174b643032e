package compare

import (
	"cmp"
	"fmt"
	"slices"

	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/stats"
	"waza/runner/tally"
)

// Source is something that can be compared: [FromRun], [FromCells] and
// [FromFile] make them.
type Source interface {
	side() (*side, error)
}

// FromRun compares a run. Of one that goes on, what has ended is compared.
func FromRun(h record.Handle) Source { return runSource{h: h} }

// FromCells compares the cells of a run's matrix with each other, in the order of
// the run; tasks are matched by their ids in the suite. It is nil when the run has
// no matrix.
func FromCells(h record.Handle) []Source {
	var sources []Source
	seen := map[string]bool{}
	for _, t := range h.Record().Tasks {
		if t.Cell != nil && !seen[t.Cell.Name] {
			seen[t.Cell.Name] = true
			sources = append(sources, runSource{h: h, cell: t.Cell})
		}
	}
	return sources
}

type runSource struct {
	h    record.Handle
	cell *record.Cell // nil means all of the run
}

func (s runSource) side() (*side, error) {
	run, st, err := replay.StateOf(s.h)
	if err != nil {
		return nil, err
	}
	progress, err := s.h.Progress()
	if err != nil {
		return nil, err
	}
	sd := newSide(s.h.Record(), progress.Status, s.cell)
	sd.amended = progress.AmendedAt != nil
	if sum := progress.Summary; s.cell == nil && sum != nil && sum.Judged != nil && sum.Judged.Report != nil {
		sd.head.Judged = &record.JudgeReport{OverallScore: sum.Judged.Report.OverallScore, OverallGrade: sum.Judged.Report.OverallGrade}
	}
	for i, res := range st.Results() {
		sd.setVerdict(i, res)
	}
	err = replay.VisitLean(run, st, func(task int, t *replay.Lean) error { return sd.add(task, &t.Trial) })
	return sd.finish(), err
}

// side is one of the runs that are compared: of each trial that counts some
// numbers, and nothing else that grows with transcripts.
type side struct {
	head    ComparedRun
	rec     *record.Run
	amended bool // its grades may not be those of its graders
	// beside counts the tasks that are not the suite's own.
	beside int
	// cached counts, by the run that executed them, the trials that were taken over.
	cached map[string]int
	tasks  []*sideTask
	byID   map[string]*sideTask
	// at finds the task of an index of the record; nil for those left out.
	at []*sideTask
}

type sideTask struct {
	ref     record.TaskRef
	id      string // by which it is matched
	verdict record.Verdict
	tools   *record.ToolScores // nil without any
	counts  record.Counts
	trials  []sideTrial // those that count, by number
	// ended are the verdicts of all trials that ended, by number. It is empty for tasks
	// that could not stop early.
	ended []numbered
	// amended: the verdicts are not those by which trials were stopped.
	amended bool
}

// numbered is the verdict of a trial.
type numbered struct {
	num     int
	verdict record.Verdict
}

// sideTrial holds the numbers of a trial that counts: 72 bytes of each of the million
// trials that two runs may have, where a [record.Trial] without texts takes 330.
type sideTrial struct {
	num           int
	passed        bool
	score         *float64
	ms            float64
	usage         bool
	tokens, price float64
	first, speed  float64 // 0 when not known
}

func newSide(rec *record.Run, status record.Status, cell *record.Cell) *side {
	s := &side{rec: rec, cached: map[string]int{}, byID: map[string]*sideTask{}, at: make([]*sideTask, len(rec.Tasks))}
	s.head = ComparedRun{
		Name: rec.RunID, RunID: rec.RunID, Status: status, Suite: rec.Suite, StartedAt: rec.CreatedAt,
		Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.Config.Model,
	}
	if cell != nil {
		s.head.Name, s.head.Cell, s.head.Model = fmt.Sprintf("%s[%s]", rec.RunID, cell.Name), cell, cmp.Or(cell.Model, s.head.Model)
	}
	for i, ref := range rec.Tasks {
		if cell != nil && (ref.Cell == nil || ref.Cell.Name != cell.Name) {
			continue
		}
		if ref.Role != record.RoleTask {
			s.beside++
			continue
		}
		t := &sideTask{ref: ref, id: ref.ID, counts: record.Counts{Total: ref.Trials}}
		if cell != nil {
			t.id = cmp.Or(ref.Task, ref.ID)
		}
		s.tasks, s.byID[t.id], s.at[i] = append(s.tasks, t), t, t
	}
	return s
}

func (s *side) setVerdict(task int, res *record.Task) {
	t := s.at[task]
	if t == nil || res == nil {
		return
	}
	t.verdict, t.tools = res.Verdict, res.Tools
}

func (s *side) add(task int, res *record.Trial) error {
	t := s.at[task]
	if t == nil {
		return nil
	}
	t.counts.Add(res.Verdict)
	if t.ref.Stopping > 0 {
		t.ended = append(t.ended, numbered{res.TrialNum, res.Verdict})
	}
	if !res.Verdict.Counted() {
		return nil
	}
	trial := sideTrial{num: res.TrialNum, passed: res.Verdict == record.Passed, score: res.CountedScore(), ms: float64(res.DurationMS)}
	if res.Cached != nil {
		s.cached[res.Cached.RunID]++
	}
	if spent := res.Ledger(); spent != nil && spent.Agent != nil { // judges may differ, and say nothing of the agent
		trial.usage, trial.tokens, trial.price = true, float64(spent.Agent.Total()), spent.Agent.CostUSD
	}
	if res.Speed != nil {
		trial.first, trial.speed = res.Speed.FirstTokenMS, res.Speed.TokensPerSecond
	}
	t.trials = append(t.trials, trial)
	return nil
}

func (s *side) finish() *side {
	for _, t := range s.tasks {
		t.amended = s.amended
		slices.SortStableFunc(t.trials, func(a, b sideTrial) int { return cmp.Compare(a.num, b.num) })
		slices.SortStableFunc(t.ended, func(a, b numbered) int { return cmp.Compare(a.num, b.num) })
		s.head.Tasks.Total++
		s.head.Tasks.Add(t.verdict)
		s.head.Trials.Merge(t.counts)
	}
	return s
}

// comparable reports whether the task has trials that count, and all that can be known
// of them is. While some wait for a person's score, those that failed an automatic
// grader count and those that passed it do not, so any rate of them would be too low.
func (t *sideTask) comparable() bool { return len(t.trials) > 0 && t.counts.NeedsReview == 0 }

// side holds what is compared of the task.
func (t *sideTask) side() tally.TaskSide {
	var s tally.TaskSide
	for _, x := range t.trials {
		s.Share.N++
		if x.passed {
			s.Share.Passed++
		}
		switch {
		case x.score == nil:
		case x.passed:
			s.Passed = append(s.Passed, *x.score)
		default:
			s.Other = append(s.Other, *x.score)
		}
	}
	if t.ref.Stopping > 0 {
		d := tally.Decider{Rule: tally.RuleOf(&t.ref)}
		for _, e := range t.ended {
			d.Add(e.num-max(1, t.ref.First), e.verdict)
		}
		if d.Sample == nil {
			d.Sample = stats.NewSample(d.Rule)
		}
		s.Sample = d.Sample
		// By other verdicts it would not have stopped where it did: trials are missing that
		// these ask for.
		s.Untestable = t.amended && d.Decided == nil && t.counts.Skipped > 0
	}
	s.Unbiased = tally.UnbiasedOf(s.Sample, s.Share, s.Passed, s.Other)
	return s
}

// took lists what the counted trials took of something, as far as it is known.
func (t *sideTask) took(what func(sideTrial) (float64, bool)) []float64 {
	var list []float64
	for _, x := range t.trials {
		if v, ok := what(x); ok {
			list = append(list, v)
		}
	}
	return list
}

// What trials take.
var (
	tookTime   = func(t sideTrial) (float64, bool) { return t.ms, true }
	tookTokens = func(t sideTrial) (float64, bool) { return t.tokens, t.usage && t.tokens > 0 }
	tookFirst  = func(t sideTrial) (float64, bool) { return t.first, t.first > 0 }
	tookSpeed  = func(t sideTrial) (float64, bool) { return t.speed, t.speed > 0 }
	tookMoney  = func(t sideTrial) (float64, bool) { return t.price, t.usage && t.price > 0 }
)
