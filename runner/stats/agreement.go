package stats

import "math"

// Pair is what two raters made of one thing: a score each, and whether each let
// it pass.
type Pair struct {
	Reference, Other             float64
	ReferencePassed, OtherPassed bool
}

// Agreement tells how far a rater agrees with the one it is held against.
type Agreement struct {
	N int `json:"n"`
	// MeanDifference is the mean of the rater's score less the reference's: above
	// 0 the rater is the milder one.
	MeanDifference float64 `json:"meanDifference"`
	// MeanAbsoluteDifference is how far the scores are apart, on average.
	MeanAbsoluteDifference float64 `json:"meanAbsoluteDifference"`
	// Agreed is the share of things that both let pass or both did not.
	Agreed float64 `json:"agreed"`
	// Kappa is Cohen's: the share of agreement beyond what chance alone gives,
	// 1 at most and below 0 where chance would do better. It is nil where chance
	// alone gives full agreement, as both gave one and the same verdict throughout.
	Kappa *float64 `json:"kappa"`
}

// Agree tells how far two raters agree (Cohen 1960, "A Coefficient of Agreement
// for Nominal Scales", for the verdicts). Pairs with a NaN or infinite score are
// left out; of none at all, the zero value is told.
func Agree(pairs []Pair) Agreement {
	var a Agreement
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
