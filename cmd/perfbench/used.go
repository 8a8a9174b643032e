package main

import "time"

// used is the time that a run has used.
type used struct{ processor, wall time.Duration }

// additional returns the time that a larger run uses in addition to a smaller one.
func additional[T any](run func(T) (used, error), smaller, larger T) (used, error) {
	less, err := run(smaller)
	if err != nil {
		return used{}, err
	}
	u, err := run(larger)
	return used{u.processor - less.processor, u.wall - less.wall}, err
}

// each returns the time of each of n.
func (u used) each(n int) used {
	return used{u.processor / time.Duration(n), u.wall / time.Duration(n)}
}

// microseconds returns processor and wall time.
func (u used) microseconds() []float64 {
	return []float64{microseconds(u.processor), microseconds(u.wall)}
}

// milliseconds returns wall and processor time.
func (u used) milliseconds() []float64 {
	return []float64{milliseconds(u.wall), milliseconds(u.processor)}
}

// seconds returns wall and processor time.
func (u used) seconds() []float64 { return []float64{u.wall.Seconds(), u.processor.Seconds()} }

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
func microseconds(d time.Duration) float64 { return float64(d) / 1e3 }
