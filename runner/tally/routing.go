package tally

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/stats"
)

// Limits of the routing lists in a summary.
const (
	maxConfusion     = 500
	maxMisroutes     = 200
	maxMisrouteBytes = 300 // of a reason
)

// routed counts the routing results of trials by task.
type routed struct {
	tasks []routedTask
	// misroutes contains the first ones in the order of the suite; missed is their total number.
	misroutes []misroute
	missed    int
}

// routedTask counts the trials of a task with expected recipients.
type routedTask struct {
	trials, rerouted, errors, timeouts int
	pairs                              map[string]*pair
}

// pair counts the trials with certain expected clients that certain clients took. A trial that
// timed out has nobody's answer, although no client took the message.
type pair struct {
	expected, took []string
	timedOut       bool
	trials         int
}

// misroute is a misroute with its position.
type misroute struct {
	task int
	record.Misroute
}

func (m misroute) compare(o misroute) int {
	return cmp.Or(cmp.Compare(m.task, o.task), cmp.Compare(m.TrialNum, o.TrialNum))
}

// add adds a trial. Answered trials count, whatever their grades, and so do timeouts.
func (r *routed) add(task int, ref *record.TaskRef, res *record.Trial) {
	one := res.Routing
	if one == nil || one.Expected == nil {
		return
	}
	t := &r.tasks[task]
	switch res.Verdict {
	case record.Passed, record.Failed, record.NeedsReview:
	case record.Errored:
		t.errors++
		return
	case record.TimedOut:
		t.trials++
		t.timeouts++
		t.count(pair{expected: one.Expected, timedOut: true})
		return
	default:
		return
	}
	t.trials++
	if one.Reroutes > 0 {
		t.rerouted++
	}
	t.count(pair{expected: one.Expected, took: one.Took})
	if !one.Missed() {
		return
	}
	r.missed++
	m := misroute{task, record.Misroute{
		TaskID: ref.ID, TrialNum: res.TrialNum, Expected: one.Expected, Took: one.Took, Rejected: one.Rejected,
		Reason: text.Clip(one.Reason, maxMisrouteBytes),
	}}
	at, _ := slices.BinarySearchFunc(r.misroutes, m, misroute.compare)
	r.misroutes = slices.Insert(r.misroutes, at, m)
	r.misroutes = r.misroutes[:min(len(r.misroutes), maxMisroutes)]
}

func (t *routedTask) count(p pair) {
	if t.pairs == nil {
		t.pairs = map[string]*pair{}
	}
	key := p.key()
	if t.pairs[key] == nil {
		t.pairs[key] = &p
	}
	t.pairs[key].trials++
}

// key returns a key for the pair. Names of clients contain neither comma nor slash.
func (p *pair) key() string {
	return fmt.Sprint(strings.Join(p.expected, ","), "/", strings.Join(p.took, ","), "/", p.timedOut)
}

// result summarizes the routing in a cell; nil means all of them. It returns nil for a run whose
// tasks expect no recipients.
//
// For example, a task for notebook has three trials, of which notebook takes two and calendar
// one, and a task for calendar has one trial, which calendar takes. Notebook has 2/3 true
// positives and 1/3 false negatives: its precision is 1, its recall 0.667. Calendar has 1 true
// and 1/3 false positives: its precision is 0.75, its recall 1. The accuracy is (2/3 + 1) / 2 =
// 0.833.
func (r *routed) result(rec *record.Run, cell *record.Cell) *record.RoutingResult {
	s := &routingSum{clients: map[string]*record.ClientResult{}, pairs: map[string]*record.ConfusionCell{}}
	for i := range r.tasks {
		if ref := &rec.Tasks[i]; ref.Role == record.RoleTask && ref.Cell.In(cell) {
			s.addTask(&r.tasks[i])
		}
	}
	if s.res.Tasks+s.res.Errors == 0 {
		return nil
	}
	for i := range r.misroutes {
		s.res.Misroutes = append(s.res.Misroutes, r.misroutes[i].Misroute)
	}
	s.res.MisroutesDropped = r.missed - len(r.misroutes)
	return s.result()
}

// routingSum sums up tasks. A task adds its shares once and in order, so that no sum depends on
// the order in which trials happen to end.
type routingSum struct {
	res     record.RoutingResult
	parts   []stats.Part
	clients map[string]*record.ClientResult
	pairs   map[string]*record.ConfusionCell
}

func (s *routingSum) addTask(t *routedTask) {
	s.res.Errors += t.errors
	s.res.Timeouts += t.timeouts
	if t.trials == 0 {
		return
	}
	s.res.Tasks++
	s.res.Trials += t.trials
	s.res.Rerouted += t.rerouted
	right, matches := 0, map[string]*matchCounts{}
	of := func(name string) *matchCounts {
		if matches[name] == nil {
			matches[name] = &matchCounts{}
		}
		return matches[name]
	}
	share := func(n int) float64 { return float64(n) / float64(t.trials) }
	for key, p := range t.pairs {
		if p.timedOut { // nobody's answer is right, even if nobody was expected
			for _, name := range p.expected {
				of(name).falseNegatives += p.trials
			}
			continue
		}
		if s.pairs[key] == nil {
			s.pairs[key] = &record.ConfusionCell{Expected: p.expected, Took: p.took}
		}
		s.pairs[key].Trials += p.trials
		s.pairs[key].Weight += share(p.trials)
		if slices.Equal(p.expected, p.took) {
			right += p.trials
		}
		for _, name := range p.expected {
			if slices.Contains(p.took, name) {
				of(name).truePositives += p.trials
			} else {
				of(name).falseNegatives += p.trials
			}
		}
		for _, name := range p.took {
			if !slices.Contains(p.expected, name) {
				of(name).falsePositives += p.trials
			}
		}
	}
	s.parts = append(s.parts, stats.RatePart(stats.Share{Passed: right, N: t.trials}))
	for name, n := range matches {
		c := s.client(name)
		c.TruePositives += share(n.truePositives)
		c.FalsePositives += share(n.falsePositives)
		c.FalseNegatives += share(n.falseNegatives)
	}
}

// matchCounts counts the trials of a task.
type matchCounts struct{ truePositives, falsePositives, falseNegatives int }

func (s *routingSum) client(name string) *record.ClientResult {
	if s.clients[name] == nil {
		s.clients[name] = &record.ClientResult{Client: name}
	}
	return s.clients[name]
}

func (s *routingSum) result() *record.RoutingResult {
	r := &s.res
	r.Clients = []record.ClientResult{}
	for _, c := range s.clients {
		addClientQuotients(&c.ClientMatches)
		r.Clients = append(r.Clients, *c)
	}
	slices.SortFunc(r.Clients, func(a, b record.ClientResult) int { return cmp.Compare(a.Client, b.Client) })
	for _, c := range r.Clients {
		r.TruePositives += c.TruePositives
		r.FalsePositives += c.FalsePositives
		r.FalseNegatives += c.FalseNegatives
	}
	addClientQuotients(&r.ClientMatches)
	if e, ok := stats.MeanOver(s.parts, stats.DefaultConfidence); ok {
		r.Accuracy, r.AccuracyInterval = &e.Value, &e.Interval
	}
	s.confusion()
	return r
}

// confusion lists the pairs; beyond the limit only the heaviest.
func (s *routingSum) confusion() {
	list := make([]record.ConfusionCell, 0, len(s.pairs))
	for _, c := range s.pairs {
		list = append(list, *c)
	}
	order := func(a, b record.ConfusionCell) int {
		return cmp.Or(slices.Compare(a.Expected, b.Expected), cmp.Compare(b.Weight, a.Weight), slices.Compare(a.Took, b.Took))
	}
	if n := len(list) - maxConfusion; n > 0 {
		slices.SortFunc(list, func(a, b record.ConfusionCell) int { return cmp.Or(cmp.Compare(b.Weight, a.Weight), order(a, b)) })
		list, s.res.ConfusionDropped = list[:maxConfusion], n
	}
	slices.SortFunc(list, order)
	s.res.Confusion = list
}

func addClientQuotients(m *record.ClientMatches) {
	m.Precision = quotient(m.TruePositives, m.TruePositives+m.FalsePositives)
	m.Recall = quotient(m.TruePositives, m.TruePositives+m.FalseNegatives)
	m.F1 = quotient(2*m.TruePositives, 2*m.TruePositives+m.FalsePositives+m.FalseNegatives)
}
