// Package results writes results.json in the form that other tools for the same suites write and
// read. Call [Write].
package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/stats"
)

// Write writes results.json in the form of other tools that run these suites. The names are
// theirs, but the numbers are ours: rates and scores cover the trials that count, so that no
// error looks like a failure of the agent.
//
// Write does not hold trials in memory. It writes trials of the baseline and trigger tests
// separately, and reads the run once more for each of them if there are any.
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

// results writes a document, one task at a time.
type results struct {
	*report.Report
	h    record.Handle
	out  *bufio.Writer
	role record.Role // of the tasks being written

	turns  int  // prompts sent to their agents
	task   int  // index of the task being written
	comma  bool // a task precedes it
	within bool // the list of its runs is open
	tally  resultsTally
	sum    resultsSum
	// timeouts holds the numbers of trials that timed out, by the id of their task.
	timeouts map[string][]int
}

// resultsTally counts the trials of the task being written.
type resultsTally struct {
	runs            int
	plain, weighted []float64 // scores of the trials that count, without and with weights of graders
}

// resultsSum sums up all tasks of a document.
type resultsSum struct {
	summary         resultsSummary
	counted         int
	plain, weighted []float64 // scores of the tasks
	groups          []resultsGroup
	scored          map[string]int // number of tasks of a group with a score
}

// document writes the tasks of a role. For the suite's own tasks it also writes everything that
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
		Config: resultsConfig{
			RunsPerTest: c.Trials, ModelID: r.Record.ModelText(nil), EngineType: c.Executor, TimeoutSec: int(c.TimeoutSeconds),
			JudgeModel: c.JudgeModel, Effort: c.ReasoningEffort,
		},
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
	} else if len(r.timeouts) > 0 {
		tail.Metadata = map[string]any{"timeouts": r.timeouts}
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

// open writes an object without its last member, an array, and opens that array.
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

// upTo writes the tasks of the role before the given one that have not been written.
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

func (r *results) startTask() error {
	if r.within {
		return nil
	}
	r.within = true
	t := &r.Tasks[r.task]
	if r.comma {
		r.out.WriteByte(',')
	}
	r.comma = true
	head := resultsTask{TestID: t.ID, DisplayName: t.Name, Golden: t.Golden, Cluster: t.Cluster, Status: "skipped"}
	if t.Name == "" {
		head.DisplayName = t.ID
	}
	head.Group = groupOf(t)
	if t.Result != nil {
		head.Status = resultsStatus(t.Result.Verdict)
	}
	return r.open(head, "runs")
}

// groupOf returns the group by which a task is compared; the format allows only one.
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
	if err := r.startTask(); err != nil {
		return err
	}
	if r.tally.runs++; r.tally.runs > 1 {
		r.out.WriteByte(',')
	}
	if t.Verdict == record.TimedOut {
		if r.timeouts == nil {
			r.timeouts = map[string][]int{}
		}
		r.timeouts[t.TaskID] = append(r.timeouts[t.TaskID], t.TrialNum)
	}
	if plain, weighted, ok := scoresOf(t); ok {
		r.tally.plain, r.tally.weighted = append(r.tally.plain, plain), append(r.tally.weighted, weighted)
	}
	run := resultsRunOf(t)
	if u := run.SessionDigest.Usage; u != nil {
		r.turns += u.Turns
	}
	return r.value(run)
}

// value writes a value like json.Marshal encodes it, without a copy.
func (r *results) value(v any) error { return json.NewEncoder(unended{r.out}).Encode(v) }

// unended writes lines without their ends.
type unended struct{ w *bufio.Writer }

func (u unended) Write(b []byte) (int, error) {
	_, err := u.w.Write(bytes.TrimSuffix(b, []byte("\n")))
	return len(b), err
}

// scoresOf returns the mean of a counted trial's scores, without and with weights. The format
// requires 0 for both if nothing was graded.
func scoresOf(t *record.Trial) (plain, weighted float64, ok bool) {
	score := t.CountedScore()
	if score == nil {
		return 0, 0, false
	}
	if t.Verdict == record.TimedOut {
		return 0, 0, true // even if some graders gave scores
	}
	sum, n := 0.0, 0
	for i := range t.Graders {
		if g := &t.Graders[i]; g.Scored() && !g.Calibrates() && g.AfterTurn == 0 {
			sum += g.Score
			n++
		}
	}
	switch {
	case n > 0:
		return sum / float64(n), *score, true
	case len(t.Graders) > 0:
		return *score, *score, true
	}
	return 0, 0, true
}

func (r *results) endTask() error {
	if err := r.startTask(); err != nil {
		return err
	}
	t := &r.Tasks[r.task]
	tail := resultsTaskTail{Stats: r.stats(t.Result), SkillImpact: r.impact(t.ID)}
	r.sum.add(t, tail.Stats)
	r.out.WriteByte(']')
	if err := r.rest(tail); err != nil {
		return err
	}
	r.within, r.tally = false, resultsTally{plain: r.tally.plain[:0], weighted: r.tally.weighted[:0]}
	return r.out.WriteByte('}')
}

// stats returns the statistics of a task. It returns nil if no trial counts, or while some
// trials wait for a person's score, because there is no pass rate yet.
func (r *results) stats(res *record.Task) *resultsStats {
	if res == nil || res.Trials.PassRate == nil {
		return nil
	}
	c := res.Trials
	s := &resultsStats{
		PassRate: *c.PassRate, PassedRuns: c.Passed, FailedRuns: c.Failed + c.Timeouts, ErrorRuns: c.Errors,
		TotalRuns: r.tally.runs, Flaky: res.Flaky,
		FlakinessPercent: 100 * float64(min(c.Passed, c.Counted()-c.Passed)) / float64(c.Counted()),
	}
	plain := stats.Describe(r.tally.plain)
	s.AvgScore, s.MinScore, s.MaxScore, s.StdDevScore = plain.Mean, plain.Min, plain.Max, populationStdDev(plain)
	s.ScoreVariance = s.StdDevScore * s.StdDevScore
	if res.DurationMS != nil {
		s.AvgDurationMS = int64(res.DurationMS.Mean)
	}
	s.AvgWeightedScore = stats.Describe(r.tally.weighted).Mean
	if res.Score != nil && res.Score.N > 1 {
		s.CI95Lo, s.CI95Hi = res.Score.MeanInterval.Low, res.Score.MeanInterval.High
	}
	if len(r.tally.weighted) > 1 {
		s.BootstrapCI = bootstrapped(r.tally.weighted)
		significant := s.BootstrapCI.excludesZero()
		s.IsSignificant = &significant
	}
	return s
}

// impact returns the effect of the skills on a task, or nil if it was not measured.
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
