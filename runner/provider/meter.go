package provider

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"waza/runner/record"
)

// Meter counts the requests that were sent for one attempt at a trial, by its agent, its judges
// and its simulated user. A context carries it: its Value of MeterKey{} is the Meter. The zero
// value is ready for use. It is safe for concurrent use. The methods of a nil Meter do nothing.
type Meter struct {
	sent, throttled, retried atomic.Int64
	waited                   atomic.Int64 // nanoseconds
}

// MeterKey is the key of the [Meter] in a context.
type MeterKey struct{}

// MeterOf returns the meter that a context carries, or nil.
func MeterOf(ctx context.Context) *Meter {
	m, _ := ctx.Value(MeterKey{}).(*Meter)
	return m
}

// Requests returns the counts; nil if nothing was requested.
func (m *Meter) Requests() *record.Requests {
	r := record.Requests{
		Sent: int(m.sent.Load()), Throttled: int(m.throttled.Load()), Retried: int(m.retried.Load()),
		WaitedMS: time.Duration(m.waited.Load()).Milliseconds(),
	}
	if r == (record.Requests{}) {
		return nil
	}
	counted := r // so that attempts without requests need no memory
	return &counted
}

// Answer counts a request with the status of its response; 0 means that no
// response came, or an answer.
func (m *Meter) Answer(status int) {
	if m == nil {
		return
	}
	m.sent.Add(1)
	if throttles(status) {
		m.throttled.Add(1)
	}
}

// waitedSince adds the time since a request had to wait.
func (m *Meter) waitedSince(start time.Time) {
	if m != nil {
		m.waited.Add(int64(time.Since(start)))
	}
}

// retry counts a request that is sent again after a fault of the network or of the provider.
func (m *Meter) retry() {
	if m != nil {
		m.retried.Add(1)
	}
}

// throttles reports whether a status means that the server is overloaded.
func throttles(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == statusOverloaded
}
