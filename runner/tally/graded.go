package tally

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// graded holds the scores of the graders that metrics name, by name or type. It keeps each
// score, because rounding makes a sum depend on the order in which trials happen to end.
type graded struct {
	scores map[string][]float64
	// most holds, for each task, the most scores that one of its trials gave to each name.
	most []map[string]int
	// unfinished holds the trials that the agent did not finish.
	unfinished []unfinished
}

// unfinished is a trial that the agent did not finish. Its scores are 0.
type unfinished struct {
	task   int
	scores map[string]int // how many, by name or type
}

func newGraded(rec *record.Run) graded {
	g := graded{scores: map[string][]float64{}, most: make([]map[string]int, len(rec.Tasks))}
	for _, m := range rec.Metrics {
		g.scores[graderOfMetric(m.Name)] = nil
	}
	return g
}

// add adds a trial of the task with that index. The other graders of a trial that waits for a
// person have scores. Omitting them would omit passed trials, and not failed ones.
func (g *graded) add(task int, res *record.Trial) {
	if len(g.scores) == 0 || !res.Verdict.Counted() && res.Verdict != record.NeedsReview {
		return
	}
	counts, ended := map[string]int{}, 0
	for i := range res.Graders {
		r := &res.Graders[i]
		if r.AfterTurn > 0 {
			continue // of a checkpoint
		}
		ended++
		if late := res.Verdict == record.TimedOut && !r.Calibrates(); !r.Scored() && !late {
			continue // a person has not scored it yet
		}
		for _, name := range g.wanted(r.Name, r.Type) {
			counts[name]++
			if res.Verdict != record.TimedOut {
				g.scores[name] = append(g.scores[name], r.Score)
			}
		}
	}
	finished := res.Verdict != record.TimedOut && (res.Verdict != record.Failed || ended > 0)
	if finished {
		if g.most[task] == nil {
			g.most[task] = map[string]int{}
		}
		for name, n := range counts {
			g.most[task][name] = max(g.most[task][name], n)
		}
		return
	}
	for _, r := range res.Ungraded {
		for _, name := range g.wanted(r.Name, r.Type) {
			counts[name]++
		}
	}
	g.unfinished = append(g.unfinished, unfinished{task, counts})
}

// wanted returns the names under which metrics ask for a grader: its name, its type, or both.
func (g *graded) wanted(name, typ string) []string {
	var names []string
	if _, ok := g.scores[name]; ok {
		names = append(names, name)
	}
	if _, ok := g.scores[typ]; ok && typ != name {
		names = append(names, typ)
	}
	return names
}

// mean returns the mean of the scores of graders with that name or type. A trial that the agent
// did not finish counts as 0 for each of them: for those that the trial names, or, in older
// records, those that scored another trial of its task. ok is false without scores.
//
// For example, two trials have the score 1 and six timed out: the mean is 2 / 8 = 0.25.
func (g *graded) mean(name string) (mean float64, ok bool) {
	scores := g.scores[name]
	scores = scores[:len(scores):len(scores)]
	for _, u := range g.unfinished {
		for range max(u.scores[name], g.most[u.task][name]) {
			scores = append(scores, 0)
		}
	}
	return stats.Describe(scores).Mean, len(scores) > 0
}
