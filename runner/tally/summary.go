// Package tally computes numbers from verdicts: rates, scores, intervals, and comparisons of
// tasks with their baselines. Call [NewTask] for the result of one task and [NewRun] for the
// summary of a run.
package tally

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/stats"
)

const (
	// maxReasons limits the different reasons kept per task.
	maxReasons = 20
	// WaitsForPerson is the reason of a trial that waits for a person's score.
	WaitsForPerson = "waits for a person's score"
	noTriggerTests = "not measured: the suite has no trigger tests"
)

// Task collects the trials of one task. The lock of its taskRun guards it.
type Task struct {
	Counts record.Counts
	// Scores of the counted trials that passed, and of those that did not.
	scoresPassed, scoresFailed []float64
	durations                  []float64 // milliseconds
	spent                      *record.Ledger
	tools                      toolTally
	cached                     int                     // number of trials reused from earlier runs
	suspicious                 int                     // number of trials that passed with suspicious moves
	suspicions                 []record.TrialSuspicion // the first of them, by trial
	selfReported               int                     // number of trials whose pass depends on the word of the agent
	reasons                    map[record.Reason]int
	paired                     bool   // see [record.TaskRef.Paired]
	Broken                     string // why the task ends in error whatever its trials are
	Early                      Decider
}

// NewTask returns the tally of a task without trials.
func NewTask(ref *record.TaskRef, threshold float64) Task {
	rule := RuleOf(ref)
	rule.Threshold = threshold
	return Task{Early: Decider{Rule: rule}, paired: ref.Paired}
}

// Add counts a trial.
func (t *Task) Add(res *record.Trial) {
	t.Counts.Total++
	t.Counts.Add(res.Verdict)
	if res.Verdict.Counted() {
		if !res.Untimed {
			t.durations = append(t.durations, float64(res.DurationMS))
		}
		switch score := res.CountedScore(); {
		case score == nil:
		case res.Verdict == record.Passed:
			t.scoresPassed = append(t.scoresPassed, *score)
		default:
			t.scoresFailed = append(t.scoresFailed, *score)
		}
	}
	t.tools.add(res)
	t.spent = t.spent.Plus(res.Ledger())
	if res.Cached != nil {
		t.cached++
	}
	if res.SelfReported() {
		t.selfReported++
	}
	if res.Suspicious() {
		t.addSuspicions(res)
	}
	if res.Verdict == record.Passed || res.Verdict == record.Skipped {
		return
	}
	if res.Error != "" {
		t.addReason(record.Reason{Verdict: res.Verdict, Message: res.Error})
		return
	}
	if below := res.BelowThreshold(); below != "" {
		t.addReason(record.Reason{Verdict: res.Verdict, Message: below})
	}
	for i := range res.Graders {
		switch g := &res.Graders[i]; {
		case !g.Counts():
		case g.NeedsReview && res.Verdict == record.NeedsReview:
			t.addReason(record.Reason{Verdict: res.Verdict, Grader: g.Name, Message: WaitsForPerson})
		case !g.NeedsReview && !g.Passed:
			t.addReason(record.Reason{Verdict: res.Verdict, Grader: g.Name, Message: g.Feedback})
		}
	}
}

// addSuspicions counts a suspicious trial. Trials end in any order.
func (t *Task) addSuspicions(res *record.Trial) {
	t.suspicious++
	for _, s := range res.Suspicions {
		t.suspicions = append(t.suspicions, record.TrialSuspicion{TrialNum: res.TrialNum, Suspicion: s})
	}
	slices.SortStableFunc(t.suspicions, func(a, b record.TrialSuspicion) int { return cmp.Compare(a.TrialNum, b.TrialNum) })
	t.suspicions = t.suspicions[:min(len(t.suspicions), record.MostSuspicions)]
}

func (t *Task) addReason(r record.Reason) {
	if t.reasons == nil {
		t.reasons = map[record.Reason]int{}
	}
	if _, ok := t.reasons[r]; ok || len(t.reasons) < maxReasons {
		t.reasons[r]++
	}
}

// Result summarizes the task. The task passed if at least the threshold's share of its counted
// trials passed.
func (t *Task) Result(threshold float64) *record.Task {
	c := t.Counts
	res := &record.Task{
		Error:   t.Broken,
		Verdict: TaskVerdict(c, threshold, t.Broken != ""),
		Decided: t.Early.verdict(c.Skipped),
		Trials:  record.TrialCounts{Counts: c, Rate: t.rate()},
		Flaky:   c.Passed > 0 && c.Passed < c.Counted(),
		PassK:   t.passK(),
		Usage:   t.spent.Total(), UsageByRole: t.spent,
		Cached: t.cached, Suspicious: t.suspicious, Suspicions: slices.Clone(t.suspicions), SelfReported: t.selfReported,
		Reasons: t.sortedReasons(),
	}
	if scores := slices.Concat(t.scoresPassed, t.scoresFailed); len(scores) > 0 && c.NeedsReview == 0 {
		res.Score = &record.ScoreStats{Distribution: stats.Describe(scores), MeanInterval: stats.MeanInterval(scores, stats.DefaultConfidence)}
	}
	res.Unbiased = t.unbiased()
	res.Tools = t.tools.means(res.Unbiased)
	if res.Decided != nil && t.Broken == "" {
		res.Verdict = res.Decided.Verdict
	}
	if t.paired {
		res.Saved = c.Skipped
		c.Skipped = 0
		res.Verdict = TaskVerdict(c, threshold, t.Broken != "")
	}
	if len(t.durations) > 0 {
		res.DurationMS = stats.SpreadOf(t.durations)
	}
	return res
}

// verdictMargin is the rounding error by which shares of trials may miss a threshold.
const verdictMargin = 1e-9

// TaskVerdict returns the verdict of a task whose trials have these counts. broken states that
// the task itself failed to run.
func TaskVerdict(c record.Counts, threshold float64, broken bool) record.Verdict {
	switch {
	case broken:
		return record.Errored
	case c.Counted()+c.NeedsReview == 0 && c.Errors > 0:
		return record.Errored
	case c.Cancelled > 0:
		return record.Cancelled // the deciding trials are missing
	case c.NeedsReview > 0 && float64(c.Passed+c.NeedsReview+
		c.Skipped) >= threshold*float64(c.Counted()+c.NeedsReview+c.Skipped)-verdictMargin:
		return record.NeedsReview // a person decides about some trials
	case c.Counted()+c.NeedsReview == 0:
		return record.Skipped
	case c.Skipped > 0 && float64(c.Passed+c.Skipped) >= threshold*float64(c.Counted()+c.Skipped)-verdictMargin:
		return record.Skipped // the deciding trials could be skipped ones
	case float64(c.Passed) >= threshold*float64(c.Counted())-verdictMargin:
		return record.Passed
	case c.Failed == 0:
		return record.TimedOut
	}
	return record.Failed
}

func (t *Task) sortedReasons() []record.Reason {
	var out []record.Reason
	for r, n := range t.reasons {
		r.Trials = n
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b record.Reason) int {
		return cmp.Or(cmp.Compare(b.Trials, a.Trials), cmp.Compare(a.Verdict, b.Verdict),
			cmp.Compare(a.Grader, b.Grader), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// Run collects what a summary needs of the trials of a run besides their verdicts: scores,
// durations and costs. Verdicts are counted once, in [replay.State]. A [replay.Fold] shows it
// each trial that it counts; the lock of that fold guards it.
type Run struct {
	rec *record.Run

	// cached counts the reused trials, and their earlier cost.
	cached      int
	usageCached *record.Usage
	tiers       map[record.Tier]int // trials by the tier that workers chose; nil without any
	graded      graded
	positions   positions
	// durations holds the milliseconds of the counted trials of each task, in a matrix.
	durations [][]float64
	// calibrated holds, by name, the graders that are compared with people's scores.
	calibrated map[string]*calibration
	// present holds, by name, the scores of graders that people can be compared with.
	present map[string]*presentScores
	// judged is nil unless the suite is of kind judge.
	judged *judging
	// compared is nil when the run has no baselines.
	compared *comparison
	// endedEarly counts the trials of trigger tests that waza ended early, by task; nil without any.
	endedEarly map[int]int
	tuning     tuning
	bench      bench
	routed     routed
	noise      noise
	// deciding is nil unless the run decides a question.
	deciding *Deciding
}

// The metrics that are not scores of graders with that name.
const (
	metricTaskCompletion  = "task_completion"
	metricTriggerAccuracy = "trigger_accuracy"
	metricBehaviorQuality = "behavior_quality"
	metricComposite       = "composite"
)

// NewRun returns the tally of a run without trials.
func NewRun(rec *record.Run) *Run {
	t := &Run{rec: rec, graded: newGraded(rec), positions: positions{}, calibrated: map[string]*calibration{}, present: map[string]*presentScores{}}
	if rec.Matrix() {
		t.durations = make([][]float64, len(rec.Tasks))
	}
	t.compared, t.tuning = newComparison(rec), newTuning(rec)
	t.deciding = NewDeciding(rec)
	t.judged, t.bench, t.routed = newJudging(rec), newBench(rec), routed{tasks: make([]routedTask, len(rec.Tasks))}
	return t
}

// graderOfMetric returns the name or type of the graders whose mean score is the metric.
func graderOfMetric(name string) string {
	if name == metricBehaviorQuality {
		return "behavior"
	}
	return name
}

// AddTrial adds a trial of the task with that index.
func (t *Run) AddTrial(task int, res *record.Trial) {
	role := t.rec.Tasks[task].Role
	if res.Cached != nil {
		t.cached++
		t.usageCached = record.AddUsage(t.usageCached, res.SpentBefore().Total())
	}
	if res.Tier != "" {
		if t.tiers == nil {
			t.tiers = map[record.Tier]int{}
		}
		t.tiers[res.Tier]++
	}
	if res.EndedEarly && role == record.RoleTrigger {
		if t.endedEarly == nil {
			t.endedEarly = map[int]int{}
		}
		t.endedEarly[task]++
	}
	t.compared.add(task, role, res)
	t.deciding.Add(task, res)
	t.addCalibrations(role, res.Graders)
	if role != record.RoleTask {
		return // the task result has what matters
	}
	t.tuning.add(task, res)
	t.bench.add(task, res)
	t.routed.add(task, &t.rec.Tasks[task], res)
	t.judged.addTrial(&t.rec.Tasks[task], res)
	if t.durations != nil && res.Verdict.Counted() && !res.Untimed {
		t.durations[task] = append(t.durations[task], float64(res.DurationMS))
	}
	t.graded.add(task, res)
	t.positions.add(res)
	t.noise.add(task, &t.rec.Tasks[task], res)
}

// Summary returns the summary of a run in a state. The trials that the state counts are those
// that were added.
func (t *Run) Summary(st *replay.State, metrics []record.MetricRef) *record.Summary {
	return newSumming(t, st).summary(metrics)
}

// A Draft sums up trials that no journal contains, such as those of a file to import. It is not
// safe for concurrent use.
type Draft struct {
	run   *Run
	state *replay.State
}

// NewDraft returns a draft without trials.
func NewDraft(rec *record.Run) *Draft { return &Draft{NewRun(rec), replay.NewState(rec)} }

// AddTrial adds a trial of the task with that index.
func (d *Draft) AddTrial(task int, res *record.Trial) {
	t := &d.state.Tasks[task]
	t.Trials = append(t.Trials, replay.Place{Verdict: replay.CodeOf(res.Verdict)})
	d.run.AddTrial(task, res)
}

// AddTask adds the result of the task with that index.
func (d *Draft) AddTask(task int, res *record.Task) { d.state.Tasks[task].Result = res }

// Summary returns the summary of everything added so far.
func (d *Draft) Summary(metrics []record.MetricRef) *record.Summary {
	return d.run.Summary(d.state, metrics)
}

// summing computes the summary of one state of a run.
type summing struct {
	*Run
	state  *replay.State
	tasks  []*record.Task           // by index; nil for tasks that have not ended
	trials record.Counts            // of the suite's tasks
	groups map[string]record.Counts // of the suite's tasks
}

func newSumming(t *Run, st *replay.State) *summing {
	s := &summing{Run: t, state: st, tasks: st.Results(), groups: map[string]record.Counts{}}
	for i := range t.rec.Tasks {
		ref := &t.rec.Tasks[i]
		if ref.Role != record.RoleTask {
			continue
		}
		n := st.EndedTrials(i)
		s.trials.Merge(n)
		for _, name := range ref.Groups {
			if n.Total > 0 {
				group := s.groups[name]
				group.Merge(n)
				s.groups[name] = group
			}
		}
	}
	return s
}

func (t *summing) summary(metrics []record.MetricRef) *record.Summary {
	s := &record.Summary{TrialsCached: t.cached, UsageCached: t.usageCached}
	for _, tier := range slices.Sorted(maps.Keys(t.tiers)) {
		s.Tiers = append(s.Tiers, record.TierTrials{Tier: tier, Trials: t.tiers[tier]})
	}
	for i, res := range t.tasks {
		if res == nil {
			continue
		}
		s.UsageByRole = s.UsageByRole.Plus(res.Ledger())
		if t.rec.Tasks[i].Role != record.RoleTask {
			continue
		}
		s.Total++
		s.Counts.Add(res.Verdict)
		if res.Flaky {
			s.Flaky++
		}
		s.Suspicious += res.Suspicious
		s.SelfReported += res.SelfReported
		s.TrialsSaved += res.SavedTrials()
	}
	for i := range t.state.Prompts {
		s.UsageByRole = s.UsageByRole.Plus(&record.Ledger{Judges: t.state.Prompts[i].Usage})
	}
	s.UsageByRole = s.UsageByRole.Plus(t.judgedLedger())
	s.Usage = s.UsageByRole.Total()
	tasks := t.tasksOf(func(*record.TaskRef) bool { return true })
	s.Rate = RateOf(s.Counts)
	s.Trials = record.TrialCounts{Counts: t.trials, Rate: RateOver(tasks, t.trials)}
	s.Score = ScoreOver(tasks)
	s.Tools = ToolsOver(tasks)
	if t.trials.NeedsReview == 0 {
		var curves [][]record.AtK
		for _, res := range tasks {
			curves = append(curves, res.PassK)
		}
		s.PassK = stats.MeanCurve(curves)
	}
	s.Shrunken = t.shrunken()
	s.Groups = t.groupResults()
	names, sides := sidesOf(t.rec, t.tasks)
	common, leftOut := Common(names, sides)
	if t.judged != nil || t.rec.Matrix() && t.rec.Config.GroupBy == "" {
		s.Common = leftOut
	}
	s.Tune = t.tuneResult(common, sides)
	s.Calibrations = t.calibrationResults()
	s.JudgePositions = t.positions.result(t.comparisons())
	s.Noise = t.noiseResults()
	s.Baseline = t.baselineResult(nil)
	s.Decision = t.deciding.Result()
	s.Triggers = t.triggerResult(nil)
	s.ShouldTrigger = t.rec.ShouldTrigger
	s.Routing = t.routed.result(t.rec, nil)
	s.Judged = t.judgeResult(s.Score, common, sides)
	if !t.rec.Matrix() {
		s.Benchmark = t.bench.result(t.rec, nil)
	}
	t.measure(s, metrics)
	return s
}

// tasksOf returns the existing results of the suite's tasks that wanted accepts.
func (t *summing) tasksOf(wanted func(*record.TaskRef) bool) []*record.Task {
	var list []*record.Task
	for i, res := range t.tasks {
		if ref := &t.rec.Tasks[i]; res != nil && ref.Role == record.RoleTask && wanted(ref) {
			list = append(list, res)
		}
	}
	return list
}

func (t *summing) groupResults() []record.GroupResult {
	if cells := t.rec.Cells(); len(cells) > 0 && t.rec.Config.GroupBy == "" {
		return t.cellResults(cells)
	}
	var out []record.GroupResult
	for name, c := range t.groups {
		tasks := t.tasksOf(func(ref *record.TaskRef) bool { return slices.Contains(ref.Groups, name) })
		out = append(out, record.GroupResult{Group: name, TrialCounts: record.TrialCounts{Counts: c, Rate: RateOver(tasks, c)}})
	}
	slices.SortFunc(out, func(a, b record.GroupResult) int { return cmp.Compare(a.Group, b.Group) })
	return out
}

// measure computes the value of each metric. The composite is last: it is the weighted mean of
// the others. A metric that could not be measured neither passes nor fails.
func (t *summing) measure(s *record.Summary, metrics []record.MetricRef) {
	sum, weights := 0.0, 0.0
	for _, m := range metrics {
		res := record.MetricResult{MetricRef: m}
		if m.Name == metricComposite {
			continue
		}
		res.Value, res.Note = t.value(s, m.Name)
		if res.Value != nil {
			sum += m.Weight * *res.Value
			weights += m.Weight
		}
		s.Judge(res)
	}
	if len(metrics) == 0 {
		return
	}
	composite := record.MetricResult{MetricRef: record.MetricRef{Name: metricComposite, Weight: 1}, Note: "nothing was measured"}
	for _, m := range metrics {
		if m.Name == metricComposite {
			composite.MetricRef = m
		}
	}
	if weights > 0 {
		v := sum / weights
		composite.Value, composite.Note = &v, ""
	}
	s.Judge(composite)
}

func (t *Run) value(s *record.Summary, metric string) (*float64, string) {
	switch metric {
	case metricTaskCompletion:
		switch {
		case s.PassRate != nil:
			return s.PassRate, ""
		case s.NeedsReview > 0:
			return nil, text.Plural(s.NeedsReview, "1 task waits", strconv.Itoa(s.NeedsReview)+" tasks wait") + " for a person's score"
		}
		return nil, "no task was completed"
	case metricTriggerAccuracy:
		if s.Triggers == nil {
			return nil, noTriggerTests
		}
		return s.Triggers.Accuracy, s.Triggers.Note
	}
	mean, ok := t.graded.mean(graderOfMetric(metric))
	if !ok {
		return nil, fmt.Sprintf("no grader with name or type %q gave a score", graderOfMetric(metric))
	}
	return &mean, ""
}
