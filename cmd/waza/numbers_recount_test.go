//go:build unix

package main_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/stretchr/testify/require"
)

// countOf is the member of counts that a verdict is counted in.
var countOf = map[string]string{
	"passed": "passed", "failed": "failed", "error": "errors", "timeout": "timeouts", "cancelled": "cancelled",
	"skipped": "skipped", "needs_review": "needsReview",
}

// recounted is what the trials of some tasks come to.
type recounted struct {
	counts, tasks map[string]float64
	scores, means []float64 // of counted trials, of tasks
	times         []float64
	flaky         float64
	usage         map[string]float64 // by role and name
	judged        []float64
	tools         map[string][]float64 // of trials by what they measure, of tasks for several tasks
}

func newRecounted() *recounted {
	return &recounted{counts: map[string]float64{}, tasks: map[string]float64{}, usage: map[string]float64{}}
}

func (r *recounted) counted() float64 {
	return r.counts["passed"] + r.counts["failed"] + r.counts["timeouts"]
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percentile is the value at a share of the places between the first and the last, between two
// neighbors in proportion.
func percentile(list []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	place := share * float64(len(sorted)-1)
	low, part := math.Modf(place)
	high := min(int(low)+1, len(sorted)-1)
	return sorted[int(low)] + part*(sorted[high]-sorted[int(low)])
}

// holdsSpread holds the numbers of some times.
func (l *ledger) holdsSpread(at string, times []float64) {
	l.t.Helper()
	l.is("recount", float64(len(times)), at+"/n")
	l.is("recount", mean(times), at+"/mean")
	l.is("recount", median(times), at+"/median")
	l.is("recount", percentile(times, 0.9), at+"/p90")
	l.is("recount", percentile(times, 0.95), at+"/p95")
	l.is("recount", slices.Min(times), at+"/min")
	l.is("recount", slices.Max(times), at+"/max")
}

// addTrial reads what a trial was, and nothing that was summed up of it.
func (r *recounted) addTrial(l *ledger, at string) {
	verdict := l.text(at + "/verdict")
	r.counts["total"]++
	r.counts[countOf[verdict]]++
	if verdict == "passed" || verdict == "failed" || verdict == "timeout" {
		score, _ := l.number(at + "/score")
		if verdict == "timeout" {
			require.Zero(l.t, score)
		}
		ms, _ := l.number(at + "/durationMs")
		r.scores, r.times = append(r.scores, score), append(r.times, ms)
	}
	if r.tools == nil {
		r.tools = map[string][]float64{}
	}
	if verdict == "passed" || verdict == "failed" || verdict == "timeout" || verdict == "needs_review" {
		for _, name := range toolNames {
			if x, ok := l.number(at + "/tools/" + name); ok {
				r.tools[name] = append(r.tools[name], x)
			}
		}
	} else {
		require.Nil(l.t, l.get(at+"/tools"))
	}
	if verdict == "timeout" { // the graders had nothing to grade
		require.Equal(l.t, "judged", l.text(at+"/ungraded/0/name"))
		r.judged = append(r.judged, 0)
	}
	attempts := []string{at}
	for i := range l.len(at + "/attempts") {
		attempts = append(attempts, fmt.Sprintf("%s/attempts/%d", at, i))
	}
	for _, a := range attempts {
		r.addUsage(l, "agent", a+"/usage")
		for i := range l.len(a + "/graders") {
			g := fmt.Sprintf("%s/graders/%d", a, i)
			r.addUsage(l, "judges", g+"/details/usage")
			if score, ok := l.number(g + "/score"); ok && a == at && l.text(g+"/name") == "judged" {
				r.judged = append(r.judged, score)
			}
		}
	}
	for role, sum := range map[string]map[string]float64{"agent": {}, "judges": {}} { // the ledger of the trial
		one := newRecounted()
		for _, a := range attempts {
			if role == "agent" {
				one.addUsage(l, role, a+"/usage")
				continue
			}
			for i := range l.len(a + "/graders") {
				one.addUsage(l, role, fmt.Sprintf("%s/graders/%d/details/usage", a, i))
			}
		}
		for _, name := range usageNames {
			sum[name], _ = l.number(at + "/spent/" + role + "/" + name)
			require.InDelta(l.t, one.usage[role+name], sum[name], 1e-9, "%s: %s of %s", at, name, role)
		}
	}
}

var toolNames = []string{"selection", "params", "overall"}

// holdsTools holds means of tool scores.
func (l *ledger) holdsTools(at string, tools map[string][]float64) {
	l.t.Helper()
	for _, name := range toolNames {
		if len(tools[name]) == 0 {
			require.Nil(l.t, l.get(at+"/tools/"+name))
			continue
		}
		l.is("recount", mean(tools[name]), at+"/tools/"+name)
	}
}

var usageNames = []string{"inputTokens", "outputTokens", "costUsd"}

func (r *recounted) addUsage(l *ledger, role, at string) {
	for _, name := range usageNames {
		n, _ := l.number(at + "/" + name)
		r.usage[role+name] += n
	}
}

// add adds what a task came to.
func (r *recounted) add(task *recounted, verdict string) {
	for name, n := range task.counts {
		r.counts[name] += n
	}
	r.tasks["total"]++
	r.tasks[countOf[verdict]]++
	r.scores, r.times = slices.Concat(r.scores, task.scores), slices.Concat(r.times, task.times)
	r.judged = slices.Concat(r.judged, task.judged)
	if len(task.scores) > 0 && task.counts["needsReview"] == 0 {
		r.means = append(r.means, mean(task.scores))
	}
	if r.tools == nil {
		r.tools = map[string][]float64{}
	}
	for name, list := range task.tools {
		r.tools[name] = append(r.tools[name], mean(list))
	}
	if p := task.counts["passed"]; p > 0 && p < task.counted() {
		r.flaky++
	}
	r.addSpent(task)
}

func (r *recounted) addSpent(o *recounted) {
	for name, n := range o.usage {
		r.usage[name] += n
	}
}

func (l *ledger) holdsCounts(at string, counts map[string]float64) {
	l.t.Helper()
	for _, name := range countNames {
		l.is("recount", counts[name], at+"/"+name)
	}
}

// holdsRate holds the interval to the definition of Clopper and Pearson as well: at a limit, the
// passes or more of them, or the passes or fewer of them, have the probability 2.5 %.
func (l *ledger) holdsRate(at string, counts map[string]float64) {
	l.t.Helper()
	n := counts["passed"] + counts["failed"] + counts["timeouts"]
	if waiting := counts["needsReview"]; waiting > 0 {
		require.Nil(l.t, l.get(at+"/passRate"))
		l.is("recount", counts["passed"]/(n+waiting), at+"/passRateBounds/low")
		l.is("recount", (counts["passed"]+waiting)/(n+waiting), at+"/passRateBounds/high")
		return
	}
	if n == 0 {
		require.Nil(l.t, l.get(at+"/passRate"))
		return
	}
	l.is("recount", counts["passed"]/n, at+"/passRate")
	low, high := exactLimits(int(counts["passed"]), int(n))
	l.is("recount", low, at+"/passRateInterval/low")
	l.is("recount", high, at+"/passRateInterval/high")
}

// exactLimits finds the limits by adding up probabilities.
func exactLimits(passed, n int) (low, high float64) {
	atMost := func(k int, p float64) float64 {
		sum, term := 0.0, math.Pow(1-p, float64(n))
		for i := range k + 1 {
			sum += term
			term *= float64(n-i) / float64(i+1) * p / (1 - p)
		}
		return sum
	}
	search := func(above func(p float64) bool) float64 {
		from, to := 0.0, 1.0
		for range 60 {
			if p := (from + to) / 2; above(p) {
				to = p
			} else {
				from = p
			}
		}
		return from
	}
	high = 1
	if passed > 0 {
		low = search(func(p float64) bool { return 1-atMost(passed-1, p) > 0.025 })
	}
	if passed < n {
		high = search(func(p float64) bool { return atMost(passed, p) < 0.025 })
	}
	return low, high
}

func (l *ledger) holdsUsage(at string, r *recounted) {
	l.t.Helper()
	for _, name := range usageNames {
		l.is("recount", r.usage["agent"+name]+r.usage["judges"+name], at+"/usage/"+name)
		for _, role := range []string{"agent", "judges"} {
			if l.get(at+"/usageByRole") != nil {
				l.is("recount", r.usage[role+name], at+"/usageByRole/"+role+"/"+name)
			}
		}
	}
}

// recount computes counts, rates, scores and usages again, from the trials alone.
func (l *ledger) recount() {
	all, roles, cells := newRecounted(), map[string]*recounted{}, map[string]*recounted{}
	for i := range l.len("tasks") {
		at := fmt.Sprintf("tasks/%d", i)
		task := newRecounted()
		for j := range l.len(at + "/trials") {
			task.addTrial(l, fmt.Sprintf("%s/trials/%d", at, j))
		}
		l.holdsCounts(at+"/counts", task.counts)
		l.holdsRate(at+"/counts", task.counts)
		l.holdsUsage(at, task)
		if len(task.scores) > 0 && task.counts["needsReview"] == 0 {
			l.is("recount", mean(task.scores), at+"/score/mean")
			l.is("recount", float64(len(task.scores)), at+"/score/n")
			l.is("recount", slices.Min(task.scores), at+"/score/min")
			l.is("recount", slices.Max(task.scores), at+"/score/max")
			l.is("recount", median(task.scores), at+"/score/median")
		} else {
			require.Nil(l.t, l.get(at+"/score"))
		}
		l.holdsTools(at, task.tools)
		if len(task.times) > 0 {
			l.holdsSpread(at+"/durationMs", task.times)
		}
		role, cell := l.text(at+"/role"), l.text(at+"/cell/name")
		for by, m := range map[string]map[string]*recounted{role: roles, cell: cells} {
			if m[by] == nil {
				m[by] = newRecounted()
			}
		}
		roles[role].add(task, l.text(at+"/verdict"))
		if role == "" {
			cells[cell].add(task, l.text(at+"/verdict"))
		}
		all.addSpent(task)
	}
	own := roles[""]
	l.holdsCounts("summary", own.tasks)
	l.holdsRate("summary", own.tasks)
	l.holdsCounts("summary/trials", own.counts)
	l.holdsRate("summary/trials", own.counts)
	l.holdsUsage("summary", all)
	l.holdsTools("summary", own.tools)
	l.is("recount", own.flaky, "summary/flaky")
	if own.counts["needsReview"] == 0 {
		l.is("recount", mean(own.means), "summary/score/mean")
		l.is("recount", float64(len(own.means)), "summary/score/n")
		l.is("recount", median(own.means), "summary/score/median")
	} else {
		require.Nil(l.t, l.get("summary/score"))
	}
	for i := range l.len("summary/groups") {
		at := fmt.Sprintf("summary/groups/%d", i)
		cell := cells[l.text(at+"/group")]
		l.holdsCounts(at, cell.counts)
		l.holdsRate(at, cell.counts)
		l.holdsCounts(at+"/tasks", cell.tasks)
		l.holdsUsage(at, cell)
		l.holdsSpread(at+"/durationMs", cell.times)
		l.holdsTools(at, cell.tools)
		if cell.counts["needsReview"] == 0 {
			l.is("recount", mean(cell.means), at+"/score/mean")
		}
	}
	l.holdsCounts("summary/baseline/trials", roles["baseline"].counts)
	l.holdsCounts("summary/triggers/trials", roles["trigger"].counts)
	l.is("recount", mean(own.judged), "summary/metrics/2/value")
	if rate, ok := l.number("summary/passRate"); ok {
		l.is("recount", rate, "summary/metrics/0/value")
	}
}
