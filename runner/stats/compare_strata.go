package stats

import "math"

// A Stratum is one task in two runs.
type Stratum struct{ A, B Share }

// maxSupport is the maximum number of values of the exact distribution of [MantelHaenszel]. With
// more, the normal distribution is as good, and much cheaper.
const maxSupport = 5000

// MantelHaenszel tests whether any task changed, by the sum of all changes. It is the
// conditional test of Cochran (1954), Mantel and Haenszel (1959), given the total number of
// passes in each stratum. With one trial per task it equals McNemar's. It is about exactly these
// tasks, not about similar ones.
//
// It uses the exact distribution if that has no more than 5,000 values, else the normal
// distribution with its correction for continuity.
func MantelHaenszel(strata []Stratum) Exact {
	distribution, at, support := []float64{1}, 0, 1
	expected, variance := 0.0, 0.0 // of the passes in b, minus the observed passes
	for _, s := range strata {
		a, b := s.A.sane(), s.B.sane()
		if a.N == 0 || b.N == 0 {
			continue
		}
		w, low := hypergeometric(a, b)
		support += len(w) - 1
		at += b.Passed - low
		mean, v := moments(a, b)
		expected += mean - float64(b.Passed)
		variance += v
		if support <= maxSupport && len(w) > 1 {
			distribution = convolve(distribution, w)
		}
	}
	var e Exact
	if support <= maxSupport {
		e = twoSided(distribution, at)
	} else {
		e = normalTest(-expected, variance, 0.5)
	}
	e.Better = expected < 0
	return e
}

// moments returns mean and variance of the hypergeometric distribution.
func moments(a, b Share) (mean, variance float64) {
	n, passed := float64(a.N+b.N), float64(a.Passed+b.Passed)
	mean = passed * float64(b.N) / n
	if n > 1 {
		variance = mean * (float64(a.N) / n) * ((n - passed) / (n - 1))
	}
	return mean, variance
}

func convolve(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			out[i+j] += float64(x * y)
		}
	}
	return out
}

// normalTest tests a normally distributed deviation from 0.
func normalTest(deviation, variance, continuity float64) Exact {
	if !(variance > 0) {
		return Exact{P: 1, least: 1}
	}
	z := max(0, math.Abs(deviation)-continuity) / math.Sqrt(variance)
	return Exact{P: max(math.Erfc(z/math.Sqrt2), math.SmallestNonzeroFloat64)}
}
