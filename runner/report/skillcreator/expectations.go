package skillcreator

import (
	"fmt"

	"waza/runner/record"
	"waza/runner/report"
)

// expectationsOf returns the statements of a trial that counts: those that judges marked, and one for
// each other grader. There is always one, because a rate needs one.
func expectationsOf(t *record.Trial) []expectation {
	var list []expectation
	if t.Verdict == record.TimedOut {
		list = append(list, expectation{"The agent finishes in time", false, t.Error})
	}
	for i := range t.Graders {
		g := &t.Graders[i]
		statements := report.Statements(g)
		for _, s := range statements {
			list = append(list, expectation(s))
		}
		if statements == nil && g.Counts() {
			list = append(list, ofGrader(g))
		}
	}
	for _, g := range t.Ungraded {
		list = append(list, expectation{titleOf(g.Name, g.Type), false, "not graded, because the agent did not finish"})
	}
	if list == nil {
		list = append(list, expectation{"The agent completes the task", t.Verdict == record.Passed, completed(t)})
	}
	return list
}

func completed(t *record.Trial) string {
	if t.Error != "" {
		return t.Error
	}
	return "no grader; the verdict is " + string(t.Verdict)
}

// ofGrader returns the statement that a grader passes.
func ofGrader(g *record.Grade) expectation {
	return expectation{titleOf(g.Name, g.Type), g.Passed, report.Evidence(g)}
}

func titleOf(name, kind string) string {
	if name == "" || name == kind {
		return "Grader " + kind + " passes"
	}
	return fmt.Sprintf("%s (grader %s) passes", name, kind)
}

// gradingOf returns the document of the expectations.
func gradingOf(list []expectation, m metrics, tm timing) grading {
	g := grading{Expectations: list, Metrics: m, Summary: summary{Total: len(list)}}
	for _, e := range list {
		if e.Passed {
			g.Summary.Passed++
		}
	}
	g.Summary.Failed = g.Summary.Total - g.Summary.Passed
	g.Summary.PassRate = float64(g.Summary.Passed) / float64(g.Summary.Total)
	if tm.ExecutorSeconds != nil || tm.GraderSeconds != nil {
		g.Timing = &gradingTiming{ExecutorSeconds: tm.ExecutorSeconds, GraderSeconds: tm.GraderSeconds}
	}
	return g
}
