package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"waza/runner/record"
)

// A Change is one task in two runs, see [LikeThese].
type Change struct {
	// Cluster names the tasks that are not independent of each other, such as questions about one
	// document. A task with an empty name is a cluster of its own.
	Cluster string
	Pair    PartPair
	// A and B are the values that Pair describes, in ascending order. They are needed only if their
	// numbers differ and some are neither 0 nor 1.
	A, B []float64
}

// A Population is an answer about tasks like those of a suite, see [LikeThese].
type Population struct {
	// Tasks and Clusters count those with values on both sides.
	Tasks, Clusters int
	// TooFew means that no test of so few clusters can show anything, see [LeastClusters].
	TooFew bool
	// Test has the p-value of the sign-flip test. It shows nothing if TooFew is set.
	Test Exact
	// Difference is the mean change of a task, with its interval; -1 to 1 if TooFew is set.
	Difference Estimate
	// Split means that Between and Within are known: most tasks have two trials on both sides.
	Split bool
	// Between is the variance of the true changes of tasks, and Within the variance of the observed
	// change of a task that its trials explain, on average. Both are squares of shares.
	Between, Within float64

	spread float64 // the variance of the mean change, times the number of tasks
}

// LikeThese answers whether similar tasks change from one run to another, by the mean change of
// these tasks. Tasks of a cluster count as one observation.
//
// The test flips the signs of the clusters' sums of changes (Fisher 1935, "The Design of
// Experiments", chapter 21). If the change of a cluster is as likely to be in favor of one run as
// of the other, in whatever amount, its sign is a coin flip, and the p-value is exact for any
// number of clusters. Effects can therefore differ between tasks, which [TheseTasks] does not
// allow for. Sums that are equal are ordered by the changes weighted with the margins of their
// tasks, as in [TheseTasks].
//
// The interval contains all mean changes that the test does not reject. Its limits are quantiles
// of the means over random subsets of clusters (Hartigan 1969, "Using subsample values as typical
// values"). It assumes that the changes of clusters are distributed symmetrically around their
// mean. If few tasks change a lot, and all others a little in the opposite direction, test and
// interval are wrong more often than they state. docs/statistics.md has measurements.
//
// Two equal runs differ symmetrically only if they have as many trials. Of a task with unequal numbers,
// test and interval therefore use as many trials of both sides, which are drawn with a fixed seed.
//
// Changes without a value on a side are omitted. The result does not depend on their order.
func LikeThese(changes []Change, confidence float64) Population {
	confidence = saneConfidence(confidence)
	clusters := clustersOf(changes)
	p := Population{Clusters: len(clusters), TooFew: len(clusters) < LeastClusters(confidence), Test: Exact{P: 1, least: 1}}
	sum, tasks := 0.0, 0.0
	for _, c := range clusters {
		sum, tasks = sum+c.full, tasks+c.tasks
	}
	if len(clusters) == 0 {
		p.Difference.Interval = record.Interval{Low: -1, High: 1}
		return p
	}
	p.Tasks = int(tasks)
	p.Difference = Estimate{sum / tasks, record.Interval{Low: -1, High: 1}}
	p.split(clusters)
	if p.TooFew {
		return p
	}
	p.Test = flipSigns(clusters)
	if v := p.Difference.Value; v > 0 && !p.Test.Better || v < 0 && p.Test.Better {
		p.Test = Exact{P: 1, least: 1} // the drawn trials contradict all trials
	}
	p.Difference.Interval = typicalValues(clusters, (1-confidence)/2)
	p.Difference.Interval.Low = min(p.Difference.Interval.Low, p.Difference.Value)
	p.Difference.Interval.High = max(p.Difference.Interval.High, p.Difference.Value)
	p.agree(1 - confidence)
	return p
}

// agree makes the interval exclude 0 if the test rejects it at the level, and otherwise contain
// it. Both compute the same, up to the order of ties and the number of subsets.
func (p *Population) agree(level float64) {
	i := &p.Difference.Interval
	switch {
	case p.Test.P > level:
		i.Low, i.High = min(i.Low, 0), max(i.High, 0)
	case p.Test.Better:
		i.Low = max(i.Low, 0)
	default:
		i.High = min(i.High, 0)
	}
}

// LeastClusters returns the least number of clusters with which [LikeThese] can show a change: the
// same sign everywhere then has a p-value of at most 1 - confidence. It is 6 at 95 %.
func LeastClusters(confidence float64) int {
	n := 1
	for p := 1.0; p > (1-saneConfidence(confidence))*(1+slack); p /= 2 {
		n++
	}
	return n
}

// TasksNeeded returns how many tasks with as many trials would show the observed mean change at
// the level with the probability power, by the normal approximation. It is at least
// [LeastClusters]. ok is false if more than [MaxTrialsNeeded] are needed, or if none suffice.
func (p *Population) TasksNeeded(level, power float64) (n int, ok bool) {
	about := normalTrials(math.Abs(p.Difference.Value), p.spread, level, power)
	if !(about <= MaxTrialsNeeded) {
		return 0, false
	}
	return max(LeastClusters(1-level), int(math.Ceil(about))), true
}

// MoreTrials returns the share by which the interval of [LikeThese] gets narrower at most, however
// many more trials the same tasks have. More tasks narrow it without limit. It is 0 if Split is
// not set.
func (p *Population) MoreTrials() float64 {
	if all := p.Between + p.Within; p.Split && all > 0 {
		return 1 - math.Sqrt(p.Between/all)
	}
	return 0
}

// A clusterSum adds up the changes of a cluster's tasks.
type clusterSum struct {
	sum, tasks float64
	// full is the sum of the changes of all trials, without drawing.
	full float64
	// weighted is the sum of the changes times the weights of their margins.
	weighted float64
	// noise is the variance of sum that trials explain; unknown counts the tasks for which it is
	// unknown.
	noise   float64
	unknown int
}

// flipWeights is the largest weight of a margin in sign flips.
const flipWeights = 30

// clustersOf adds up the changes by cluster, sorted, so that their order does not matter.
func clustersOf(changes []Change) []clusterSum {
	var known []Change
	for _, c := range changes {
		if c.Pair.A.N > 0 && c.Pair.B.N > 0 {
			known = append(known, c)
		}
	}
	slices.SortStableFunc(known, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Pair.A.Mean, y.Pair.A.Mean), cmp.Compare(x.Pair.B.Mean, y.Pair.B.Mean),
			cmp.Compare(x.Pair.A.N, y.Pair.A.N), cmp.Compare(x.Pair.B.N, y.Pair.B.N),
			cmp.Compare(x.Pair.A.StdDev, y.Pair.A.StdDev), cmp.Compare(x.Pair.B.StdDev, y.Pair.B.StdDev))
	})
	least := 1.0 // the smallest margin of a task that varies
	for _, c := range known {
		if m := math.Abs(marginOf(c.Pair)); m > 0 {
			least = min(least, m)
		}
	}
	var list []clusterSum
	pcg := rand.NewPCG(DefaultSeed, DefaultSeed)
	at := map[string]int{}
	for _, c := range known {
		i, ok := at[c.Cluster]
		if !ok || c.Cluster == "" {
			i, at[c.Cluster] = len(list), len(list)
			list = append(list, clusterSum{})
		}
		list[i].full += c.Pair.B.Mean - c.Pair.A.Mean
		list[i].add(c.equal(pcg), least)
	}
	return list
}

// equal returns the pair with as many values on both sides, drawn without replacement from the side that
// has more. It returns the pair itself if the values are unknown.
func (c Change) equal(pcg *rand.PCG) PartPair {
	p := c.Pair
	n := min(p.A.N, p.B.N)
	if n == max(p.A.N, p.B.N) {
		return p
	}
	draw := func(part Part, values []float64) Part {
		if part.N == n {
			return part
		}
		if len(values) != part.N {
			passed := math.Round(part.Mean * float64(part.N))
			if math.Abs(passed-part.Mean*float64(part.N)) > 1e-6 {
				return part
			}
			values = slices.Concat(make([]float64, part.N-int(passed)), slices.Repeat([]float64{1}, int(passed)))
		}
		values = slices.Clone(values)
		for i := range n {
			j := i + int((pcg.Uint64()>>32)*uint64(len(values)-i)>>32)
			values[i], values[j] = values[j], values[i]
		}
		return PartOf(values[:n])
	}
	return PartPair{draw(p.A, c.A), draw(p.B, c.B)}
}

// marginOf returns the variance of a single trial of both runs together, negative if most pass. It
// does not change if the runs are exchanged.
func marginOf(p PartPair) float64 {
	rate := clamp((p.A.Mean+p.B.Mean)/2, 0, 1)
	v := rate * (1 - rate)
	if rate > 0.5 {
		return -v
	}
	return v
}

func (c *clusterSum) add(p PartPair, least float64) {
	d := p.B.Mean - p.A.Mean
	c.sum += d
	c.tasks++
	if m := marginOf(p); m != 0 {
		c.weighted += float64(d * float64(marginWeight(least, m, flipWeights)))
	}
	if p.A.N < 2 || p.B.N < 2 {
		c.unknown++
		return
	}
	c.noise += float64(p.A.StdDev*p.A.StdDev)/float64(p.A.N) + float64(p.B.StdDev*p.B.StdDev)/float64(p.B.N)
}

// split separates the variance of changes between clusters from that within tasks.
func (p *Population) split(clusters []clusterSum) {
	if p.Clusters < 2 {
		return
	}
	var squares, noises []float64
	unknown, mean := 0, 0.0
	for _, c := range clusters {
		mean += c.sum / float64(p.Tasks)
	}
	for _, c := range clusters {
		d := c.sum - float64(mean*c.tasks)
		squares = append(squares, float64(d*d))
		noises = append(noises, c.noise)
		unknown += c.unknown
	}
	k, n := float64(p.Clusters), float64(p.Tasks)
	p.spread = sumOf(sortedCopy(squares)) * k / (k - 1) / n
	if known := n - float64(unknown); known >= n/2 {
		p.Split = true
		p.Within = sumOf(sortedCopy(noises)) / known
		p.Between = max(0, p.spread-p.Within)
	}
}

const (
	// maxFlipSteps is the maximum number of steps to compute the distribution of flipped sums, and
	// maxOrderedSteps that of sums whose ties are ordered.
	maxFlipSteps    = 20_000_000
	maxOrderedSteps = 4_000_000
	// maxLattice is the largest number of steps between 0 and 1 to which changes are rounded.
	maxLattice = 2520
	// leastLattice is the least number of steps to which changes are rounded.
	leastLattice = 100
)

// flipSigns tests whether the sums of clusters are as likely to be positive as negative. It counts
// all flips of signs. Sums are rounded to multiples of one part in up to 2,520, which is exact for
// rates of up to ten trials. The test of rounded sums is exact, too, because signs do not change.
func flipSigns(clusters []clusterSum) Exact {
	lattice := latticeOf(clusters)
	if lattice == 0 {
		return normalFlips(clusters)
	}
	var sums, weighted []int
	all, allWeighted := 0, 0
	for _, c := range clusters {
		d := int(math.Round(c.sum * float64(lattice)))
		w := int(math.Round(c.weighted * float64(lattice)))
		if d < 0 || d == 0 && w < 0 {
			d, w = -d, -w
		}
		if d == 0 && w == 0 {
			continue
		}
		sums, weighted = append(sums, d), append(weighted, w)
		all, allWeighted = all+d, allWeighted+abs(w)
	}
	observed, observedWeighted := 0, 0
	for _, c := range clusters {
		observed += int(math.Round(c.sum * float64(lattice)))
		observedWeighted += int(math.Round(c.weighted * float64(lattice)))
	}
	e := twoSidedFlips(sums, weighted, all, allWeighted, observed, observedWeighted)
	e.Better = observed > 0 || observed == 0 && observedWeighted > 0
	return e
}

// normalFlips is the test of very many clusters, whose flipped sums are normally distributed.
func normalFlips(clusters []clusterSum) Exact {
	sums, squares := make([]float64, len(clusters)), make([]float64, len(clusters))
	for i, c := range clusters {
		sums[i], squares[i] = c.sum, float64(c.sum*c.sum)
	}
	sum := sumOf(sortedCopy(sums))
	e := normalTest(sum, sumOf(sortedCopy(squares)), 0)
	e.Better = sum > 0
	return e
}

func abs(n int) int { return max(n, -n) }

// latticeOf returns the number of steps between 0 and 1 to which sums are rounded: the least
// number for which nothing is rounded, if it is small, and otherwise as many as time allows. It
// returns 0 if these are too few.
func latticeOf(clusters []clusterSum) int {
	total := 0.0
	for _, c := range clusters {
		total += math.Abs(c.sum)
	}
	most := maxLattice
	if total > 0 {
		most = int(clamp(maxFlipSteps/(2*total*float64(len(clusters))), 0, maxLattice))
	}
	for n := 1; n <= most; n++ {
		if !slices.ContainsFunc(clusters, func(c clusterSum) bool {
			x := c.sum * float64(n)
			return math.Abs(x-math.Round(x)) > 1e-6
		}) {
			return n
		}
	}
	if most < leastLattice {
		return 0
	}
	return most
}

// twoSidedFlips returns the test of flipped sums. Equal sums are ordered by the weighted ones, if
// these take few enough values.
func twoSidedFlips(sums, weighted []int, all, allWeighted, observed, observedWeighted int) Exact {
	if len(sums)*(2*all+1)*(2*allWeighted+1) > maxOrderedSteps {
		row := make([]float64, 2*all+1)
		row[all] = 1
		for _, d := range sums {
			next := make([]float64, len(row))
			for i, x := range row {
				if x > 0 {
					next[i+d] += x / 2
					next[i-d] += x / 2
				}
			}
			row = next
		}
		return twoSidedOf(row, all+observed)
	}
	width := 2*allWeighted + 1
	row := make([]float64, (2*all+1)*width)
	row[all*width+allWeighted] = 1
	for k, d := range sums {
		by := d*width + weighted[k]
		next := make([]float64, len(row))
		for i, x := range row {
			if x > 0 {
				next[i+by] += x / 2
				next[i-by] += x / 2
			}
		}
		row = next
	}
	return twoSidedOf(row, (all+observed)*width+allWeighted+observedWeighted)
}

// twoSidedOf is [twoSided] without the values that do not occur.
func twoSidedOf(row []float64, at int) Exact {
	var list []float64
	place := 0
	for i, x := range row {
		if i == at {
			place = len(list)
		}
		if x > 0 || i == at {
			list = append(list, x)
		}
	}
	return twoSided(list, place)
}

const (
	// maxSubsets is the maximum number of clusters whose subsets are enumerated, and drawnSubsets
	// the number of random subsets that are drawn otherwise.
	maxSubsets   = 13
	drawnSubsets = 9_999
	// At least leastSubsets are drawn, and no more than take maxSubsetSteps.
	leastSubsets   = 999
	maxSubsetSteps = 200_000_000
)

// typicalValues returns the interval between the quantiles of the means over subsets of clusters.
func typicalValues(clusters []clusterSum, tail float64) record.Interval {
	var means []float64
	k := len(clusters)
	if k <= maxSubsets {
		for set := 1; set < 1<<k; set++ {
			sum, tasks := 0.0, 0.0
			for i, c := range clusters {
				if set>>i&1 == 1 {
					sum, tasks = sum+c.sum, tasks+c.tasks
				}
			}
			means = append(means, sum/tasks)
		}
	} else {
		pcg := rand.NewPCG(DefaultSeed, DefaultSeed)
		for range min(drawnSubsets, max(leastSubsets, maxSubsetSteps/k)) {
			sum, tasks, bits := 0.0, 0.0, uint64(0)
			for i, c := range clusters {
				if i%64 == 0 {
					bits = pcg.Uint64()
				}
				if bits&1 == 1 {
					sum, tasks = sum+c.sum, tasks+c.tasks
				}
				bits >>= 1
			}
			if tasks > 0 { // the empty subset counts as the observation
				means = append(means, sum/tasks)
			}
		}
	}
	slices.Sort(means)
	// The test rejects a mean change with a p-value of at most tail on one side if that many
	// subsets, with the empty one, have a mean on its other side.
	n := int(math.Floor(tail*float64(len(means)+1)*(1+slack))) - 1
	n = min(max(n, 0), len(means)-1)
	return record.Interval{Low: clamp(means[n], -1, 1), High: clamp(means[len(means)-1-n], -1, 1)}
}
