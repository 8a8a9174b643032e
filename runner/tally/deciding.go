package tally

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/decide"
	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/stats"
)

// Deciding chooses the pairs of trials that decide the question of a run, and answers it. The
// choice depends only on the question and on the results of the chosen trials, not on the order in
// which they end. A resumed run therefore chooses the same pairs again. It is not safe for
// concurrent use.
type Deciding struct {
	question record.DecideQuestion
	sides    [][2]pairedSide // by task of the question: A and B
	results  map[PairedTrial]pairedResult

	evidence *decide.Evidence
	taken    []int            // by task: number of chosen pairs
	batch    [][2]PairedTrial // chosen pairs without results
	missing  int
	costs    [2]sideCosts
	executed int
	reused   int
	spent    float64
}

// A PairedTrial is a trial on one side: the index of its task in the run, and its number.
type PairedTrial struct{ Task, Num int }

// pairedSide is the task of a run on one side.
type pairedSide struct{ task, first, trials int }

type pairedResult struct {
	passed, counted bool
	reused          bool
	spent           float64 // by this run
	cost            float64 // also by earlier runs
}

// sideCosts are the costs of the trials on one side, wherever they were executed.
type sideCosts struct {
	trials int
	sum    float64
}

// NewDeciding returns nil for a run without a question.
func NewDeciding(rec *record.Run) *Deciding {
	if rec.Question == nil {
		return nil
	}
	d := &Deciding{question: *rec.Question, sides: pairedSides(rec), results: map[PairedTrial]pairedResult{}}
	d.restart()
	return d
}

// pairedSides returns the paired tasks of a run. A task on side A precedes that on side B.
func pairedSides(rec *record.Run) (sides [][2]pairedSide) {
	before := map[string]pairedSide{}
	for i := range rec.Tasks {
		t := &rec.Tasks[i]
		if !t.Paired {
			continue
		}
		name, side := t.ID, pairedSide{i, t.First, t.Trials}
		switch {
		case t.Role == record.RoleBaseline:
			name = t.Of
		case rec.Baseline == nil:
			name = t.Task
		}
		if a, known := before[name]; known {
			sides = append(sides, [2]pairedSide{a, side})
		} else {
			before[name] = side
		}
	}
	return sides
}

func (d *Deciding) restart() {
	q := &d.question
	d.evidence = decide.New(decide.Question{Tasks: len(d.sides), BetterBy: q.BetterBy, Risk: q.Risk, Batch: q.Batch, Seed: uint64(q.Seed)})
	d.taken, d.batch = make([]int, len(d.sides)), nil
	d.missing, d.costs, d.executed, d.reused, d.spent = 0, [2]sideCosts{}, 0, 0, 0
}

// Add adds the result of a trial of the task with that index. It ignores trials that must run
// again, and tasks that belong to no pair.
func (d *Deciding) Add(task int, res *record.Trial) {
	if d == nil || res.Verdict == record.Cancelled || res.Verdict == record.Skipped {
		return
	}
	passed, counted := pairedOutcome(res)
	r := pairedResult{passed: passed, counted: counted, reused: res.Cached != nil}
	if u := res.SpentHere().Total(); u != nil {
		r.spent = u.CostUSD
	}
	if u := res.Ledger().Total(); u != nil {
		r.cost = u.CostUSD
	}
	d.results[PairedTrial{task, res.TrialNum}] = r
}

// Take adds the results that a run has until now. The run is not in use.
func (d *Deciding) Take(of *Run) {
	if d != nil && of.deciding != nil {
		maps.Copy(d.results, of.deciding.results)
	}
}

// pairedOutcome returns the outcome of a trial according to the graders that both sides have. A
// timeout is a failure.
func pairedOutcome(res *record.Trial) (passed, counted bool) {
	only := false
	var common []record.Grade
	for _, g := range res.Graders {
		if g.SkillsOnly {
			only = true
		} else if g.Counts() {
			common = append(common, g)
		}
	}
	v := res.Verdict
	if only && v.Graded() && len(common) > 0 {
		v, _, _ = VerdictOf(common, res.ScoreThreshold)
	}
	return v == record.Passed, v.Counted()
}

// Next returns the trials that are chosen next, pair by pair, or the reason why no more are chosen.
// It returns the same trials until all of them have results. free reports whether an earlier run
// has the trial, so that it costs nothing.
func (d *Deciding) Next(free func(PairedTrial) bool) (trials []PairedTrial, end record.DecisionEnd) {
	for {
		if d.batch == nil {
			if end := d.choose(free); end != "" {
				return nil, end
			}
		}
		for _, pair := range d.batch {
			for _, at := range pair {
				if _, ended := d.results[at]; !ended {
					trials = append(trials, at)
				}
			}
		}
		if len(trials) > 0 {
			return trials, ""
		}
		d.count()
	}
}

// choose chooses the next pairs, unless something ends the choice.
func (d *Deciding) choose(free func(PairedTrial) bool) record.DecisionEnd {
	tasks := d.evidence.Batch()
	if len(tasks) == 0 {
		return record.EndVerdict
	}
	var batch [][2]PairedTrial
	new := make([]int, len(d.sides))
	var needed [2]int
	for _, i := range tasks {
		var pair [2]PairedTrial
		for side, s := range d.sides[i] {
			n := d.taken[i] + new[i]
			if n >= s.trials {
				return record.EndTrials
			}
			pair[side] = PairedTrial{s.task, s.first + n}
			if r, ended := d.results[pair[side]]; !ended && !free(pair[side]) || ended && !r.reused {
				needed[side]++
			}
		}
		new[i]++
		batch = append(batch, pair)
	}
	if !d.affords(needed) {
		return record.EndBudget
	}
	for i, n := range new {
		d.taken[i] += n
	}
	d.batch = batch
	return ""
}

// affords reports whether the budget allows that many more trials of each side. Until a trial has
// ended, its cost is unknown; then a budget above 0 allows the first pairs.
func (d *Deciding) affords(needed [2]int) bool {
	if most := d.question.MaxTrials; most != nil && d.executed+needed[0]+needed[1] > *most && needed[0]+needed[1] > 0 {
		return false
	}
	if most := d.question.MaxCost; most != nil && needed[0]+needed[1] > 0 {
		const tiny = 1e-8 // sums of floats are inexact
		next := 0.0
		for side, n := range needed {
			next += float64(d.costs[side].mean() * float64(n))
		}
		return *most > 0 && d.spent+next <= *most+tiny
	}
	return true
}

func (c sideCosts) mean() float64 {
	if c.trials == 0 {
		return 0
	}
	return c.sum / float64(c.trials)
}

// count adds the results of the chosen pairs to the evidence.
func (d *Deciding) count() {
	score := map[bool]float64{true: 1}
	outcomes := make([]decide.Outcome, len(d.batch))
	for i, pair := range d.batch {
		a, b := d.results[pair[0]], d.results[pair[1]]
		outcomes[i] = decide.Outcome{A: score[a.passed], B: score[b.passed], Missing: !a.counted || !b.counted}
		if outcomes[i].Missing {
			d.missing++
		}
		for side, at := range pair {
			r := d.results[at]
			d.costs[side].trials++
			d.costs[side].sum += r.cost
			d.spent += r.spent
			if r.reused {
				d.reused++
			} else {
				d.executed++
			}
		}
	}
	d.evidence.Add(outcomes)
	d.batch = nil
}

// Result answers the question with the results that were added. It is nil without a question.
func (d *Deciding) Result() *record.Decision {
	if d == nil {
		return nil
	}
	d.restart()
	trials, end := d.Next(func(PairedTrial) bool { return false })
	if len(trials) > 0 {
		end = record.EndInterrupted
	}
	estimate := d.evidence.Estimate()
	res := &record.Decision{
		DecideQuestion: d.question, Verdict: record.DecisionVerdict(d.evidence.Verdict()), Ended: end,
		Gain: estimate.Value, Interval: estimate.Interval, Tasks: len(d.sides), Pairs: d.evidence.Pairs(), Missing: d.missing,
		Executed: d.executed, Reused: d.reused, SpentUSD: d.spent,
	}
	for _, pair := range d.batch {
		for _, at := range pair {
			res.SpentUSD += d.results[at].spent
		}
	}
	if res.Verdict == record.DecidedNothing && res.Pairs > 0 {
		if n, ok := d.evidence.More(); ok {
			res.More = &record.MorePairs{Pairs: n, CostUSD: float64(n) * (d.costs[0].mean() + d.costs[1].mean())}
		}
	}
	res.Text = DecisionLine(res)
	return res
}

// DecisionLine answers a question in one line. It is the only place that words the answer.
func DecisionLine(d *record.Decision) string {
	over := fmt.Sprintf(" over %s", text.Count(d.Tasks, "task", "tasks"))
	if d.Tasks != 1 {
		over = fmt.Sprintf(" over these %d tasks", d.Tasks)
	}
	gain := fmt.Sprintf("%s points %s", figure.Tenths(d.Gain), figure.TenthsInterval(d.Interval.Low, d.Interval.High)) + over
	pairs := text.Count(d.Pairs, "pair", "pairs")
	spent := pairs
	if d.SpentUSD > 0 {
		spent += " and " + dollars(d.SpentUSD)
	}
	var line string
	switch d.Verdict {
	case record.DecidedBetter:
		line = fmt.Sprintf("%s is better than %s: %s, after %s", capital(d.B), d.A, gain, spent)
	case record.DecidedNotBetter:
		line = fmt.Sprintf("%s is not better than %s by %s points: %s, after %s", capital(d.B), d.A, points(d.BetterBy), gain, spent)
	default:
		after := pairs
		if d.SpentUSD > 0 {
			after = dollars(d.SpentUSD) + " and " + pairs
		}
		if line = "Undecided after " + after + ": " + gain; d.Pairs == 0 {
			line = "Undecided: the first round, one pair of each task, has not ended"
			if d.SpentUSD > 0 {
				line = "Undecided after " + dollars(d.SpentUSD) + ": the first round, one pair of each task, has not ended"
			}
		}
	}
	if d.Missing > 0 {
		line += fmt.Sprintf("; %s %s no result and %s as the worst case", text.Count(d.Missing, "pair", "pairs"),
			text.Plural(d.Missing, "has", "have"), text.Plural(d.Missing, "counts", "count"))
	}
	if d.Reused > 0 {
		line += fmt.Sprintf("; %d of %s reused", d.Reused, text.Count(d.Executed+d.Reused, "trial", "trials"))
	}
	if d.Verdict == record.DecidedNothing && (d.Pairs > 0 || d.Ended != record.EndInterrupted) {
		line += "; " + outlook(d)
	}
	return line
}

// outlook says what would decide an undecided question.
func outlook(d *record.Decision) string {
	more := "no sensible number of further pairs would decide"
	recorded := d.Ended == record.EndTrials && d.MaxTrials != nil && *d.MaxTrials == 0
	switch {
	case d.Pairs == 0:
		more = "a larger budget is needed"
	case d.More != nil && d.More.CostUSD > 0 && !recorded:
		more = "about " + dollars(d.More.CostUSD) + " more would decide"
	case d.More != nil:
		more = "about " + text.Count(d.More.Pairs, "more pair", "more pairs") + " would decide"
	}
	switch {
	case recorded:
		return "a task has no more recorded trials; " + more
	case d.Ended == record.EndTrials:
		return "a task has had all its trials, and --trials allows more; " + more
	}
	return more
}

// dollars formats an amount for people: $8.10, and with more decimals below a cent.
func dollars(usd float64) string {
	if usd < 0.01 {
		return figure.Cost(usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// points formats a share as points: 5, 2.5.
func points(share float64) string { return fmt.Sprintf("%.6g", share*100) }

// capital starts the name of a side that is a phrase with a capital letter.
func capital(name string) string {
	if rest, ok := strings.CutPrefix(name, "the "); ok {
		return "The " + rest
	}
	return name
}

// DecideRecorded answers a question with the trials of two runs, and runs nothing. It takes balanced
// rounds: round n consists of trial n of each task that both runs have, in both runs. The mean gain
// of a round is one observation, so each task counts the same. A round in which a trial has no
// result counts as the worst case. The error is a [*record.QuestionError], or one of reading.
func DecideRecorded(a, b record.Handle, asked *record.DecideRequest) (*record.Decision, error) {
	sideA, err := recordedSideOf(a)
	if err != nil {
		return nil, err
	}
	sideB, err := recordedSideOf(b)
	if err != nil {
		return nil, err
	}
	var tasks []string
	rounds := 0
	for _, id := range slices.Sorted(maps.Keys(sideA)) {
		if n := min(len(sideA[id]), len(sideB[id])); n > 0 {
			if tasks = append(tasks, id); len(tasks) == 1 || n < rounds {
				rounds = n
			}
		}
	}
	if len(tasks) == 0 {
		return nil, &record.QuestionError{Reason: fmt.Sprintf("runs %s and %s have no task in common", a.ID(), b.ID())}
	}
	e := decide.New(decide.Question{Tasks: 1, BetterBy: asked.BetterBy, Risk: asked.Risk, Batch: 1, Seed: stats.DefaultSeed})
	d := &record.Decision{
		DecideQuestion: record.DecideQuestion{
			A: "run " + a.ID(), B: "run " + b.ID(), BetterBy: asked.BetterBy, Risk: asked.Risk, Batch: 1, Seed: stats.DefaultSeed,
			MaxTrials: asked.MaxTrials,
		},
		Tasks: len(tasks), Ended: record.EndTrials,
	}
	for n := range rounds {
		if len(e.Batch()) == 0 {
			break
		}
		var o decide.Outcome
		for _, id := range tasks {
			x, y := sideA[id][n], sideB[id][n]
			if !x.counted || !y.counted {
				d.Missing++
				o.Missing = true
			}
			o.A += pointOf(x) / float64(len(tasks))
			o.B += pointOf(y) / float64(len(tasks))
		}
		e.Add([]decide.Outcome{o})
		d.Pairs += len(tasks)
	}
	d.Reused = 2 * d.Pairs
	estimate := e.Estimate()
	d.Verdict, d.Gain, d.Interval = record.DecisionVerdict(e.Verdict()), estimate.Value, estimate.Interval
	if d.Verdict != record.DecidedNothing {
		d.Ended = record.EndVerdict
	} else if more, ok := e.More(); ok {
		d.More = &record.MorePairs{Pairs: more * len(tasks)}
	}
	d.Text = DecisionLine(d)
	return d, nil
}

func pointOf(r pairedResult) float64 {
	if r.passed {
		return 1
	}
	return 0
}

// recordedSideOf returns the results of the trials of a run by task, in the order of their numbers.
func recordedSideOf(h record.Handle) (map[string][]pairedResult, error) {
	rec := h.Record()
	if rec.Matrix() {
		return nil, &record.QuestionError{Reason: fmt.Sprintf("run %s has several cells; name two cells of the suite instead", h.ID())}
	}
	side := map[string][]pairedResult{}
	for i := range rec.Tasks {
		if t := &rec.Tasks[i]; t.Role == record.RoleTask {
			side[t.ID] = make([]pairedResult, 0, t.Trials)
		}
	}
	err := h.Trials(func(task int, t *record.Trial) error {
		ref := &rec.Tasks[task]
		if ref.Role != record.RoleTask || t.Verdict == record.Skipped || t.Verdict == record.Cancelled {
			return nil
		}
		i := t.TrialNum - max(1, ref.First)
		list := side[ref.ID]
		for len(list) <= i {
			list = append(list, pairedResult{})
		}
		passed, counted := pairedOutcome(t)
		list[i], side[ref.ID] = pairedResult{passed: passed, counted: counted}, list
		return nil
	})
	return side, err
}
