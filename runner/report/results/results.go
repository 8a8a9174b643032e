// Package results writes results.json in the form that other tools for the same suites write and read.
// Call [Write].
package results

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/stats"
)

// Write writes results.json as other tools that run these suites write and
// read it. Names are theirs, numbers are ours: rates and scores are of the trials
// that count, so that no error passes for a failure of the agent.
//
// Trials are not held in memory. Those of the baseline, and the trigger tests,
// stand apart, and are read in a pass of their own where there are any.
func Write(w io.Writer, h record.Handle) error {
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(report.JSONWriter(w), 64<<10)
	r := &results{Report: rep, h: h, out: out}
	if err := r.document(record.RoleTask); err != nil {
		return err
	}
	out.WriteByte('\n')
	return out.Flush()
}

// results writes a document, tasks as they come.
type results struct {
	*report.Report
	h    record.Handle
	out  *bufio.Writer
	role record.Role // of the tasks that are written

	turns  int  // in which agents of them were spoken to
	task   int  // index of the task that is being written
	comma  bool // a task stands before it
	within bool // its runs have begun
	tally  resultsTally
	sum    resultsSum
}

// resultsTally is of the task that is being written.
type resultsTally struct {
	runs  int
	plain []float64 // scores without weights of the trials that count
}

// resultsSum is of all tasks of a document.
type resultsSum struct {
	summary         resultsSummary
	counted         int
	plain, weighted []float64 // scores of the tasks
	groups          []resultsGroup
	scored          map[string]int // how many tasks of a group have a score
}

// document writes the tasks of a role, and of the suite's own tasks all that
// belongs to them.
func (r *results) document(role record.Role) error {
	r.role = role
	progress, err := r.h.Progress()
	if err != nil {
		return err
	}
	c := &r.Record.Config
	head := resultsHead{
		SchemaVersion: resultsVersion, EvalID: r.Record.RunID, Skill: r.Record.Suite.Skill, EvalName: r.Record.Suite.Name,
		Timestamp: progress.StartedAt, IsBaseline: role == record.RoleBaseline,
		Config: resultsConfig{RunsPerTest: c.Trials, ModelID: c.Model, EngineType: c.Executor, TimeoutSec: int(c.TimeoutSeconds), JudgeModel: c.JudgeModel},
	}
	if err := r.open(head, "tasks"); err != nil {
		return err
	}
	if err := r.tasks(); err != nil {
		return err
	}
	r.out.WriteByte(']')
	tail := resultsTail{Summary: r.summary(), Metrics: map[string]resultsMetric{}}
	if role == record.RoleTask {
		if tail.TriggerMetrics, err = r.triggers(); err != nil {
			return err
		}
		tail.Metrics, tail.Metadata = r.metrics(), r.metadata()
	}
	if err := r.rest(tail); err != nil {
		return err
	}
	if role == record.RoleTask && r.has(record.RoleBaseline) {
		r.out.WriteString(`,"baseline_outcome":`)
		base := &results{Report: r.Report, h: r.h, out: r.out}
		if err := base.document(record.RoleBaseline); err != nil {
			return err
		}
	}
	return r.out.WriteByte('}')
}

func (r *results) has(role record.Role) bool {
	return slices.ContainsFunc(r.Tasks, func(t report.Task) bool { return t.Role == role })
}

// open writes an object but for its last member, an array, which it opens.
func (r *results) open(object any, array string) error {
	b, err := json.Marshal(object)
	if err != nil {
		return err
	}
	r.out.Write(b[:len(b)-1])
	_, err = r.out.WriteString(`,"` + array + `":[`)
	return err
}

// rest writes the members of an object after others.
func (r *results) rest(object any) error {
	b, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if string(b) == "{}" {
		return nil
	}
	r.out.WriteByte(',')
	_, err = r.out.Write(b[1 : len(b)-1])
	return err
}

func (r *results) tasks() error {
	err := r.h.Trials(func(task int, t *record.Trial) error {
		if r.Tasks[task].Role != r.role {
			return nil
		}
		if err := r.upTo(task); err != nil {
			return err
		}
		return r.run(t)
	})
	if err != nil {
		return err
	}
	return r.upTo(len(r.Tasks))
}

// upTo writes the tasks of the role up to one, of which nothing is written yet.
func (r *results) upTo(task int) error {
	for ; r.task < task; r.task++ {
		if r.Tasks[r.task].Role != r.role {
			continue
		}
		if err := r.endTask(); err != nil {
			return err
		}
	}
	return nil
}

func (r *results) beginTask() error {
	if r.within {
		return nil
	}
	r.within = true
	t := &r.Tasks[r.task]
	if r.comma {
		r.out.WriteByte(',')
	}
	r.comma = true
	head := resultsTask{TestID: t.ID, DisplayName: t.Name, Status: "skipped"}
	if t.Name == "" {
		head.DisplayName = t.ID
	}
	head.Group = groupOf(t)
	if t.Result != nil {
		head.Status = resultsStatus(t.Result.Verdict)
	}
	return r.open(head, "runs")
}

// groupOf is the group that a task is compared by, of which others have one.
func groupOf(t *report.Task) string {
	switch {
	case t.Cell != nil:
		return t.Cell.Name
	case len(t.Groups) > 0:
		return t.Groups[0]
	}
	return ""
}

func (r *results) run(t *record.Trial) error {
	if err := r.beginTask(); err != nil {
		return err
	}
	if r.tally.runs++; r.tally.runs > 1 {
		r.out.WriteByte(',')
	}
	if s, ok := plainScore(t); ok {
		r.tally.plain = append(r.tally.plain, s)
	}
	run := resultsRunOf(t)
	if u := run.SessionDigest.Usage; u != nil {
		r.turns += u.Turns
	}
	return r.value(run)
}

func (r *results) value(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.out.Write(b)
	return err
}

// plainScore is the mean of a counted trial's scores without their weights.
func plainScore(t *record.Trial) (float64, bool) {
	score := t.CountedScore()
	if score == nil {
		return 0, false
	}
	if t.Verdict == record.TimedOut {
		return 0, true // whatever the graders said that had their turn
	}
	sum, n := 0.0, 0
	for i := range t.Graders {
		if g := &t.Graders[i]; g.Error == "" && !g.NeedsReview && !g.Calibrates() {
			sum += g.Score
			n++
		}
	}
	if n == 0 {
		return *score, true
	}
	return sum / float64(n), true
}

func (r *results) endTask() error {
	if err := r.beginTask(); err != nil {
		return err
	}
	t := &r.Tasks[r.task]
	tail := resultsTaskTail{Stats: r.stats(t.Result), SkillImpact: r.impact(t.ID)}
	r.sum.add(t, tail.Stats)
	r.out.WriteByte(']')
	if err := r.rest(tail); err != nil {
		return err
	}
	r.within, r.tally = false, resultsTally{plain: r.tally.plain[:0]}
	return r.out.WriteByte('}')
}

// stats are those of a task; nil when no trial of it counts, and while some wait for a
// person's score, so that there is no pass rate yet.
func (r *results) stats(res *record.Task) *resultsStats {
	if res == nil || res.Trials.PassRate == nil {
		return nil
	}
	c := res.Trials
	s := &resultsStats{
		PassRate: *c.PassRate, PassedRuns: c.Passed, FailedRuns: c.Failed + c.Timeouts, ErrorRuns: c.Errors, TotalRuns: r.tally.runs, Flaky: res.Flaky,
		FlakinessPercent: 100 * float64(min(c.Passed, c.Counted()-c.Passed)) / float64(c.Counted()),
	}
	plain := stats.Describe(r.tally.plain)
	s.AvgScore, s.MinScore, s.MaxScore, s.StdDevScore, s.ScoreVariance = plain.Mean, plain.Min, plain.Max, plain.StdDev, plain.StdDev*plain.StdDev
	if res.DurationMS != nil {
		s.AvgDurationMS = int64(res.DurationMS.Mean)
	}
	if res.Score == nil {
		return s
	}
	s.AvgWeightedScore = res.Score.Mean
	if res.Score.N > 1 {
		s.BootstrapCI = bootstrapped(res.Score)
		s.CI95Lo, s.CI95Hi = s.BootstrapCI.Lower, s.BootstrapCI.Upper
		significant := s.BootstrapCI.Lower > 0
		s.IsSignificant = &significant
	}
	return s
}

func bootstrapped(s *record.ScoreStats) *resultsInterval {
	return &resultsInterval{Lower: s.MeanInterval.Low, Upper: s.MeanInterval.High, Mean: s.Mean, ConfidenceLevel: stats.DefaultConfidence}
}

// impact is what difference the skills make to a task; nil when that was not measured.
func (r *results) impact(task string) *resultsImpact {
	if r.Summary == nil || r.Summary.Baseline == nil {
		return nil
	}
	for _, t := range r.Summary.Baseline.Tasks {
		if g := t.PassRate; t.ID == task && g != nil {
			i := &resultsImpact{WithSkills: g.With, Baseline: g.Without, Delta: g.Gain}
			if g.Without > 0 {
				i.PercentChange = 100 * g.Gain / g.Without
			}
			return i
		}
	}
	return nil
}
