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
// worse by the question of its verdict, a notice that sums up each comparison, and one for each of its limits. Tasks that
// passed always before and never now have one, too. Regressions are errors if strict is
// set, and warnings otherwise. Texts of suites are escaped.
func Write(w io.Writer, c *compare.Comparison, strict bool) error {
	a := &writer{out: bufio.NewWriter(w)}
	level := "warning"
	if strict {
		level = "error"
	}
	suites := c.Suites()
	for _, one := range suites {
		if len(suites) > 1 {
			a.suite = fmt.Sprintf("suite %q: ", one.Runs[0].Suite.Name)
		}
		for i := range one.Comparisons {
			x := &one.Comparisons[i]
			a.comparison(x, level, c.Confidence)
			a.collapsed(x, strict, c.OnCollapsedTasks)
			for _, n := range x.Notes {
				a.add("notice", "note", strings.TrimSpace(n.Run+" "+n.Text))
			}
		}
	}
	a.suite = ""
	for _, s := range c.Single {
		a.add("notice", "not compared", fmt.Sprintf("the suite %q has too few runs", s.Name))
	}
	if a.left > 0 {
		a.out.WriteString("::notice title=waza::" +
			escaped(text.Count(a.left, "further finding is", "further findings are")+" in the summary of the step") + "\n")
	}
	return a.out.Flush()
}

type writer struct {
	out   *bufio.Writer
	suite string // before each message; empty for a comparison of one suite
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
	if c.Outcome == record.OutcomeWorse {
		a.add(level, "worse", fmt.Sprintf("on %s, run %s is worse than the reference (p %s)", c.About, c.Run,
			figure.P(c.P, 1-confidence))+report.WhyNoTask(c))
	}
	a.add("notice", "compared", fmt.Sprintf("%d regressed, %d improved, %d unchanged, %d without a difference, %d "+
		"undecided of %s, each by itself",
		c.Regressed, c.Improved, c.Unchanged, c.NoDifference, c.Undecided, text.Count(c.Compared, "task", "tasks")))
	if !c.Active {
		a.add("notice", "verdict", fmt.Sprintf("about %s: %s; about %s: %s", c.About, answerText(c, c.About, confidence),
			other(c.About), answerText(c, other(c.About), confidence)))
	}
}

func other(q record.Question) record.Question {
	if q == record.TheseTasks {
		return record.TasksLikeThese
	}
	return record.TheseTasks
}

// answerText returns the answer to a question in a few words.
func answerText(c *compare.RunComparison, q record.Question, confidence float64) string {
	answer := c.TheseTasks
	if q == record.TasksLikeThese {
		if like := &c.TasksLikeThese; like.TooFew {
			return fmt.Sprintf("too few tasks, at least %d are needed", like.AtLeast)
		}
		answer = c.TasksLikeThese.Answer
	}
	return fmt.Sprintf("%s (p %s)", answer.Outcome, figure.P(answer.P, 1-confidence))
}

// collapsed adds the tasks that passed always before and never now, in too few trials for a test.
func (a *writer) collapsed(c *compare.RunComparison, strict bool, effect compare.OnTasks) {
	level := "warning"
	switch {
	case effect == compare.OnTasksAllow:
		return
	case strict && effect == compare.OnTasksFail:
		level = "error"
	}
	for _, t := range c.Collapsed() {
		a.add(level, "collapsed", fmt.Sprintf("task %q passed all of its %s of the reference and none of %s, too few "+
			"for a test: a rule of the gate, not a significance result",
			t.ID, text.Count(t.Reference.Counted(), "trial", "trials"), text.Count(t.Run.Counted(), "trial", "trials")))
	}
	if strict && c.NonePassed() && !c.ShowsRegression() {
		a.add("error", "undecided", "no trial of run "+c.Run+" passed, in too few trials for a test; add trials")
	}
}

func (a *writer) add(level, kind, message string) {
	if a.count++; a.count > most {
		a.left++
		return
	}
	fmt.Fprintf(a.out, "::%s title=waza: %s::%s\n", level, strings.ReplaceAll(kind, "_", " "), escaped(a.suite+message))
}

// escaped encodes a text as the message of a command, which must be one line.
func escaped(message string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(report.Clean(message))
}
