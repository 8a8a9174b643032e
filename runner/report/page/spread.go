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

// measured holds the values of counted trials.
type measured struct{ score, ms, tokens, cost []float64 }

func (m *measured) add(t *record.Trial) {
	if !t.Verdict.Counted() {
		return
	}
	m.ms = append(m.ms, float64(t.DurationMS))
	if s := report.ScoreOf(t); s != nil {
		m.score = append(m.score, *s)
	}
	if u := t.Ledger().Total(); u != nil {
		m.tokens = append(m.tokens, float64(u.Total()))
		if u.CostUSD > 0 {
			m.cost = append(m.cost, u.CostUSD)
		}
	}
}

func (m *measured) medians() *htmlMedians {
	median := func(values []float64) *float64 {
		if s := stats.SpreadOf(values); s != nil {
			return &s.Median
		}
		return nil
	}
	return &htmlMedians{Score: median(m.score), MS: median(m.ms), Tokens: median(m.tokens), Cost: median(m.cost)}
}

// speeds sums up the times of all trials of a run, and the tokens that their agents wrote.
type speeds struct {
	counted     []float64 // milliseconds of the counted trials of the suite's tasks
	ms, written float64   // of all trials
}

func (s *speeds) add(ref *record.TaskRef, t *record.Trial) {
	if ref.Role == record.RoleTask && t.Verdict.Counted() {
		s.counted = append(s.counted, float64(t.DurationMS))
	}
	s.ms += float64(t.DurationMS)
	if l := t.Ledger(); l != nil && l.Agent != nil {
		s.written += float64(l.Agent.OutputTokens)
	}
}

// tokensWrittenPerSecond returns nil when it is unknown.
func (s *speeds) tokensWrittenPerSecond() *float64 {
	if s.ms <= 0 || s.written <= 0 {
		return nil
	}
	rate := s.written / (s.ms / 1000)
	return &rate
}
