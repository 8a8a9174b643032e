package tally

import (
	"fmt"
	"math"
	"slices"

	"waza/eval"
	"waza/runner/internal/given"
	"waza/runner/record"
)

// CheckTrial returns an error for a trial of another process whose numbers cannot be counted, or
// whose verdict contradicts its grades.
func CheckTrial(res *record.Trial) error {
	if !res.Verdict.Known() {
		return fmt.Errorf("unknown verdict %q", res.Verdict)
	}
	if res.Score != nil {
		if err := given.Check(*res.Score); err != nil {
			return err
		}
	}
	for i := range res.Graders {
		g := &res.Graders[i]
		if err := given.Check(g.Score); err != nil {
			return fmt.Errorf("grader %q: %w", g.Name, err)
		}
		if !(g.Weight >= 0) || math.IsInf(g.Weight, 0) {
			return fmt.Errorf("grader %q: the weight is %v, expected 0 or more", g.Name, g.Weight)
		}
		if in := g.Group; in != nil && (!(in.Weight >= 0) || math.IsInf(in.Weight, 0)) {
			return fmt.Errorf("group %q: the weight is %v, expected 0 or more", in.Name, in.Weight)
		}
		if in := g.Group; in != nil && !in.Aggregate.Known() {
			return fmt.Errorf("group %q: unknown rule %q", in.Name, in.Aggregate)
		}
	}
	if verdict, _, _ := VerdictOf(res.Graders, res.ScoreThreshold); res.Verdict == record.Passed && verdict != record.Passed {
		return fmt.Errorf("the verdict is passed, but that of its graders is %s", verdict)
	}
	return nil
}

// VerdictOf returns the verdict of graders on a trial whose executor ended normally. It is
// error, explained by message, when a grader failed to do its work. It is failed when a grader
// or a group of graders did not pass, which no person's score can change; with a threshold, when the
// score cannot reach it. It is needs_review while a person's score is missing that decides, and
// otherwise passed.
//
// The score is the weighted mean of the existing scores, where a group counts as one, with the score that its rule gives. It is 1 when
// nothing was to be graded. It is nil for an error, and when only people give scores and none exists
// yet. Optional results and those that calibrate another grader affect neither verdict nor score.
// Results of checkpoints affect only the verdict.
func VerdictOf(graders []record.Grade, threshold *float64) (verdict record.Verdict, score *float64, message string) {
	trial := judged{threshold: threshold}
	var groups []*group
	stumbled := false // at a checkpoint
	for i := range graders {
		g := &graders[i]
		switch {
		case !g.Counts():
		case g.Error != "":
			return record.Errored, nil, fmt.Sprintf("grader %q: %s", g.Name, g.Error)
		case g.AfterTurn > 0:
			stumbled = stumbled || !g.NeedsReview && !g.Passed
			trial.open = trial.open || g.NeedsReview
		case g.Group != nil:
			groups = addToGroup(groups, g)
		default:
			trial.add(g.Weight, opinionOf(g))
		}
	}
	for _, group := range groups {
		trial.add(group.Weight, group.opinion())
	}
	all := trial.opinion()
	if stumbled {
		all.verdict = record.Failed
		if trial.all == 0 && !trial.open { // nothing else was to be graded
			all.score = new(float64)
		}
	}
	return all.verdict, all.score, ""
}

// opinion is the judgment of a grader, a group or a trial.
type opinion struct {
	verdict record.Verdict // passed, failed or needs_review
	// score is the weighted mean of the existing scores; nil without any. low and high are the
	// least and the greatest score that missing scores of people allow.
	score     *float64
	low, high float64
}

func opinionOf(g *record.Grade) opinion {
	switch {
	case g.NeedsReview:
		return opinion{verdict: record.NeedsReview, high: 1}
	case g.Passed:
		return opinion{record.Passed, &g.Score, g.Score, g.Score}
	}
	return opinion{record.Failed, &g.Score, g.Score, g.Score}
}

// judged sums up the opinions about a trial or in a group.
type judged struct {
	threshold *float64
	// sum and weights are of the existing scores. low, high and all are of all graders.
	sum, weights   float64
	low, high, all float64
	failed, open   bool // a grader failed, or waits for a person
}

func (j *judged) add(weight float64, o opinion) {
	if o.score != nil {
		j.sum += weight * *o.score
		j.weights += weight
	}
	j.low += weight * o.low
	j.high += weight * o.high
	j.all += weight
	j.failed = j.failed || o.verdict == record.Failed
	j.open = j.open || o.verdict == record.NeedsReview
}

// opinion returns the opinion of all together. Nothing to judge passes with the score 1.
func (j *judged) opinion() opinion {
	o := opinion{verdict: record.Passed, low: 1, high: 1}
	if j.weights > 0 {
		o.score = new(j.sum / j.weights)
	} else if j.all == 0 && !j.open {
		o.score = new(1.0)
	}
	if j.all > 0 {
		o.low, o.high = j.low/j.all, j.high/j.all
	}
	return j.decide(o)
}

// decide returns an opinion with its verdict: by the threshold or, without one, by all graders.
func (j *judged) decide(o opinion) opinion {
	o.verdict = record.Passed
	switch {
	case j.threshold != nil:
		switch least := *j.threshold - scoreMargin; {
		case o.high < least:
			o.verdict = record.Failed
		case o.low < least:
			o.verdict = record.NeedsReview
		}
	case j.failed:
		o.verdict = record.Failed
	case j.open:
		o.verdict = record.NeedsReview
	}
	return o
}

// scoreMargin is the most that sums of floats can be away from a threshold that they reach.
const scoreMargin = 1e-9

// group sums up the opinions of a group of graders.
type group struct {
	*record.GradeGroup
	judged
	members []opinion // for all rules but the mean
}

// opinion returns the opinion of the group by its rule.
func (g *group) opinion() opinion {
	switch g.Aggregate {
	case eval.Median:
		return g.across(median)
	case eval.Min:
		return g.across(slices.Min[[]float64])
	case eval.Majority:
		return g.majority()
	}
	return g.judged.opinion()
}

// across returns the opinion whose score is a number of the members' scores. A missing score of a person can
// be any, so the number must not fall when a score rises.
func (g *group) across(number func([]float64) float64) (o opinion) {
	var low, high, scores []float64
	for _, m := range g.members {
		low, high = append(low, m.low), append(high, m.high)
		if m.score != nil {
			scores = append(scores, *m.score)
		}
	}
	o.low, o.high = number(low), number(high)
	if len(scores) > 0 {
		o.score = new(number(scores))
	}
	return g.decide(o)
}

// majority returns the opinion of more than half of the members. The score is the share of members that
// passed, without those that wait for a person. A tie is no majority.
func (g *group) majority() opinion {
	n, passed, open := len(g.members), 0, 0
	for _, m := range g.members {
		switch m.verdict {
		case record.Passed:
			passed++
		case record.NeedsReview:
			open++
		}
	}
	o := opinion{verdict: record.Failed, low: float64(passed) / float64(n), high: float64(passed+open) / float64(n)}
	if n > open {
		o.score = new(float64(passed) / float64(n-open))
	}
	switch {
	case 2*passed > n:
		o.verdict = record.Passed
	case 2*(passed+open) > n:
		o.verdict = record.NeedsReview
	}
	return o
}

// median returns the median of at least one number. That of an even count is the mean of the two in the middle.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// addToGroup adds the opinion of a grader to that of its group.
func addToGroup(groups []*group, g *record.Grade) []*group {
	i := slices.IndexFunc(groups, func(known *group) bool { return known.Name == g.Group.Name })
	if i < 0 {
		i = len(groups)
		groups = append(groups, &group{GradeGroup: g.Group, judged: judged{threshold: g.Group.Threshold}})
	}
	o := opinionOf(g)
	groups[i].add(g.Weight, o)
	if g.Group.Aggregate != "" {
		groups[i].members = append(groups[i].members, o)
	}
	return groups
}

// GroupPassed reports whether a group of graders passed. The grades are those of its members, at least one.
func GroupPassed(members []*record.Grade) bool {
	var groups []*group
	for _, g := range members {
		groups = addToGroup(groups, g)
	}
	return groups[0].opinion().verdict == record.Passed
}
