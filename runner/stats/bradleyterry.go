package stats

import (
	"math"
	"slices"

	"waza/runner/record"
)

// A Duel is a comparison of two models.
type Duel struct {
	// A and B are indexes of models.
	A, B int
	// Task is the index of the task, 0 or more. Comparisons of the same task may depend on each
	// other.
	Task int
	// Points are those of A: 1 for a win, 0.5 for a tie, 0 for a loss.
	Points float64
}

// A ModelRank is the strength of a model among those that it was compared with.
type ModelRank struct {
	// Group is the number of the group of models, from 0. Models of different groups were not
	// compared, not even through others, so that nothing is known about their order.
	Group int
	// Rank is the place in the group, from 1.
	Rank int
	// Strength is the logarithm of the model's odds against the average model of the group.
	Strength float64
	// Wins is the probability of a better answer than that of the average model, with its interval.
	Wins Estimate
}

// RankModels ranks models by the strengths of Bradley and Terry (1952, "Rank analysis of
// incomplete block designs"): model i beats model j with the probability
//
//	1 / (1 + exp(sⱼ - sᵢ))
//
// A tie counts as half a win for each, and a task counts once for each pair of models, with the
// mean of its comparisons, as in the win rates of pairs. The strengths have the largest penalized likelihood of
// Firth (1993, "Bias reduction of maximum likelihood estimates"): each pair of compared models
// gets ties of the weight of its leverage, n-1 for n models together. The strengths are found by
// the algorithm of Hunter (2004, "MM algorithms for generalized Bradley-Terry models"). Without
// these ties, the strength of a model that wins everything would be infinite.
//
// Comparisons of one task depend on each other. The variance of a strength is therefore that of
// the jackknife over tasks (Bell and McCaffrey 2002, "Bias reduction in standard errors for
// linear regression with multi-stage samples", linearized), with the ties as tasks of which half are won and half lost,
// or that of independent comparisons if
// it is larger. The quantile is that of Student's distribution with one degree of freedom less
// than there are tasks. If some models won every comparison against all others, the data set no
// limit to their distance: the interval ends at 1 for those, and at 0 for the others.
//
// A comparison with an index beyond the models, or of a model with itself, is omitted. The
// intervals are about tasks like these.
func RankModels(models int, duels []Duel, confidence float64) []ModelRank {
	ranks := make([]ModelRank, max(0, models))
	var usable []Duel
	for _, d := range duels {
		if d.A >= 0 && d.B >= 0 && d.A < models && d.B < models && d.A != d.B && !math.IsNaN(d.Points) {
			d.Points = clamp(d.Points, 0, 1)
			usable = append(usable, d)
		}
	}
	for group, members := range connected(len(ranks), usable) {
		g := newBradleyTerry(members, usable)
		g.fit(true)
		g.rank(ranks, group, confidence)
	}
	return ranks
}

// connected returns the groups of models that were compared, directly or through others, in the
// order of their first models.
func connected(models int, duels []Duel) [][]int {
	group := make([]int, models)
	for i := range group {
		group[i] = i
	}
	root := func(i int) int {
		for group[i] != i {
			i = group[i]
		}
		return i
	}
	for _, d := range duels {
		if a, b := root(d.A), root(d.B); a != b {
			group[max(a, b)] = min(a, b)
		}
	}
	var list [][]int
	at := map[int]int{}
	for i := range models {
		r := root(i)
		if _, ok := at[r]; !ok {
			at[r] = len(list)
			list = append(list, nil)
		}
		list[at[r]] = append(list[at[r]], i)
	}
	return list
}

// A bradleyTerry holds the comparisons of one group of models, and their strengths.
type bradleyTerry struct {
	members []int
	// won holds the points of each model against each other, where each task counts once: with the
	// mean of its comparisons. met holds the numbers of tasks, and counted those of comparisons.
	won, met, counted [][]float64
	// ties holds the weights of the ties that are added.
	ties [][]float64
	// tasks holds the points of model a against b, and their number, by task.
	tasks    [][]duelSum
	strength []float64
}

// A duelSum is the sum of the comparisons of two models in a task; a < b.
type duelSum struct {
	a, b        int
	points, met float64
}

func newBradleyTerry(members []int, duels []Duel) *bradleyTerry {
	n := len(members)
	g := &bradleyTerry{members: members, won: square(n), met: square(n), counted: square(n), ties: square(n), strength: make([]float64, n)}
	type key struct{ task, a, b int }
	sums := map[key]*duelSum{}
	var keys []key
	for _, d := range duels {
		a, b := slices.Index(members, d.A), slices.Index(members, d.B)
		if a < 0 {
			continue
		}
		if a > b {
			a, b, d.Points = b, a, 1-d.Points
		}
		k := key{d.Task, a, b}
		if sums[k] == nil {
			sums[k] = &duelSum{a: a, b: b}
			keys = append(keys, k)
		}
		sums[k].met++
		sums[k].points += d.Points
	}
	slices.SortFunc(keys, func(x, y key) int {
		return slices.Compare([]int{x.task, x.a, x.b}, []int{y.task, y.a, y.b})
	})
	for i, k := range keys {
		s := sums[k]
		if i == 0 || keys[i-1].task != k.task {
			g.tasks = append(g.tasks, nil)
		}
		last := len(g.tasks) - 1
		g.tasks[last] = append(g.tasks[last], *s)
		g.met[s.a][s.b]++
		g.met[s.b][s.a]++
		g.counted[s.a][s.b] += s.met
		g.counted[s.b][s.a] += s.met
		g.won[s.a][s.b] += s.points / s.met
		g.won[s.b][s.a] += (s.met - s.points) / s.met
	}
	return g
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// fit finds the strengths, with ties of the weight of each pair's leverage if penalized is set.
func (g *bradleyTerry) fit(penalized bool) {
	for range 200 {
		if penalized && !g.setTies() {
			return
		}
		if change := g.maximize(); !penalized || change < 1e-9 {
			return
		}
	}
}

// setTies sets the weights of ties to the leverages of pairs. It returns false if rounding errors
// leave no information.
func (g *bradleyTerry) setTies() bool {
	n := len(g.members)
	inverse, ok := g.inverse(g.information(g.met, nil))
	if !ok {
		return false
	}
	for a := range n {
		for b := a + 1; b < n; b++ {
			if g.met[a][b] == 0 {
				continue
			}
			w := max(leastTie, g.weight(a, b, g.met[a][b])*(inverse[a][a]+inverse[b][b]-2*inverse[a][b]))
			g.ties[a][b], g.ties[b][a] = w, w
		}
	}
	return true
}

// leastTie keeps the weights of ties from vanishing: then strengths would be infinite.
const leastTie = 1e-6

// maximize finds the strengths with the largest likelihood with the present ties. It returns the
// largest change.
func (g *bradleyTerry) maximize() (changed float64) {
	n := len(g.members)
	odds, points, before := make([]float64, n), make([]float64, n), slices.Clone(g.strength)
	for i := range odds {
		odds[i] = math.Exp(g.strength[i])
		for j := range n {
			points[i] += g.won[i][j] + g.ties[i][j]/2
		}
	}
	for range 10_000 {
		change := 0.0
		for i := range odds { // each model with the odds that the others have by now
			sum := 0.0
			for j := range n {
				if g.met[i][j] > 0 {
					sum += (g.met[i][j] + g.ties[i][j]) / (odds[i] + odds[j])
				}
			}
			if sum > 0 {
				next := points[i] / sum
				change = max(change, math.Abs(next-odds[i])/odds[i])
				odds[i] = next
			}
		}
		logs := 0.0
		for i := range odds {
			g.strength[i] = math.Log(odds[i])
			logs += g.strength[i]
		}
		for i := range odds {
			g.strength[i] -= logs / float64(n)
			odds[i] = math.Exp(g.strength[i])
		}
		if change < 1e-12 {
			break
		}
	}
	for i := range before {
		changed = max(changed, math.Abs(before[i]-g.strength[i]))
	}
	return changed
}

func (g *bradleyTerry) beats(a, b int) float64 {
	return 1 / (1 + math.Exp(g.strength[b]-g.strength[a]))
}

// weight returns the information of that many comparisons of two models about their difference.
func (g *bradleyTerry) weight(a, b int, met float64) float64 {
	p := g.beats(a, b)
	return max(met, leastTie) * p * (1 - p)
}

// information returns the information of comparisons about the strengths, plus 1/n in each
// element. It has no inverse without that, because only differences of strengths matter. met
// holds the numbers of comparisons; ties, if not nil, are added to them.
func (g *bradleyTerry) information(met, ties [][]float64) [][]float64 {
	n := len(g.members)
	info := square(n)
	diagonal := make([]float64, n)
	for a := range n {
		for b := a + 1; b < n; b++ {
			w := 0.0
			if met[a][b] > 0 {
				w = g.weight(a, b, met[a][b])
				if ties != nil {
					w += g.weight(a, b, ties[a][b])
				}
			}
			diagonal[a] += w
			diagonal[b] += w
			info[a][b] = 1/float64(n) - w
			info[b][a] = info[a][b]
		}
	}
	for i := range n {
		info[i][i] = diagonal[i] + 1/float64(n)
	}
	return info
}

// inverse returns the inverse of the information. It is the covariance matrix of strengths with
// the sum 0, plus 1/n in each element.
func (g *bradleyTerry) inverse(information [][]float64) ([][]float64, bool) {
	l, ok := factorize(information)
	if !ok {
		return nil, false
	}
	return l.inverse(), true
}

// variances returns the variances of the strengths: the larger ones of the two methods. They are infinite
// if rounding errors leave no information.
func (g *bradleyTerry) variances() []float64 {
	n, t := len(g.members), float64(len(g.tasks))
	variances := make([]float64, n)
	inverse, ok := g.inverse(g.information(g.counted, g.ties))
	if !ok {
		for i := range variances {
			variances[i] = math.Inf(1)
		}
		return variances
	}
	clustered := make([]float64, n)
	for _, task := range g.tasks {
		without, scores := g.information(g.met, g.ties), make([]float64, n)
		for _, s := range task {
			p := g.beats(s.a, s.b)
			w, rest := p*(1-p), s.points/s.met-p
			scores[s.a] += rest
			scores[s.b] -= rest
			without[s.a][s.a] -= w
			without[s.b][s.b] -= w
			without[s.a][s.b] += w
			without[s.b][s.a] += w
		}
		l, ok := factorize(without)
		if !ok {
			for i := range clustered {
				clustered[i] = math.Inf(1)
			}
			break
		}
		for i, change := range l.solve(scores) { // of the strengths without the task
			clustered[i] += float64(change * change)
		}
	}
	// The ties count as tasks of which half were won, and half lost.
	unit, ok := g.inverse(g.information(g.met, g.ties))
	for a := range n {
		for b := a + 1; b < n && ok; b++ {
			p := g.beats(a, b)
			squares := g.ties[a][b] * (float64(p*p) + float64((1-p)*(1-p))) / 2
			for i := range n {
				d := unit[i][a] - unit[i][b]
				clustered[i] += float64(squares * float64(d*d))
			}
		}
	}
	for i := range n {
		variances[i] = max(inverse[i][i]-1/float64(n), clustered[i]*(t-1)/t)
	}
	return variances
}

// unbounded returns the models that won every comparison against all models of the group that
// they did not lose to, and those that lost so.
func (g *bradleyTerry) unbounded() (above, below []bool) {
	n := len(g.members)
	// reach[i][j] reports whether i has points against j, directly or through others.
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
		for j := range n {
			reach[i][j] = i == j || g.won[i][j] > 0
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	above, below = make([]bool, n), make([]bool, n)
	for i := range n {
		for j := range n {
			above[i] = above[i] || reach[i][j] && !reach[j][i]
			below[i] = below[i] || reach[j][i] && !reach[i][j]
		}
	}
	return above, below
}

func (g *bradleyTerry) rank(ranks []ModelRank, group int, confidence float64) {
	n := len(g.members)
	if n == 1 {
		ranks[g.members[0]] = ModelRank{Group: group, Rank: 1, Wins: Estimate{0.5, record.Interval{Low: 0, High: 1}}}
		return
	}
	variances := g.variances()
	above, below := g.unbounded()
	quantile := studentQuantile(confidence, float64(len(g.tasks)-1))
	for i, model := range g.members {
		r := ModelRank{Group: group, Rank: 1, Strength: g.strength[i]}
		for j := range n {
			if g.strength[j] > g.strength[i]+1e-9 {
				r.Rank++
			}
		}
		r.Wins.Value = logistic(r.Strength)
		r.Wins.Interval = record.Interval{Low: 0, High: 1}
		if half := quantile * math.Sqrt(variances[i]); half < math.MaxFloat64 {
			r.Wins.Interval = record.Interval{Low: logistic(r.Strength - half), High: logistic(r.Strength + half)}
		}
		if above[i] {
			r.Wins.Interval.High = 1
		}
		if below[i] {
			r.Wins.Interval.Low = 0
		}
		ranks[model] = r
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
