package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"waza/runner/record"
)

const (
	// maxFieldDraws is the maximum number of arrangements that [Field.Worse] draws in each step,
	// and maxFieldScores the maximum number of scores that it processes for them. It always draws
	// leastFieldDraws.
	maxFieldDraws   = 1999
	leastFieldDraws = 399
	maxFieldScores  = 60_000_000
	// fieldTolerance is the relative difference by rounding of equal statistics.
	fieldTolerance = 1e-9
)

// A Field holds the scores, from 0 to 1, that several cells have on the same tasks. It answers
// which cells are worse than the best one, and how good the best one is, although it was
// selected because of these scores. Create it with [NewField].
type Field struct {
	tasks [][][]float64 // by task, cell and trial
	cells int
	means []float64 // by cell
	// shares are, by cell, the sums of the squared weights of its scores in its mean.
	shares []float64
}

// NewField returns the field of scores by task, cell and trial. Each task has at least one score
// of each cell; all tasks have the same cells, at least one. The order of trials does not matter.
func NewField(tasks [][][]float64) *Field {
	f := &Field{cells: len(tasks[0])}
	f.means, f.shares = make([]float64, f.cells), make([]float64, f.cells)
	n := float64(len(tasks))
	means := make([][]float64, f.cells)
	for _, cells := range tasks {
		sorted := make([][]float64, f.cells)
		for i, scores := range cells {
			sorted[i] = sortedCopy(scores)
			means[i] = append(means[i], mean(sorted[i]))
			f.shares[i] += 1 / (n * n * float64(len(scores)))
		}
		f.tasks = append(f.tasks, sorted)
	}
	for i := range means {
		f.means[i] = mean(sortedCopy(means[i])) // does not depend on the order of tasks
	}
	return f
}

// Mean returns the mean over tasks of a cell's mean scores.
func (f *Field) Mean(cell int) float64 { return f.means[cell] }

// Worse reports which cells are worse than the best one, by a permutation test of the largest
// difference between cells (the studentized range). best has the highest mean.
//
// The lowest cells are worse if an arrangement of the scores exceeds their distance to the best
// one with a probability of at most level. An arrangement deals out the scores of each task among
// all cells; its largest distance from its best cell counts, in standard errors. The test is
// repeated without the lowest cells until it separates no more of them (a step-down test, as in
// Romano and Wolf 2005, "Exact and Approximate Stepdown Methods for Multiple Hypothesis
// Testing"). The number of remaining cells is found by bisection.
//
// If all cells have, task by task, the same distribution of scores, the probability that any of
// them is worse is at most level, whatever the number of cells, tasks and trials is: the
// observed arrangement is one of equally likely ones, and the test draws from them with the
// seed. If only some cells have the same distribution as the best one, the same holds
// approximately. See docs/statistics.md for measurements.
func (f *Field) Worse(best int, level float64, seed uint64) []bool {
	levels := slices.Clone(f.means)
	slices.Sort(levels)
	levels = slices.CompactFunc(levels, func(a, b float64) bool { return math.Abs(b-a) < fieldTolerance })
	separated := func(lowest float64) bool { return f.from(lowest).separates(f, best, lowest, level, seed) }
	kept := 0 // the cells below levels[kept] are worse
	if len(levels) > 1 && separated(levels[0]) {
		kept = 1 + sort.Search(len(levels)-2, func(i int) bool { return !separated(levels[i+1]) })
	}
	worse := make([]bool, f.cells)
	for i, m := range f.means {
		worse[i] = m < levels[kept]-fieldTolerance
	}
	return worse
}

// A contest holds the scores of some cells of a field. It rearranges them.
type contest struct {
	cells  []int       // in the field
	strata [][]float64 // by task: the scores minus their mean, those of the first cell first
	counts [][]int     // by task and cell: number of scores
	shares []float64   // by cell, see Field
	tasks  float64
	scores int
	// variance is that of all scores around the means of their tasks.
	variance float64
	// sums and squares are, by cell, the means over tasks of the mean scores and of their
	// squares.
	sums, squares []float64
}

// from returns a contest of the cells whose mean is at least the given one.
func (f *Field) from(lowest float64) *contest {
	var cells []int
	for i, m := range f.means {
		if m > lowest-fieldTolerance {
			cells = append(cells, i)
		}
	}
	c := &contest{cells: cells, tasks: float64(len(f.tasks)), sums: make([]float64, len(cells)), squares: make([]float64, len(cells))}
	for _, i := range cells {
		c.shares = append(c.shares, f.shares[i])
	}
	for _, task := range f.tasks {
		var scores []float64
		counts := make([]int, len(cells))
		for at, i := range cells {
			scores = append(scores, task[i]...)
			counts[at] = len(task[i])
		}
		center := mean(sortedCopy(scores))
		for i := range scores {
			scores[i] -= center
			c.variance += float64(scores[i]*scores[i]) / (c.tasks * float64(len(scores)))
		}
		if slices.Max(scores) == slices.Min(scores) {
			continue // rearranging it changes nothing
		}
		c.strata, c.counts = append(c.strata, scores), append(c.counts, counts)
		c.scores += len(scores)
	}
	return c
}

// separates reports whether the test separates the cells with the lowest mean from the best one.
func (c *contest) separates(f *Field, best int, lowest, level float64, seed uint64) bool {
	if len(c.strata) == 0 {
		return false
	}
	c.sum()
	above, seen := slices.Index(c.cells, best), math.Inf(1)
	for below, i := range c.cells {
		if f.means[i] < lowest+fieldTolerance {
			seen = min(seen, c.distance(above, below))
		}
	}
	draws := max(leastFieldDraws, min(maxFieldDraws, maxFieldScores/c.scores))
	allowed := int(math.Floor(level*float64(draws+1) + fieldTolerance)) // with the observed arrangement
	pcg := rand.NewPCG(seed, seed)
	asExtreme := 1
	for range draws {
		if asExtreme > allowed {
			return false
		}
		c.shuffle(pcg)
		if c.largest() >= seen*(1-fieldTolerance) {
			asExtreme++
		}
	}
	return asExtreme <= allowed
}

// shuffle rearranges the scores randomly.
func (c *contest) shuffle(pcg *rand.PCG) {
	for _, scores := range c.strata {
		for i := uint64(len(scores)) - 1; i > 0; i-- {
			j := (pcg.Uint64() >> 32) * (i + 1) >> 32
			scores[i], scores[j] = scores[j], scores[i]
		}
	}
	c.sum()
}

func (c *contest) sum() {
	clear(c.sums)
	clear(c.squares)
	for t, scores := range c.strata {
		from := 0
		for cell, n := range c.counts[t] {
			sum, squares := 0.0, 0.0
			for _, v := range scores[from : from+n] {
				sum += v
				squares += float64(v * v)
			}
			from += n
			c.sums[cell] += sum / (c.tasks * float64(n))
			c.squares[cell] += squares / (c.tasks * float64(n))
		}
	}
}

// distance returns how far a cell is below another one, in standard errors. The variance of a
// cell's scores is the mean of its own and that of all cells, so that few equal scores do not
// seem certain.
func (c *contest) distance(above, below int) float64 {
	d := c.sums[above] - c.sums[below]
	if !(d > 0) {
		return 0
	}
	return d / math.Sqrt(c.errorOf(above)+c.errorOf(below))
}

func (c *contest) errorOf(cell int) float64 {
	own := max(0, c.squares[cell]-float64(c.sums[cell]*c.sums[cell]))
	return float64((own + c.variance) / 2 * c.shares[cell])
}

// largest returns the largest distance of any cell from the best one. Of several best ones it
// uses the one with the largest distance.
func (c *contest) largest() float64 {
	top := slices.Max(c.sums)
	most := 0.0
	for above, sum := range c.sums {
		if sum < top-fieldTolerance {
			continue
		}
		for below := range c.sums {
			most = max(most, c.distance(above, below))
		}
	}
	return most
}

// Selected estimates the true mean of a cell that was selected because its mean is the highest.
// The highest of many means is too high on average. The value is therefore the mean of the
// posterior distribution of the cell's true mean, given how the true means of all cells are
// distributed, which their means show (empirical Bayes; Robbins 1956, "An Empirical Bayes
// Approach to Statistics"). If all cells are about equal, it is near the mean of all. If the cell
// is far above the others, it is near the cell's own mean.
//
// The interval covers the true mean of the selected cell with about the given confidence or
// more, for every number of cells and whatever their true means are. Its lower limit is that of
// intervals that hold for all cells at once (Bonferroni). Its upper limit is the highest one of
// all cells, and needs no correction: if the selected cell were better than that, a truly best
// cell would be better than its own limit (Fuentes, Casella and Wells 2018, "Confidence
// intervals for the means of the selected populations"). docs/statistics.md has measurements.
func (f *Field) Selected(best int, confidence float64) Estimate {
	lower := f.interval(best, 1-(1-saneConfidence(confidence))/float64(f.cells))
	e := Estimate{f.means[best], record.Interval{Low: lower.Low}}
	for i := range f.cells {
		e.Interval.High = max(e.Interval.High, f.interval(i, confidence).High)
	}
	e.Value = clamp(f.posteriorMean(best), e.Interval.Low, e.Interval.High)
	return e
}

// interval returns the interval of the mean of a cell, see [MeanOver].
func (f *Field) interval(cell int, confidence float64) record.Interval {
	parts := make([]Part, len(f.tasks))
	for i, task := range f.tasks {
		parts[i] = PartOf(task[cell])
	}
	e, _ := MeanOver(parts, confidence)
	return e.Interval
}

// fewFreedom is the number of degrees of freedom from which on [Field.noise] relies on the
// observed variation.
const fewFreedom = 10

// noise returns the variance of a cell's mean by the variation of trials, and the variance that
// it would have if all scores were 0 or 1. Both are means over cells. With few degrees of
// freedom they approach those of equal cells whose scores are 0 or 1, because few trials that
// agree do not prove that trials never vary.
func (f *Field) noise() (noise, binomial float64) {
	n, freedom, most := float64(len(f.tasks)), 0, 0.0
	center := mean(sortedCopy(f.means))
	for _, task := range f.tasks {
		variance, each, more := f.noiseIn(task, center)
		freedom += more
		noise += float64(variance*each) / (n * n)
	}
	for i, m := range f.means {
		binomial += float64(m*(1-m)*f.shares[i]) / float64(f.cells)
		most += float64(center*(1-center)*f.shares[i]) / float64(f.cells)
	}
	if w := 1 - float64(freedom)/fewFreedom; w > 0 {
		noise += float64(w * max(0, most-noise))
		binomial += float64(w * max(0, most-binomial))
	}
	return noise, binomial
}

// noiseIn returns the variance of a score of a task, its degrees of freedom, and the mean over
// cells of the variance of a mean of scores with the variance 1. center is the mean of all
// cells.
func (f *Field) noiseIn(task [][]float64, center float64) (variance, each float64, freedom int) {
	within, middle := 0.0, 0.0
	for _, scores := range task {
		m := mean(scores)
		for _, v := range scores {
			within += float64((v - m) * (v - m))
		}
		freedom += len(scores) - 1
		middle += m / float64(f.cells)
		each += 1 / float64(len(scores)) / float64(f.cells)
	}
	n := float64(len(f.tasks))
	switch {
	case freedom > 0:
		return within / float64(freedom), each, freedom
	case n == 1:
		return 0, each, 0
	}
	// One score per cell: the differences between cells that vary from task to task.
	for i, scores := range task {
		d := scores[0] - middle - (f.means[i] - center)
		within += float64(d * d)
	}
	return within / float64(f.cells-1) * n / (n - 1), each, f.cells - 1
}

const (
	// caution is the factor by which posteriorMean overstates the variance of means. Few cells
	// leave open whether they differ. Without the factor, the highest of equal cells keeps up to
	// a third of its excess; with it, up to a fifth.
	caution = 1.5
	// trueMeans is the number of possible true means that posteriorMean distinguishes, and
	// refinements the number of times that it refines their distribution.
	trueMeans   = 60
	refinements = 300
)

// posteriorMean returns the mean of the true mean of a cell, given the means of all cells. It
// finds the distribution of the true means that makes the observed ones most likely (Kiefer and
// Wolfowitz 1956), by expectation maximization on a grid between the lowest and the highest
// mean. The likelihood of a mean is binomial, with a number of scores that corresponds to the
// variation of trials.
func (f *Field) posteriorMean(cell int) float64 {
	low, high := slices.Min(f.means), slices.Max(f.means)
	if high-low < fieldTolerance {
		return f.means[cell]
	}
	noise, binomial := f.noise()
	if !(noise > 0) {
		return f.means[cell]
	}
	grid, share, next := make([]float64, trueMeans), make([]float64, trueMeans), make([]float64, trueMeans)
	for j := range grid {
		grid[j], share[j] = low+float64((high-low)*(float64(j)+0.5)/trueMeans), 1.0/trueMeans
	}
	likelihoods := make([][]float64, f.cells)
	for i, m := range f.means {
		likelihoods[i] = likelihoodsOf(m, binomial/(caution*noise*f.shares[i]), grid)
	}
	for range refinements {
		clear(next)
		for _, l := range likelihoods {
			sum := 0.0
			for j := range grid {
				sum += float64(l[j] * share[j])
			}
			for j := range grid {
				next[j] += float64(l[j] * share[j] / (sum * float64(f.cells)))
			}
		}
		share, next = next, share
	}
	sum, value := 0.0, 0.0
	for j, l := range likelihoods[cell] {
		sum += float64(l * share[j])
		value += float64(l * share[j] * grid[j])
	}
	return math.Round(value/sum*1e9) / 1e9 // equal on all processors
}

// likelihoodsOf returns how likely the mean of n scores is for each true mean, relative to the
// most likely one.
func likelihoodsOf(observed, n float64, grid []float64) []float64 {
	list := make([]float64, len(grid))
	for j, p := range grid {
		list[j] = n * (weighted(observed, p) + weighted(1-observed, 1-p))
	}
	most := slices.Max(list)
	for j := range list {
		list[j] = math.Exp(list[j] - most)
	}
	return list
}

// weighted returns share × log p; 0 for a share of 0.
func weighted(share, p float64) float64 {
	if share <= 0 {
		return 0
	}
	return float64(share * math.Log(p))
}
