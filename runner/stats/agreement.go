package stats

import (
	"math"

	"waza/runner/record"
)

// A Pair holds the results of two raters for one thing: a score each, and whether each let it
// pass.
type Pair struct {
	Reference, Other             float64
	ReferencePassed, OtherPassed bool
}

// Agree measures how well two raters agree (Cohen 1960, "A Coefficient of Agreement for Nominal
// Scales", for the verdicts). It omits pairs with a NaN or infinite score. Without pairs it
// returns the zero value.
func Agree(pairs []Pair) record.Agreement {
	var a record.Agreement
	var differences, distances []float64
	reference, other, agreed := 0, 0, 0
	for _, p := range pairs {
		d := p.Other - p.Reference
		if math.IsNaN(d) || math.IsInf(d, 0) {
			continue
		}
		a.N++
		differences, distances = append(differences, d), append(distances, math.Abs(d))
		if p.ReferencePassed == p.OtherPassed {
			agreed++
		}
		if p.ReferencePassed {
			reference++
		}
		if p.OtherPassed {
			other++
		}
	}
	if a.N == 0 {
		return a
	}
	a.MeanDifference, a.MeanAbsoluteDifference = Describe(differences).Mean, Describe(distances).Mean
	a.Agreed = float64(agreed) / float64(a.N)
	a.Kappa = kappa(a.N, agreed, reference, other)
	if a.Kappa != nil && a.N >= leastForKappa {
		both := (agreed + reference + other - a.N) / 2 // both let it pass
		i := kappaInterval([4]float64{float64(both), float64(reference - both), float64(other - both), float64(a.N - reference - other + both)},
			*a.Kappa)
		a.KappaInterval = &i
	}
	return a
}

// kappa uses whole numbers as long as possible, so that full agreement is exactly 1.
func kappa(n, agreed, reference, other int) *float64 {
	chance := reference*other + (n-reference)*(n-other) // times n²
	if chance == n*n {
		return nil
	}
	k := float64(agreed*n-chance) / float64(n*n-chance)
	return &k
}

const (
	// leastForKappa is the least number of things for an interval of kappa. With fewer, the
	// interval contains almost no information.
	leastForKappa = 10
	// addedForKappa is added to each of the four counts. Without it, the interval of full
	// agreement would have no width. Coverage is best near this value.
	addedForKappa = 0.75
)

// kappaInterval returns kappa ± 1.96 standard errors (Fleiss, Cohen and Everitt 1969, "Large
// sample standard errors of kappa and weighted kappa"), with [addedForKappa] added to each
// count. counts are the numbers of things that pass for both, only for the reference, only for
// the other, and for none. The interval is extended to contain estimate, which is kappa of the
// original counts.
func kappaInterval(counts [4]float64, estimate float64) record.Interval {
	n := 0.0
	for i := range counts {
		counts[i] += addedForKappa
		n += counts[i]
	}
	both, first, second, none := counts[0]/n, counts[1]/n, counts[2]/n, counts[3]/n
	reference, other := both+first, both+second
	chance := float64(reference*other) + float64((1-reference)*(1-other))
	k := (both + none - chance) / (1 - chance)
	square := func(x float64) float64 { return float64(x * x) }
	variance := float64(both*square(1-float64((reference+other)*(1-k)))) +
		float64(none*square(1-float64((2-reference-other)*(1-k)))) +
		float64(square(1-k)*(float64(first*square(other+1-reference))+float64(second*square(1-other+reference)))) -
		square(k-float64(chance*(1-k)))
	half := z95 * math.Sqrt(max(0, variance)/n) / (1 - chance)
	return record.Interval{Low: clamp(k-half, -1, estimate), High: clamp(k+half, estimate, 1)}
}
