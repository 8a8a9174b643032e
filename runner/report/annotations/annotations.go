// Package annotations writes comparisons of runs as annotations of a GitHub workflow. Call
// [Write].
package annotations

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"waza/eval/text"
	"waza/runner/compare"
	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/report"
)

// most is the most annotations written: GitHub shows ten of each level per step.
const most = 50

// Write writes an annotation for each broken policy, each regressed task and each run that is
// worse overall, and a notice that sums up each comparison. Regressions are errors if strict is
// set, and warnings otherwise. Texts of suites are escaped.
func Write(w io.Writer, c *compare.Comparison, strict bool) error {
	a := &writer{out: bufio.NewWriter(w)}
	level := "warning"
	if strict {
		level = "error"
	}
	for i := range c.Comparisons {
		a.comparison(&c.Comparisons[i], level, c.Confidence)
	}
	if a.left > 0 {
		a.out.WriteString("::notice title=waza::" + escaped(text.Count(a.left, "further finding is", "further findings are")+" in the summary of the step") + "\n")
	}
	return a.out.Flush()
}

type writer struct {
	out   *bufio.Writer
	count int
	left  int
}

func (a *writer) comparison(c *compare.RunComparison, level string, confidence float64) {
	if p := c.Policies; p != nil {
		for _, f := range p.Failures {
			a.add("error", string(f.Kind), f.Message)
		}
		if p.Unmeasured != "" {
			a.add("error", string(compare.PolicyRegression), "not measured: "+p.Unmeasured)
		}
		for _, f := range p.Warnings {
			a.add("warning", string(f.Kind), f.Message)
		}
	}
	for i := range c.Tasks {
		if t := &c.Tasks[i]; t.Class == record.Regressed {
			a.add(level, "regressed", fmt.Sprintf("task %q regressed: pass rate %s → %s (p %s)", t.ID,
				figure.Percent(t.PassRate.Reference), figure.Percent(t.PassRate.Run), figure.P(t.P, 1-confidence)))
		}
	}
	if c.Outcome == compare.OutcomeWorse {
		a.add(level, "worse", fmt.Sprintf("run %s is worse than the reference (p %s)", c.Run, figure.P(c.P, 1-confidence)))
	}
	a.add("notice", "compared", fmt.Sprintf("%d regressed, %d improved, %d unchanged, %d without a difference, %d undecided of %s",
		c.Regressed, c.Improved, c.Unchanged, c.NoDifference, c.Undecided, text.Count(c.Compared, "task", "tasks")))
}

func (a *writer) add(level, kind, message string) {
	if a.count++; a.count > most {
		a.left++
		return
	}
	fmt.Fprintf(a.out, "::%s title=waza: %s::%s\n", level, strings.ReplaceAll(kind, "_", " "), escaped(message))
}

// escaped encodes a text as the message of a command, which must be one line.
func escaped(message string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(report.Clean(message))
}
