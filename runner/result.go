package runner

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"waza/runner/executor"
	"waza/runner/stats"
)

// Counts says how many tasks or trials ended in each verdict. Total counts all,
// also those that have not ended yet.
type Counts struct {
	Total     int `json:"total"`
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Errors    int `json:"errors"`
	Timeouts  int `json:"timeouts"`
	Cancelled int `json:"cancelled"`
	Skipped   int `json:"skipped"`
	// NeedsReview counts those that wait for a person's score.
	NeedsReview int `json:"needsReview,omitempty"`
}

// Add counts a verdict, but not in Total.
func (c *Counts) Add(v Verdict) { c.count(v, 1) }

// remove undoes Add.
func (c *Counts) remove(v Verdict) { c.count(v, -1) }

func (c *Counts) count(v Verdict, n int) {
	switch v {
	case Passed:
		c.Passed += n
	case Failed:
		c.Failed += n
	case Errored:
		c.Errors += n
	case TimedOut:
		c.Timeouts += n
	case Cancelled:
		c.Cancelled += n
	case Skipped:
		c.Skipped += n
	case NeedsReview:
		c.NeedsReview += n
	}
}

// add counts those of other counts, Total included.
func (c *Counts) add(o Counts) {
	c.Total += o.Total
	c.Passed += o.Passed
	c.Failed += o.Failed
	c.Errors += o.Errors
	c.Timeouts += o.Timeouts
	c.Cancelled += o.Cancelled
	c.Skipped += o.Skipped
	c.NeedsReview += o.NeedsReview
}

// Done is how many have ended, also if a person has yet to give a score.
func (c Counts) Done() int { return c.Counted() + c.Errors + c.Cancelled + c.Skipped + c.NeedsReview }

// Counted is how many say something about the agent: those that passed, failed
// or took too long.
func (c Counts) Counted() int { return c.Passed + c.Failed + c.Timeouts }

// TrialCounts are the counts and pass rate of trials.
type TrialCounts struct {
	Counts
	Rate
}

// TaskResult sums up the trials of one task.
type TaskResult struct {
	Verdict Verdict `json:"verdict"`
	// Decided tells why trials of the task were never started, its verdict being
	// known; nil when all were.
	Decided *Decided    `json:"decided,omitempty"`
	Trials  TrialCounts `json:"counts"`
	// Score describes the scores of the counted trials, of which a timeout's is 0; nil
	// when none counts, and
	// while trials wait for a person's score.
	Score *ScoreStats `json:"score"`
	// Flaky: some counted trials passed and some did not.
	Flaky bool `json:"flaky"`
	// PassK holds pass@k and pass^k for k up to the counted trials, at most 100. Where
	// the task could stop early, it ends with the least number of trials that could have
	// stopped it; while trials wait for a person's score, there is none.
	PassK []stats.AtK `json:"passK,omitempty"`
	// Unbiased holds the task's contribution to means over tasks; nil unless the task
	// could stop early.
	Unbiased *Unbiased `json:"unbiased,omitempty"`
	// DurationMS describes how long the counted trials took, in milliseconds.
	DurationMS *stats.Summary `json:"durationMs"`
	// Usage is what all attempts at all trials cost, agents and judges; UsageByRole
	// says who spent it.
	Usage       *executor.Usage `json:"usage,omitempty"`
	UsageByRole *Ledger         `json:"usageByRole,omitempty"`
	// Cached is how many trials were taken over from earlier runs.
	Cached int `json:"cached,omitempty"`
	// Error says why the task is an error whatever its trials are.
	Error string `json:"error,omitempty"`
	// Reasons are what most often kept trials from passing, most frequent first.
	Reasons []Reason `json:"reasons,omitempty"`
}

// ScoreStats are statistics of scores. Those of a run describe the mean scores of its
// tasks; of tasks that could stop early, their estimates without bias.
type ScoreStats struct {
	stats.Summary
	// MeanInterval is the 95 % interval of the mean: for a task [stats.MeanInterval], for
	// several tasks the same of these very tasks.
	MeanInterval stats.Interval `json:"meanInterval"`
}

// Reason is something that kept trials from passing.
type Reason struct {
	// Verdict of the trials it kept from passing.
	Verdict Verdict `json:"verdict"`
	// Grader is the name of the grader that was not satisfied; empty for an error.
	Grader  string `json:"grader,omitempty"`
	Message string `json:"message"`
	Trials  int    `json:"trials"`
}

// Summary sums up a run: its tasks, its trials and its metrics. Its counts, rates
// and scores are of the tasks of the suite alone; what came of baselines and
// trigger tests stands under those names, and Usage is that of all.
type Summary struct {
	Counts             // of tasks
	Rate               // of tasks
	Flaky  int         `json:"flaky"`
	Trials TrialCounts `json:"trials"`
	// TrialsSaved is how many trials were not started because the verdict on their
	// task was decided. They are among the skipped ones.
	TrialsSaved int `json:"trialsSaved,omitempty"`
	// Score describes the mean scores of the tasks; nil while trials wait for a person's
	// score.
	Score *ScoreStats `json:"score"`
	// PassK holds the means over tasks of pass@k and pass^k; nil while trials wait for a
	// person's score.
	PassK    []stats.AtK     `json:"passK,omitempty"`
	Metrics  []MetricResult  `json:"metrics,omitempty"`
	Baseline *BaselineResult `json:"baseline,omitempty"`
	Triggers *TriggerResult  `json:"triggers,omitempty"`
	Groups   []GroupResult   `json:"groups,omitempty"`
	// Usage is what all attempts at all trials cost, agents and judges, and those of
	// baselines and trigger tests; UsageByRole says who spent it.
	Usage       *executor.Usage `json:"usage,omitempty"`
	UsageByRole *Ledger         `json:"usageByRole,omitempty"`
	// TrialsCached is how many trials of all tasks were taken over from earlier
	// runs, UsageCached what of Usage was spent there and not by this run.
	TrialsCached int             `json:"trialsCached,omitempty"`
	UsageCached  *executor.Usage `json:"usageCached,omitempty"`
	DurationMS   int64           `json:"durationMs"`
	// Missed names the metrics under their threshold.
	Missed []string `json:"missed,omitempty"`
	// Calibrations tell how far graders agree with the persons who scored the same trials.
	Calibrations []CalibrationResult `json:"calibrations,omitempty"`
}

// Waiting is how many trials wait for a person's score, those of the baseline
// included.
func (s *Summary) Waiting() int {
	n := s.Trials.NeedsReview
	if s.Baseline != nil {
		n += s.Baseline.Trials.NeedsReview
	}
	return n
}

// Unmeasured names the metrics with a threshold that could not be measured.
func (s *Summary) Unmeasured() []string {
	var names []string
	for _, m := range s.Metrics {
		if m.Value == nil && m.Threshold > 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// MetricResult is a metric and what it must reach.
type MetricResult struct {
	MetricRef
	// Value is nil when there was nothing to measure; Note says why.
	Value  *float64 `json:"value"`
	Passed *bool    `json:"passed"`
	Note   string   `json:"note,omitempty"`
}

// CalibrationResult holds a grader, mostly a judge, against persons' scores.
type CalibrationResult struct {
	// Grader is the name of the grader that is calibrated.
	Grader string `json:"grader"`
	// Pending is how many trials wait for a person's score.
	Pending int `json:"pending,omitempty"`
	// Agreement is over the trials that both scored; differences are the
	// grader's score less the person's.
	stats.Agreement
}

// GroupResult sums up the trials of the tasks in one group of config.group_by or,
// where the suite names none, in one cell of the matrix.
type GroupResult struct {
	Group string `json:"group"`
	TrialCounts
	// CellResult is nil when groups are no cells.
	*CellResult
}

// CellResult tells more of a cell of the matrix. But for the last two, numbers are
// those of the tasks of the suite.
type CellResult struct {
	Cell *CellRef `json:"cell"`
	// Tasks counts verdicts; Score describes the mean scores of the tasks.
	Tasks Counts      `json:"tasks"`
	Score *ScoreStats `json:"score"`
	// Usage is what they cost; nil when nothing is known of that.
	Usage *executor.Usage `json:"usage,omitempty"`
	// MeanDurationMS is how long a counted trial took; nil when none was counted.
	MeanDurationMS *float64 `json:"meanDurationMs"`
	// Baseline and Triggers are those of the cell, without their lists.
	Baseline *BaselineResult `json:"baseline,omitempty"`
	Triggers *TriggerResult  `json:"triggers,omitempty"`
}

// resultHead is a whole result without its tasks.
type resultHead struct {
	RunID     string     `json:"runId"`
	Status    Status     `json:"status"`
	Error     string     `json:"error,omitempty"`
	Suite     SuiteRef   `json:"suite"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
	AmendedAt *time.Time `json:"amendedAt,omitempty"`
	Summary   *Summary   `json:"summary"`
	Config    RunConfig  `json:"config"`
	Damage    *Damage    `json:"damage,omitempty"`
	// events is how many the journal had when result.json was written; 0 where that is
	// not known.
	events int64
	// Stored: some trials refer to contents beside the journal. No client is told so.
	Stored bool `json:"stored,omitempty"`
}

// taskHead is a task of a result without its trials.
type taskHead struct {
	TaskRef
	*TaskResult
}

// resultOptions say how a whole result is written.
type resultOptions struct {
	damage *Damage
	// stored leaves references of trials as they are: for result.json.
	stored bool
}

// writeResult writes a whole result as one line of JSON, without holding the
// trials in memory: their bytes are copied out of the journal.
func writeResult(w io.Writer, files *trialFiles, rec *Record, st *foldState, o resultOptions) error {
	out := bufio.NewWriterSize(w, 64<<10)
	head := resultHead{
		RunID: rec.RunID, Status: st.progress.Status, Error: st.progress.Error, Suite: rec.Suite,
		StartedAt: st.progress.StartedAt, EndedAt: st.progress.EndedAt, AmendedAt: st.progress.AmendedAt,
		Summary: st.progress.Summary, Config: rec.Config, Damage: o.damage, Stored: o.stored && st.stored(),
	}
	if err := writeOpen(out, head, "tasks"); err != nil {
		return err
	}
	for i, t := range rec.Tasks {
		if i > 0 {
			out.WriteByte(',')
		}
		if st.criteria != nil && i < len(st.criteria.Thresholds) {
			t.PassThreshold = &st.criteria.Thresholds[i]
		}
		if err := writeOpen(out, taskHead{t, st.tasks[i].result}, "trials"); err != nil {
			return err
		}
		if err := writeTrials(out, files, st.tasks[i].trials, o.stored); err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		out.WriteString("]}")
	}
	out.WriteString("]}\n")
	return out.Flush()
}

// copyResult copies result.json, and tells of damage that came to the journal since.
func copyResult(w io.Writer, result io.Reader, damage *Damage) error {
	if damage != nil {
		note, err := json.Marshal(damage)
		if err != nil {
			return err
		}
		brace := make([]byte, 1)
		if _, err := io.ReadFull(result, brace); err != nil {
			return fmt.Errorf("result.json: %w", err)
		}
		if _, err := fmt.Fprintf(w, `{"damage":%s,`, note); err != nil {
			return err
		}
	}
	_, err := io.Copy(w, result)
	return err
}

// writeOpen writes an object but for its last member, an array, which it opens.
func writeOpen(out *bufio.Writer, object any, array string) error {
	b, err := json.Marshal(object)
	if err != nil {
		return err
	}
	out.Write(b[:len(b)-1])
	_, err = fmt.Fprintf(out, ",%q:[", array)
	return err
}

func writeTrials(out *bufio.Writer, files *trialFiles, trials []place, stored bool) (err error) {
	var buf []byte
	first := true
	for _, p := range trials {
		if p.size == 0 {
			continue // not ended yet, or its process died before it did
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		if buf, err = files.bytes(p, buf); err != nil {
			return err
		}
		trial := buf
		if p.stored && !stored {
			if trial, err = files.whole(buf); err != nil {
				return err
			}
		}
		if _, err := out.Write(trial); err != nil {
			return err
		}
	}
	return nil
}

// readSummary reads the head of a result without its tasks, however large they are.
func readSummary(f io.Reader) (*resultHead, error) {
	dec := json.NewDecoder(f)
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok || name == "tasks" {
			break
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	head := new(resultHead)
	return head, json.Unmarshal(b, head)
}
