package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

const (
	// MaxMarkdown is the most bytes of a step summary on GitHub, which drops longer summaries
	// completely.
	MaxMarkdown = 1 << 20
	// MaxComment is the most bytes of an issue, a pull request or a comment on GitHub.
	MaxComment = 65_536
)

// markdownReserve is the room for the note that parts are omitted.
const markdownReserve = 300

const (
	mostRows         = 200     // of a table; if there are more tasks, those that passed are omitted
	mostMarkdownText = 4 << 10 // bytes of a reason
)

// Markdown writes a run as a summary for GitHub: a table of its tasks, folded reasons of the
// tasks that did not pass, and the other results. The summary has at most limit bytes. It omits
// blocks that do not fit, and counts them.
func Markdown(w io.Writer, h record.Handle, limit int) error {
	r, err := Of(h)
	if err != nil {
		return err
	}
	m := &markdown{Report: r, left: limit - markdownReserve}
	m.head()
	m.decision()
	m.tasks()
	m.reasons()
	m.suspicions()
	m.document(r.judgedDocument(CodeSpan, true))
	m.positions()
	m.noise()
	m.document(r.benchmarkDocument())
	m.metrics()
	m.groups()
	m.baseline()
	m.triggers()
	m.shouldTrigger()
	m.document(r.routingDocument())
	m.document(r.agreementDocument())
	m.document(r.correctedDocument())
	m.closing()
	if m.b.Len() > limit {
		return nil // not even the head fits
	}
	_, err = io.WriteString(w, m.b.String())
	return err
}

// WriteMarkdown writes a summary for a step of a workflow, at most [MaxMarkdown] bytes.
func WriteMarkdown(w io.Writer, h record.Handle) error { return Markdown(w, h, MaxMarkdown) }

// WriteComment writes a summary for a comment, at most [MaxComment] bytes.
func WriteComment(w io.Writer, h record.Handle) error { return Markdown(w, h, MaxComment) }

// markdown is a partly written summary.
type markdown struct {
	*Report
	b       strings.Builder
	left    int // bytes left
	dropped int // number of omitted blocks
}

// add writes a block if all of it fits. It reports whether it did.
func (m *markdown) add(block string) bool {
	if len(block) > m.left {
		m.dropped++
		return false
	}
	m.b.WriteString(block)
	m.left -= len(block)
	return true
}

// document adds a document, unless it is empty.
func (m *markdown) document(d *document) {
	if d == nil {
		return
	}
	if s := d.markdown(); s != "" {
		m.add("\n" + s)
	}
}

func (m *markdown) head() {
	tasks, all := m.tally()
	verdict := "❌"
	switch {
	case m.Status != record.StatusCompleted, m.Damage != nil:
		verdict = "⚠️"
	case m.good(tasks):
		verdict = "✅"
	case tasks.Errors > 0 || all.Errors > 0:
		verdict = "⚠️"
	}
	c := &m.Record.Config
	facts := []string{c.Executor, c.Agent, m.Record.ModelText(nil)}
	var b strings.Builder
	if m.Summary != nil && m.Summary.Decision != nil {
		b.WriteString(m.decisionHead(m.Summary.Decision))
	} else {
		fmt.Fprintf(&b, "### %s %s: %d of %s passed\n\n", verdict, CodeSpan(Cut(m.Record.Suite.Name, mostMessage)),
			tasks.Passed, text.Count(tasks.Total, "task", "tasks"))
	}
	saved := 0
	if m.Summary != nil && m.Record.Question != nil {
		saved = m.Summary.TrialsSaved
	}
	passed := fmt.Sprintf("%d of %s passed", all.Passed, text.Count(all.Counted(), "counted trial", "counted trials"))
	parts := []string{passed + Options{}.amounts(" · ", []amount{
		{all.Errors, "in error", 0}, {all.Cancelled, "cancelled", 0}, {all.Skipped - saved, "skipped", 0}, {saved, "saved", 0},
		{all.NeedsReview, "to review", 0}, {all.Total - all.Done(), "not finished", 0},
	})}
	if m.timed() {
		parts = append(parts, milliseconds(float64(m.Summary.DurationMS)))
	}
	if m.Summary != nil {
		if n := m.Summary.Suspicious; n > 0 {
			parts = append(parts, "🔎 "+text.Count(n, "suspicious pass", "suspicious passes"))
		}
		if n := m.Summary.SelfReported; n > 0 {
			parts = append(parts, selfReportedText(n))
		}
		if text := toolsText(m.Summary.Tools); text != "" {
			parts = append(parts, "tools: "+text)
		}
		if text := spentText(m.Summary); text != "" {
			parts = append(parts, text)
		}
	}
	for _, f := range facts {
		if f != "" {
			parts = append(parts, CodeSpan(Cut(f, mostMessage)))
		}
	}
	if s := m.Sandbox(); s != nil {
		parts = append(parts, "sandbox: "+CodeSpan(Cut(s.String(), mostMessage)))
	}
	b.WriteString(strings.Join(parts, " · ") + "\n")
	if m.Status != record.StatusCompleted {
		fmt.Fprintf(&b, "\n**The run did not complete: its status is %s.**\n", m.Status)
		if m.Error != "" {
			b.WriteString("\n" + CodeBlock(Cut(m.Error, mostMarkdownText)))
		}
	}
	switch {
	case m.Damage.Damaged():
		b.WriteString("\n**The record of the run is damaged.**\n\n" + CodeBlock(Cut(m.Damage.String(), mostMarkdownText)))
	case m.Damage != nil:
		b.WriteString("\n**The record of the run cannot be verified.**\n\n" + CodeBlock(Cut(m.Damage.String(), mostMarkdownText)))
	}
	m.add(b.String())
}

// good reports whether a run has nothing to complain about.
func (m *markdown) good(tasks record.Counts) bool {
	s := m.Summary
	return tasks.Total > 0 && tasks.Passed == tasks.Total && s != nil && len(s.Missed) == 0 && s.Waiting() == 0 && s.Trials.Errors == 0
}

var verdictMark = map[record.Verdict]string{
	record.Passed: "✅", record.Failed: "❌", record.TimedOut: "⏱️", record.Errored: "⚠️", record.NeedsReview: "👀",
	record.Cancelled: "➖", record.Skipped: "➖",
}

// tasks adds the table of tasks. If there are very many, it omits those that passed, because
// readers need them least.
func (m *markdown) tasks() {
	var listed []*Task
	total, passed := 0, 0
	for i := range m.Tasks {
		if t := &m.Tasks[i]; t.Role == record.RoleTask {
			total++
			listed = append(listed, t)
		}
	}
	if total > mostRows {
		kept := listed[:0]
		for _, t := range listed {
			if t.Result != nil && t.Result.Verdict == record.Passed && !t.Result.Flaky && t.Result.Suspicious == 0 {
				passed++
				continue
			}
			kept = append(kept, t)
		}
		listed = kept
	}
	tools := m.hasTools()
	head, rule := "\n| | Task | Verdict | Trials | Score | Pass rate | 95 % interval | "+
		"Median time |", "\n|---|---|---|---:|---:|---:|---:|---:|"
	if tools {
		head, rule = head+" "+strings.Join(toolHeads, " | ")+" |", rule+"---:|---:|---:|"
	}
	if m.shrunken() != nil {
		head, rule = head+" "+shrunkenHead+" |", rule+"---:|"
	}
	if len(listed) > 0 && m.add(head+rule+"\n") {
		reasons := m.left * 2 / 3 // reasons are more useful than rows
		for i, t := range listed {
			row := t.markdownRow(tools)
			if m.shrunken() != nil {
				row = strings.TrimSuffix(row, "\n") + " " + m.shrunkenCell(t) + " |\n"
			}
			if i == mostRows || m.left-len(row) < reasons {
				m.dropped += len(listed) - i
				break
			}
			m.add(row)
		}
		if m.shrunken() != nil {
			m.add("\n" + shrunkenNote + "\n")
		}
	}
	if passed > 0 {
		m.add(fmt.Sprintf("\n%s passed and %s not listed.\n", text.Count(passed, "task", "tasks"), text.Plural(passed, "is", "are")))
	}
}

func (t *Task) markdownRow(tools bool) string {
	mark := "…"
	if t.Result != nil {
		mark = verdictMark[t.Result.Verdict]
	}
	line := "| " + mark + " | " + codeCell(Cut(t.ID, mostMessage))
	for _, cell := range t.row("", tools)[1:] {
		line += " | " + cell.text
	}
	return line + " |\n"
}

// reasons adds the folded reasons why tasks did not pass. It covers the tasks of the suite and
// every other task that ended in an error.
func (m *markdown) reasons() {
	first := true
	for i := range m.Tasks {
		t := &m.Tasks[i]
		if t.Result == nil {
			continue
		}
		block := m.taskReasons(t)
		if block == "" {
			continue
		}
		if first {
			block = "\n**Not passed**\n" + block
		}
		if m.add(block) {
			first = false
		}
	}
}

func (m *markdown) taskReasons(t *Task) string {
	var b strings.Builder
	for _, why := range t.Result.Reasons {
		fault := why.Verdict == record.Failed || why.Verdict == record.TimedOut
		if t.Role != record.RoleTask && fault || !fault && why.Verdict != record.Errored {
			continue
		}
		what := string(why.Verdict)
		if why.Grader != "" {
			what = CodeSpan(Cut(why.Grader, mostMessage)) + " " + what
		}
		message := cmp.Or(strings.TrimSpace(why.Message), "no reason given")
		fmt.Fprintf(&b, "%s in %d of %s:\n\n%s\n", what, why.Trials,
			text.Count(t.Result.Trials.Total-t.Result.SavedTrials(), "trial", "trials"), CodeBlock(Cut(message, mostMarkdownText)))
	}
	if t.Result.Error != "" {
		fmt.Fprintf(&b, "error of the task:\n\n%s\n", CodeBlock(Cut(t.Result.Error, mostMarkdownText)))
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("\n<details><summary>%s %s: %s</summary>\n\n%s</details>\n",
		verdictMark[t.Result.Verdict], codeHTML(Cut(t.ID, mostMessage)), "passed "+taskTrials(t.Result), b.String())
}

// table adds a table with a title, with as many rows as fit.
func (m *markdown) table(title string, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	head := "| " + strings.Join(rows[0], " | ") + " |\n|---|" + strings.Repeat("---:|", len(rows[0])-1) + "\n"
	if !m.add("\n**" + title + "**\n\n" + head) {
		return
	}
	for i, cells := range rows[1:] {
		if i == mostRows || !m.add("| "+strings.Join(cells, " | ")+" |\n") {
			m.dropped += len(rows) - 1 - i
			return
		}
	}
}

func (m *markdown) metrics() {
	if m.Summary == nil {
		return
	}
	rows := [][]string{{"Metric", "Value", "At least", ""}}
	for _, x := range m.Summary.Metrics {
		row := []string{codeCell(x.Name), "–", "–", ""}
		if x.Threshold > 0 {
			row[2] = figure.Threshold(x.Threshold)
		}
		switch {
		case x.Value == nil:
			row[3] = "not measured"
		case x.Passed != nil && !*x.Passed:
			row[1], row[3] = figure.Score(*x.Value, x.Threshold), "❌ missed"
		default:
			row[1] = figure.Score(*x.Value, x.Threshold)
		}
		rows = append(rows, row)
	}
	m.table("Metrics", rows)
}

func (m *markdown) groups() {
	if m.Summary == nil {
		return
	}
	rows := [][]string{{"Group", "Trials", "Pass rate", "95 % interval"}}
	tools := slices.ContainsFunc(m.Summary.Groups, func(g record.GroupResult) bool { return g.CellResult != nil && g.Tools != nil })
	if tools {
		rows[0] = append(rows[0], toolHeads...)
	}
	for _, g := range m.Summary.Groups {
		rate, in := rateCells(g.Rate)
		cells := []string{codeCell(g.Group), groupTrials(m.Record, g.Counts), rate, in}
		if tools {
			cells = append(cells, toolCells(g.Tools)...)
		}
		rows = append(rows, cells)
	}
	m.table("Groups", rows)
	if len(m.Summary.Groups) > 0 && m.Summary.Groups[0].CellResult != nil {
		for _, line := range cellLines(m.Summary, CodeSpan) {
			m.add("\n" + line + "\n")
		}
	}
	if lines := promptLines(m.Summary); lines != nil {
		m.add("\n" + CodeBlock(strings.Join(lines, "\n")) + "\n")
	}
}

func (m *markdown) baseline() {
	if m.Summary == nil || m.Summary.Baseline == nil {
		return
	}
	shown := *m.Summary.Baseline
	base := &shown
	if base.Arm.HasSkills() {
		shown.Arm = record.Arm(CodeSpan(string(base.Arm)))
	}
	if !base.Measured {
		m.add("\n**Baseline** not measured.\n")
		return
	}
	text := fmt.Sprintf("\n**Baseline**, over %s: %s", text.Count(base.Pairs, "task", "tasks"), classCounts(base.ClassCounts))
	if g := base.PassRate; g != nil {
		text += fmt.Sprintf("; with skills %s, %s %s: %s points%s", figure.Percent(g.With),
			base.Arm.Short(), figure.Percent(g.Without), figure.Points(g.Gain), bounds(g.Interval, figure.PointsInterval))
	}
	for _, e := range Effects(base) {
		text += ". " + e.Text
	}
	if why := ExplainBaseline(base); why != "" {
		text += ". " + why
	}
	m.add(text + "\n")
}

func (m *markdown) triggers() {
	if m.Summary == nil || m.Summary.Triggers == nil {
		return
	}
	t := m.Summary.Triggers
	if !t.Measured || t.Accuracy == nil {
		m.add("\n**Trigger tests** not measured.\n")
		return
	}
	m.add(fmt.Sprintf("\n**Trigger tests:** %s; accuracy %s, precision %s, recall %s, F1 %s\n",
		answers(t, Options{}), figure.Percent(*t.Accuracy), quotient(t.Precision), quotient(t.Recall), quotient(t.F1)))
	if note := endedEarly(t); note != "" {
		m.add("\n" + note + ".\n")
	}
}

func (m *markdown) shouldTrigger() {
	if m.Summary == nil || m.Summary.ShouldTrigger == nil {
		return
	}
	u := m.Summary.ShouldTrigger
	m.add(fmt.Sprintf("\n**Expected should_trigger** of %s not measured: %s.\n", text.Count(u.Tasks, "task", "tasks"), unmeasured(u.Note)))
}

// closing states how much is omitted, and where to find it.
func (m *markdown) closing() {
	m.left += markdownReserve
	id := CodeSpan(Cut(m.Record.RunID, 100))
	if m.dropped > 0 {
		m.add(fmt.Sprintf("\n%s omitted because there is no room; see run %s for everything.\n",
			text.Count(m.dropped, "part was", "parts were"), id))
		return
	}
	m.add("\nRun " + id + "\n")
}
