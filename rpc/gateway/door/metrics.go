package door

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// metrics are the metrics of a door.
type metrics struct {
	accepted, received, receivedBytes, sent, sentBytes prometheus.Counter
	refused, ended                                     *prometheus.CounterVec
	evictions                                          rate.Sometimes // limits log lines
}

// newMetrics creates the metrics of a door, and registers them with the door's name.
func newMetrics(d *Door) *metrics {
	registry := prometheus.WrapRegistererWith(prometheus.Labels{"door": d.name}, d.options.Metrics)
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		registry.MustRegister(c)
		return c
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		registry.MustRegister(c)
		return c
	}
	now := func(name, help string, value func() int64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
	}
	now("waza_door_connections", "Clients that are connected and have identified themselves.", func() int64 {
		named, _ := d.guests.counts()
		return int64(named)
	})
	now("waza_door_unidentified_connections", "TCP connections that have not identified themselves yet.", func() int64 {
		_, pending := d.guests.counts()
		return int64(pending)
	})
	now("waza_door_queued_bytes", "Bytes queued for clients.", func() int64 {
		var sum int64
		for _, c := range d.list() {
			c.out.mu.Lock()
			sum += c.out.queued
			c.out.mu.Unlock()
		}
		return sum
	})
	return &metrics{
		accepted:      counter("waza_door_accepted_total", "WebSockets that were accepted."),
		received:      counter("waza_door_received_messages_total", "Messages from clients."),
		receivedBytes: counter("waza_door_received_bytes_total", "Bytes of messages from clients."),
		sent:          counter("waza_door_sent_messages_total", "Messages to clients."),
		sentBytes:     counter("waza_door_sent_bytes_total", "Bytes of messages to clients."),
		refused:       vector("waza_door_refused_total", "Requests and connections that were refused, by reason.", "reason"),
		ended:         vector("waza_door_closed_total", "Closed WebSockets, by the close code that the server sent; 0 means none.", "code"),
		evictions:     rate.Sometimes{Interval: 10 * time.Second},
	}
}

// closed counts the end of a connection.
func (m *metrics) closed(how ending) { m.ended.WithLabelValues(strconv.Itoa(how.code)).Inc() }
