package page

import (
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/stats"
)

// htmlMedians are the medians of the counted trials of a task; nil when unknown. They are those
// of the measures that the page draws, under the names of its columns.
type htmlMedians struct {
	Score  *float64 `json:"score,omitempty"`
	MS     *float64 `json:"ms,omitempty"`
	Tokens *float64 `json:"tokens,omitempty"`
	Cost   *float64 `json:"cost,omitempty"`
}

// trialMeasures are the measures of a trial; -1 means unknown.
type trialMeasures struct {
	score      float64
	ms, tokens int64
	cost       float64
}

// measuresOf returns the measures of a trial that spent usage, if that is known.
func measuresOf(t *record.Trial, spent *record.Usage) trialMeasures {
	m := trialMeasures{score: -1, ms: t.DurationMS, tokens: -1, cost: -1}
	if t.Untimed {
		m.ms = -1
	}
	if s := report.ScoreOf(t); s != nil {
		m.score = *s
	}
	if spent != nil {
		m.tokens = spent.Total()
		if spent.CostUSD > 0 {
			m.cost = spent.CostUSD
		}
	}
	return m
}

// taskMeasures hold the known measures of the counted trials of a task.
type taskMeasures struct{ score, ms, tokens, cost []float64 }

func (t *taskMeasures) add(m trialMeasures) {
	addKnown(&t.score, m.score)
	addKnown(&t.ms, float64(m.ms))
	addKnown(&t.tokens, float64(m.tokens))
	addKnown(&t.cost, m.cost)
}

func addKnown(list *[]float64, value float64) {
	if value >= 0 {
		*list = append(*list, value)
	}
}

func (t *taskMeasures) reset() {
	*t = taskMeasures{t.score[:0], t.ms[:0], t.tokens[:0], t.cost[:0]}
}

func (t *taskMeasures) medians() *htmlMedians {
	return &htmlMedians{Score: median(t.score), MS: median(t.ms), Tokens: median(t.tokens), Cost: median(t.cost)}
}

// median returns the median of values; nil without any.
func median(values []float64) *float64 {
	if s := stats.SpreadOf(values); s != nil {
		return &s.Median
	}
	return nil
}
