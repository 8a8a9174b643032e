package report

import (
	"fmt"

	"waza/runner/figure"
	"waza/runner/record"
)

// conditionTexts describe conditions: their name, and the trials that have them.
var conditionTexts = map[record.Condition]struct{ name, with string }{
	record.ConditionCPUWait:        {"waits for processors", aboveMedian},
	record.ConditionLoad:           {"the load of the machine", aboveMedian},
	record.ConditionMemoryWait:     {"waits for memory", aboveMedian},
	record.ConditionMemoryFree:     {"little available memory", "with less of it than the median of their task"},
	record.ConditionThrottled:      {"throttling", "with throttled requests"},
	record.ConditionRetried:        {"faults of the network or of providers", "with requests that were sent again"},
	record.ConditionRequestsWaited: {"waits of requests", aboveMedian},
	record.ConditionWaited:         {"waits before trials start", aboveMedian},
}

const aboveMedian = "above the median of their task"

// NoiseText describes a condition with which failures or errors go.
func NoiseText(n *record.NoiseResult) string {
	about, ok := conditionTexts[n.Condition]
	if !ok { // of a later version
		about.name, about.with = Clean(string(n.Condition)), aboveMedian
	}
	outcome, verb, trials := "Failures", "passed", "trials"
	if n.Verdict == record.Errored {
		outcome, verb = "Errors", "ended in error"
	}
	if n.FirstAttempts {
		trials = "first attempts"
	}
	text := fmt.Sprintf("%s go with %s, within tasks (p %s)", outcome, about.name, figure.P(n.P))
	if n.With != nil && n.Without != nil {
		text = fmt.Sprintf("%s go with %s: of the %s %s, %s %s, of the others %s, within tasks (p %s)",
			outcome, about.name, trials, about.with, figure.Percent(*n.With), verb, figure.Percent(*n.Without), figure.P(n.P))
	}
	if n.Condition != record.ConditionWaited {
		text += ". This can also come from what these agents did"
	}
	return text + ". To check, run again with fewer workers"
}

// noise warns about conditions with which failures or errors go.
func (p *runPrinter) noise() {
	if p.Summary == nil || len(p.Summary.Noise) == 0 {
		return
	}
	p.WriteByte('\n')
	for i := range p.Summary.Noise {
		p.WriteString(p.paint(yellow, "Warning: "+NoiseText(&p.Summary.Noise[i])) + "\n")
	}
}

func (m *markdown) noise() {
	if m.Summary == nil {
		return
	}
	for i := range m.Summary.Noise {
		m.add("\n⚠️ " + CodeSpan(NoiseText(&m.Summary.Noise[i])) + "\n")
	}
}
