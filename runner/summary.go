package runner

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/stats"
)

const (
	// maxReasons bounds the different reasons kept per task.
	maxReasons     = 20
	waitsForPerson = "waits for a person's score"
	noTriggerTests = "not measured: the suite has no trigger tests"
)

// taskTally gathers the trials of one task. It is guarded by its taskRun.
type taskTally struct {
	counts Counts
	// Scores of the counted trials that passed, and of those that did not.
	scoresPassed, scoresFailed []float64
	durations                  []float64 // milliseconds
	spent                      *Ledger
	cached                     int // trials taken over from earlier runs
	reasons                    map[Reason]int
	broken                     string // why the task is an error whatever its trials are
	early                      decider
}

func newTaskTally(ref *TaskRef, threshold float64) taskTally {
	rule := ref.rule()
	rule.Threshold = threshold
	return taskTally{early: decider{rule: rule}}
}

func (t *taskTally) add(res *TrialResult) {
	t.counts.Total++
	t.counts.Add(res.Verdict)
	if res.Verdict.counted() {
		t.durations = append(t.durations, float64(res.DurationMS))
		switch score := res.CountedScore(); {
		case score == nil:
		case res.Verdict == Passed:
			t.scoresPassed = append(t.scoresPassed, *score)
		default:
			t.scoresFailed = append(t.scoresFailed, *score)
		}
	}
	t.spent = t.spent.plus(res.Ledger())
	if res.Cached != nil {
		t.cached++
	}
	if res.Verdict == Passed || res.Verdict == Skipped {
		return
	}
	if res.Error != "" {
		t.because(Reason{Verdict: res.Verdict, Message: res.Error})
		return
	}
	for i := range res.Graders {
		switch g := &res.Graders[i]; {
		case g.Calibrates():
		case g.NeedsReview && res.Verdict == NeedsReview:
			t.because(Reason{Verdict: res.Verdict, Grader: g.Name, Message: waitsForPerson})
		case !g.NeedsReview && !g.Passed:
			t.because(Reason{Verdict: res.Verdict, Grader: g.Name, Message: g.Feedback})
		}
	}
}

func (t *taskTally) because(r Reason) {
	if t.reasons == nil {
		t.reasons = map[Reason]int{}
	}
	if _, ok := t.reasons[r]; ok || len(t.reasons) < maxReasons {
		t.reasons[r]++
	}
}

// result sums up the task. It passed when at least the threshold's share of its
// counted trials did.
func (t *taskTally) result(threshold float64) *TaskResult {
	c := t.counts
	res := &TaskResult{
		Error:   t.broken,
		Verdict: taskVerdict(c, threshold, t.broken != ""),
		Decided: t.early.verdict(c.Skipped),
		Trials:  TrialCounts{Counts: c, Rate: t.rate()},
		Flaky:   c.Passed > 0 && c.Passed < c.Counted(),
		PassK:   t.passK(),
		Usage:   t.spent.Total(), UsageByRole: t.spent,
		Cached:  t.cached,
		Reasons: t.sortedReasons(),
	}
	if scores := slices.Concat(t.scoresPassed, t.scoresFailed); len(scores) > 0 && c.NeedsReview == 0 {
		res.Score = &ScoreStats{Summary: stats.Describe(scores), MeanInterval: stats.MeanInterval(scores, stats.DefaultConfidence)}
	}
	res.Unbiased = t.unbiased()
	if res.Decided != nil && t.broken == "" {
		res.Verdict = res.Decided.Verdict
	}
	if len(t.durations) > 0 {
		d := stats.Describe(t.durations)
		res.DurationMS = &d
	}
	return res
}

// verdictMargin is what shares of trials may miss a threshold by, for they are rounded.
const verdictMargin = 1e-9

func taskVerdict(c Counts, threshold float64, broken bool) Verdict {
	switch {
	case broken:
		return Errored
	case c.Counted()+c.NeedsReview == 0 && c.Errors > 0:
		return Errored
	case c.Cancelled > 0:
		return Cancelled // the trials that would tell are missing
	case c.NeedsReview > 0 && float64(c.Passed+c.NeedsReview+c.Skipped) >= threshold*float64(c.Counted()+c.NeedsReview+c.Skipped)-verdictMargin:
		return NeedsReview // so is what a person says of them
	case c.Counted()+c.NeedsReview == 0:
		return Skipped
	case c.Skipped > 0 && float64(c.Passed+c.Skipped) >= threshold*float64(c.Counted()+c.Skipped)-verdictMargin:
		return Skipped // so could the ones that would tell be
	case float64(c.Passed) >= threshold*float64(c.Counted())-verdictMargin:
		return Passed
	case c.Failed == 0:
		return TimedOut
	}
	return Failed
}

func (t *taskTally) sortedReasons() []Reason {
	var out []Reason
	for r, n := range t.reasons {
		r.Trials = n
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Trials, a.Trials), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Grader, b.Grader), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// runTally gathers tasks, and those scores of graders that metrics ask for. It
// is safe for concurrent use.
type runTally struct {
	rec *Record

	mu     sync.Mutex // guards the fields below
	trials Counts
	tasks  []*TaskResult
	// cached counts the trials that were taken over, and what they had cost.
	cached      int
	usageCached *executor.Usage
	// graders holds the scores by name or type of those graders that metrics
	// name. They are kept one by one: a sum would depend, by a rounding, on
	// the order in which trials happen to end.
	graders map[string][]float64
	groups  map[string]*Counts
	// calibrated holds, by name, the graders that persons' scores are compared with.
	calibrated map[string]*calibration
	// compared is nil when the run has no baselines.
	compared *comparison
}

// The metrics whose meaning does not come from graders of that name.
const (
	metricTaskCompletion  = "task_completion"
	metricTriggerAccuracy = "trigger_accuracy"
	metricBehaviorQuality = "behavior_quality"
	metricComposite       = "composite"
)

func newRunTally(rec *Record) *runTally {
	t := &runTally{rec: rec, tasks: make([]*TaskResult, len(rec.Tasks)), graders: map[string][]float64{}, groups: map[string]*Counts{}, calibrated: map[string]*calibration{}}
	t.compared = newComparison(rec)
	for _, m := range rec.Metrics {
		t.graders[graderOfMetric(m.Name)] = nil
	}
	return t
}

// graderOfMetric is the name or type of graders whose mean score a metric is.
func graderOfMetric(name string) string {
	if name == metricBehaviorQuality {
		return "behavior"
	}
	return name
}

func (t *runTally) addTrial(task int, res *TrialResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	role := t.rec.Tasks[task].Role
	if res.Cached != nil {
		t.cached++
		t.usageCached = addUsage(t.usageCached, res.spentBefore().Total())
	}
	t.compared.add(task, role, res)
	t.addCalibrationsLocked(res.Graders)
	if role != RoleTask {
		return // its result tells enough of it
	}
	t.trials.Total++
	t.trials.Add(res.Verdict)
	for _, g := range t.rec.Tasks[task].Groups {
		if t.groups[g] == nil {
			t.groups[g] = &Counts{}
		}
		t.groups[g].Total++
		t.groups[g].Add(res.Verdict)
	}
	// Of a trial that waits for a person, the other graders' scores are known. Leaving
	// them out would leave out those that passed, and not those that failed.
	if len(t.graders) == 0 || !res.Verdict.counted() && res.Verdict != NeedsReview {
		return
	}
	for _, g := range res.Graders {
		if !g.Scored() {
			continue // cut short by the deadline, or not seen by a person yet
		}
		t.addScoreLocked(g.Name, g.Score)
		if g.Type != g.Name {
			t.addScoreLocked(g.Type, g.Score)
		}
	}
}

func (t *runTally) addScoreLocked(grader string, score float64) {
	if scores, wanted := t.graders[grader]; wanted {
		t.graders[grader] = append(scores, score)
	}
}

func (t *runTally) addTask(task int, res *TaskResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tasks[task] = res
}

func (t *runTally) summary(metrics []MetricRef) *Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Summary{TrialsCached: t.cached, UsageCached: t.usageCached}
	for i, res := range t.tasks {
		if res == nil {
			continue
		}
		s.UsageByRole = s.UsageByRole.plus(res.ledger())
		if t.rec.Tasks[i].Role != RoleTask {
			continue
		}
		s.Total++
		s.Counts.Add(res.Verdict)
		if res.Flaky {
			s.Flaky++
		}
		if res.Decided != nil {
			s.TrialsSaved += res.Decided.Saved
		}
	}
	s.Usage = s.UsageByRole.Total()
	tasks := t.tasksLocked(func(*TaskRef) bool { return true })
	s.Rate = rateOf(s.Counts)
	s.Trials = TrialCounts{Counts: t.trials, Rate: rateOver(tasks, t.trials)}
	s.Score = scoreOver(tasks)
	if t.trials.NeedsReview == 0 {
		var curves [][]stats.AtK
		for _, res := range tasks {
			curves = append(curves, res.PassK)
		}
		s.PassK = stats.MeanCurve(curves)
	}
	s.Groups = t.groupResultsLocked()
	s.Calibrations = t.calibrationResults()
	s.Baseline = t.baselineResult(nil)
	s.Triggers = t.triggerResult(nil)
	t.measure(s, metrics)
	return s
}

// tasksLocked are the results of those tasks of the suite that have one and are wanted.
func (t *runTally) tasksLocked(wanted func(*TaskRef) bool) []*TaskResult {
	var list []*TaskResult
	for i, res := range t.tasks {
		if ref := &t.rec.Tasks[i]; res != nil && ref.Role == RoleTask && wanted(ref) {
			list = append(list, res)
		}
	}
	return list
}

func (t *runTally) groupResultsLocked() []GroupResult {
	if cells := t.rec.cells(); len(cells) > 0 && t.rec.Config.GroupBy == "" {
		return t.cellResults(cells)
	}
	var out []GroupResult
	for name, c := range t.groups {
		tasks := t.tasksLocked(func(ref *TaskRef) bool { return slices.Contains(ref.Groups, name) })
		out = append(out, GroupResult{Group: name, TrialCounts: TrialCounts{Counts: *c, Rate: rateOver(tasks, *c)}})
	}
	slices.SortFunc(out, func(a, b GroupResult) int { return cmp.Compare(a.Group, b.Group) })
	return out
}

// measure gives each metric its value, composite last: it is the weighted mean
// of the others. A metric that could not be measured neither passes nor fails.
func (t *runTally) measure(s *Summary, metrics []MetricRef) {
	sum, weights := 0.0, 0.0
	for _, m := range metrics {
		res := MetricResult{MetricRef: m}
		if m.Name == metricComposite {
			continue
		}
		res.Value, res.Note = t.value(s, m.Name)
		if res.Value != nil {
			sum += m.Weight * *res.Value
			weights += m.Weight
		}
		s.judge(res)
	}
	if len(metrics) == 0 {
		return
	}
	composite := MetricResult{MetricRef: MetricRef{Name: metricComposite, Weight: 1}, Note: "nothing was measured"}
	for _, m := range metrics {
		if m.Name == metricComposite {
			composite.MetricRef = m
		}
	}
	if weights > 0 {
		v := sum / weights
		composite.Value, composite.Note = &v, ""
	}
	s.judge(composite)
}

func (s *Summary) judge(m MetricResult) {
	if m.Value != nil {
		ok := *m.Value >= m.Threshold-1e-9
		m.Passed = &ok
		if !ok {
			s.Missed = append(s.Missed, m.Name)
		}
	}
	s.Metrics = append(s.Metrics, m)
}

func (t *runTally) value(s *Summary, metric string) (*float64, string) {
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
	scores := t.graders[graderOfMetric(metric)]
	if len(scores) == 0 {
		return nil, fmt.Sprintf("no grader of the name or type %q gave a score", graderOfMetric(metric))
	}
	v := stats.Describe(scores).Mean
	return &v, ""
}
