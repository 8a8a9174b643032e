package page

import (
	"waza/runner/record"
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

// describe sums up the columns. written is the number of tokens that the agents of all trials wrote.
func (d *htmlData) describe(written int64) {
	c := &d.columns
	var times []float64
	for i := range d.tasks {
		first := d.first[i]
		trials := counted{c.Verdict, first, first + d.tasks[i].Ended}
		d.tasks[i].Medians = &htmlMedians{
			Score: median(c.Score, trials), MS: median(c.MS, trials), Tokens: median(c.Tokens, trials), Cost: median(c.Cost, trials),
		}
		if d.tasks[i].Role == record.RoleTask {
			times = append(times, known(c.MS, trials)...)
		}
	}
	d.page.TrialMS = stats.SpreadOf(times)
	total := int64(0)
	for _, ms := range c.MS {
		total += ms
	}
	if total > 0 && written > 0 {
		rate := float64(written) / (float64(total) / 1000)
		d.page.TokensWrittenPerSecond = &rate
	}
}

// counted are the counted trials of a task: those with such a verdict from first to before end.
type counted struct {
	verdicts   string
	first, end int
}

// median returns the median of the known values of some trials in a column; nil without any.
func median[T ~int64 | ~float64](column []T, trials counted) *float64 {
	if s := stats.SpreadOf(known(column, trials)); s != nil {
		return &s.Median
	}
	return nil
}

// known returns the values of some trials in a column. Negative values mean unknown.
func known[T ~int64 | ~float64](column []T, trials counted) []float64 {
	var values []float64
	for at := trials.first; at < trials.end; at++ {
		if v := float64(column[at]); v >= 0 && counts(trials.verdicts[at]) {
			values = append(values, v)
		}
	}
	return values
}
