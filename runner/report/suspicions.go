package report

import (
	"fmt"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
)

// suspicionText describes a suspicious move in one line.
func suspicionText(s *record.TrialSuspicion) string {
	return fmt.Sprintf("trial %d: %s in %s: %s", s.TrialNum, s.Rule, s.Place, s.Evidence)
}

// SuspicionTexts describes the suspicious moves of a trial that passed, one per line; nil for other
// trials.
func SuspicionTexts(t *record.Trial) []string {
	if !t.Suspicious() {
		return nil
	}
	lines := make([]string, len(t.Suspicions))
	for i, s := range t.Suspicions {
		lines[i] = fmt.Sprintf("%s in %s: %s", s.Rule, s.Place, s.Evidence)
	}
	return lines
}

// selfReportedText describes how many passes depend on tool calls that only the agent says it made.
func selfReportedText(n int) string {
	return text.Plural(n, "1 pass depends", strconv.Itoa(n)+" passes depend") + " on self-reported tool calls"
}

// suspicions prints the suspicious moves of trials that passed.
func (p *runPrinter) suspicions() {
	title := "Suspicious passes: look at these trials"
	for i := range p.Tasks {
		t := &p.Tasks[i]
		res := t.known()
		if res == nil || res.Suspicious == 0 {
			continue
		}
		if title != "" {
			p.printf("\n%s\n", p.paint(bold, title))
			title = ""
		}
		p.printf("  %s, %s of %d passed\n", Clean(t.ID), text.Count(res.Suspicious, "suspicious trial", "suspicious trials"), res.Trials.Passed)
		for j := range res.Suspicions {
			indent := "    "
			for _, part := range Wrap(Clean(suspicionText(&res.Suspicions[j])), p.Width-len(indent)-2) {
				p.WriteString(indent + part + "\n")
				indent = continued
			}
		}
	}
}

// suspicions adds the suspicious moves of trials that passed, folded by task.
func (m *markdown) suspicions() {
	first := true
	for i := range m.Tasks {
		t := &m.Tasks[i]
		if t.Result == nil || t.Result.Suspicious == 0 {
			continue
		}
		lines := make([]string, len(t.Result.Suspicions))
		for j := range lines {
			lines[j] = suspicionText(&t.Result.Suspicions[j])
		}
		block := fmt.Sprintf("\n<details><summary>🔎 %s: %s of %d passed</summary>\n\n%s</details>\n", codeHTML(Cut(t.ID, mostMessage)),
			text.Count(t.Result.Suspicious, "suspicious trial", "suspicious trials"), t.Result.Trials.Passed, CodeBlock(strings.Join(lines, "\n")))
		if first {
			block = "\n**Suspicious passes**\n" + block
		}
		if m.add(block) {
			first = false
		}
	}
}
