package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"waza/eval/jsonwalk"
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
// column, because columns are small and quick to read. The comments give their names on the page.
type htmlColumns struct {
	Num     []int32   // num
	Verdict string    // verdict: a letter for each, see verdictLetters
	Score   []float64 // score: -1 for none
	MS      []int64   // ms
	Tokens  []int64   // tokens: -1 if unknown
	Cost    []float64 // cost: in US dollars, -1 if unknown
	Tries   []int32   // tries: number of attempts
	Why     []int32   // why: index in Whys, -1 for none
	Whys    []string  // whys
	// Cached holds the indexes of trials that were reused from earlier runs.
	Cached []int32 // cached
	// Was holds the verdicts in the earlier run, with a blank for each trial that it does not
	// have. It is empty if there is no earlier run.
	Was string // was
}

// newColumns returns columns with room for n trials.
func newColumns(n int) htmlColumns {
	return htmlColumns{
		Num: make([]int32, 0, n), Score: make([]float64, 0, n), MS: make([]int64, 0, n), Tokens: make([]int64, 0, n),
		Cost: make([]float64, 0, n), Tries: make([]int32, 0, n), Why: make([]int32, 0, n), Whys: []string{},
	}
}

// write writes the columns as a JSON object, number by number: encoding/json would take a second for
// a million trials, and hold all of them in memory once more.
func (c *htmlColumns) write(out *bufio.Writer) error {
	out.WriteByte('{')
	writeColumn(out, `"num":`, c.Num, appendInt)
	fmt.Fprintf(out, `,"verdict":%q`, c.Verdict)
	writeColumn(out, `,"score":`, c.Score, appendRounded)
	writeColumn(out, `,"ms":`, c.MS, appendInt)
	writeColumn(out, `,"tokens":`, c.Tokens, appendInt)
	writeColumn(out, `,"cost":`, c.Cost, appendRounded)
	writeColumn(out, `,"tries":`, c.Tries, appendInt)
	writeColumn(out, `,"why":`, c.Why, appendInt)
	out.WriteString(`,"whys":`)
	whys, err := json.Marshal(c.Whys)
	if err != nil {
		return err
	}
	if _, err := report.JSONWriter(out).Write(whys); err != nil {
		return err
	}
	writeColumn(out, `,"cached":`, c.Cached, appendInt)
	if c.Was != "" {
		fmt.Fprintf(out, `,"was":%q`, c.Was)
	}
	_, err = out.WriteString("}\n")
	return err
}

// writeColumn writes the name of a column and its values.
func writeColumn[T any](out *bufio.Writer, name string, column []T, append func(b []byte, value T) []byte) {
	out.WriteString(name + "[")
	for i, value := range column {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(append(out.AvailableBuffer(), value))
	}
	out.WriteByte(']')
}

func appendInt[T ~int32 | ~int64](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

// appendRounded appends a number with at most six decimals.
func appendRounded(b []byte, x float64) []byte {
	const unit = 1e6
	if y := math.Round(x*unit) / unit; !math.IsInf(y, 0) {
		x = y
	}
	b, _ = jsonwalk.AppendFloat(b, x) // never fails for numbers of a record
	return b
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

// counts reports whether a letter is that of a verdict that measures the agent.
func counts(letter byte) bool { return letter == 'p' || letter == 'f' || letter == 't' }

// gatherTrials fills the columns.
func (d *htmlData) gatherTrials(h record.Handle) error {
	var verdicts strings.Builder
	verdicts.Grow(cap(d.columns.Num))
	whys := map[string]int{}
	last, written := -1, int64(0)
	err := h.Trials(func(task int, t *record.Trial) error {
		spent := t.Ledger()
		if spent != nil && spent.Agent != nil {
			written += spent.Agent.OutputTokens
		}
		for last < task {
			last++
			d.first[last] = len(d.columns.Num)
		}
		d.tasks[task].Ended++
		verdicts.WriteByte(letterOf(t.Verdict))
		line, _ := report.Explain(t, d.page.RunID)
		d.columns.add(t, spent.Total(), d.columns.number(line, whys))
		d.weight += min(weightOf(t), maxHTMLTrial)
		return nil
	})
	for last++; last < len(d.first); last++ {
		d.first[last] = len(d.columns.Num)
	}
	d.columns.Verdict = verdicts.String()
	d.describe(written)
	return err
}

// add adds a trial that spent usage, if that is known.
func (c *htmlColumns) add(t *record.Trial, spent *record.Usage, why int) {
	score, tokens, usd := -1., int64(-1), -1.
	if s := report.ScoreOf(t); s != nil {
		score = *s
	}
	if spent != nil {
		tokens = spent.Total()
		if spent.CostUSD > 0 {
			usd = spent.CostUSD
		}
	}
	if t.Cached != nil {
		c.Cached = append(c.Cached, int32(len(c.Num)))
	}
	c.Num = append(c.Num, int32(t.TrialNum))
	c.Score = append(c.Score, score)
	c.MS = append(c.MS, t.DurationMS)
	c.Tokens = append(c.Tokens, tokens)
	c.Cost = append(c.Cost, usd)
	c.Tries = append(c.Tries, int32(1+len(t.Attempts)))
	c.Why = append(c.Why, int32(why))
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
	at, ok := slices.BinarySearch(d.columns.Num[first:first+d.tasks[task].Ended], int32(num))
	return first + at, ok
}
