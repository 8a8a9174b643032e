package page

import (
	"encoding/json"
	"math"
	"strings"

	"waza/runner/record"
	"waza/runner/report"
)

const (
	// maxHTMLWhys bounds the different reasons of single trials, and whyColumns how
	// much of each is shown in a list.
	maxHTMLWhys = 5000
	whyColumns  = 160
)

// htmlColumns are numbers of each trial that has ended, in the order of tasks and
// trials: a column each, which is small and quickly read.
type htmlColumns struct {
	Num     []int         `json:"num"`
	Verdict string        `json:"verdict"` // a letter each, see verdictLetters
	Score   []scoreColumn `json:"score"`
	MS      []int64       `json:"ms"`
	Tokens  []int64       `json:"tokens"` // -1: not known
	Cost    []cost        `json:"cost"`   // US dollars
	Tries   []int         `json:"tries"`  // attempts
	Why     []int         `json:"why"`    // index in Whys, -1 for none
	Whys    []string      `json:"whys"`
	// Cached are the indexes of trials that were taken over from earlier runs.
	Cached []int `json:"cached"`
	// Was holds the verdicts in the run that this one is compared with, a blank
	// where there is none. It is empty without one.
	Was string `json:"was,omitempty"`
}

// scoreColumn is a score or -1 for none, with no more digits than anybody reads.
type scoreColumn float64

// MarshalJSON rounds.
func (s scoreColumn) MarshalJSON() ([]byte, error) { return rounded(float64(s), 1e6) }

// cost is in US dollars, or -1 when it is not known.
type cost float64

// MarshalJSON rounds.
func (c cost) MarshalJSON() ([]byte, error) { return rounded(float64(c), 1e6) }

func rounded(x, unit float64) ([]byte, error) {
	if y := math.Round(x*unit) / unit; !math.IsInf(y, 0) && !math.IsNaN(y) {
		x = y
	}
	return json.Marshal(x)
}

// verdictLetters are how columns of verdicts write them.
var verdictLetters = map[record.Verdict]byte{
	record.Passed: 'p', record.Failed: 'f', record.Errored: 'e', record.TimedOut: 't',
	record.Cancelled: 'c', record.Skipped: 's', record.NeedsReview: 'r',
}

func letterOf(v record.Verdict) byte {
	if l, ok := verdictLetters[v]; ok {
		return l
	}
	return '?'
}

// gatherTrials fills the columns.
func (d *htmlData) gatherTrials(h record.Handle) error {
	var verdicts strings.Builder
	whys := map[string]int{}
	last := -1
	err := h.Trials(func(task int, t *record.Trial) error {
		for last < task {
			last++
			d.first[last] = len(d.columns.Num)
		}
		d.tasks[task].Ended++
		verdicts.WriteByte(letterOf(t.Verdict))
		line, _ := report.Why(t, d.page.RunID)
		d.columns.add(t, d.columns.number(line, whys))
		d.weight += min(weightOf(t), maxHTMLTrial)
		return nil
	})
	for last++; last < len(d.first); last++ {
		d.first[last] = len(d.columns.Num)
	}
	d.columns.Verdict = verdicts.String()
	return err
}

func (c *htmlColumns) add(t *record.Trial, why int) {
	score, tokens, usd := scoreColumn(-1), int64(-1), cost(-1)
	if s := report.ScoreOf(t); s != nil {
		score = scoreColumn(*s)
	}
	if u := t.Ledger().Total(); u != nil {
		tokens = u.Total()
		if u.CostUSD > 0 {
			usd = cost(u.CostUSD)
		}
	}
	if t.Cached != nil {
		c.Cached = append(c.Cached, len(c.Num))
	}
	c.Num = append(c.Num, t.TrialNum)
	c.Score = append(c.Score, score)
	c.MS = append(c.MS, t.DurationMS)
	c.Tokens = append(c.Tokens, tokens)
	c.Cost = append(c.Cost, usd)
	c.Tries = append(c.Tries, 1+len(t.Attempts))
	c.Why = append(c.Why, why)
}

// number numbers a reason. The different ones are bounded: what agents say may
// differ in each trial.
func (c *htmlColumns) number(text string, known map[string]int) int {
	if text == "" {
		return -1
	}
	text = report.Clip(report.Clean(text), whyColumns)
	n, ok := known[text]
	switch {
	case ok:
		return n
	case len(c.Whys) == maxHTMLWhys:
		return -1
	}
	known[text] = len(c.Whys)
	c.Whys = append(c.Whys, text)
	return known[text]
}

// find returns the index in the columns of a trial.
func (d *htmlData) find(task, num int) (int, bool) {
	first, n := d.first[task], d.tasks[task].Ended
	// Trials stand in the order of their numbers, so one cannot be further on than its number says.
	low, high := 0, n
	for low < high {
		mid := (low + high) / 2
		if d.columns.Num[first+mid] < num {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return first + low, low < n && d.columns.Num[first+low] == num
}
