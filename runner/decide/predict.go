package decide

import (
	"math"
	"sort"
)

// A task has the earlier trials of a task, and the outcomes of its pairs.
type task struct {
	known Rates
	n     int     // pairs that are not missing
	a, b  float64 // sums of their scores
	// Sums of B - A and of its square.
	sum, squares float64
}

// add adds a pair. It returns false if the pair is missing.
func (t *task) add(o Outcome) bool {
	a, b, ok := o.sane()
	if !ok {
		return false
	}
	x := b - a
	t.n++
	t.a += a
	t.b += b
	t.sum += x
	t.squares += float64(x * x)
	return true
}

// gain returns the sum of the differences and the number of pairs that predictions use. Earlier
// trials count as the number of pairs that would know their difference as well.
func (t *task) gain() (sum, pairs float64) {
	sum, pairs = t.sum, float64(t.n)
	if k := t.known; k.NA > 0 && k.NB > 0 {
		na, nb := float64(k.NA), float64(k.NB)
		n := 2 * na * nb / (na + nb)
		sum += float64(n * (k.B/nb - k.A/na))
		pairs += n
	}
	return sum, pairs
}

// rate returns the pass rate over both sides, shrunk to that of all tasks.
func (t *task) rate(all float64) float64 {
	return (t.a + t.b + t.known.A + t.known.B + float64(shrinkRate*all)) / (float64(2*t.n+t.known.NA+t.known.NB) + shrinkRate)
}

// sane returns rates with scores from 0 to 1.
func (r Rates) sane() Rates {
	r.NA, r.NB = max(r.NA, 0), max(r.NB, 0)
	r.A, r.B = saneSum(r.A, r.NA), saneSum(r.B, r.NB)
	return r
}

func saneSum(sum float64, n int) float64 {
	if !(sum > 0) {
		return 0
	}
	return min(sum, float64(n))
}

// Parameters of predictions. They influence how many pairs a verdict takes, and never its error.
const (
	// spread is the share of pairs that are spread equally over the tasks, whatever is known.
	spread = 0.3
	// A task's pass rate is shrunk to that of all tasks like that many trials.
	shrinkRate = 2.0
	// A task's gain is shrunk to that of all tasks like that many pairs, and the latter to 0.
	shrinkGain = 20.0
	// The variance of a task's pairs is shrunk to that of independent trials like that many pairs.
	shrinkVariance = 8.0
	// Without any trials a pass rate of 2/3 is assumed.
	firstRate, firstTrials = 2.0 / 3, 2.0
)

// A plan says how the next pairs are drawn and used. It depends on earlier pairs only.
type plan struct {
	chances     []float64 // q
	upTo        []float64 // sums of chances up to each task
	predictions []float64 // m_i
	deviations  []float64
	mean        float64 // of predictions
	rate        float64 // pass rate of all tasks
	least, most float64 // limits of z
	size        float64 // of a bet with factor 1
}

// balance plans the first round: all tasks are equal, without predictions.
func (p *plan) balance(tasks []task, q Question) {
	p.update(tasks, q)
	variance := 0.0
	for i := range p.chances {
		variance += float64(p.deviations[i] * p.deviations[i])
		p.chances[i], p.predictions[i] = 1/float64(len(tasks)), 0
	}
	p.mean = 0
	p.limit(variance/float64(len(tasks)), q)
}

// update plans the next pairs with all trials of the tasks.
func (p *plan) update(tasks []task, q Question) {
	k := float64(len(tasks))
	if p.chances == nil {
		p.chances, p.upTo = make([]float64, len(tasks)), make([]float64, len(tasks))
		p.predictions, p.deviations = make([]float64, len(tasks)), make([]float64, len(tasks))
	}
	passed, trials, sum, pairs := float64(firstRate*firstTrials), firstTrials, 0.0, 0.0
	for i := range tasks {
		t := &tasks[i]
		passed += t.a + t.b + t.known.A + t.known.B
		trials += float64(2*t.n + t.known.NA + t.known.NB)
		s, n := t.gain()
		sum += s
		pairs += n
	}
	gain := sum / (pairs + shrinkGain)
	p.rate = passed / trials
	p.mean = 0
	total := 0.0
	for i := range tasks {
		t := &tasks[i]
		s, n := t.gain()
		p.predictions[i] = (s + float64(shrinkGain*gain)) / (n + shrinkGain)
		p.mean += p.predictions[i]
		p.deviations[i] = math.Sqrt(t.variance(p.rate, p.predictions[i]))
		total += p.deviations[i]
	}
	p.mean /= k
	variance, upTo := 0.0, 0.0
	for i, d := range p.deviations {
		c := float64((1-spread)*d/total) + spread/k
		p.chances[i] = c
		upTo += c
		p.upTo[i] = upTo
		variance += float64(d*d) / float64(k*k*c)
	}
	p.limit(variance, q)
}

// variance returns the estimated mean square of the distance of a pair's value from the prediction.
func (t *task) variance(rate, prediction float64) float64 {
	r, n := t.rate(rate), float64(t.n)
	squares := t.squares - 2*float64(prediction*t.sum) + float64(n*float64(prediction*prediction))
	return max((max(squares, 0)+float64(shrinkVariance*2*r*(1-r)))/(n+shrinkVariance), 1e-6)
}

// limit sets the limits of z and the size of bets.
func (p *plan) limit(variance float64, q Question) {
	k := float64(len(p.chances))
	p.least, p.most = 0, 0
	for i, c := range p.chances {
		p.least = min(p.least, (-1-p.predictions[i])/(k*c))
		p.most = max(p.most, (1-p.predictions[i])/(k*c))
	}
	p.least += p.mean
	p.most += p.mean
	p.size = q.BetterBy / (variance + float64(q.BetterBy*q.BetterBy))
}

// draw returns the task at a place from 0 to 1.
func (p *plan) draw(place float64) int {
	return min(sort.SearchFloat64s(p.upTo, place), len(p.upTo)-1)
}

// observe returns the observation of a pair.
func (p *plan) observe(i int, o Outcome) observation {
	low, high := -1.0, 1.0
	if a, b, ok := o.sane(); ok {
		low, high = b-a, b-a
	}
	by := float64(len(p.chances)) * p.chances[i]
	return observation{
		low:   p.mean + (low-p.predictions[i])/by,
		high:  p.mean + (high-p.predictions[i])/by,
		least: p.least, most: p.most, size: p.size,
	}
}
