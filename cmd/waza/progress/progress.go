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
	"waza/runner/report"
)

// progress is the state of a run as its events tell it, and how that looks.
type progress struct {
	rep     *report.Report // events come to it first
	suite   string
	started time.Time
	tasks   record.Counts        // of the suite
	trials  record.Counts        // of all tasks, whatever their role
	cached  int                  // of those trials, taken over from earlier runs
	kept    int                  // trials of sessions before the run was taken up again
	running map[int]*runningTask // by number
	limits  []time.Duration      // of an attempt at a trial, by task; 0 when unknown
	// step is how far the run is interrupted, see [interrupt.Steps], and since when.
	step  int
	since time.Time
}

// runningTask is a task of which trials run.
type runningTask struct {
	num, total int
	name       string
	trials     map[int]time.Time // when each that runs was started
	retried    map[int]bool      // those that are not in their first attempt
}

// progressOf is the progress of a run that is gathered in rep.
func progressOf(rep *report.Report) *progress {
	rec := rep.Record
	p := &progress{rep: rep, suite: rec.Suite.Name, started: rec.CreatedAt, running: map[int]*runningTask{}}
	for _, t := range rec.Tasks {
		if t.Role == record.RoleTask {
			p.tasks.Total++
		}
		p.trials.Total += t.Trials
		p.limits = append(p.limits, time.Duration(t.TimeoutMS)*time.Millisecond)
	}
	return p
}

func (p *progress) apply(e *record.Event) {
	switch e.Type {
	case record.RunStart:
		p.started = e.Time
	case record.RunResumed:
		p.resumed(e)
	case record.TrialStart:
		t := p.running[e.TaskNum]
		if t == nil {
			t = &runningTask{num: e.TaskNum, name: e.TaskID, total: e.TotalTrials, trials: map[int]time.Time{}, retried: map[int]bool{}}
			p.running[e.TaskNum] = t
		}
		t.trials[e.TrialNum] = e.Time
	case record.Log:
		if t := p.running[e.TaskNum]; t != nil && e.Attempt > 1 {
			t.retried[e.TrialNum] = true
		}
	case record.TrialComplete:
		p.trials.Add(e.Verdict)
		if e.Cached {
			p.cached++
		}
		if t := p.running[e.TaskNum]; t != nil {
			delete(t.trials, e.TrialNum)
			delete(t.retried, e.TrialNum)
			if len(t.trials) == 0 {
				delete(p.running, e.TaskNum)
			}
		}
	case record.TaskComplete:
		if e.Role == record.RoleTask {
			p.tasks.Add(e.Verdict)
		}
	}
}

// resumed begins anew with what is kept of the sessions before.
func (p *progress) resumed(e *record.Event) {
	p.started, p.running, p.cached, p.kept = e.Time, map[int]*runningTask{}, 0, e.KeptTrials
	p.tasks, p.trials = record.Counts{Total: p.tasks.Total}, record.Counts{Total: p.trials.Total}
	for _, t := range p.rep.Tasks {
		if t.Role == record.RoleTask && t.Result != nil {
			p.tasks.Add(t.Result.Verdict)
		}
	}
}

// span is a piece of a line in one colour.
type span struct {
	text   string
	colour string // of ANSI, such as "32"; empty for none
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

// mostRunning is how many running tasks are shown at most.
const mostRunning = 8

// lines is what is shown on a screen of that many columns and rows: no line is
// as wide as the screen, and there are fewer lines than rows.
func (p *progress) lines(now time.Time, columns, rows int) []line {
	columns, rows = max(1, columns-1), max(1, rows-1)
	out := []line{p.bar(now, columns), p.counts()}
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

// The widths of the bar, and how much a suite's name may take.
const (
	leastBar, mostBar = 8, 40
	mostName          = 30
)

func (p *progress) bar(now time.Time, columns int) line {
	done, total := p.kept+p.trials.Done(), p.trials.Total
	name := report.Clip(report.Clean(p.suite), min(mostName, columns/3))
	right := fmt.Sprintf("%d/%d trials  %s", done, total, report.Duration(now.Sub(p.started)))
	if left, ok := p.estimate(now); ok {
		right += ", about " + report.Duration(left) + " left"
	}
	width := min(mostBar, columns-report.Columns(name)-report.Columns(right)-4)
	if width < leastBar {
		return line{{name + "  ", "1"}, {right, ""}}
	}
	full := 0
	if total > 0 {
		full = min(width, width*done/total)
	}
	return line{
		{name + "  ", "1"},
		{strings.Repeat("█", full), "32"}, {strings.Repeat("░", width-full), "2"},
		{"  " + right, ""},
	}
}

// estimate says how much longer the run takes if it goes on as it did.
func (p *progress) estimate(now time.Time) (time.Duration, bool) {
	did := p.trials.Counted() + p.trials.Errors + p.trials.NeedsReview - p.cached
	left := p.trials.Total - p.trials.Done() - p.kept
	if did <= 0 || left == 0 {
		return 0, false
	}
	each := float64(now.Sub(p.started)) / float64(did)
	return time.Duration(each * float64(left)).Round(time.Second), true
}

func (p *progress) counts() line {
	l := countsLine(p.tasks, "task", "tasks")
	if p.cached > 0 {
		l = append(l, span{fmt.Sprintf("; %d of %s from the cache", p.cached, text.Count(p.trials.Total, "trial", "trials")), "2"})
	}
	return l
}

// countsLine tells how many of what it counts ended in each verdict.
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

// runningLines shows the running tasks in the order of the suite, at most so
// many lines.
func (p *progress) runningLines(now time.Time, columns, most int) []line {
	if most <= 0 {
		return nil
	}
	tasks := slices.SortedFunc(maps.Values(p.running), func(a, b *runningTask) int { return cmp.Compare(a.num, b.num) })
	var out []line
	for i, t := range tasks {
		if i == most-1 && len(tasks) > most {
			return append(out, line{{fmt.Sprintf("  and %d more", len(tasks)-i), "2"}})
		}
		out = append(out, t.line(now, columns))
	}
	return out
}

func (t *runningTask) line(now time.Time, columns int) line {
	nums := slices.Sorted(maps.Keys(t.trials))
	first := now
	for _, since := range t.trials {
		if since.Before(first) {
			first = since
		}
	}
	what := text.Count(len(nums), "trial", "trials")
	switch {
	case len(nums) == 1:
		what = fmt.Sprintf("trial %d of %d", nums[0], t.total)
	case len(nums) <= 4:
		what = fmt.Sprintf("trials %s of %d", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(nums)), ", "), "[]"), t.total)
	default:
		what += fmt.Sprintf(" of %d", t.total)
	}
	right := "  " + what + "  " + report.Duration(now.Sub(first))
	name := report.Clip(report.Clean(t.name), max(8, columns-2-report.Columns(right)))
	return line{{"  " + name, ""}, {right, "2"}}
}
