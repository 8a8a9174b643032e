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

// A Source is anything that can be compared: [FromRun], [FromCells] and [FromFile] make sources.
type Source interface {
	side() (*side, error)
}

// FromRun returns a run as a source. If the run is still running, its ended tasks are compared.
func FromRun(h record.Handle) Source { return runSource{h: h} }

// FromCells returns the cells of a run's matrix as sources, in the order of the run. Tasks are
// matched by their ids in the suite. The result is nil if the run has no matrix.
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
	cell *record.Cell // nil means the whole run
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
	if sd.head.Damage, err = s.h.Damage(); err != nil {
		return nil, err
	}
	if sum := progress.Summary; s.cell == nil && sum != nil && sum.Judged != nil && sum.Judged.Report != nil &&
		sum.Judged.Report.OverallScore != nil {
		sd.head.Judged = &record.JudgeReport{OverallScore: sum.Judged.Report.OverallScore, OverallGrade: sum.Judged.Report.OverallGrade}
		if sum.Common != nil {
			sd.head.JudgedLeftOut = len(sum.Common.LeftOut)
		}
	}
	for i, res := range st.Results() {
		sd.setVerdict(i, res)
	}
	err = replay.VisitLean(run, st, func(task int, t *replay.LeanTrial) error { return sd.add(task, &t.Trial) })
	return sd.finish(), err
}

// A side is one of the compared runs. It holds a few numbers of each trial that counts; its size
// does not depend on transcripts.
type side struct {
	head    ComparedRun
	rec     *record.Run
	amended bool // its grades may come from different graders
	// outside counts the tasks outside of the suite.
	outside int
	// cached counts the reused trials, by the run that executed them.
	cached map[string]int
	tasks  []*sideTask
	byID   map[string]*sideTask
	// at returns the task at an index of the record; nil for omitted tasks.
	at []*sideTask
}

type sideTask struct {
	ref     record.TaskRef
	id      string // by which tasks are matched
	verdict record.Verdict
	tools   *record.ToolScores // nil if no trial has tool scores
	counts  record.Counts
	trials  []sideTrial // trials that count, by number
	// ended holds the verdicts of all ended trials, by number. It is empty for tasks that could
	// not stop early.
	ended []numbered
	// amended: the verdicts differ from those that stopped the trials.
	amended bool
}

// numbered is the verdict of a trial with its number.
type numbered struct {
	num     int
	verdict record.Verdict
}

// A sideTrial holds the numbers of a trial that counts. It takes 72 bytes, where a
// [record.Trial] without texts takes 330, and two runs can have a million trials.
type sideTrial struct {
	num           int
	passed        bool
	score         *float64
	ms            float64
	usage         bool
	tokens, price float64
	first, speed  float64 // 0 means unknown
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
			s.outside++
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
	if spent := res.Ledger(); spent != nil && spent.Agent != nil { // judges may differ, and their usage does not concern the agent
		trial.usage, trial.tokens, trial.price = true, float64(spent.Agent.Total()), spent.Agent.CostUSD
	}
	if res.Speed != nil {
		trial.first, trial.speed = res.Speed.FirstTokenMS, res.Speed.TokensPerSecond
	}
	if t.trials == nil { // most trials count
		t.trials = make([]sideTrial, 0, t.ref.Trials)
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

// comparable reports whether the task has trials that count and no trial waits for a person's
// score. Of the waiting trials, those that failed an automatic grader count and those that
// passed it do not, so any rate would be too low.
func (t *sideTask) comparable() bool { return len(t.trials) > 0 && t.counts.NeedsReview == 0 }

// side returns the data to compare of the task.
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
		// With these verdicts the task would not have stopped where it did: trials that they
		// require are missing.
		s.Untestable = t.amended && d.Decided == nil && t.counts.Skipped > 0
	}
	s.Unbiased = tally.UnbiasedOf(s.Sample, s.Share, s.Passed, s.Other)
	return s
}

// measures lists a measure of the counted trials, where it is known.
func (t *sideTask) measures(what func(sideTrial) (float64, bool)) []float64 {
	var list []float64
	for _, x := range t.trials {
		if v, ok := what(x); ok {
			list = append(list, v)
		}
	}
	return list
}

// The measures of trials.
var (
	trialTime   = func(t sideTrial) (float64, bool) { return t.ms, true }
	trialTokens = func(t sideTrial) (float64, bool) { return t.tokens, t.usage && t.tokens > 0 }
	trialFirst  = func(t sideTrial) (float64, bool) { return t.first, t.first > 0 }
	trialSpeed  = func(t sideTrial) (float64, bool) { return t.speed, t.speed > 0 }
	trialCost   = func(t sideTrial) (float64, bool) { return t.price, t.usage && t.price > 0 }
)
