package report

import (
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// reasons prints by task why trials did not pass: first the failures of the agent, then the
// errors of the harness, and last the trials that a person has to review.
func (r *Report) reasons(b *strings.Builder, o Options) {
	r.reasonsOf(b, o, "Not passed", func(t *Task, why record.Reason) bool {
		// Failures outside of the suite's own tasks are reported with the other results.
		return t.Role == record.RoleTask && (why.Verdict == record.Failed || why.Verdict == record.TimedOut)
	})
	r.reasonsOf(b, o, "Errors: not the agent's fault, not counted",
		func(_ *Task, why record.Reason) bool { return why.Verdict == record.Errored })
	r.reasonsOf(b, o, "To review", func(_ *Task, why record.Reason) bool { return why.Verdict == record.NeedsReview })
}

func (r *Report) reasonsOf(b *strings.Builder, o Options, title string, take func(*Task, record.Reason) bool) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		res := t.known()
		if res == nil {
			continue
		}
		first := true
		reasons := res.Reasons
		if res.Error != "" { // of the task, apart from its trials
			reasons = append([]record.Reason{{Verdict: record.Errored, Message: res.Error}}, reasons...)
		}
		for _, why := range reasons {
			if !take(t, why) {
				continue
			}
			if title != "" {
				fmt.Fprintf(b, "\n%s\n", o.paint(bold, title))
				title = ""
			}
			if first {
				fmt.Fprintf(b, "  %s\n", Clean(t.ID))
				first = false
			}
			total := res.Trials.Total
			if res.Decided != nil {
				total -= res.Decided.Saved
			}
			writeReason(b, o, why, total)
		}
	}
}

// continued is the start of each further line of a foreign text, so that it cannot look like a
// line of the report.
const continued = "    | "

// mostReasonLines is the most lines of a feedback that are shown; the record has all of it.
const mostReasonLines = 6

func writeReason(b *strings.Builder, o Options, why record.Reason, total int) {
	head := fmt.Sprintf("in %d of %s: ", why.Trials, text.Count(total, "trial", "trials"))
	if why.Trials == 0 {
		head = "the task: "
	}
	if why.Grader != "" {
		head = Clean(why.Grader) + " " + head
	}
	message := strings.TrimSpace(why.Message)
	if message == "" {
		message = "no reason given"
	}
	var lines []string
	for line := range strings.SplitSeq(message, "\n") {
		if line = strings.TrimRight(Clean(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	if n := len(lines) - mostReasonLines; n > 0 {
		lines = append(lines[:mostReasonLines], fmt.Sprintf("… and %s", text.Count(n, "more line", "more lines")))
	}
	lines[0] = head + lines[0]
	indent := "    "
	for _, line := range lines {
		for _, part := range Wrap(line, o.Width-len(indent)-2) {
			b.WriteString(indent + part + "\n")
			indent = continued
		}
	}
}

// metrics prints each metric, its threshold and whether it was reached. It marks a metric that
// could not be measured, which is neither good nor bad.
func (r *Report) metrics(b *strings.Builder, o Options) {
	if r.Summary == nil || len(r.Summary.Metrics) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", o.paint(bold, "Metrics"))
	var rows []row
	for _, m := range r.Summary.Metrics {
		name := "  " + Clean(m.Name)
		switch {
		case m.Value == nil:
			note := strings.TrimPrefix(Clean(m.Note), "not measured: ")
			what := "not measured: "
			if m.Threshold > 0 {
				what = "not measured, expected at least " + figure.Threshold(m.Threshold) + ": "
			}
			rows = append(rows, row{[]string{name, "–", what + note}, []colour{0, 0, yellow}})
		case m.Passed != nil && !*m.Passed:
			rows = append(rows, row{
				[]string{name, figure.Score(*m.Value, m.Threshold), "missed: expected at least " + figure.Threshold(m.Threshold)},
				[]colour{0, red, red},
			})
		case m.Threshold > 0:
			rows = append(rows, row{
				[]string{name, figure.Score(*m.Value, m.Threshold), "at least " + figure.Threshold(m.Threshold)},
				[]colour{0, green, 0},
			})
		default:
			rows = append(rows, row{[]string{name, figure.Score(*m.Value, m.Threshold), ""}, []colour{0, 0, 0}})
		}
	}
	writeTable(b, rows, Options{Color: o.Color})
}

// closing prints a summary of a few lines.
func (r *Report) closing(b *strings.Builder, o Options) {
	tasks, all := r.tally()
	if tasks.Total == 0 && len(r.Tasks) > 0 {
		r.closingWithoutTasks(b, o)
		r.ending(b, o, all)
		return
	}
	parts := []string{o.paint(r.closingColour(tasks), fmt.Sprintf("%d of %s passed", tasks.Passed, text.Count(tasks.Total, "task", "tasks")))}
	for _, x := range []struct {
		n    int
		what string
		c    colour
	}{
		{tasks.Failed, "failed", red}, {tasks.Timeouts, "timed out", red}, {tasks.Errors, "in error", magenta},
		{tasks.Cancelled, "cancelled", yellow}, {tasks.Skipped, "skipped", yellow},
		{tasks.NeedsReview, "to review", cyan},
		{tasks.Total - tasks.Done(), "not finished", yellow},
	} {
		if x.n > 0 {
			parts = append(parts, o.paint(x.c, fmt.Sprintf("%d %s", x.n, x.what)))
		}
	}
	fmt.Fprintf(b, "\n%s", strings.Join(parts, ", "))
	fmt.Fprintf(b, "; %d of %s passed", all.Passed, text.Count(all.Counted(), "counted trial", "counted trials"))
	if r.Summary != nil {
		if r.Summary.Flaky > 0 {
			fmt.Fprintf(b, ", %s", text.Count(r.Summary.Flaky, "task is flaky", "tasks are flaky"))
		}
		if r.Summary.TrialsSaved > 0 {
			fmt.Fprintf(b, ", %s saved", text.Count(r.Summary.TrialsSaved, "trial", "trials"))
		}
	}
	if r.Summary != nil && r.Status != record.StatusInterrupted { // the duration is unknown
		fmt.Fprintf(b, "; %s", milliseconds(float64(r.Summary.DurationMS)))
	}
	b.WriteByte('\n')
	r.ending(b, o, all)
}

// closingWithoutTasks closes the report of a run that has only trigger tests.
func (r *Report) closingWithoutTasks(b *strings.Builder, o Options) {
	b.WriteString("\nNo task of the suite was run")
	if r.Summary != nil {
		fmt.Fprintf(b, "; %s", milliseconds(float64(r.Summary.DurationMS)))
	}
	b.WriteByte('\n')
}

// ending prints tool scores, cost, reused trials, missed thresholds and waiting reviews, and why
// the run did not complete.
func (r *Report) ending(b *strings.Builder, o Options, all record.Counts) {
	if r.Summary != nil && r.Summary.Tools != nil {
		fmt.Fprintf(b, "Tool scores: %s\n", toolsText(r.Summary.Tools))
	}
	r.spent(b)
	r.cached(b)
	if r.Summary != nil && len(r.Summary.Missed) > 0 {
		fmt.Fprintf(b, "%s %s\n", o.paint(red, "Under their threshold:"), Clean(strings.Join(r.Summary.Missed, ", ")))
	}
	waiting := all.NeedsReview
	if r.Summary != nil {
		waiting = r.Summary.Waiting()
	}
	if waiting > 0 {
		fmt.Fprintf(b, "%s waza review %s\n",
			o.paint(cyan, text.Count(waiting, "trial waits", "trials wait")+" for review:"), Clean(r.Record.RunID))
	}
	switch r.Status {
	case record.StatusCancelled:
		if r.Error != "" {
			fmt.Fprintf(b, "%s %s\n", o.paint(magenta, "Remaining trials were not started:"), Clean(r.Error))
			return
		}
		fmt.Fprintln(b, o.paint(yellow, "The run was interrupted. Remaining trials were not finished."))
	case record.StatusInterrupted:
		fmt.Fprintln(b, o.paint(yellow, "The process that executed the run ended before the run did."))
	case record.StatusFailed:
		fmt.Fprintf(b, "%s %s\n", o.paint(magenta, "The run could not continue:"), Clean(r.Error))
	}
}

// spent prints the cost of the run: agents and judges in all attempts, and what earlier runs
// spent on the reused trials.
func (r *Report) spent(b *strings.Builder) {
	if r.Summary == nil {
		return
	}
	if text := spentText(r.Summary); text != "" {
		fmt.Fprintf(b, "Spent: %s\n", text)
	}
}

// spentText formats the cost; it is empty if nothing is known.
func spentText(s *record.Summary) string {
	text := usageText(s.Usage)
	if l := s.UsageByRole; text != "" && l != nil && (l.Judges != nil || l.Responder != nil) {
		text += " (agents " + orNone(usageText(l.Agent))
		if l.Judges != nil {
			text += "; judges " + orNone(usageText(l.Judges))
		}
		if l.Responder != nil {
			text += "; responders " + orNone(usageText(l.Responder))
		}
		text += ")"
	}
	return text
}

// usageText formats tokens and cost, if they are known.
func usageText(u *record.Usage) string {
	if u == nil || u.Total() == 0 && u.CostUSD == 0 {
		return ""
	}
	text := text.Count(int(u.Total()), "token", "tokens")
	if u.CostUSD > 0 {
		text += ", " + figure.Cost(u.CostUSD)
	}
	return text
}

// cached prints how many trials of all tasks were reused from earlier runs, and what they cost
// there.
func (r *Report) cached(b *strings.Builder) {
	s := r.Summary
	if s == nil || s.TrialsCached == 0 {
		return
	}
	total := 0
	for _, t := range r.Tasks {
		total += t.Trials
	}
	fmt.Fprintf(b, "%d of %s from the cache", s.TrialsCached, text.Count(total, "trial", "trials"))
	if s.UsageCached != nil && s.UsageCached.CostUSD > 0 {
		b.WriteString(", which originally cost " + figure.Cost(s.UsageCached.CostUSD))
	}
	b.WriteByte('\n')
}

func (r *Report) closingColour(tasks record.Counts) colour {
	switch {
	case tasks.Passed == tasks.Total && tasks.Total > 0 && (r.Summary == nil || len(r.Summary.Missed) == 0):
		return green
	case tasks.Failed+tasks.Timeouts > 0 || r.Summary != nil && len(r.Summary.Missed) > 0:
		return red
	}
	return yellow
}
