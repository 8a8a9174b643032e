package report

import (
	"fmt"
	"strconv"

	"waza/runner/record"
)

// decisionText returns the answer to the question of the run; empty without one.
func (r *Report) decisionText() string {
	if r.Summary == nil || r.Summary.Decision == nil {
		return ""
	}
	return r.Summary.Decision.Text
}

func (p *runPrinter) decision() {
	if text := p.decisionText(); text != "" {
		p.printf("\n%s\n", p.paint(bold, Clean(text)))
	}
}

func (m *markdown) decision() {
	if text := m.decisionText(); text != "" {
		m.add("\n" + CodeBlock(Clean(text)) + "\n")
	}
}

// decides reports whether the run decides a question.
func (r *Report) decides() bool { return r.Record.Question != nil }

// decisionWord returns the answer to a question in one or two words.
func decisionWord(v record.DecisionVerdict) string {
	if v == record.DecidedNotBetter {
		return "not better"
	}
	return string(v)
}

// decision adds the testcase of the answer: a pass if side B is better, a failure if it is not, and an error if the
// question is undecided, like the exit codes of the command.
func (j *junit) decision(d *record.Decision) {
	c := testcase{name: "decision", verdict: record.Passed, kind: string(d.Verdict), message: d.Text, output: d.Text}
	switch d.Verdict {
	case record.DecidedBetter:
	case record.DecidedNotBetter:
		c.verdict = record.Failed
	default:
		c.verdict = record.Errored
	}
	j.testcase(c)
}

// decisionProperties returns the answer of a run that decides a question for programs.
func decisionProperties(d *record.Decision) []property {
	if d == nil {
		return nil
	}
	list := []property{
		{"decision", string(d.Verdict)}, {"decision_text", d.Text}, {"decision_a", d.A}, {"decision_b", d.B},
		{"better_by", number(d.BetterBy)}, {"risk", number(d.Risk)}, {"pairs", strconv.Itoa(d.Pairs)},
	}
	if d.Pairs > 0 {
		list = append(list, property{"gain", number(d.Gain)}, property{"gain_low", number(d.Interval.Low)}, property{"gain_high", number(d.Interval.High)})
	}
	if d.Missing > 0 {
		list = append(list, property{"missing_pairs", strconv.Itoa(d.Missing)})
	}
	if d.More != nil {
		list = append(list, property{"more_pairs", strconv.Itoa(d.More.Pairs)})
		if d.More.CostUSD > 0 {
			list = append(list, property{"more_cost_usd", number(d.More.CostUSD)})
		}
	}
	return list
}

// decisionHead returns the head of a run's summary that has an answer.
func (m *markdown) decisionHead(d *record.Decision) string {
	mark := map[record.DecisionVerdict]string{record.DecidedBetter: "✅", record.DecidedNotBetter: "❌"}[d.Verdict]
	if mark == "" || m.Status != record.StatusCompleted || m.Damage != nil {
		mark = "⚠️"
	}
	return fmt.Sprintf("### %s %s: %s\n\n", mark, CodeSpan(Cut(m.Record.Suite.Name, mostMessage)), decisionWord(d.Verdict))
}
