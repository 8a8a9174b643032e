package irt

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// LeastSubjects is the least number of subjects.
	LeastSubjects = 8
	// LeastTasks is the least number of tasks.
	LeastTasks = 6
	// DefaultKeep is the default of the kept share.
	DefaultKeep = 0.95
	// folds is the number of parts of the subjects, each of which is measured with a subset that
	// was chosen without it.
	folds = 10
	level = 0.05
	// z95 is the 95 % quantile of the standard normal distribution.
	z95 = 1.6448536269514722
	// caution widens the lower bound of the correlation, because abilities are not normal.
	caution = 1.25
	// dull is the slope below which a task is uninformative.
	dull  = 0.4
	draws = 4999
)

// A Role is what the trials of a task say about the agents.
type Role string

// The roles of tasks.
const (
	Informative Role = "informative"
	Dull        Role = "uninformative"
	AlwaysPass  Role = "always passes"
	AlwaysFail  Role = "never passes"
	Contradicts Role = "contradicts"
)

// A Task describes a task.
type Task struct {
	// PassRate is the mean over subjects.
	PassRate float64
	// Difficulty is the ability at which half of the trials pass, in standard deviations of the
	// abilities of agents. Slope is how fast the chance to pass rises there. Both are nil for
	// tasks that always or never pass.
	Difficulty, Slope *float64
	Role              Role
	// P is the corrected p-value of a task that contradicts the others; else 1.
	P float64
	// Chosen reports whether the task is in the subset.
	Chosen bool
}

// A Subset is a choice of tasks.
type Subset struct {
	Tasks []Task
	Size  int
	// Keep is the share of the order that the subset keeps at least, with 95 % confidence.
	// Measured is the measured share.
	Keep, Measured float64
	// Subjects is the number of subjects.
	Subjects int
}

// An InsufficientError means that the data do not show that a subset is as good as the suite.
type InsufficientError struct{ Reason, Remedy string }

func (e *InsufficientError) Error() string { return e.Reason }

// Choose describes all tasks, and chooses the smallest subset that keeps a share of the order of
// subjects. It returns the description of the tasks also with an [*InsufficientError], if there
// are enough subjects and tasks.
//
// The kept share is that of the points by which pairs of subjects differ in the mean pass rate
// of all tasks: it counts a pair with its difference, if the subset orders it the same way. It is
// (1+r)/2 for normal pass rates whose correlation is r. Subsets are chosen without the subjects
// for which they are measured (cross-validation; Stone 1974). The lower bound is that of the
// correlation (Fisher 1921, "On the probable error of a coefficient of correlation deduced from a
// small sample"), widened by a quarter. Sizes are tested from the largest to the smallest until
// one fails, which needs no correction for their number (Maurer, Hothorn and Lehmacher 1995,
// "Multiple comparisons in drug clinical trials and preclinical assays: a-priori ordered
// hypotheses"). docs/statistics.md has measurements.
func Choose(t Table, keep float64) (*Subset, error) {
	if !(keep > 0.5 && keep < 1) {
		keep = DefaultKeep
	}
	if n := t.subjects(); n < LeastSubjects {
		return nil, &InsufficientError{
			fmt.Sprintf("%d different configurations of agents are recorded, and at least %d are needed", n, LeastSubjects),
			"run the suite with other agents, models or settings",
		}
	}
	if n := t.tasks(); n < LeastTasks {
		return nil, &InsufficientError{
			fmt.Sprintf("%d tasks can be compared over the runs, and at least %d are needed", n, LeastTasks),
			"run the suite with more tasks",
		}
	}
	fitted := fit(t)
	s := &Subset{Tasks: describe(t, fitted), Size: t.tasks(), Keep: keep, Subjects: t.subjects()}
	if p := t.differ(); p > level {
		return s, &InsufficientError{
			fmt.Sprintf("the %d configurations differ no more than by chance (p %.2f)", s.Subjects, p),
			"run agents or models of different quality, or more trials per task",
		}
	}
	measured := crossValidate(t)
	for _, m := range measured {
		if m.bound() < keep {
			break
		}
		s.Size, s.Measured = m.size, m.kept()
	}
	if s.Size == t.tasks() {
		return s, measured[0].insufficient(keep)
	}
	for _, k := range fitted.order(t.usualTrials())[:s.Size] {
		s.Tasks[k].Chosen = true
	}
	return s, nil
}

// usualTrials returns the mean number of trials of each task.
func (t Table) usualTrials() []float64 {
	list := make([]float64, t.tasks())
	for k := range list {
		for i := range t.Trials {
			list[k] += float64(t.Trials[i][k]) / float64(t.subjects())
		}
	}
	return list
}

// sizes returns the sizes of subsets that are tried, the largest first.
func sizes(tasks int) (list []int) {
	for tenth := 9; tenth >= 1; tenth-- {
		if n := (tasks*tenth + 9) / 10; n >= 2 && n < tasks && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// A measurement holds the mean pass rates of subjects over all tasks, and those that subsets of a
// size predict for subjects without which they were chosen.
type measurement struct {
	size           int
	all, predicted []float64
}

func crossValidate(t Table) []measurement {
	n := t.subjects()
	every := make([]int, t.tasks())
	for k := range every {
		every[k] = k
	}
	var list []measurement
	for _, size := range sizes(t.tasks()) {
		list = append(list, measurement{size, make([]float64, n), make([]float64, n)})
	}
	parts := min(folds, n)
	trials := t.usualTrials()
	for part := range parts {
		var others, own []int
		for i := range n {
			if i%parts == part {
				own = append(own, i)
			} else {
				others = append(others, i)
			}
		}
		rest := t.only(others)
		order := fit(rest).order(trials)
		for m := range list {
			chosen := order[:list[m].size]
			var x, y []float64
			for _, i := range others {
				x, y = append(x, t.mean(i, chosen)), append(y, t.mean(i, every))
			}
			slope, intercept := line(x, y)
			for _, i := range own {
				list[m].all[i] = t.mean(i, every)
				list[m].predicted[i] = intercept + float64(slope*t.mean(i, chosen))
			}
		}
	}
	return list
}

// line returns the least squares line of y by x.
func line(x, y []float64) (slope, intercept float64) {
	mx, my := average(x), average(y)
	xx, xy := 0.0, 0.0
	for i := range x {
		xx += float64((x[i] - mx) * (x[i] - mx))
		xy += float64((x[i] - mx) * (y[i] - my))
	}
	if xx > 0 {
		slope = xy / xx
	}
	return slope, my - float64(slope*mx)
}

func average(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

func correlation(x, y []float64) float64 {
	mx, my := average(x), average(y)
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range x {
		xx += float64((x[i] - mx) * (x[i] - mx))
		yy += float64((y[i] - my) * (y[i] - my))
		xy += float64((x[i] - mx) * (y[i] - my))
	}
	if !(xx > 0 && yy > 0) {
		return 0
	}
	return max(-1, min(1, xy/math.Sqrt(float64(xx*yy))))
}

// kept returns the measured share of the order.
func (m *measurement) kept() float64 { return Kept(m.all, m.predicted) }

// Kept returns the share of the points by which pairs of subjects differ in all that b orders the
// same way. A pair with equal values in b counts half. It is 1 if no pair differs.
func Kept(all, b []float64) float64 {
	kept, sum := 0.0, 0.0
	for i := range all {
		for j := range i {
			d := all[i] - all[j]
			sum += math.Abs(d)
			switch x := b[i] - b[j]; {
			case math.Abs(x) < 1e-9:
				kept += math.Abs(d) / 2
			case (x > 0) == (d > 0):
				kept += math.Abs(d)
			}
		}
	}
	if !(sum > 0) {
		return 1
	}
	return kept / sum
}

// bound returns the lower bound of the kept share. It is never above the measured one.
func (m *measurement) bound() float64 {
	z := math.Atanh(min(0.9999, correlation(m.all, m.predicted)))
	r := math.Tanh(z - caution*z95/math.Sqrt(float64(len(m.all)-3)))
	return min((1+r)/2, m.kept())
}

// insufficient explains that not even the largest subset is good enough.
func (m *measurement) insufficient(keep float64) *InsufficientError {
	e := &InsufficientError{
		Reason: fmt.Sprintf("no smaller subset is shown to keep %.3g %% of the order: %d of the tasks keep %.3g %% as measured, and %.3g %% for sure",
			100*keep, m.size, 100*m.kept(), 100*m.bound()),
		Remedy: "use a lower --keep, or the whole suite",
	}
	room := math.Atanh(min(0.9999, correlation(m.all, m.predicted))) - math.Atanh(2*keep-1)
	if room > 0.05 && m.kept() >= keep {
		errors := caution * z95 / room
		more := 3 + int(math.Ceil(errors*errors))
		e.Remedy = fmt.Sprintf("about %d different configurations would suffice if they are like these, or use a lower --keep",
			max(more, len(m.all)+1))
	}
	return e
}

// differ returns the p-value of the hypothesis that all subjects are equally good: the variance
// of their means, if the pass rates of each task are dealt out among the subjects (a permutation
// test; Good 2005, "Permutation, Parametric and Bootstrap Tests of Hypotheses").
func (t Table) differ() float64 {
	n := t.subjects()
	columns := make([][]float64, t.tasks())
	for k := range columns {
		for i := range n {
			columns[k] = append(columns[k], t.rate(i, k))
		}
	}
	spread := func() float64 {
		means := make([]float64, n)
		for _, c := range columns {
			for i, x := range c {
				means[i] += x
			}
		}
		slices.Sort(means)
		center, sum := average(means), 0.0
		for _, x := range means {
			sum += float64((x - center) * (x - center))
		}
		return sum
	}
	seen, asExtreme := spread(), 1
	rng := rand.New(rand.NewPCG(1, 1))
	const times = 999
	for range times {
		for _, c := range columns {
			rng.Shuffle(n, func(i, j int) { c[i], c[j] = c[j], c[i] })
		}
		if spread() >= seen-1e-9 {
			asExtreme++
		}
	}
	return float64(asExtreme) / (times + 1)
}

func describe(t Table, m model) []Task {
	list := make([]Task, t.tasks())
	p := make([]float64, len(list))
	for k := range list {
		rates := make([]float64, t.subjects())
		for i := range rates {
			rates[i] = t.rate(i, k)
		}
		list[k] = Task{PassRate: average(rates), Role: Informative, P: 1}
		p[k] = 1
		switch low, high := slices.Min(rates), slices.Max(rates); {
		case low == 1:
			list[k].Role = AlwaysPass
			continue
		case high == 0:
			list[k].Role = AlwaysFail
			continue
		}
		slope := m.slope[k]
		list[k].Slope = &slope
		if slope > 0.1 {
			difficulty := -m.intercept[k] / slope
			list[k].Difficulty = &difficulty
		}
		if slope < dull {
			list[k].Role = Dull
		}
		p[k] = t.contradiction(k, rates)
	}
	for k, corrected := range holm(p) {
		if list[k].P = corrected; corrected <= level {
			list[k].Role = Contradicts
		}
	}
	return list
}

// contradiction returns the p-value of the hypothesis that a task has nothing to do with the
// others, against the one that better subjects pass it less: a permutation test of the
// correlation with the mean of the other tasks (Henrysson 1963, "Correction of item-total
// correlations in item analysis").
func (t Table) contradiction(task int, rates []float64) float64 {
	rest := make([]float64, len(rates))
	for i := range rest {
		for k := range t.Trials[i] {
			if k != task {
				rest[i] += t.rate(i, k)
			}
		}
	}
	seen := correlation(rates, rest)
	if seen >= 0 {
		return 1
	}
	asExtreme := 1
	rng := rand.New(rand.NewPCG(1, 2))
	shuffled := slices.Clone(rates)
	for range draws {
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if correlation(shuffled, rest) <= seen+1e-9 {
			asExtreme++
		}
	}
	return float64(asExtreme) / (draws + 1)
}

// holm corrects p-values (Holm 1979, "A simple sequentially rejective multiple test procedure").
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	most := 0.0
	for rank, i := range order {
		most = max(most, min(1, p[i]*float64(len(p)-rank)))
		out[i] = most
	}
	return out
}
