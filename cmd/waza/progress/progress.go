package progress

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/report"
)

// progress is the visible state of a run.
type progress struct {
	run    *replay.Follower
	suite  string
	asks   bool            // the run decides a question
	limits []time.Duration // of an attempt at a trial, by task; 0 when unknown
	// step is the step of the last interrupt, see [interrupt.Steps], and since its time.
	step  int
	since time.Time
}

// newProgress returns the progress of a run before its first event. The results that tasks have
// from before are in earlier, which can be nil.
func newProgress(rec *record.Run, earlier []*record.Task) *progress {
	p := &progress{run: replay.NewFollower(rec, earlier), suite: rec.Suite.Name, asks: rec.Question != nil}
	for _, t := range rec.Tasks {
		p.limits = append(p.limits, time.Duration(t.TimeoutMS)*time.Millisecond)
	}
	return p
}

// span is a part of a line in one color.
type span struct {
	text   string
	colour string // ANSI code such as "32"; empty for none
}

// line is a line of the block.
type line []span

func (l line) columns() int {
	n := 0
	for _, s := range l {
		n += report.Columns(s.text)
	}
	return n
}

func (l line) text(colour bool) string {
	var b strings.Builder
	for _, s := range l {
		if colour && s.colour != "" {
			fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m", s.colour, s.text)
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// clip shortens a line to that many columns.
func (l line) clip(most int) line {
	if l.columns() <= most {
		return l
	}
	var out line
	for _, s := range l {
		n := report.Columns(s.text)
		if n >= most {
			return append(out, span{report.Clip(s.text+" ", most), s.colour})
		}
		out = append(out, s)
		most -= n
	}
	return out
}

// mostRunning limits the running tasks that are shown.
const mostRunning = 8

// lines returns the display for a screen of that many columns and rows. Every line is narrower
// than the screen, and there are fewer lines than rows.
func (p *progress) lines(now time.Time, columns, rows int) []line {
	columns, rows = max(1, columns-1), max(1, rows-1)
	out := []line{p.bar(now, columns), p.counts()}
	if d := p.run.Progress.Deciding; d != nil {
		out = append(out, line{{d.Text, ""}})
	}
	if c := p.run.Comparing; c.Total > 0 {
		out = append(out, line{{fmt.Sprintf("%d of %d comparisons of models", c.Done, c.Total), ""}})
	}
	space := rows - len(out)
	notice := p.notice(now)
	if notice != "" {
		space--
	}
	out = append(out, p.runningLines(now, columns, min(space, mostRunning))...)
	if notice != "" {
		out = append(out, line{{notice, "33"}})
	}
	out = out[:min(len(out), rows)]
	for i := range out {
		out[i] = out[i].clip(columns)
	}
	return out
}

// The width of the bar, and the limit for a suite's name.
const (
	leastBar, mostBar = 8, 40
	mostName          = 30
)

func (p *progress) bar(now time.Time, columns int) line {
	trials := p.run.AllTrials()
	done, total := p.run.Ended(), trials.Total
	name := report.Clip(report.Clean(p.suite), min(mostName, columns/3))
	took := report.Duration(now.Sub(p.run.Started))
	right := fmt.Sprintf("%d/%d trials  %s", done, total, took)
	if p.asks { // the question needs only some of the trials
		right = text.Count(done-trials.Skipped, "trial", "trials") + "  " + took
	} else if left, ok := p.estimate(now); ok {
		right += ", about " + report.Duration(left) + " left"
	}
	width := min(mostBar, columns-report.Columns(name)-report.Columns(right)-4)
	if width < leastBar {
		return line{{name + "  ", "1"}, {right, ""}}
	}
	full := 0
	switch d := p.run.Progress.Deciding; {
	case p.asks && d != nil:
		full = int(float64(width) * d.Share())
	case p.asks:
	case total > 0:
		full = min(width, width*done/total)
	}
	return line{
		{name + "  ", "1"},
		{strings.Repeat("█", full), "32"}, {strings.Repeat("░", width-full), "2"},
		{"  " + right, ""},
	}
}

// estimate returns how much longer the run takes at its present speed.
func (p *progress) estimate(now time.Time) (time.Duration, bool) {
	trials := p.run.AllTrials()
	did := trials.Counted() + trials.Errors + trials.NeedsReview - p.run.Cached
	left := trials.Total - p.run.Ended()
	if did <= 0 || left == 0 {
		return 0, false
	}
	each := float64(now.Sub(p.run.Started)) / float64(did)
	return time.Duration(each * float64(left)).Round(time.Second), true
}

func (p *progress) counts() line {
	l := countsLine(p.run.Progress.Tasks, "task", "tasks")
	if n := p.run.Cached; n > 0 && p.asks {
		l = append(l, span{"; " + text.Count(n, "trial", "trials") + " from the cache", "2"})
	} else if n > 0 {
		l = append(l, span{fmt.Sprintf("; %d of %s from the cache", n, text.Count(p.run.AllTrials().Total, "trial", "trials")), "2"})
	}
	return l
}

// countsLine counts the trials or tasks of each verdict.
func countsLine(c record.Counts, one, many string) line {
	l := line{{fmt.Sprintf("%d of %s passed", c.Passed, text.Count(c.Total, one, many)), ""}}
	for _, x := range []struct {
		n            int
		what, colour string
	}{
		{c.Failed, "failed", "31"}, {c.Timeouts, "timed out", "31"}, {c.Errors, "in error", "35"},
		{c.Cancelled, "cancelled", "33"}, {c.Skipped, "skipped", "33"},
		{c.NeedsReview, "to review", "36"},
	} {
		if x.n > 0 {
			l = append(l, span{", ", ""}, span{fmt.Sprintf("%d %s", x.n, x.what), x.colour})
		}
	}
	return l
}

// runningLines returns at most that many lines with the running tasks, in the order of the
// suite.
func (p *progress) runningLines(now time.Time, columns, most int) []line {
	if most <= 0 {
		return nil
	}
	tasks := slices.SortedFunc(maps.Values(p.run.Running), func(a, b *replay.RunningTask) int { return cmp.Compare(a.Num, b.Num) })
	var out []line
	for i, t := range tasks {
		if i == most-1 && len(tasks) > most {
			return append(out, line{{fmt.Sprintf("  and %d more", len(tasks)-i), "2"}})
		}
		out = append(out, taskLine(t, now, columns))
	}
	return out
}

func taskLine(t *replay.RunningTask, now time.Time, columns int) line {
	nums := slices.Sorted(maps.Keys(t.Trials))
	first := now
	for _, trial := range t.Trials {
		if trial.Since.Before(first) {
			first = trial.Since
		}
	}
	what := text.Count(len(nums), "trial", "trials")
	switch {
	case len(nums) == 1:
		what = fmt.Sprintf("trial %d of %d", nums[0], t.Total)
	case len(nums) <= 4:
		what = fmt.Sprintf("trials %s of %d", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(nums)), ", "), "[]"), t.Total)
	default:
		what += fmt.Sprintf(" of %d", t.Total)
	}
	right := "  " + what + "  " + report.Duration(now.Sub(first))
	name := report.Clip(report.Clean(t.ID), max(8, columns-2-report.Columns(right)))
	return line{{"  " + name, ""}, {right, "2"}}
}
