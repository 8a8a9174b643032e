package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/replay"
)

// Metrics counts the runs of this process. The values of labels are verdicts and statuses, never
// names from a suite, so their number is bounded.
type Metrics struct {
	registry  *prometheus.Registry
	followers *followers

	runs          *prometheus.CounterVec // by status
	running       prometheus.Gauge
	trials        *prometheus.CounterVec // by verdict
	runningTrials prometheus.Gauge
	duration      prometheus.Histogram
	tokens        *prometheus.CounterVec // by direction and role
	cost          *prometheus.CounterVec // by role
}

// NewMetrics returns metrics of runs and of the process, in a new registry.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), followers: newFollowers(),
		runs:          counters("waza_runs_total", "Runs that have ended.", "status"),
		running:       gauge("waza_runs_running", "Runs that are running."),
		trials:        counters("waza_trials_total", "Trials that have ended, including trials that were never started.", "verdict"),
		runningTrials: gauge("waza_trials_running", "Trials that are running."),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "waza_trial_duration_seconds", Help: "Duration of started trials, including all attempts and graders.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 10), // 10 ms to 44 minutes
		}),
		tokens: counters("waza_tokens_total", "Tokens used by agents and judges in all attempts, as far as known.", "direction", "by"),
		cost:   counters("waza_cost_usd_total", "Cost of agents and judges in all attempts, in US dollars, as far as known.", "by"),
	}
	m.registry.MustRegister(m.runs, m.running, m.trials, m.runningTrials, m.duration, m.tokens, m.cost,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, s := range []record.Status{record.StatusCompleted, record.StatusFailed, record.StatusCancelled} {
		m.runs.WithLabelValues(string(s)) // so that it is 0 before the first run
	}
	for _, v := range verdicts {
		m.trials.WithLabelValues(string(v))
	}
	return m
}

var verdicts = []record.Verdict{
	record.Passed, record.Failed, record.Errored, record.TimedOut, record.Cancelled, record.Skipped,
	record.NeedsReview,
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// Registry returns the registry, in which other packages can register metrics.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Watch counts the records of the runner, and follows each run that it starts from now on. Call
// it once.
func (m *Metrics) Watch(r *runner.Runner) {
	count := func(name, help string, value func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(value()) }))
	}
	count("waza_journal_lines_total", "Lines written to journals.", func() int64 { lines, _ := r.JournalWritten(); return lines })
	count("waza_journal_bytes_total", "Bytes written to journals.", func() int64 { _, bytes := r.JournalWritten(); return bytes })
	m.followers.watch(r, m.follow)
}

// follow counts the events of the run. It does not block and never slows the run.
func (m *Metrics) follow(run *runner.Run) {
	m.running.Inc()
	c := &countedRun{metrics: m, running: replay.Running{}}
	m.followers.follow(run, c.handle, c.ended)
}

// Close stops watching, and waits until the started runs are over or ctx ends.
func (m *Metrics) Close(ctx context.Context) { m.followers.wait(ctx) }

// countedRun counts the events of a run. It must not be used concurrently.
type countedRun struct {
	metrics *Metrics
	running replay.Running
}

func (c *countedRun) handle(e *record.Event) {
	m, ran, before := c.metrics, c.running.Has(e.TaskNum, e.TrialNum), c.running.Trials()
	c.running.Apply(e)
	m.runningTrials.Add(float64(c.running.Trials() - before))
	switch e.Type {
	case record.TrialComplete:
		m.trials.WithLabelValues(string(e.Verdict)).Inc()
		if e.Trial != nil {
			c.spent(e.Trial.SpentHere())
		}
		if ran { // started in this run, not skipped or reused
			m.duration.Observe(float64(e.DurationMS) / 1000)
		}
	case record.CompareComplete:
		c.spentBy("judge", e.Comparison.Usage)
	case record.JudgeComplete:
		c.spentBy("judge", e.Findings.Usage)
	case record.End:
		m.runs.WithLabelValues(string(e.Status)).Inc()
	}
}

func (c *countedRun) spent(l *record.Ledger) {
	if l == nil {
		return
	}
	c.spentBy("agent", l.Agent)
	c.spentBy("judge", l.Judges)
	c.spentBy("responder", l.Responder)
}

func (c *countedRun) spentBy(role string, u *record.Usage) {
	if u == nil {
		return
	}
	tokens := func(direction string, n int64) { c.metrics.tokens.WithLabelValues(direction, role).Add(float64(n)) }
	tokens("input", u.InputTokens)
	tokens("output", u.OutputTokens)
	if other := u.Total() - u.InputTokens - u.OutputTokens; other > 0 { // tokens that only the total contains
		tokens("other", other)
	}
	c.metrics.cost.WithLabelValues(role).Add(u.CostUSD)
}

// ended subtracts the rest of a run that is no longer followed.
func (c *countedRun) ended() {
	c.metrics.running.Dec()
	c.metrics.runningTrials.Sub(float64(c.running.Trials()))
}
