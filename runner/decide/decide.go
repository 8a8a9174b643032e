// Package decide decides between two agents with as few trials as possible, and limits the chance
// of a wrong verdict.
//
// A [Question] asks whether B passes more trials than A. [New] returns its [Evidence], which names
// the next pairs of trials and accepts their outcomes until it has a verdict:
//
//	for e := decide.New(q); e.Verdict() == decide.Undecided; {
//		e.Add(carryOut(e.Batch()))
//	}
//
// # Why the verdict is right
//
// A pair of task i has a value x, the score of B minus that of A, with mean d_i. The gain is the
// mean of d_i over the k tasks. Before a pair starts, its task is drawn with the chances q_i, and
// each task has a prediction m_i of x. Both depend on earlier pairs only. With the mean m of the
// predictions, the observation
//
//	z = m + (x - m_i) / (k q_i)
//
// has the gain as its mean, given all earlier pairs, however the tasks differ and whatever the
// predictions are: they only reduce the variance of z. This is the augmented estimator of Robins,
// Rotnitzky and Zhao (1994, "Estimation of regression coefficients when some regressors are not
// always observed"), with adaptive chances as in Kato, Ishihara, Honda and Narita (2020, "Efficient
// adaptive experimental design for average treatment effect estimation") and in Zrnic and Candès
// (2024, "Active statistical inference"). The chances are mostly proportional to the standard
// deviations of the tasks (Neyman 1934, "On the two different aspects of the representative
// method").
//
// A bet against the claim "the gain is at most g" starts with a wealth of 1 and multiplies it by
// 1 + λ(z - g) at each pair. λ ≥ 0 depends on earlier pairs only and is so small that no factor is
// negative. If the claim is true, the wealth is expected not to grow, and so it ever reaches 1/r
// with a chance of at most r (Ville 1939, "Étude critique de la notion de collectif"). The bet
// against "at least g" is the mirror image. The bets are those of Waudby-Smith and Ramdas (2024,
// "Estimating means of bounded random variables by betting"), mixed over several sizes: the mean of
// several wealths is a wealth, too.
//
// In the first round each task occurs once, and all bets of the round have the same λ and no
// predictions. The expected product of independent factors 1 + λ(x - g) is the product of 1 + λ(d_i - g).
// It is at most the k-th power of their mean (inequality of arithmetic and geometric means), which
// is 1 + λ(gain - g). So the round as a whole is one bet, and its wealth counts only at its end.
//
// # Why each verdict may use the whole risk
//
// "Better" is wrong if the gain is at most 0, and "not better" is wrong if it is at least BetterBy.
// As BetterBy is positive, only one of these can be true, and only the verdict against this one can
// be wrong. The chances of the two errors are therefore never added.
package decide

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Question asks whether B passes more trials than A, over the mean of its tasks.
type Question struct {
	// Tasks is the number of tasks that both sides have. Without tasks there are no pairs and the
	// verdict remains undecided.
	Tasks int
	// BetterBy is the least gain worth having, as a share: 0.05 for 5 points. It is above 0 and at
	// most 1; other values mean [DefaultBetterBy].
	BetterBy float64
	// Risk is the greatest chance of a wrong verdict, above 0 and below 0.5. Other values mean
	// [DefaultRisk].
	Risk float64
	// Batch is the number of pairs between looks, at least 1. The first batch is different: it is a
	// pair of each task.
	Batch int
	// Seed determines the order of tasks, together with the outcomes.
	Seed uint64
	// Known describes earlier trials, by task. They improve the choice of tasks, the predictions and
	// the size of bets, but are no evidence. May be nil.
	Known []Rates
}

// Rates describes earlier trials of a task: their number on each side, and the sums of their scores.
type Rates struct {
	NA, NB int
	A, B   float64
}

// Values for questions without sensible ones.
const (
	DefaultBetterBy = 0.05
	DefaultRisk     = 0.05
)

// A Verdict is the answer to a question.
type Verdict string

// The verdicts.
const (
	Undecided Verdict = "undecided"
	// Better: the gain is above 0.
	Better Verdict = "better"
	// NotBetter: the gain is below BetterBy.
	NotBetter Verdict = "not_better"
)

// An Outcome is the result of a pair of trials.
type Outcome struct {
	// A and B are the scores of the two trials, from 0 to 1. A trial that passed scores 1, one that
	// failed 0.
	A, B float64
	// Missing: a side has no counted trial. The pair counts as B's worst result against "better", and
	// as B's best against "not better". A score of NaN means the same.
	Missing bool
}

// Evidence is what the pairs until now show. It is a pure function of the question and the
// outcomes, so that a resumed run asks for the same pairs. It is not safe for concurrent use.
type Evidence struct {
	question Question
	rng      *rand.Rand
	pairs    int
	verdict  Verdict

	pending []int // tasks of the present batch without outcome
	round   bool  // the present batch is the first round
	tasks   []task
	plan    plan

	// Bets against a gain of at most 0, and of at least BetterBy.
	up, down wealth
	// history has the pairs until the verdict, in order. The first counted ones count for the
	// interval: all but those of a first round that has not ended.
	history []observation
	counted int
	missing int // pairs without result
	planned int // pairs when the plan was last updated
}

// New returns the evidence of no pairs.
func New(q Question) *Evidence {
	q.Tasks, q.Batch = max(q.Tasks, 0), max(q.Batch, 1)
	if !(q.BetterBy > 0 && q.BetterBy <= 1) {
		q.BetterBy = DefaultBetterBy
	}
	if !(q.Risk > 0 && q.Risk < 0.5) {
		q.Risk = DefaultRisk
	}
	e := &Evidence{
		question: q,
		rng:      rand.New(rand.NewPCG(q.Seed, 0xdec1de)),
		verdict:  Undecided,
		tasks:    make([]task, q.Tasks),
		up:       start(),
		down:     start(),
	}
	for i, known := range q.Known[:min(len(q.Known), q.Tasks)] {
		e.tasks[i].known = known.sane()
	}
	return e
}

// Batch returns the tasks of the next pairs, numbered from 0. It returns the same ones until all of
// them have outcomes, and nil if the question is decided. The n-th time that a task occurs in all
// batches, its pair consists of trial n of both sides.
func (e *Evidence) Batch() []int {
	if e.verdict != Undecided || len(e.tasks) == 0 {
		return nil
	}
	if len(e.pending) == 0 {
		e.choose()
	}
	return slices.Clone(e.pending)
}

// The plan is updated when the pairs grew by this part of their number.
const updates = 32

// choose draws the tasks of the next batch.
func (e *Evidence) choose() {
	if e.round = e.pairs == 0; e.round {
		e.plan.balance(e.tasks, e.question)
		e.pending = e.rng.Perm(len(e.tasks))
		return
	}
	// The plan changes little while the pairs grow by a few percent, and updates take time.
	if e.pairs-e.planned > e.pairs/updates || e.planned == 0 {
		e.plan.update(e.tasks, e.question)
		e.planned = e.pairs
	}
	for range e.question.Batch {
		e.pending = append(e.pending, e.plan.draw(e.rng.Float64()))
	}
}

// Add adds the outcomes of the next pairs of the batch, in the order of [Evidence.Batch]. There may
// be fewer of them than pairs; the others are then still to come. Outcomes beyond the batch are
// ignored.
func (e *Evidence) Add(outcomes []Outcome) {
	e.Batch()
	if len(e.pending) == 0 {
		return
	}
	for _, o := range outcomes[:min(len(outcomes), len(e.pending))] {
		i := e.pending[0]
		e.pending = e.pending[1:]
		e.pairs++
		if e.verdict == Undecided {
			seen := e.plan.observe(i, o)
			e.history = append(e.history, seen)
			e.up.bet(seen.size, 0, 0, seen.low, seen.least)
			e.down.bet(seen.size, -e.question.BetterBy, -e.question.BetterBy, -seen.high, -seen.most)
			if !e.round || len(e.pending) == 0 {
				e.counted = len(e.history)
				e.look()
			}
		}
		if !e.tasks[i].add(o) {
			e.missing++
		}
	}
}

// look decides if a wealth suffices.
func (e *Evidence) look() {
	limit := 1 / e.question.Risk
	switch {
	case mainShare*e.up.total() >= limit:
		e.verdict = Better
	case mainShare*e.down.total() >= limit:
		e.verdict = NotBetter
	}
}

// Verdict returns the verdict. Once it is not [Undecided], it remains the same.
func (e *Evidence) Verdict() Verdict { return e.verdict }

// Pairs returns the number of pairs with outcomes.
func (e *Evidence) Pairs() int { return e.pairs }

// sane returns the scores of an outcome, within 0 and 1. ok is false if they are missing.
func (o Outcome) sane() (a, b float64, ok bool) {
	if o.Missing || math.IsNaN(o.A) || math.IsNaN(o.B) {
		return 0, 0, false
	}
	return min(max(o.A, 0), 1), min(max(o.B, 0), 1), true
}
