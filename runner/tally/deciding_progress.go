package tally

import (
	"fmt"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// A DecisionReporter says how far a run is with its question. It returns news of one pair in fifty only, because
// each of them looks at all pairs again. It is not safe for concurrent use.
type DecisionReporter struct {
	deciding *Deciding
	maxCost  float64 // 0 means no limit
	most     int     // pairs that the run can have
	reported int     // pairs of the last news
}

// NewDecisionReporter returns nil for a run without a question. d has the results of the run.
func NewDecisionReporter(rec *record.Run, d *Deciding) *DecisionReporter {
	if d == nil {
		return nil
	}
	r := &DecisionReporter{deciding: d, maxCost: rec.Config.MaxCost}
	for _, pair := range d.sides {
		r.most += min(pair[0].trials, pair[1].trials)
	}
	return r
}

// News returns the state of the question if enough pairs have ended since the last news, and nil otherwise.
func (r *DecisionReporter) News() *record.DecisionProgress {
	if r == nil {
		return nil
	}
	d := r.deciding
	pairs := d.evidence.Pairs()
	if pairs == 0 || pairs <= r.reported+r.reported/50 {
		return nil
	}
	r.reported = pairs
	estimate := d.evidence.Estimate()
	p := &record.DecisionProgress{
		Pairs: pairs, MostPairs: r.most, Missing: d.missing, Gain: estimate.Value, Interval: estimate.Interval,
		Executed: d.executed, Reused: d.reused, MaxTrials: d.question.MaxTrials, SpentUSD: d.spent,
	}
	if r.maxCost > 0 {
		p.MaxCost = new(r.maxCost)
	}
	p.Text = progressLine(p)
	return p
}

// progressLine says in one line how far a question is. It is the only place that words this.
func progressLine(p *record.DecisionProgress) string {
	line := fmt.Sprintf("%d of at most %s: %s points %s", p.Pairs, text.Count(p.MostPairs, "pair", "pairs"),
		figure.Tenths(p.Gain), figure.TenthsInterval(p.Interval.Low, p.Interval.High))
	if p.Missing > 0 {
		line += fmt.Sprintf("; %s without a result", text.Count(p.Missing, "pair", "pairs"))
	}
	switch {
	case p.MaxCost != nil:
		line += fmt.Sprintf("; %s of %s", dollars(p.SpentUSD), dollars(*p.MaxCost))
	case p.SpentUSD > 0:
		line += "; " + dollars(p.SpentUSD)
	}
	if p.MaxTrials != nil && *p.MaxTrials > 0 {
		line += fmt.Sprintf("; %d of %s", p.Executed, text.Count(*p.MaxTrials, "trial", "trials"))
	}
	return line
}
