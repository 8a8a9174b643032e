package report

import (
	"cmp"
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// Explain returns the reason of a trial's verdict: in one line, and with all feedback of graders.
// Both are empty for a trial that passed.
func Explain(t *record.Trial, runID string) (line, text string) {
	switch t.Verdict {
	case record.Passed:
		return "", ""
	case record.NeedsReview:
		return "waits for a person's score: waza review " + runID, ""
	case record.Failed:
		return whyFailed(t)
	}
	if t.Error == "" {
		return string(t.Verdict), ""
	}
	return firstLine(t.Error), t.Error
}

func whyFailed(t *record.Trial) (line, text string) {
	var lines, texts []string
	if below := t.BelowThreshold(); below != "" {
		lines = append(lines, below)
		texts = append(texts, fmt.Sprintf("%s: %s", below, figure.Score(*t.Score)))
	}
	for i := range t.Graders {
		g := &t.Graders[i]
		if g.Passed || g.NeedsReview || g.Error != "" || !g.Counts() {
			continue
		}
		feedback := cmp.Or(strings.TrimSpace(g.Feedback), "no reason given")
		lines = append(lines, g.Name+": "+firstLine(feedback))
		texts = append(texts, fmt.Sprintf("%s (%s), score %s: %s", g.Name, g.Type, figure.Score(g.Score), feedback))
	}
	switch {
	case len(lines) == 0 && t.Error != "":
		return firstLine(t.Error), t.Error
	case len(lines) == 0:
		return "failed", ""
	}
	return strings.Join(lines, "; "), strings.Join(texts, "\n")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

// Cut shortens a text to at most that many bytes of whole characters, and adds how many bytes
// are missing.
func Cut(s string, most int) string { return cutLong(s, most, 0) }

// cutLong is like Cut for the start of a text that has more bytes.
func cutLong(s string, most int, more int64) string {
	if len(s) <= most && more == 0 {
		return s
	}
	head := text.Head(s, most)
	return head + fmt.Sprintf(" … [%d more bytes]", int64(len(s)-len(head))+more)
}
