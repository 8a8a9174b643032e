package page

import (
	"bufio"
	"encoding/json"
	"path/filepath"
	"time"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/tally"
)

const (
	// maxHTMLReasons and maxHTMLReason limit the reasons in a table; the transcripts contain all
	// of them.
	maxHTMLReasons = 5
	maxHTMLReason  = 400
)

// htmlPage is the data of a report without its trials. The page reads it by these names.
type htmlPage struct {
	RunID     string          `json:"runId"`
	Status    record.Status   `json:"status"`
	Error     string          `json:"error,omitempty"`
	Suite     record.SuiteRef `json:"suite"`
	CreatedAt time.Time       `json:"createdAt"`
	StartedAt time.Time       `json:"startedAt"`
	EndedAt   *time.Time      `json:"endedAt,omitempty"`
	AmendedAt *time.Time      `json:"amendedAt,omitempty"`
	Config    htmlConfig      `json:"config"`
	// Counted and CountedTrials cover all tasks of the suite, even those that have not ended.
	Counted       record.Counts   `json:"counted"`
	CountedTrials record.Counts   `json:"countedTrials"`
	Summary       *record.Summary `json:"summary,omitempty"`
	// TookMS is the duration of the run in milliseconds; nil while it is active.
	TookMS *int64 `json:"tookMs"`
	// TrialMS describes the durations of the counted trials of the suite's tasks.
	TrialMS *record.Spread `json:"trialMs,omitempty"`
	// TokensWrittenPerSecond is the number of tokens that agents wrote per second of all trials; nil
	// when it is unknown. The tokensPerSecond of [record.Speed] differs: it leaves out the
	// first token and the time before it.
	TokensWrittenPerSecond *float64 `json:"tokensWrittenPerSecond"`
	// Benchmark is nil for other kinds of suites.
	Benchmark *record.BenchmarkRef `json:"benchmark,omitempty"`
	// Baseline holds the conclusions about all tasks of the comparison with the baseline, and
	// JudgePositions describes the judges who prefer a place, and Noise the conditions with which
	// failures go. All are sentences, in the words of the other reports.
	Baseline []string `json:"baseline,omitempty"`
	// Arm names the side of the baseline; empty for an agent without skills.
	Arm            string   `json:"arm,omitempty"`
	JudgePositions []string `json:"judgePositions,omitempty"`
	Noise          []string `json:"noise,omitempty"`
	// Damage describes the lost part of the record; empty if nothing is lost. Unverifiable
	// describes why nobody can verify a record without damage.
	Damage       string       `json:"damage,omitempty"`
	Unverifiable string       `json:"unverifiable,omitempty"`
	Against      *htmlAgainst `json:"against,omitempty"`
}

// htmlConfig holds settings of the run.
type htmlConfig struct {
	Executor    string   `json:"executor"`
	Agent       string   `json:"agent,omitempty"`
	Model       string   `json:"model,omitempty"`
	JudgeModel  string   `json:"judgeModel,omitempty"`
	Trials      int      `json:"trials"`
	Workers     int      `json:"workers"`
	TaskFilters []string `json:"taskFilters,omitempty"`
	TagFilters  []string `json:"tagFilters,omitempty"`
	Timeout     float64  `json:"timeoutSeconds,omitempty"`
	MaxAttempts int      `json:"maxAttempts,omitempty"`
	// Sandbox describes the sandboxes of the trials; empty if it is unknown.
	Sandbox string `json:"sandbox,omitempty"`
}

// htmlTask is a row of the table of tasks.
type htmlTask struct {
	record.TaskRef
	Verdict  record.Verdict   `json:"verdict,omitempty"` // empty: not ended
	Counts   *record.Counts   `json:"counts,omitempty"`
	Rate     *float64         `json:"rate"`
	Interval *record.Interval `json:"interval,omitempty"`
	// Bounds holds the possible pass rates while trials wait for a person's score.
	Bounds  *record.Interval `json:"bounds,omitempty"`
	Score   *float64         `json:"score"`
	ScoreIn *record.Interval `json:"scoreInterval,omitempty"`
	Flaky   bool             `json:"flaky,omitempty"`
	// Suspicious is the number of trials that passed with suspicious moves.
	Suspicious int `json:"suspicious,omitempty"`
	// Suspicions lists such moves, as in the result of the task.
	Suspicions []record.TrialSuspicion `json:"suspicions,omitempty"`
	// Medians are those of its counted trials.
	Medians *htmlMedians `json:"medians,omitempty"`
	Tokens  *int64       `json:"tokens"`
	Cost    *float64     `json:"cost"`
	PassK   []record.AtK `json:"passK,omitempty"`
	// Tools holds the means of its tool scores.
	Tools *record.ToolScores `json:"tools,omitempty"`
	// Decided states when further trials could no longer change the verdict; empty if no trials
	// were saved.
	Decided string          `json:"decided,omitempty"`
	Error   string          `json:"error,omitempty"`
	Reasons []record.Reason `json:"reasons,omitempty"`
	// Ended is the number of its trials in the columns.
	Ended int      `json:"ended"`
	Was   *htmlWas `json:"was,omitempty"`
}

// htmlData is everything in a report except the transcripts.
type htmlData struct {
	page    htmlPage
	tasks   []htmlTask
	columns htmlColumns
	// first is, for each task, the index of its first trial in the columns.
	first []int
	// weight is about how many bytes the transcripts take before compression.
	weight int64
}

// write writes one JSON object, task by task. It escapes everything that could end the enclosing
// element.
func (d *htmlData) write(out *bufio.Writer) error {
	enc := json.NewEncoder(report.JSONWriter(out))
	out.WriteString(`{"run":`)
	if err := enc.Encode(d.page); err != nil {
		return err
	}
	out.WriteString(`,"tasks":[`)
	for i := range d.tasks {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := enc.Encode(&d.tasks[i]); err != nil {
			return err
		}
	}
	out.WriteString(`],"trials":`)
	if err := d.columns.write(out); err != nil {
		return err
	}
	return out.WriteByte('}')
}

// gatherHTML reads a run without keeping transcripts.
func gatherHTML(h record.Handle, o Options) (*htmlData, error) {
	rep, err := report.OfResults(h)
	if err != nil {
		return nil, err
	}
	damage, err := h.Damage()
	if err != nil {
		return nil, err
	}
	d := &htmlData{page: pageOf(rep.Record, rep.Progress), first: make([]int, len(rep.Tasks))}
	for i := range rep.Tasks {
		d.tasks = append(d.tasks, htmlTaskOf(rep.Tasks[i].TaskRef, rep.Tasks[i].Result))
	}
	if damage.Damaged() {
		d.page.Damage = damage.String()
	} else if damage != nil {
		d.page.Unverifiable = damage.String()
	}
	d.columns.whys = []string{}
	if err := d.gatherTrials(h); err != nil {
		return nil, err
	}
	if o.Against != nil {
		err = d.compare(h, o)
	}
	return d, err
}

func pageOf(rec *record.Run, p record.Progress) htmlPage {
	page := htmlPage{
		RunID: rec.RunID, Status: p.Status, Error: p.Error, Suite: rec.Suite,
		CreatedAt: rec.CreatedAt, StartedAt: p.StartedAt, EndedAt: p.EndedAt, AmendedAt: p.AmendedAt, Summary: p.Summary,
		Config: htmlConfig{
			Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.ModelText(nil), JudgeModel: rec.Config.JudgeModel,
			Trials: rec.Config.Trials, Workers: rec.Config.ActualWorkers, TaskFilters: rec.Config.TaskFilters,
			TagFilters: rec.Config.TagFilters, Timeout: rec.Config.TimeoutSeconds, MaxAttempts: rec.Config.MaxAttempts,
		},
		Counted: p.Tasks, CountedTrials: p.Trials, TookMS: p.TookMS(), Benchmark: rec.Benchmark,
	}
	if s := rec.Sandbox.After(p.Summary); s != nil {
		page.Config.Sandbox = s.String()
	}
	page.Counted.Total, page.CountedTrials.Total = 0, 0 // the summary covers only what has ended
	for _, t := range rec.Tasks {
		if t.Role == record.RoleTask {
			page.Counted.Total++
			page.CountedTrials.Total += t.Trials
		}
	}
	page.Arm = string(rec.Baseline.Arm())
	if p.Summary != nil {
		page.conclude(p.Summary)
	}
	return page
}

// conclude adds the sentences about a summary.
func (page *htmlPage) conclude(s *record.Summary) {
	if b := s.Baseline; b != nil && b.Measured {
		for _, e := range report.Effects(b) {
			page.Baseline = append(page.Baseline, e.Text)
		}
		if why := report.ExplainBaseline(b); why != "" {
			page.Baseline = append(page.Baseline, why)
		}
	}
	for i := range s.JudgePositions {
		page.JudgePositions = append(page.JudgePositions, report.PositionText(&s.JudgePositions[i]))
	}
	for i := range s.Noise {
		page.Noise = append(page.Noise, report.NoiseText(&s.Noise[i]))
	}
}

func htmlTaskOf(ref record.TaskRef, res *record.Task) htmlTask {
	t := htmlTask{TaskRef: ref}
	t.Hash, t.Execution = "", "" // nobody reads them
	if ref.File != "" {
		t.File = filepath.Base(ref.File)
	}
	if res == nil {
		return t
	}
	t.Verdict, t.Counts, t.Flaky, t.PassK = res.Verdict, &res.Trials.Counts, res.Flaky, thinned(res.PassK)
	t.Tools, t.Suspicious, t.Suspicions = res.Tools, res.Suspicious, res.Suspicions
	t.Rate, t.Interval, t.Bounds, t.Error = res.Trials.PassRate, res.Trials.PassRateInterval, res.Trials.PassRateBounds, text.Head(res.Error,
		maxHTMLReason)
	if res.Decided != nil {
		t.Decided = tally.DecisionText(res.Decided)
	}
	if res.Score != nil {
		t.Score, t.ScoreIn = &res.Score.Mean, &res.Score.MeanInterval
	}
	if u := res.Usage; u != nil {
		total := u.Total()
		t.Tokens, t.Cost = &total, knownCost(u.CostUSD)
	}
	for _, why := range res.Reasons[:min(len(res.Reasons), maxHTMLReasons)] {
		why.Message = text.Head(why.Message, maxHTMLReason)
		t.Reasons = append(t.Reasons, why)
	}
	return t
}

// thinned returns a curve with fewer points, because nobody reads a hundred numbers.
func thinned(curve []record.AtK) []record.AtK {
	var out []record.AtK
	for _, at := range curve {
		switch at.K {
		case 1, 2, 3, 5, 10, 20, 50, 100:
			out = append(out, at)
		}
	}
	return out
}

// knownCost returns nil for 0, which means unknown.
func knownCost(usd float64) *float64 {
	if usd == 0 {
		return nil
	}
	return &usd
}
