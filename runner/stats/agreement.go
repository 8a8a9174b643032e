package stats

import (
	"math"

	"waza/runner/record"
)

// Pair is what two raters made of one thing: a score each, and whether each let
// it pass.
type Pair struct {
	Reference, Other             float64
	ReferencePassed, OtherPassed bool
}

// Agree tells how far two raters agree (Cohen 1960, "A Coefficient of Agreement
// for Nominal Scales", for the verdicts). Pairs with a NaN or infinite score are
// left out; of none at all, the zero value is told.
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
		i := kappaInterval([4]float64{float64(both), float64(reference - both), float64(other - both), float64(a.N - reference - other + both)}, *a.Kappa)
		a.KappaInterval = &i
	}
	return a
}

// kappa works on whole numbers as long as it can, so that full agreement is 1
// and not nearly so.
func kappa(n, agreed, reference, other int) *float64 {
	chance := reference*other + (n-reference)*(n-other) // times n²
	if chance == n*n {
		return nil
	}
	k := float64(agreed*n-chance) / float64(n*n-chance)
	return &k
}

const (
	// leastForKappa is the number of things below which an interval of kappa says
	// next to nothing.
	leastForKappa = 10
	// addedForKappa is added to each of the four counts, without which full
	// agreement would have an interval of no width. Coverage is best near this value.
	addedForKappa = 0.75
)

// kappaInterval is kappa ± 1.96 standard errors (Fleiss, Cohen and Everitt 1969, "Large
// sample standard errors of kappa and weighted kappa"), after [addedForKappa] was added
// to the counts: of things that both let pass, only the reference, only the other, and
// none. It holds the estimate without that.
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
