// Package power plans comparisons before they run: the power and the cost of numbers of tasks and
// trials. Call [Read] for what the records know, and [New] for the plan.
package power

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"waza/runner/decide"
	"waza/runner/stats"
)

// A Question is a comparison that a user plans.
type Question struct {
	// Tasks are the ids of the suite's tasks, at least one.
	Tasks []string
	// Detect is the gain to detect, as a share above 0 and below 1.
	Detect float64
	// Power is the wanted chance to detect it, from 0.5 to 0.999.
	Power float64
	// Records is what earlier runs know; the zero value knows nothing.
	Records Records
}

// Confidence is the confidence of the planned tests.
const Confidence = stats.DefaultConfidence

// Usual questions.
const (
	DefaultDetect = 0.05
	DefaultPower  = 0.8
)

// Assumptions where records know nothing.
const (
	// AssumedRate is the usual pass rate of a task. Rates vary by 1.5 logits between tasks.
	AssumedRate = 0.67
	rateSD      = 1.5
	// AssumedEffectSD is the standard deviation between tasks of the true gain.
	AssumedEffectSD = 0.08
	// effectTasks is the number of tasks as which the assumption counts beside those of records.
	effectTasks = 10
)

// A Plan is a table of possible comparisons.
type Plan struct {
	Detect     float64 `json:"detect" doc:"Gain to detect, as a share."`
	Power      float64 `json:"power" doc:"Wanted chance to detect it."`
	Confidence float64 `json:"confidence" doc:"Confidence of the tests."`
	// Tasks has the assumed rates.
	Tasks   []Task  `json:"tasks" doc:"Tasks of the suite, with their rates."`
	Records Sources `json:"records" doc:"Origin of the figures."`
	// PerTrial is what a trial costs on average.
	PerTrial PerTrial `json:"perTrial" doc:"Mean cost of a recorded trial. Unknown figures are null."`
	Rows     []Row    `json:"rows" doc:"Possible comparisons, by tasks and trials."`
	// Decide is the alternative.
	Decide []Sequential `json:"decide" doc:"Pairs that waza decide needs on average, by the true gain."`
	// Origins and Advice are the same everywhere.
	Origins []string `json:"origins" doc:"Where the rates, effects, costs and powers come from, in sentences."`
	Advice  string   `json:"advice" doc:"The cheapest ways to the power, in one paragraph."`
}

// A Task is a task with the pass rate that the plan assumes.
type Task struct {
	ID     string  `json:"id"`
	Rate   float64 `json:"rate" doc:"Assumed pass rate: shrunken to the mean if trials are recorded."`
	Trials int     `json:"trials" doc:"Recorded trials."`
}

// Sources says where the figures of a plan come from.
type Sources struct {
	Runs     int     `json:"runs" doc:"Recorded runs that the figures come from."`
	Trials   int     `json:"trials" doc:"Their counted trials of the suite's tasks."`
	EffectSD float64 `json:"effectSd" doc:"Standard deviation between tasks of the true gain, as a share."`
	// EffectTasks is 0 if EffectSD is an assumption.
	EffectTasks int      `json:"effectTasks" doc:"Tasks of two runs of different agents from which it is estimated; 0 if it is an assumption."`
	EffectRuns  []string `json:"effectRuns,omitempty" doc:"These two runs."`
}

// A Row is a possible comparison of two agents.
type Row struct {
	Tasks  int `json:"tasks"`
	Trials int `json:"trials" doc:"Trials of each agent per task."`
	All    int `json:"allTrials" doc:"Trials of both agents."`
	// These is nil if the row has other tasks.
	These *float64 `json:"theseTasks" doc:"Power of the question about these tasks; null if the row has more tasks than the suite."`
	// Like is nil for a single task.
	Like    *float64 `json:"tasksLikeThese" doc:"Power of the question about tasks like these; null for a single task."`
	Tokens  *float64 `json:"tokens"`
	CostUSD *float64 `json:"costUsd"`
	// Seconds is the time of all trials one after the other.
	Seconds *float64 `json:"seconds" doc:"Time of all trials one after the other."`
}

// Sequential is what waza decide needs.
type Sequential struct {
	Gain    float64  `json:"gain" doc:"True gain."`
	Pairs   float64  `json:"pairs" doc:"Mean number of pairs of trials."`
	CostUSD *float64 `json:"costUsd"`
}

// An UnreachableError means that the tasks pass too often for the gain.
type UnreachableError struct{ Detect, Most float64 }

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the tasks pass so often that no agent can gain %.3g points; the most is %.3g points", 100*e.Detect, 100*e.Most)
}

const (
	mostTrials = 1000 // per task
	mostTasks  = 100_000
	decideRuns = 100
	decideMost = 10_000 // pairs
)

// New returns the plan. The error is an [*UnreachableError].
//
// Powers are computed and not simulated. Agent A has the assumed rates; those of B are higher by the
// same logit everywhere, so that the mean gain is Detect. Trials are independent. The question about these
// tasks is decided by a stratified test, whose statistic is approximately normal with the variance
// within tasks (Cochran 1954, "Some methods for strengthening the common χ² tests"). The question
// about tasks like these is decided by Student's test of the tasks' differences, with the variance
// between tasks added; its power is that of the noncentral t distribution. Simulations in
// docs/statistics.md compare both with tests of drawn trials. The pairs of waza decide are the mean
// over 100 simulated runs with a fixed seed.
func New(q Question) (*Plan, error) {
	p := &Plan{Detect: q.Detect, Power: q.Power, Confidence: Confidence, PerTrial: q.Records.PerTrial}
	p.Records = q.Records.sources(q.Tasks)
	a := q.Records.rates(q.Tasks)
	for i, id := range q.Tasks {
		p.Tasks = append(p.Tasks, Task{ID: id, Rate: a[i], Trials: q.Records.Rates[id].N})
	}
	b, most := Shifted(a, q.Detect)
	if b == nil {
		return nil, &UnreachableError{q.Detect, most}
	}
	p.addRows(q, Within(a, b))
	for _, gain := range []float64{0, q.Detect, 2 * q.Detect} {
		if b, _ := Shifted(a, gain); b != nil {
			f := decide.Predict(decide.Question{BetterBy: q.Detect, Risk: 1 - Confidence, Batch: 10, Seed: 1}, a, b, decideMost, decideRuns)
			p.Decide = append(p.Decide, Sequential{Gain: gain, Pairs: f.Pairs, CostUSD: times(p.PerTrial.CostUSD, 2*f.Pairs)})
		}
	}
	p.Origins, p.Advice = p.origins(), p.advice()
	return p, nil
}

// addRows adds rows for the suite's number of tasks, twice and four times as many. Besides round
// numbers of trials they have those that just reach the power. If none of them reaches it for tasks
// like these, a row has the number of tasks that does with five trials.
func (p *Plan) addRows(q Question, within float64) {
	k := len(q.Tasks)
	between := float64(p.Records.EffectSD * p.Records.EffectSD)
	for _, tasks := range []int{k, 2 * k, 4 * k} {
		these := func(n int) float64 { return These(q.Detect, within, tasks, n) }
		like := func(n int) float64 { return Like(q.Detect, within, between, tasks, n) }
		trials := []int{1, 2, 5, 10, 20, 50}
		if n, ok := least(q.Power, mostTrials, these); ok && tasks == k {
			trials = append(trials, n)
		}
		if n, ok := least(q.Power, mostTrials, like); ok && tasks > 1 {
			trials = append(trials, n)
		}
		slices.Sort(trials)
		for _, n := range slices.Compact(trials) {
			var forThese, forLike *float64
			if tasks == k {
				forThese = ptr(these(n))
			}
			if tasks > 1 {
				forLike = ptr(like(n))
			}
			p.Rows = append(p.Rows, p.row(tasks, n, forThese, forLike))
		}
	}
	if p.Cheapest(func(r Row) *float64 { return r.Like }) != nil {
		return
	}
	const trials = 5
	like := func(tasks int) float64 { return Like(q.Detect, within, between, tasks, trials) }
	if tasks, ok := least(q.Power, mostTasks, like); ok {
		p.Rows = append(p.Rows, p.row(tasks, trials, nil, ptr(like(tasks))))
	}
}

// row returns a row with its cost.
func (p *Plan) row(tasks, trials int, these, like *float64) Row {
	all := float64(2 * tasks * trials)
	return Row{
		Tasks: tasks, Trials: trials, All: 2 * tasks * trials, These: these, Like: like,
		Tokens: times(p.PerTrial.Tokens, all), CostUSD: times(p.PerTrial.CostUSD, all), Seconds: times(p.PerTrial.Seconds, all),
	}
}

func ptr(x float64) *float64 { return &x }

// Cheapest returns the row with the fewest trials whose power suffices, and nil if there is no such
// row. Among rows with equally many trials it prefers the one with fewer tasks.
func (p *Plan) Cheapest(power func(Row) *float64) *Row {
	var best *Row
	for i := range p.Rows {
		r := &p.Rows[i]
		if got := power(*r); got != nil && *got >= p.Power && (best == nil || r.All < best.All) {
			best = r
		}
	}
	return best
}

func times(x *float64, n float64) *float64 {
	if x == nil {
		return nil
	}
	product := *x * n
	return &product
}

// least returns the least number whose power suffices, if most does.
func least(power float64, most int, of func(int) float64) (n int, ok bool) {
	if of(most) < power {
		return 0, false
	}
	low, high := 0, most // the power of low does not suffice
	for high-low > 1 {
		if middle := (low + high) / 2; of(middle) >= power {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true
}

// These returns the power of the two-sided stratified test about these tasks: with n trials of each
// agent for each of k tasks, whose pairs have the variance within.
func These(gain, within float64, k, n int) float64 {
	deviation := math.Sqrt(within / (float64(k) * float64(n)))
	if deviation == 0 {
		return 1
	}
	z := math.Sqrt2 * math.Erfinv(Confidence)
	return normal(gain/deviation-z) + normal(-gain/deviation-z)
}

// Like returns the power of the two-sided t-test of the differences of k tasks, if their true gains have
// the variance between. It is 0 for fewer tasks than [stats.LeastClusters]. The sign-flip test of
// [stats.LikeThese] has a power that is one or two points less.
func Like(gain, within, between float64, k, n int) float64 {
	if k < stats.LeastClusters(Confidence) {
		return 0
	}
	deviation := math.Sqrt((within/float64(n) + between) / float64(k))
	if deviation == 0 {
		return 1
	}
	freedom := float64(k - 1)
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 1-Confidence)
	return beyond(math.Sqrt(freedom*(1-x)/x), gain/deviation, freedom)
}

// beyond returns the chance that the absolute value of a noncentral t variable exceeds t: the mean over
// the estimated standard deviation s, of which s²·freedom has a χ² distribution, by Simpson's rule.
func beyond(t, shift, freedom float64) float64 {
	const steps = 400
	gamma, _ := math.Lgamma(freedom / 2)
	scale := math.Ln2 + float64(freedom/2*math.Log(freedom/2)) - gamma
	reach := 8 / math.Sqrt(2*freedom)
	from, to := max(0, 1-reach), 1+reach
	width := (to - from) / steps
	sum, whole := 0.0, 0.0
	for i := range steps + 1 {
		s := from + float64(float64(i)*width)
		if s <= 0 && freedom > 1 {
			continue // the density is 0
		}
		density := scale - float64(freedom*s*s)/2
		if freedom > 1 {
			density += float64((freedom - 1) * math.Log(s))
		}
		weight := 2.0
		switch {
		case i == 0 || i == steps:
			weight = 1
		case i%2 == 1:
			weight = 4
		}
		weight *= math.Exp(density)
		whole += weight
		sum += float64(weight * (normal(shift-float64(t*s)) + normal(-shift-float64(t*s))))
	}
	return sum / whole
}

// normal returns the distribution function of the standard normal distribution.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// Within returns the mean variance of a pair of trials: of the difference of two independent trials
// with the rates a and b of a task.
func Within(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]*(1-a[i])) + float64(b[i]*(1-b[i]))
	}
	return sum / float64(len(a))
}

// Shifted returns the rates after a shift by the same logit everywhere that raises their mean by the
// gain, and nil if the mean can rise only by less than most.
func Shifted(rates []float64, gain float64) (shifted []float64, most float64) {
	if gain == 0 {
		return slices.Clone(rates), 1
	}
	shifted = make([]float64, len(rates))
	mean := func(shift float64) float64 {
		sum := 0.0
		for i, r := range rates {
			if shifted[i] = r; r > 0 && r < 1 {
				shifted[i] = 1 / (1 + float64((1-r)/r)*math.Exp(-shift))
			}
			sum += shifted[i] - r
		}
		return sum / float64(len(rates))
	}
	low, high := 0.0, 20.0
	if most = mean(high); most < gain {
		return nil, most
	}
	for range 60 {
		if middle := (low + high) / 2; mean(middle) < gain {
			low = middle
		} else {
			high = middle
		}
	}
	mean(high)
	return shifted, most
}
