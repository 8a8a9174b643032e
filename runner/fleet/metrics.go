package fleet

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count the orders and files of this process's runs. Make them with [NewMetrics]. A nil
// Metrics counts nothing. They are safe for concurrent use.
type Metrics struct {
	orders     *prometheus.CounterVec // by event
	duplicates prometheus.Counter
	waiting    prometheus.Gauge
	running    prometheus.Gauge
	sent       prometheus.Counter // bytes
	seconds    *prometheus.HistogramVec
}

// Events of orders, as labels of metrics.
const (
	orderPublished = "published"
	orderRecorded  = "recorded"
	orderAgain     = "again"
	orderRefused   = "refused"
)

// Phases of an order, as labels of metrics.
const (
	phaseQueue = "queue" // from its publication until a worker starts it
	phaseWork  = "work"  // until its result arrives
)

// NewMetrics returns unregistered metrics.
func NewMetrics() *Metrics {
	m := &Metrics{
		orders: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waza_fleet_orders_total",
			Help: "Orders of this process's runs by event: published; recorded (result is recorded); again (started by a " +
				"different worker because one was lost); refused (by a worker).",
		}, []string{"event"}),
		duplicates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waza_fleet_results_duplicate_total", Help: "Results that arrived again and did not count.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waza_fleet_orders_waiting", Help: "Orders of this process's runs that no worker has started.",
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waza_fleet_orders_begun", Help: "Orders of this process's runs that workers are executing.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waza_fleet_files_sent_bytes_total",
			Help: "Bytes of suites' files sent to fleets, except files that were already there.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "waza_fleet_order_seconds",
			Help:    "Duration of the phases of orders: queue (until a worker starts the order) and work (until its result arrives).",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 10), // 5 ms to 22 minutes
		}, []string{"phase"}),
	}
	for _, event := range []string{orderPublished, orderRecorded, orderAgain, orderRefused} {
		m.orders.WithLabelValues(event) // so that it is 0 before the first event
	}
	return m
}

// Register registers the metrics in a registry.
func (m *Metrics) Register(r prometheus.Registerer) {
	r.MustRegister(m.orders, m.duplicates, m.waiting, m.running, m.sent, m.seconds)
}

// order counts an event of an order.
func (m *Metrics) order(event string) {
	if m != nil {
		m.orders.WithLabelValues(event).Inc()
	}
}

// duplicate counts a result that arrived again.
func (m *Metrics) duplicate() {
	if m != nil {
		m.duplicates.Inc()
	}
}

// queued changes the numbers of waiting and running orders.
func (m *Metrics) queued(waiting, running int) {
	if m != nil {
		m.waiting.Add(float64(waiting))
		m.running.Add(float64(running))
	}
}

// files counts sent bytes.
func (m *Metrics) files(bytes int64) {
	if m != nil {
		m.sent.Add(float64(max(0, bytes)))
	}
}

// took records the duration of a phase.
func (m *Metrics) took(phase string, d time.Duration) {
	if m != nil {
		m.seconds.WithLabelValues(phase).Observe(max(0, d).Seconds())
	}
}
