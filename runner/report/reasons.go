package report

import (
	"cmp"
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// reasons prints by task why trials did not pass: first the failures of the agent, then the
// errors of the harness, and last the trials that a person has to review.
func (p *runPrinter) reasons() {
	p.reasonsOf("Not passed", func(t *Task, why record.Reason) bool {
		// Failures outside of the suite's own tasks are reported with the other results.
		return t.Role == record.RoleTask && (why.Verdict == record.Failed || why.Verdict == record.TimedOut)
	})
	p.reasonsOf("Errors: not the agent's fault, not counted",
		func(_ *Task, why record.Reason) bool { return why.Verdict == record.Errored })
	p.reasonsOf("To review", func(_ *Task, why record.Reason) bool { return why.Verdict == record.NeedsReview })
}

func (p *runPrinter) reasonsOf(title string, take func(*Task, record.Reason) bool) {
	for i := range p.Tasks {
		t := &p.Tasks[i]
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
				p.printf("\n%s\n", p.paint(bold, title))
				title = ""
			}
			if first {
				p.printf("  %s\n", Clean(t.ID))
				first = false
			}
			p.writeReason(why, res.Trials.Total-res.SavedTrials())
		}
	}
}

// continued is the start of each further line of a foreign text, so that it cannot look like a
// line of the report.
const continued = "    | "

// mostReasonLines is the most lines of a feedback that are shown; the record has all of it.
const mostReasonLines = 6

func (p *printer) writeReason(why record.Reason, total int) {
	head := fmt.Sprintf("in %d of %s: ", why.Trials, text.Count(total, "trial", "trials"))
	if why.Trials == 0 {
		head = "the task: "
	}
	if why.Grader != "" {
		head = Clean(why.Grader) + " " + head
	}
	message := cmp.Or(strings.TrimSpace(why.Message), "no reason given")
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
		for _, part := range Wrap(line, p.Width-len(indent)-2) {
			p.WriteString(indent + part + "\n")
			indent = continued
		}
	}
}

// metrics prints each metric, its threshold and whether it was reached. It marks a metric that
// could not be measured, which is neither good nor bad.
func (p *runPrinter) metrics() {
	if p.Summary == nil || len(p.Summary.Metrics) == 0 {
		return
	}
	p.printf("\n%s\n", p.paint(bold, "Metrics"))
	var rows []row
	for _, m := range p.Summary.Metrics {
		name := "  " + Clean(m.Name)
		switch {
		case m.Value == nil:
			note := strings.TrimPrefix(Clean(m.Note), "not measured: ")
			what := "not measured: "
			if m.Threshold > 0 {
				what = "not measured, expected at least " + figure.Threshold(m.Threshold) + ": "
			}
			rows = append(rows, row{plain(name), plain("–"), {text: what + note, colour: yellow}})
		case m.Passed != nil && !*m.Passed:
			rows = append(rows, row{
				plain(name), {text: figure.Score(*m.Value, m.Threshold), colour: red},
				{text: "missed: expected at least " + figure.Threshold(m.Threshold), colour: red},
			})
		case m.Threshold > 0:
			rows = append(rows, row{
				plain(name), {text: figure.Score(*m.Value, m.Threshold), colour: green},
				plain("at least " + figure.Threshold(m.Threshold)),
			})
		default:
			rows = append(rows, plains(name, figure.Score(*m.Value, m.Threshold), ""))
		}
	}
	wide := printer{Options: Options{Color: p.Color}} // notes are never wrapped
	wide.writeTable(rows)
	p.WriteString(wide.String())
}

// closing prints a summary of a few lines.
func (p *runPrinter) closing() {
	tasks, all := p.tally()
	if tasks.Total == 0 && len(p.Tasks) > 0 {
		p.closingWithoutTasks()
		p.ending(all)
		return
	}
	passed := fmt.Sprintf("%d of %s passed", tasks.Passed, text.Count(tasks.Total, "task", "tasks"))
	p.printf("\n%s%s", p.paint(p.closingColour(tasks), passed), p.amounts(", ", []amount{
		{tasks.Failed, "failed", red}, {tasks.Timeouts, "timed out", red}, {tasks.Errors, "in error", magenta},
		{tasks.Cancelled, "cancelled", yellow}, {tasks.Skipped, "skipped", yellow},
		{tasks.NeedsReview, "to review", cyan},
		{tasks.Total - tasks.Done(), "not finished", yellow},
	}))
	p.printf("; %d of %s passed", all.Passed, text.Count(all.Counted(), "counted trial", "counted trials"))
	if p.Summary != nil {
		if p.Summary.Flaky > 0 {
			p.printf(", %s", text.Count(p.Summary.Flaky, "task is flaky", "tasks are flaky"))
		}
		if p.Summary.TrialsSaved > 0 {
			p.printf(", %s saved", text.Count(p.Summary.TrialsSaved, "trial", "trials"))
		}
		if p.Summary.Suspicious > 0 {
			p.printf(", %s", p.paint(yellow, text.Count(p.Summary.Suspicious, "suspicious pass", "suspicious passes")))
		}
		if p.Summary.SelfReported > 0 {
			p.printf(", %s", selfReportedText(p.Summary.SelfReported))
		}
	}
	if p.timed() {
		p.printf("; %s", milliseconds(float64(p.Summary.DurationMS)))
	}
	p.WriteByte('\n')
	p.ending(all)
}

// closingWithoutTasks closes the report of a run that has only trigger tests.
func (p *runPrinter) closingWithoutTasks() {
	p.WriteString("\nNo task of the suite was run")
	if p.timed() {
		p.printf("; %s", milliseconds(float64(p.Summary.DurationMS)))
	}
	p.WriteByte('\n')
}

// ending prints tool scores, cost, reused trials, missed thresholds and waiting reviews, and why
// the run did not complete.
func (p *runPrinter) ending(all record.Counts) {
	if s := p.Sandbox(); s != nil {
		p.printf("Sandbox: %s\n", Clean(s.String()))
	}
	if p.Summary != nil && p.Summary.Tools != nil {
		p.printf("Tool scores: %s\n", toolsText(p.Summary.Tools))
	}
	p.spent()
	p.cached()
	if p.Summary != nil && len(p.Summary.Missed) > 0 {
		p.printf("%s %s\n", p.paint(red, "Under their threshold:"), Clean(strings.Join(p.Summary.Missed, ", ")))
	}
	waiting := all.NeedsReview
	if p.Summary != nil {
		waiting = p.Summary.Waiting()
	}
	if waiting > 0 {
		p.printf("%s waza review %s\n",
			p.paint(cyan, text.Count(waiting, "trial waits", "trials wait")+" for review:"), Clean(p.Record.RunID))
	}
	switch p.Status {
	case record.StatusCancelled:
		if p.Error != "" {
			p.printf("%s %s\n", p.paint(magenta, "Remaining trials were not started:"), Clean(p.Error))
			return
		}
		p.printf("%s\n", p.paint(yellow, "The run was interrupted. Remaining trials were not finished."))
	case record.StatusInterrupted:
		p.printf("%s\n", p.paint(yellow, "The process that executed the run ended before the run did."))
	case record.StatusFailed:
		p.printf("%s %s\n", p.paint(magenta, "The run could not continue:"), Clean(p.Error))
	}
}

// spent prints the cost of the run: agents and judges in all attempts, and what earlier runs
// spent on the reused trials.
func (p *runPrinter) spent() {
	if p.Summary == nil {
		return
	}
	if text := spentText(p.Summary); text != "" {
		p.printf("Spent: %s\n", text)
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
func (p *runPrinter) cached() {
	s := p.Summary
	if s == nil || s.TrialsCached == 0 {
		return
	}
	total := 0
	for _, t := range p.Tasks {
		total += t.Trials
	}
	p.printf("%d of %s from the cache", s.TrialsCached, text.Count(total, "trial", "trials"))
	if s.UsageCached != nil && s.UsageCached.CostUSD > 0 {
		p.WriteString(", which originally cost " + figure.Cost(s.UsageCached.CostUSD))
	}
	p.WriteByte('\n')
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
