package results

import (
	"math"
	"slices"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/stats"
)

// add counts a task.
func (s *resultsSum) add(t *report.Task, st *resultsStats) {
	verdict := record.Skipped
	if t.Result != nil {
		verdict = t.Result.Verdict
	}
	s.summary.TotalTests++
	switch resultsStatus(verdict) {
	case "passed":
		s.summary.Succeeded++
		s.counted++
	case "failed":
		s.summary.Failed++
		s.counted++
	case "error":
		s.summary.Errors++
	default:
		s.summary.Skipped++
	}
	if st != nil {
		s.plain = append(s.plain, st.AvgScore)
		s.weighted = append(s.weighted, st.AvgWeightedScore)
	}
	if group := groupOf(t); group != "" {
		s.group(group, verdict == record.Passed, st)
	}
}

func (s *resultsSum) group(name string, passed bool, st *resultsStats) {
	at := slices.IndexFunc(s.groups, func(g resultsGroup) bool { return g.Name == name })
	if at < 0 {
		at, s.groups = len(s.groups), append(s.groups, resultsGroup{Name: name})
	}
	g := &s.groups[at]
	g.Total++
	if passed {
		g.Passed++
	}
	if st == nil {
		return
	}
	if s.scored == nil {
		s.scored = map[string]int{}
	}
	s.scored[name]++
	g.AvgScore += (st.AvgScore - g.AvgScore) / float64(s.scored[name])
}

// summary sums up the written tasks.
func (r *results) summary() resultsSummary {
	s := &r.sum
	sum := s.summary
	if s.counted > 0 {
		sum.SuccessRate = float64(sum.Succeeded) / float64(s.counted)
	}
	plain, weighted := stats.Describe(s.plain), stats.Describe(s.weighted)
	sum.AggregateScore, sum.MinScore, sum.MaxScore, sum.StdDev = plain.Mean, plain.Min, plain.Max, populationStdDev(plain)
	sum.WeightedScore, sum.Groups = weighted.Mean, s.groups
	if r.Record.Config.Trials > 1 && weighted.N > 1 {
		in := bootstrapped(s.weighted)
		sum.Statistics = &resultsStatistics{BootstrapCI: *in, IsSignificant: in.excludesZero()}
	}
	var total record.Usage
	counted := false
	for _, t := range r.Tasks {
		if t.Result != nil && t.Result.Usage != nil && t.Role == r.role {
			total, counted = total.Add(*t.Result.Usage), true
		}
	}
	if counted {
		sum.Usage = resultsUsageOf(r.turns, total)
	}
	if r.Summary != nil {
		sum.DurationMS = r.Summary.DurationMS
	}
	return sum
}

func (r *results) metrics() map[string]resultsMetric {
	all := map[string]resultsMetric{}
	if r.Summary == nil {
		return all
	}
	for _, m := range r.Summary.Metrics {
		if m.Value != nil { // a metric without a value is neither 0 nor 1
			all[m.Name] = resultsMetric{
				Identifier: m.Name, Value: *m.Value, Threshold: m.Threshold, Weight: m.Weight,
				Passed: m.Passed == nil || *m.Passed,
			}
		}
	}
	return all
}

// metadata returns the facts that have no other place in the format.
func (r *results) metadata() map[string]any {
	m := map[string]any{"run_status": r.Status}
	if len(r.timeouts) > 0 { // other members have only failures
		m["timeouts"] = r.timeouts
	}
	if r.Error != "" {
		m["run_error"] = r.Error
	}
	if r.Damage != nil {
		m["record_damage"] = r.Damage.String()
	}
	if r.Record.Config.Agent != "" {
		m["agent"] = r.Record.Config.Agent
	}
	if s := r.Sandbox(); s != nil {
		m["sandbox"] = s.String()
	}
	suspicious, suspicions := 0, map[string][]record.TrialSuspicion{} // by the id of the task
	for i := range r.Tasks {
		if t := &r.Tasks[i]; t.Result != nil && t.Result.Suspicious > 0 && t.Role == r.role {
			suspicious += t.Result.Suspicious
			suspicions[t.ID] = t.Result.Suspicions
		}
	}
	if r.Summary != nil && r.Summary.SelfReported > 0 {
		m["self_reported_passes"] = r.Summary.SelfReported
	}
	if suspicious > 0 { // other members count these trials as passed
		m["suspicious_passes"], m["suspicions"] = suspicious, suspicions
	}
	if r.Summary != nil && len(r.Summary.Missed) > 0 {
		m["missed_metrics"] = r.Summary.Missed
	}
	if r.Summary != nil && r.Summary.Routing != nil {
		m["routing"] = r.Summary.Routing
	}
	if r.Summary != nil && r.Summary.PassRateBounds != nil { // other members have only a rate
		m["pass_rate_bounds"] = r.Summary.PassRateBounds
	}
	if r.Summary != nil && r.Summary.Score != nil { // other members have the score of a bootstrap
		m["score_interval"] = r.Summary.Score.MeanInterval
	}
	if r.Summary != nil && r.Summary.Triggers != nil { // other members use weights
		m["trigger_trials"] = r.Summary.Triggers.Trials
	}
	if r.Summary != nil && r.Summary.Usage != nil { // includes baselines and trigger tests
		m["usage"], m["usage_by_role"] = r.Summary.Usage, r.Summary.UsageByRole
	}
	return m
}

// triggers writes an entry for each trial of the trigger tests and returns their counts and
// rates, or nil without trigger tests.
func (r *results) triggers() (*resultsTriggers, error) {
	if !r.has(record.RoleTrigger) {
		return nil, nil
	}
	var counted confusion
	r.out.WriteString(`,"trigger_results":[`)
	comma := false
	err := r.h.Trials(func(task int, t *record.Trial) error {
		ref := r.Tasks[task].Trigger
		if ref == nil {
			return nil
		}
		if comma {
			r.out.WriteByte(',')
		}
		comma = true
		return r.value(counted.add(ref, t))
	})
	if err != nil {
		return nil, err
	}
	r.out.WriteByte(']')
	sum := counted.counts()
	if r.Summary != nil && r.Summary.Triggers != nil {
		t := r.Summary.Triggers
		sum.Precision, sum.Recall, sum.F1, sum.Accuracy = fourDigits(t.Precision), fourDigits(t.Recall), fourDigits(t.F1), fourDigits(t.Accuracy)
	}
	return sum, nil
}

// fourDigits rounds a quotient as the format requires; it returns 0 if x is nil.
func fourDigits(x *float64) float64 {
	if x == nil {
		return 0
	}
	return math.Round(*x*1e4) / 1e4
}

// add counts a trial of a trigger test by the weight of its prompt. The agent acted correctly if
// the trial passed.
func (c *confusion) add(ref *record.TriggerRef, t *record.Trial) resultsTrigger {
	res := resultsTrigger{
		Prompt: ref.Prompt, Confidence: ref.Confidence, ShouldTrigger: ref.ShouldTrigger, FinalOutput: t.Output,
		ErrorMsg: t.Error,
	}
	switch weight := ref.Weight(); {
	case t.Verdict != record.Passed && t.Verdict != record.Failed:
		c.errors++
	case t.Verdict == record.Passed && ref.ShouldTrigger:
		res.DidTrigger = true
		c.TruePositives += weight
	case t.Verdict == record.Passed:
		c.TrueNegatives += weight
	case ref.ShouldTrigger:
		c.FalseNegatives += weight
	default:
		res.DidTrigger = true
		c.FalsePositives += weight
	}
	return res
}

// confusion counts the trials of trigger tests.
type confusion struct {
	record.Confusion
	errors int
}

// counts returns the counts of the format, which are whole numbers.
func (c *confusion) counts() *resultsTriggers {
	rounded := func(weights float64) int { return int(math.Round(weights)) }
	return &resultsTriggers{
		TruePositives: rounded(c.TruePositives), FalsePositives: rounded(c.FalsePositives),
		TrueNegatives: rounded(c.TrueNegatives), FalseNegatives: rounded(c.FalseNegatives), Errors: c.errors,
	}
}
