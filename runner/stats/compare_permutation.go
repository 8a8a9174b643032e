package stats

import (
	"math"
	"math/rand/v2"
)

// DefaultSeed is the seed of the permutation tests that waza reports. It is fixed, so that
// reports of the same trials are always equal.
const DefaultSeed = 1

const (
	// maxArrangements is the maximum number of arrangements of the scores that are enumerated;
	// arrangements that differ only in equal scores count once. Twice ten different scores have
	// 184,756. More than maxEnumerated scores are never enumerated.
	maxArrangements = 200_000
	maxEnumerated   = 500
	// maxShuffles is the maximum number of arrangements that are drawn otherwise, and maxDrawn
	// the maximum number of scores that the drawing processes.
	maxShuffles = 100_000
	maxDrawn    = 20_000_000
	// enough is the number of shuffles at least as extreme as the observation that ends the
	// drawing.
	enough = 100
)

// Scores holds the scores of one task in two runs.
type Scores struct{ A, B []float64 }

// Permutation tests whether two independent samples of scores have the same mean: the
// permutation test of the difference of means (Pitman 1937, "Significance tests which may be
// applied to samples from any populations").
//
// If the scores have at most 200,000 different arrangements, as with twice ten trials, it
// enumerates all. Otherwise it draws arrangements with the seed until 100 were at least as
// extreme as the observation, or at most 100,000. P-values from such drawing are valid without
// correction (Besag and Clifford 1991, "Sequential Monte Carlo p-values"). NaN and infinities
// are omitted; if a sample is empty, P is 1.
func Permutation(a, b []float64, seed uint64) Exact {
	return PermutationStrata([]Scores{{a, b}}, seed)
}

// PermutationStrata is like [Permutation], but for several tasks: it rearranges scores within
// each task, and tests the sum of the differences of means. It omits tasks without scores on
// both sides.
func PermutationStrata(tasks []Scores, seed uint64) Exact {
	var p permutation
	for _, t := range tasks {
		p.add(t)
	}
	if p.trivial() {
		return Exact{P: 1, least: 1}
	}
	var e Exact
	if len(p.strata) == 1 && p.strata[0].few() {
		e = p.enumerate()
	} else {
		e = p.draw(seed)
	}
	e.Better = p.observed > 0
	return e
}

// A permutation holds the data of the test.
type permutation struct {
	strata   []scoreStratum
	observed float64 // sum of the differences of means
	scores   int
	scale    float64 // the largest score
}

// A scoreStratum holds the scores of both runs, sorted, so that the order of trials does not
// matter.
type scoreStratum struct {
	pooled []float64
	inB    int
	sum    float64 // of all scores
}

func (p *permutation) add(t Scores) {
	a, b := sortedCopy(t.A), sortedCopy(t.B)
	if len(a) == 0 || len(b) == 0 {
		return
	}
	pooled := sortedCopy(append(a, b...))
	s := scoreStratum{pooled: pooled, inB: len(b), sum: sumOf(pooled)}
	p.observed += s.difference(sumOf(b))
	p.scores += len(pooled)
	p.scale = max(p.scale, math.Abs(pooled[0]), math.Abs(pooled[len(pooled)-1]))
	if pooled[0] != pooled[len(pooled)-1] {
		p.strata = append(p.strata, s)
	}
}

// trivial reports whether all arrangements of the scores are the same.
func (p *permutation) trivial() bool { return len(p.strata) == 0 }

// tolerance is the largest difference by rounding of equal sums.
func (p *permutation) tolerance() float64 { return 1e-12 * p.scale * float64(p.scores) }

func sumOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}

// difference returns the difference of the means if the scores in b add up to b.
func (s *scoreStratum) difference(b float64) float64 {
	inA := len(s.pooled) - s.inB
	return b/float64(s.inB) - (s.sum-b)/float64(inA)
}

// A group is a score with the number of trials that have it.
type group struct {
	score  float64
	trials int
}

func (s *scoreStratum) groups() []group {
	var list []group
	for _, v := range s.pooled {
		if n := len(list); n > 0 && list[n-1].score == v {
			list[n-1].trials++
			continue
		}
		list = append(list, group{v, 1})
	}
	return list
}

// few reports whether there are few enough ways to choose how many scores of each group are in
// b.
func (s *scoreStratum) few() bool {
	return len(s.pooled) <= maxEnumerated && s.ways() <= maxArrangements
}

// ways returns the number of ways to choose how many scores of each group are in b.
func (s *scoreStratum) ways() float64 {
	ways := make([]float64, s.inB+1) // numbers of ways to choose that many of the groups so far
	ways[0] = 1
	for _, g := range s.groups() {
		for chosen := s.inB; chosen > 0; chosen-- {
			for k := 1; k <= min(g.trials, chosen); k++ {
				ways[chosen] += ways[chosen-k]
			}
		}
	}
	return ways[s.inB]
}

// enumerate visits all ways to choose how many scores of each group are in b. Each way represents
// as many arrangements as there are combinations of the groups' trials.
func (p *permutation) enumerate() Exact {
	s := &p.strata[0]
	n, groups := len(s.pooled), s.groups()
	most := max(s.difference(sumOf(s.pooled[n-s.inB:])), -s.difference(sumOf(s.pooled[:s.inB])))
	seen, slackness := math.Abs(p.observed), p.tolerance()
	asExtreme, extreme, all := 0.0, 0.0, 0.0
	var choose func(at, rest, left int, sum, ways float64)
	choose = func(at, rest, left int, sum, ways float64) {
		if left == 0 {
			all += ways
			d := math.Abs(s.difference(sum))
			if d >= seen-slackness {
				asExtreme += ways
			}
			if d >= most-slackness {
				extreme += ways
			}
			return
		}
		g := groups[at]
		rest -= g.trials
		for k := 0; k <= min(g.trials, left); k++ {
			if left-k <= rest {
				choose(at+1, rest, left-k, sum, ways)
			}
			sum += g.score
			ways *= float64(g.trials-k) / float64(k+1)
		}
	}
	choose(0, n, s.inB, 0, 1)
	return Exact{P: min(1, asExtreme/all), least: extreme / all}
}

// draw rearranges the scores randomly.
func (p *permutation) draw(seed uint64) Exact {
	pcg := rand.NewPCG(seed, seed)
	most := max(enough, min(maxShuffles, maxDrawn/p.scores))
	seen, slackness := math.Abs(p.observed), p.tolerance()
	least := 1 / float64(most+1)
	asExtreme := 0
	for drawn := 1; drawn <= most; drawn++ {
		d := 0.0
		for i := range p.strata {
			d += p.strata[i].shuffle(pcg)
		}
		if math.Abs(d) < seen-slackness {
			continue
		}
		if asExtreme++; asExtreme == enough {
			return Exact{P: float64(enough) / float64(drawn), least: least}
		}
	}
	return Exact{P: float64(asExtreme+1) / float64(most+1), least: least}
}

// shuffle randomly chooses the scores in b, and returns the difference.
func (s *scoreStratum) shuffle(pcg *rand.PCG) float64 {
	sum, n := 0.0, uint64(len(s.pooled))
	for i := range uint64(s.inB) {
		j := i + (pcg.Uint64()>>32)*(n-i)>>32
		s.pooled[i], s.pooled[j] = s.pooled[j], s.pooled[i]
		sum += s.pooled[i]
	}
	return s.difference(sum)
}
