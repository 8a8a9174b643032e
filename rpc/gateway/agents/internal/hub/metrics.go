package hub

import (
	"github.com/prometheus/client_golang/prometheus"

	"waza/runner/executor"
)

// counters are the hub's counters. The other metrics are computed when they are collected.
type counters struct {
	answered, again, ended prometheus.Counter     // evaluations
	ignored                *prometheus.CounterVec // by reason
}

func newCounters(r prometheus.Registerer, h *Hub) counters {
	evaluations := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waza_agents_evaluations_total",
		Help: "Evaluations sent to agents, by outcome: answered, again (returned to the queue), ended (by a deadline or a cancellation).",
	}, []string{"outcome"})
	c := counters{
		answered: evaluations.WithLabelValues("answered"), again: evaluations.WithLabelValues("again"),
		ended: evaluations.WithLabelValues("ended"),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waza_agents_ignored_total", Help: "Ignored answers and updates of agents, by reason.",
		}, []string{"reason"}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			h.mu.Lock()
			defer h.mu.Unlock()
			return float64(value())
		})
	}
	prometheus.WrapRegistererWith(nil, r).MustRegister(evaluations, c.ignored,
		gauge("waza_agents_known", "Connected agents, and disconnected agents that evaluations wait for.", h.pool.Members),
		gauge("waza_agents_running", "Evaluations in progress.", h.pool.Occupied),
		gauge("waza_agents_waiting", "Evaluations that wait for an agent.", h.pool.Waiting),
	)
	return c
}

// outcome counts how a call of Evaluate ended.
func (c *counters) outcome(o outcome) {
	switch {
	case o.err == nil:
		c.answered.Inc()
	case executor.AsRetry(o.err) != nil:
		c.again.Inc()
	default:
		c.ended.Inc()
	}
}
