package compare

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/stats"
	"waza/runner/tally"
)

// A Source is anything that can be compared: [FromRun], [FromCells] and [FromFile] make sources.
type Source interface {
	// side returns a side that is complete when all runs of the reading have been read.
	side(r *reading) *side
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

func (s runSource) side(r *reading) *side { return r.side(s.h, s.cell) }

// A reading collects the runs of a comparison and reads each of them once, whatever the number of
// sides that it is.
type reading struct{ runs []*runSides }

// runSides are the sides that one run is.
type runSides struct {
	h     record.Handle
	sides []*side
	err   error // of reading the run
}

// side returns the side for a run, or for one of its cells unless cell is nil.
func (r *reading) side(h record.Handle, cell *record.Cell) *side {
	i := slices.IndexFunc(r.runs, func(known *runSides) bool { return known.h.ID() == h.ID() })
	if i < 0 {
		i, r.runs = len(r.runs), append(r.runs, &runSides{h: h})
	}
	run := r.runs[i]
	for _, sd := range run.sides {
		if known := sd.head.Cell; known == cell || known != nil && cell != nil && known.Name == cell.Name {
			return sd
		}
	}
	sd := newSide(h.Record(), cell)
	sd.read = run
	run.sides = append(run.sides, sd)
	return sd
}

// read reads all runs, several at once. Each run keeps its error.
func (r *reading) read(ctx context.Context) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(r.runs)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(r.runs)); i = next.Add(1) - 1 {
				r.runs[i].err = r.runs[i].read(ctx)
			}
		})
	}
	workers.Wait()
}

func (r *runSides) read(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	run, st, err := replay.StateOf(r.h) // first, because progress and damage then need no further reading
	if err != nil {
		return err
	}
	progress, err := r.h.Progress()
	if err != nil {
		return err
	}
	damage, err := r.h.Damage()
	if err != nil {
		return err
	}
	for _, sd := range r.sides {
		sd.describe(progress, damage)
		for i, res := range st.Results() {
			sd.setVerdict(i, res)
		}
	}
	err = replay.VisitNumbers(run, st, func(task int, t *replay.LeanTrial) error {
		for _, sd := range r.sides {
			sd.add(task, comparedOf(&t.Trial))
		}
		return nil
	})
	for _, sd := range r.sides {
		sd.finish()
	}
	return err
}

// describe sets what the head of a side contains of the state of its run.
func (s *side) describe(p record.Progress, damage *record.Damage) {
	s.head.Status, s.head.Damage, s.amended = p.Status, damage, p.AmendedAt != nil
	s.head.Sandbox = s.head.Sandbox.After(p.Summary)
	if sum := p.Summary; s.head.Cell == nil && sum != nil && sum.Judged != nil && sum.Judged.Report != nil &&
		sum.Judged.Report.OverallScore != nil {
		s.head.Judged = &record.JudgeReport{OverallScore: sum.Judged.Report.OverallScore, OverallGrade: sum.Judged.Report.OverallGrade}
		if sum.Common != nil {
			s.head.JudgedLeftOut = len(sum.Common.LeftOut)
		}
	}
}

// A side is one of the compared runs. It holds a few numbers of each trial that counts; its size
// does not depend on transcripts.
type side struct {
	head    ComparedRun
	rec     *record.Run
	read    *runSides // nil for a file, which was read before
	amended bool      // its grades may come from different graders
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
	// passed and other are the scores of counted trials that passed, and of the others.
	passed, other []float64
	// known holds the values of each measure of the counted trials that have one.
	known [measures][]float64
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

// A sideTrial is a trial that counts. With its score and its measures it takes 32 bytes where
// nobody counted tokens. A [record.Trial] without texts takes 330, and two runs can have two million
// trials.
type sideTrial struct {
	num    int
	passed bool
}

// A measure is what trials of two runs can need more or less of.
type measure int

const (
	trialTime measure = iota
	trialTokens
	trialCost
	trialFirst // time to the first token
	trialSpeed // tokens per second
	measures
)

func newSide(rec *record.Run, cell *record.Cell) *side {
	s := &side{rec: rec, cached: map[string]int{}, byID: map[string]*sideTask{}, at: make([]*sideTask, len(rec.Tasks))}
	s.head = ComparedRun{
		Name: rec.RunID, RunID: rec.RunID, Suite: rec.Suite, StartedAt: rec.CreatedAt,
		Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.ModelText(cell), Sandbox: rec.Sandbox,
	}
	if cell != nil {
		s.head.Name, s.head.Cell = fmt.Sprintf("%s[%s]", rec.RunID, cell.Name), cell
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

// A comparedTrial holds what a comparison needs of a trial, in a quarter of its space.
type comparedTrial struct {
	num     int
	verdict record.Verdict
	score   *float64 // nil unless it counts
	ms      int64
	untimed bool
	agent   *record.Usage // nil if nobody counted it
	speed   *record.Speed
	origin  string // the run that executed a reused trial
}

func comparedOf(res *record.Trial) comparedTrial {
	t := comparedTrial{num: res.TrialNum, verdict: res.Verdict, score: res.CountedScore(), ms: res.DurationMS, untimed: res.Untimed, speed: res.Speed}
	if spent := res.Ledger(); spent != nil { // judges may differ, and their usage does not concern the agent
		t.agent = spent.Agent
	}
	if res.Cached != nil {
		t.origin = res.Cached.RunID
	}
	return t
}

func (s *side) add(task int, res comparedTrial) {
	t := s.at[task]
	if t == nil {
		return
	}
	t.counts.Add(res.verdict)
	if t.ref.Stopping > 0 {
		t.ended = append(t.ended, numbered{res.num, res.verdict})
	}
	if !res.verdict.Counted() {
		return
	}
	if t.trials == nil { // most trials count
		t.trials, t.known[trialTime] = make([]sideTrial, 0, t.ref.Trials), make([]float64, 0, t.ref.Trials)
	}
	passed := res.verdict == record.Passed
	t.trials = append(t.trials, sideTrial{res.num, passed})
	switch {
	case res.score == nil:
	case passed:
		t.passed = append(t.passed, *res.score)
	default:
		t.other = append(t.other, *res.score)
	}
	if res.origin != "" {
		s.cached[res.origin]++
	}
	if !res.untimed {
		t.known[trialTime] = append(t.known[trialTime], float64(res.ms))
	}
	if res.agent != nil {
		t.learn(trialTokens, float64(res.agent.Total()))
		t.learn(trialCost, res.agent.CostUSD)
	}
	if res.speed != nil {
		t.learn(trialFirst, res.speed.FirstTokenMS)
		t.learn(trialSpeed, res.speed.TokensPerSecond)
	}
}

// learn adds the value of a measure of a trial. Only a positive value is known.
func (t *sideTask) learn(m measure, value float64) {
	if value > 0 {
		t.known[m] = append(t.known[m], value)
	}
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
	s := tally.TaskSide{Passed: t.passed, Other: t.other}
	for _, x := range t.trials {
		s.Share.N++
		if x.passed {
			s.Share.Passed++
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
