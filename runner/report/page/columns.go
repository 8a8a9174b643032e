package page

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"waza/runner/record"
	"waza/runner/report"
)

const (
	// maxHTMLWhys is the most different reasons of single trials, and whyColumns the most
	// columns of each in a list.
	maxHTMLWhys = 5000
	whyColumns  = 160
)

// htmlColumns holds numbers of each ended trial, in the order of tasks and trials. Each is a
// column, because columns are small and quick to read.
type htmlColumns struct {
	Num     []int         `json:"num"`
	Verdict string        `json:"verdict"` // a letter for each, see verdictLetters
	Score   []scoreColumn `json:"score"`
	MS      []int64       `json:"ms"`
	Tokens  []int64       `json:"tokens"` // -1: unknown
	Cost    []cost        `json:"cost"`   // US dollars
	Tries   []int         `json:"tries"`  // attempts
	Why     []int         `json:"why"`    // index in Whys, -1 for none
	Whys    []string      `json:"whys"`
	// Cached holds the indexes of trials that were reused from earlier runs.
	Cached []int `json:"cached"`
	// Was holds the verdicts in the earlier run, with a blank for each trial that it does not
	// have. It is empty if there is no earlier run.
	Was string `json:"was,omitempty"`
}

// A scoreColumn is a score, or -1 for none, with few digits.
type scoreColumn float64

// MarshalJSON rounds the score.
func (s scoreColumn) MarshalJSON() ([]byte, error) { return rounded(float64(s), 1e6) }

// A cost is in US dollars; -1 means unknown.
type cost float64

// MarshalJSON rounds the cost.
func (c cost) MarshalJSON() ([]byte, error) { return rounded(float64(c), 1e6) }

func rounded(x, unit float64) ([]byte, error) {
	if y := math.Round(x*unit) / unit; !math.IsInf(y, 0) && !math.IsNaN(y) {
		x = y
	}
	return json.Marshal(x)
}

// verdictLetters maps verdicts to their letters in columns.
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
	last, written := -1, int64(0)
	counted := make([][]int, len(d.tasks))
	err := h.Trials(func(task int, t *record.Trial) error {
		if l := t.Ledger(); l != nil && l.Agent != nil {
			written += l.Agent.OutputTokens
		}
		if t.Verdict.Counted() {
			counted[task] = append(counted[task], len(d.columns.Num))
		}
		for last < task {
			last++
			d.first[last] = len(d.columns.Num)
		}
		d.tasks[task].Ended++
		verdicts.WriteByte(letterOf(t.Verdict))
		line, _ := report.Explain(t, d.page.RunID)
		d.columns.add(t, d.columns.number(line, whys))
		d.weight += min(weightOf(t), maxHTMLTrial)
		return nil
	})
	for last++; last < len(d.first); last++ {
		d.first[last] = len(d.columns.Num)
	}
	d.columns.Verdict = verdicts.String()
	d.describe(counted, written)
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

// number returns the index of a reason. The list of different reasons is limited, because
// agents' texts may differ in each trial.
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

// find returns the index of a trial in the columns.
func (d *htmlData) find(task, num int) (int, bool) {
	first := d.first[task]
	// Trials are in the order of their numbers.
	at, ok := slices.BinarySearch(d.columns.Num[first:first+d.tasks[task].Ended], num)
	return first + at, ok
}
