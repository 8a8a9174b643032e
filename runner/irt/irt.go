// Package irt fits how hard and how informative the tasks of a suite are (item response theory), and
// chooses the smallest subset of tasks that orders agents like the whole suite. Call [Choose].
//
// All functions are pure and deterministic: random draws have a fixed seed.
package irt

import (
	"math"
	"slices"
)

// A Table holds how often each subject passed each task. A subject is an agent in one
// configuration. Every subject has at least one trial of every task.
type Table struct {
	// Passed and Trials are by subject, then by task.
	Passed, Trials [][]int
}

func (t Table) subjects() int { return len(t.Trials) }

func (t Table) tasks() int { return len(t.Trials[0]) }

func (t Table) rate(subject, task int) float64 {
	return float64(t.Passed[subject][task]) / float64(t.Trials[subject][task])
}

// only returns the table of some subjects.
func (t Table) only(subjects []int) Table {
	var o Table
	for _, i := range subjects {
		o.Passed, o.Trials = append(o.Passed, t.Passed[i]), append(o.Trials, t.Trials[i])
	}
	return o
}

// mean returns the mean pass rate of a subject over tasks.
func (t Table) mean(subject int, tasks []int) float64 {
	sum := 0.0
	for _, k := range tasks {
		sum += t.rate(subject, k)
	}
	return sum / float64(len(tasks))
}

// A model holds the parameters of each task: an agent of ability x, whose distribution is
// standard normal, passes a trial with the probability 1/(1+exp(-(slope·x+intercept))). That is
// the two-parameter logistic model (Birnbaum 1968, "Some latent trait models and their use in
// inferring an examinee's ability").
type model struct{ slope, intercept []float64 }

const (
	// nodes is the number of abilities of the grid, from -maxAbility to maxAbility.
	nodes      = 21
	maxAbility = 4
	// steps limits the steps of the expectation maximization.
	steps = 40
	// slopeSD and interceptSD are the standard deviations of the normal priors. They keep the
	// parameters finite with few subjects. The mean of the slopes is estimated from all tasks.
	slopeSD     = 0.5
	interceptSD = 2
	// mostTrials is the number from which on more trials of a subject at a task count no more,
	// because these trials share everything that is special about the subject and the task.
	mostTrials = 5
)

func ability(node int) float64 { return maxAbility * (2*float64(node)/(nodes-1) - 1) }

// weights returns the shares of the abilities in a standard normal distribution.
func weights() []float64 {
	list := make([]float64, nodes)
	sum := 0.0
	for q := range list {
		list[q] = math.Exp(-ability(q) * ability(q) / 2)
		sum += list[q]
	}
	for q := range list {
		list[q] /= sum
	}
	return list
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// fit estimates the parameters by marginal maximum likelihood with normal priors (Bock and Aitkin
// 1981, "Marginal maximum likelihood estimation of item parameters: application of an EM
// algorithm"; Mislevy 1986, "Bayes modal estimation in item response models").
func fit(t Table) model {
	m := model{make([]float64, t.tasks()), make([]float64, t.tasks())}
	passed, trials := make([][]float64, t.subjects()), make([][]float64, t.subjects())
	for i := range t.Trials {
		for k, n := range t.Trials[i] {
			w := float64(min(n, mostTrials))
			passed[i], trials[i] = append(passed[i], float64(w*t.rate(i, k))), append(trials[i], w)
		}
	}
	for k := range m.slope {
		p, n := 0.5, 1.0
		for i := range passed {
			p, n = p+passed[i][k], n+trials[i][k]
		}
		m.slope[k], m.intercept[k] = 1, math.Log(p/(n-p))
	}
	prior := weights()
	center := 1.0
	for range steps {
		hits, tries := expect(m, passed, trials, prior)
		change := 0.0
		for k := range m.slope {
			change = max(change, m.maximize(k, hits[k], tries[k], center))
		}
		center = 0
		for _, a := range m.slope {
			center += a / float64(len(m.slope))
		}
		center = max(0.3, min(3, center))
		if change < 1e-4 {
			break
		}
	}
	return m
}

// expect returns, by task and ability, the expected numbers of passes and of trials.
func expect(m model, passed, trials [][]float64, prior []float64) (hits, tries [][]float64) {
	pass, fail := make([][]float64, len(m.slope)), make([][]float64, len(m.slope)) // logarithms
	for k := range m.slope {
		hits, tries = append(hits, make([]float64, nodes)), append(tries, make([]float64, nodes))
		pass[k], fail[k] = make([]float64, nodes), make([]float64, nodes)
		for q := range nodes {
			p := max(1e-9, min(1-1e-9, logistic(float64(m.slope[k]*ability(q))+m.intercept[k])))
			pass[k][q], fail[k][q] = math.Log(p), math.Log1p(-p)
		}
	}
	post := make([]float64, nodes)
	for i := range passed {
		for q := range post {
			post[q] = math.Log(prior[q])
		}
		for k := range m.slope {
			hit, miss := passed[i][k], trials[i][k]-passed[i][k]
			for q := range post {
				post[q] += float64(hit*pass[k][q]) + float64(miss*fail[k][q])
			}
		}
		most, sum := slices.Max(post), 0.0
		for q := range post {
			post[q] = math.Exp(post[q] - most)
			sum += post[q]
		}
		for k := range m.slope {
			for q := range post {
				w := post[q] / sum
				hits[k][q] += float64(w * passed[i][k])
				tries[k][q] += float64(w * trials[i][k])
			}
		}
	}
	return hits, tries
}

// maximize takes Newton steps for the parameters of a task, and returns the size of the last one.
func (m model) maximize(k int, hits, tries []float64, center float64) float64 {
	last := 0.0
	for range 2 {
		a, d := m.slope[k], m.intercept[k]
		ga, gd := -(a-center)/(slopeSD*slopeSD), -d/(interceptSD*interceptSD)
		haa, had, hdd := 1/(slopeSD*slopeSD), 0.0, 1.0/(interceptSD*interceptSD)
		for q := range nodes {
			x := ability(q)
			p := logistic(float64(a*x) + d)
			miss, w := hits[q]-float64(tries[q]*p), float64(tries[q]*p*(1-p))
			ga, gd = ga+float64(miss*x), gd+miss
			haa, had, hdd = haa+float64(w*x*x), had+float64(w*x), hdd+w
		}
		det := float64(haa*hdd) - float64(had*had)
		da, dd := (float64(hdd*ga)-float64(had*gd))/det, (float64(haa*gd)-float64(had*ga))/det
		da, dd = max(-1, min(1, da)), max(-1, min(1, dd))
		m.slope[k], m.intercept[k] = a+da, d+dd
		last = max(math.Abs(da), math.Abs(dd))
	}
	return last
}

// order sorts the tasks so that each number of first tasks orders subjects as much like all tasks
// as the model allows: it adds the task that raises the correlation of the mean pass rates most.
// trials is the usual number of trials of each task.
func (m model) order(trials []float64) []int {
	n := len(m.slope)
	prior := weights()
	curves, noise := make([][]float64, n), make([]float64, n)
	all := make([]float64, nodes)
	for k := range n {
		curves[k] = make([]float64, nodes)
		mean := 0.0
		for q := range nodes {
			p := logistic(float64(m.slope[k]*ability(q)) + m.intercept[k])
			curves[k][q] = p
			mean += float64(prior[q] * p)
			noise[k] += float64(prior[q]*p*(1-p)) / trials[k]
		}
		for q := range nodes {
			curves[k][q] -= mean
			all[q] += curves[k][q]
		}
	}
	var list []int
	used := make([]bool, n)
	sum := make([]float64, nodes)
	chance := 0.0
	for len(list) < n {
		best, most := -1, math.Inf(-1)
		for k := range n {
			if used[k] {
				continue
			}
			own, with := chance+noise[k], chance+noise[k]
			for q := range nodes {
				s := sum[q] + curves[k][q]
				own += float64(prior[q] * s * s)
				with += float64(prior[q] * s * all[q])
			}
			if r := math.Round(with/math.Sqrt(max(own, 1e-12))*1e9) / 1e9; r > most {
				best, most = k, r
			}
		}
		used[best], list = true, append(list, best)
		chance += noise[best]
		for q := range nodes {
			sum[q] += curves[best][q]
		}
	}
	return list
}
