package board

import (
	"slices"

	"waza/runner/record"
)

// benchmark creates the messages of benchmark: each trial is a run of a model with a context
// length, and has a result.
type benchmark struct {
	rec     *record.Run
	ref     *record.BenchmarkRef
	targets []target
	runs    int
}

func newBenchmark(s *session) messages {
	rec := s.rec
	m := &benchmark{rec: rec, ref: rec.Benchmark, targets: targetsOf(rec), runs: rec.Config.Trials}
	if m.ref == nil { // the record was written by hand
		m.ref = &record.BenchmarkRef{Tiers: []int{0}}
	}
	for i := range m.ref.Skipped { // models without any remaining task
		if t := targetOf(rec, m.ref.Skipped[i].Cell); !slices.Contains(m.targets, t) {
			m.targets = append(m.targets, t)
		}
	}
	return m
}

// benchmarkInit is the data of benchmark_init.
type benchmarkInit struct {
	Targets []target `json:"targets"`
	Runs    int      `json:"runs"`
	Tiers   []int    `json:"context_tiers"`
	// MaxTokens is null when the suite does not set it.
	MaxTokens *int   `json:"max_tokens"`
	Total     int    `json:"total_runs"`
	Completed int    `json:"completed_runs"`
	Suite     string `json:"suite_name"`
}

func (m *benchmark) init(j *job, reconnect bool) []byte {
	data := benchmarkInit{Targets: m.targets, Runs: m.runs, Tiers: m.ref.Tiers, Total: j.total, Completed: j.done, Suite: j.suite}
	if m.ref.MaxTokens > 0 {
		data.MaxTokens = &m.ref.MaxTokens
	}
	return j.initial("benchmark_init", reconnect).with(data)
}

// skippedTier is the data of benchmark_skipped.
type skippedTier struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	ModelID  string `json:"model_id"`
	Tier     int    `json:"context_tier"`
	Reason   string `json:"reason"`
}

// skippedResult is the data of the benchmark_result of a skipped tier, which existing pages read.
type skippedResult struct {
	Type     string `json:"type"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	ModelID  string `json:"model_id"`
	Context  int    `json:"context_tokens"`
	Reason   string `json:"reason"`
}

func (m *benchmark) opening() [][]byte {
	var list [][]byte
	for _, s := range m.ref.Skipped {
		t := targetOf(m.rec, s.Cell)
		list = append(list,
			m.about("benchmark_skipped", skippedTier{t.Provider, t.Model, t.Model, s.ContextTokens, s.Reason}),
			m.about("benchmark_result", skippedResult{"skipped", t.Provider, t.Model, t.Model, s.ContextTokens, s.Reason}),
		)
	}
	return list
}

func (m *benchmark) about(kind string, data any) []byte {
	return head{Type: kind, JobID: m.rec.RunID}.with(data)
}

// benchmarkRun identifies a run of a model: the data of benchmark_progress, at its start.
type benchmarkRun struct {
	Type     string `json:"type"`
	Provider string `json:"provider"` // provider_key of the target
	Model    string `json:"model"`
	ModelID  string `json:"model_id"`
	// Case is the task of the suite.
	Case    string `json:"test_case_id"`
	Run     int    `json:"run"` // counted from 1
	Runs    int    `json:"runs"`
	Context int    `json:"context_tokens"`
}

// benchmarkData is the data of benchmark_result: the measurements of a finished run. Unknown ones are null, except Cost.
type benchmarkData struct {
	benchmarkRun
	FirstToken *float64 `json:"ttft_ms"`
	// TotalS is the time of the model for the whole answer, in seconds.
	TotalS float64 `json:"total_time_s"`
	// Speed is the rate at which the model wrote after the first token. OutputSpeed repeats it for
	// existing pages, and TokenGapMS is the mean time between two tokens at this rate.
	Speed       *float64 `json:"tokens_per_second"`
	OutputSpeed *float64 `json:"output_speed_tps"`
	TokenGapMS  *float64 `json:"itl_ms"`
	// InputSpeed is the number of tokens read per second until the first token.
	InputSpeed *float64 `json:"input_tokens_per_second"`
	// Cost is 0 when it is unknown, because existing pages expect a number.
	Cost         float64 `json:"cost"`
	InputTokens  *int64  `json:"input_tokens"`
	OutputTokens *int64  `json:"output_tokens"`
	// Success reports whether the model answered. Verdict rates the answer.
	Success bool           `json:"success"`
	Verdict record.Verdict `json:"verdict"`
	Error   string         `json:"error,omitempty"`
}

func (m *benchmark) event(e *record.Event) [][]byte {
	switch {
	case isCase(m.rec, e):
		return [][]byte{m.about("benchmark_result", m.result(e))}
	case e.Type == record.TrialStart && e.Role == record.RoleTask && e.TaskNum >= 1 && e.TaskNum <= len(m.rec.Tasks):
		return [][]byte{m.about("benchmark_progress", m.run("progress", e))}
	}
	return nil
}

func (m *benchmark) run(kind string, e *record.Event) benchmarkRun {
	ref := &m.rec.Tasks[e.TaskNum-1]
	t := targetOf(m.rec, ref.Cell)
	r := benchmarkRun{
		Type: kind, Provider: t.Provider, Model: t.Model, ModelID: t.Model, Case: ref.ID, Run: e.TrialNum,
		Runs: m.runs, Context: m.ref.ContextOf(ref.Cell),
	}
	if ref.Task != "" {
		r.Case = ref.Task
	}
	return r
}

func (m *benchmark) result(e *record.Event) *benchmarkData {
	d := &benchmarkData{benchmarkRun: m.run("result", e), Verdict: e.Verdict, Error: Failure(e.Error)}
	d.Success = isAnswered(e.Verdict)
	if e.Trial == nil {
		return d
	}
	known := func(x float64) *float64 {
		if x > 0 {
			return &x
		}
		return nil
	}
	d.TotalS = e.Trial.ExecutorTook().Seconds()
	if s := e.Trial.Speed; s != nil {
		d.FirstToken, d.Speed, d.OutputSpeed = known(s.FirstTokenMS), known(s.TokensPerSecond), known(s.TokensPerSecond)
		if d.Speed != nil {
			d.TokenGapMS = known(1000 / *d.Speed)
		}
	}
	if u := e.Trial.Usage; u != nil {
		d.Cost, d.InputTokens, d.OutputTokens = u.CostUSD, &u.InputTokens, &u.OutputTokens
		if d.FirstToken != nil {
			d.InputSpeed = known(1000 * float64(u.InputTokens) / *d.FirstToken)
		}
	}
	return d
}
