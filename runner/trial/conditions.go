package trial

import (
	"math"
	"time"

	"waza/runner/internal/machine"
	"waza/runner/provider"
	"waza/runner/record"
)

// leastMeasured is the duration of attempts from which on the counters of the machine describe
// them. Shorter ones have only the counts of their requests and waits.
const leastMeasured = time.Second

// conditions returns what happened around an attempt since a sample. The meter is nil if the
// attempt ended before it could send requests.
func (w *work) conditions(before machine.Sample, took time.Duration, meter *provider.Meter) *record.Conditions {
	var after machine.Sample
	if took >= leastMeasured {
		after = w.env.machine.Sample()
	}
	var requests *record.Requests
	if meter != nil {
		requests = meter.Requests()
	}
	return conditions(before, after, w.before, requests)
}

// conditions returns what happened around an attempt between two samples; nil if nothing is known.
// requests may be nil.
func conditions(before, after machine.Sample, waited time.Duration, requests *record.Requests) *record.Conditions {
	c := record.Conditions{WaitedMS: waited.Milliseconds(), Requests: requests}
	if span := after.At.Sub(before.At); span > 0 && !before.At.IsZero() {
		c.CPUWait = shareOf(before.CPUWait, after.CPUWait, span)
		c.MemoryWait = shareOf(before.MemoryWait, after.MemoryWait, span)
		if before.Load >= 0 && after.Load >= 0 {
			c.Load = rounded((before.Load + after.Load) / 2)
		}
		if free := min(before.MemoryFree, after.MemoryFree); free >= 0 {
			c.MemoryFree = rounded(free)
		}
	}
	if c == (record.Conditions{}) {
		return nil
	}
	known := c // so that attempts of which nothing is known need no memory
	return &known
}

// shareOf returns how much of a span some program waited; nil if it is unknown.
func shareOf(before, after, span time.Duration) *float64 {
	if before < 0 || after < before {
		return nil
	}
	return rounded(min(1, float64(after-before)/float64(span)))
}

// rounded returns a number with four digits after the point.
func rounded(x float64) *float64 {
	x = math.Round(x*1e4) / 1e4
	return &x
}
