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
	"waza/runner/stats"
)

const (
	// maxHTMLWhys is the most different reasons of single trials, and whyColumns the most
	// columns of each in a list.
	maxHTMLWhys = 5000
	whyColumns  = 160
)

// htmlColumns holds numbers of each ended trial, in the order of tasks and trials. Each is a
// column, because columns are small and quick to read. Those that nobody needs before they are
// written are encoded at once: a million numbers then take 2 to 4 MB instead of 8.
type htmlColumns struct {
	num     []int32
	verdict string     // a letter for each, see verdictLetters
	score   jsonColumn // -1: none
	ms      jsonColumn
	tokens  jsonColumn // -1: unknown
	cost    jsonColumn // US dollars; -1: unknown
	tries   jsonColumn // attempts
	why     jsonColumn // index in whys, -1 for none
	whys    []string
	// cached holds the indexes of trials that were reused from earlier runs.
	cached jsonColumn
	// was holds the verdicts in the earlier run, with a blank for each trial that it does not
	// have. It is empty if there is no earlier run.
	was string
}

// A jsonColumn holds numbers as JSON, separated by commas.
type jsonColumn []byte

func (c *jsonColumn) addInt(n int64) { *c = strconv.AppendInt(c.next(), n, 10) }

// addRounded adds a number with at most six decimals.
func (c *jsonColumn) addRounded(x float64) {
	const unit = 1e6
	if y := math.Round(x*unit) / unit; !math.IsInf(y, 0) {
		x = y
	}
	*c, _ = jsonwalk.AppendFloat(c.next(), x) // never fails for numbers of a record
}

func (c *jsonColumn) next() []byte {
	if len(*c) == 0 {
		return *c
	}
	return append(*c, ',')
}

// write writes the columns as a JSON object. It then drops those that transcripts do not need.
func (c *htmlColumns) write(out *bufio.Writer) error {
	whys, err := json.Marshal(c.whys)
	if err != nil {
		return err
	}
	out.WriteString(`{"num":[`)
	for i, n := range c.num {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(n), 10))
	}
	fmt.Fprintf(out, `],"verdict":%q,"score":[%s],"ms":[%s],"tokens":[%s],"cost":[%s],"tries":[%s],"why":[%s],"whys":`,
		c.verdict, c.score, c.ms, c.tokens, c.cost, c.tries, c.why)
	if _, err := report.JSONWriter(out).Write(whys); err != nil {
		return err
	}
	fmt.Fprintf(out, `,"cached":[%s]`, c.cached)
	if c.was != "" {
		fmt.Fprintf(out, `,"was":%q`, c.was)
	}
	*c = htmlColumns{num: c.num, verdict: c.verdict}
	_, err = out.WriteString("}\n")
	return err
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

// gatherTrials fills the columns, and describes the trials of each task and of the run.
func (d *htmlData) gatherTrials(h record.Handle) error {
	c := &d.columns
	var verdicts strings.Builder
	whys := map[string]int{}
	var measured taskMeasures
	planned := 0
	for i := range d.tasks {
		planned += d.tasks[i].Trials
	}
	verdicts.Grow(planned)
	c.num = make([]int32, 0, planned)
	times := make([]float64, 0, planned) // of the counted trials of the suite's tasks, in milliseconds
	var total, written int64
	task := 0
	upTo := func(next int) {
		for ; task < next; task++ {
			d.tasks[task].Ended = len(c.num) - d.first[task]
			d.tasks[task].Medians = measured.medians()
			if d.tasks[task].Role == record.RoleTask {
				times = append(times, measured.ms...)
			}
			measured.reset()
			if task+1 < len(d.first) {
				d.first[task+1] = len(c.num)
			}
		}
	}
	err := h.Trials(func(next int, t *record.Trial) error {
		upTo(next)
		spent := t.Ledger()
		if spent != nil && spent.Agent != nil && !t.Untimed {
			written += spent.Agent.OutputTokens
		}
		m := measuresOf(t, spent.Total())
		if t.Verdict.Counted() {
			measured.add(m)
		}
		total += t.DurationMS
		verdicts.WriteByte(letterOf(t.Verdict))
		line, _ := report.Explain(t, d.page.RunID)
		c.add(t, m, c.number(line, whys))
		d.weight += min(weightOf(t), maxHTMLTrial)
		return nil
	})
	upTo(len(d.tasks))
	c.verdict = verdicts.String()
	d.page.TrialMS = stats.SpreadOf(times)
	if total > 0 && written > 0 {
		rate := float64(written) / (float64(total) / 1000)
		d.page.TokensWrittenPerSecond = &rate
	}
	return err
}

// add adds a trial.
func (c *htmlColumns) add(t *record.Trial, m trialMeasures, why int) {
	if t.Cached != nil {
		c.cached.addInt(int64(len(c.num)))
	}
	c.num = append(c.num, int32(t.TrialNum))
	c.score.addRounded(m.score)
	c.ms.addInt(m.ms)
	c.tokens.addInt(m.tokens)
	c.cost.addRounded(m.cost)
	c.tries.addInt(int64(1 + len(t.Attempts)))
	c.why.addInt(int64(why))
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
	case len(c.whys) == maxHTMLWhys:
		return -1
	}
	known[text] = len(c.whys)
	c.whys = append(c.whys, text)
	return known[text]
}

// find returns the index of a trial in the columns.
func (d *htmlData) find(task, num int) (int, bool) {
	first := d.first[task]
	// Trials are in the order of their numbers.
	at, ok := slices.BinarySearch(d.columns.num[first:first+d.tasks[task].Ended], int32(num))
	return first + at, ok
}
