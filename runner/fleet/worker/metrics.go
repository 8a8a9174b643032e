package worker

import (
	"context"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/runner/internal/bundle"
	"waza/runner/record"
)

// Metrics count the work of a worker. Make them with [NewMetrics]. A nil Metrics counts nothing.
// They are safe for concurrent use.
type Metrics struct {
	registry prometheus.Registerer
	trials   *prometheus.CounterVec // by verdict
	refused  prometheus.Counter
	files    prometheus.Counter // bytes
	seconds  *prometheus.HistogramVec
}

// Phases of an order, as labels of metrics.
const (
	phasePrepare = "prepare" // fetches the files and the plan of its run
	phaseTrial   = "trial"
	phaseSend    = "send" // until the server has stored the result
)

// NewMetrics returns metrics of one worker in a registry.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		registry: r,
		trials: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waza_worker_trials_total", Help: "Trials that the worker has finished."},
			[]string{"verdict"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waza_worker_orders_refused_total",
			Help: "Orders that the worker refused: not signed by a trusted key, expired, or invalid.",
		}),
		files: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waza_worker_files_received_bytes_total",
			Help: "Bytes of suites' files fetched, except files of earlier runs.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waza_worker_order_seconds",
			Help: "Duration of the phases of orders: prepare (fetch plan and files of the run), trial, and send " +
				"(until the server has stored the result).",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 10), // 5 ms to 22 minutes
		}, []string{"phase"}),
	}
	for _, v := range []record.Verdict{record.Passed, record.Failed, record.Errored, record.TimedOut, record.Cancelled} {
		m.trials.WithLabelValues(string(v)) // so that it is 0 before the first trial
	}
	r.MustRegister(m.trials, m.refused, m.files, m.seconds)
	return m
}

// of adds the counts of the worker itself. It is called once.
func (m *Metrics) of(w *Worker) {
	if m == nil {
		return
	}
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("waza_worker_slots", "Maximum number of concurrent trials of the worker.", func() float64 { return float64(w.o.Slots) })
	gauge("waza_worker_slots_busy", "Trials that the worker is executing.", func() float64 { return float64(w.Status().Busy) })
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "waza_worker_orders_again_total", Help: "Trials that a lost worker had started before.",
	}, func() float64 { return float64(w.Status().Again) }))
}

// refusedOrder counts a refused order.
func (m *Metrics) refusedOrder() {
	if m != nil {
		m.refused.Inc()
	}
}

// did counts a trial.
func (m *Metrics) did(v record.Verdict) {
	if m != nil {
		m.trials.WithLabelValues(string(v)).Inc()
	}
}

// received counts bytes of files.
func (m *Metrics) received(bytes int64) {
	if m != nil {
		m.files.Add(float64(max(0, bytes)))
	}
}

// counting returns a store that counts the bytes read from it.
func (m *Metrics) counting(s bundle.Store) bundle.Store {
	if m == nil {
		return s
	}
	return &countingStore{s, m}
}

type countingStore struct {
	bundle.Store
	metrics *Metrics
}

// Get implements [bundle.Store].
func (s *countingStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := s.Store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return &countingReader{r, s.metrics}, nil
}

type countingReader struct {
	io.ReadCloser
	metrics *Metrics
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.metrics.received(int64(n))
	return n, err
}

// took records the duration of a phase.
func (m *Metrics) took(phase string, since time.Time) {
	if m != nil {
		m.seconds.WithLabelValues(phase).Observe(time.Since(since).Seconds())
	}
}
